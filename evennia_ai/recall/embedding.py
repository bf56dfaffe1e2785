"""The static embedder: one stored vector a token, averaged and normalised."""

import os
import threading
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evennia_ai.errors import StoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATA = Path(__file__).resolve().parent / "data"
# Characters of a text that are embedded. More hardly moves the mean, and could stall a search.
MAX_CHARACTERS = 4_000
_BATCH = 1_024


class StaticEmbedder:
    """Embeds texts with a model2vec model, loaded lazily from a local folder. Thread-safe.

    The folder holds `config.json`, `model.safetensors` and `tokenizer.json`.
    """

    def __init__(self, path: Path | str = DATA):
        self.path = Path(path)
        self._lock = threading.Lock()

    @property
    def dims(self) -> int:
        """Dimensions of a vector. Loads the model."""
        return int(self._model.dim)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """L2-normalised vectors of texts, shape ``(len(texts), dims)``; zeros for no known token.

        `StoreError` if the model's files are missing or broken.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        # Lone surrogates are no text to the tokenizer.
        cut = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        # The tokenizer's truncation is set again on each call, so calls must not overlap.
        with self._lock:
            raw = self._model.encode(cut, batch_size=_BATCH, use_multiprocessing=False)
        vectors = np.nan_to_num(np.asarray(raw, dtype=np.float32))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        if not (self.path / "model.safetensors").is_file():
            raise StoreError(
                f"No embedding model in `{self.path}`; reinstall the package or run "
                "`scripts/distill_embedder.py`."
            )
        # Threads of its own cost a short query more than they save, and Twisted forks.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from model2vec import StaticModel

        try:
            return StaticModel.from_pretrained(self.path, force_download=False)
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(
                f"The embedding model in `{self.path}` cannot be read: {error}"
            ) from error


def dimensions() -> int:
    """The length of the vectors of the packaged embedder, which embeds a text for it."""
    return int(default_embedder().embed(["a lantern in the window"]).shape[1])


@cache
def default_embedder() -> StaticEmbedder:
    """The packaged embedder, one for the whole process."""
    return StaticEmbedder()
