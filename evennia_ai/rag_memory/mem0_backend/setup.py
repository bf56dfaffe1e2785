"""Building Mem0's `Memory` so that it works offline, with no key, under one folder.

By default Mem0 2.2 wants an OpenAI key, keeps files in the home folder and under ``/tmp``, and
sends telemetry at import.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evennia_ai.errors import StoreError
from evennia_ai.recall.embedding import Embedder

COLLECTION = "evennia_ai"
# The vector length of Mem0's default embedder (OpenAI's small model).
MEM0_DIMS = 1536
_PROVIDER = "evennia_ai"
_HERE = "evennia_ai.rag_memory.mem0_backend.setup"


class EmbedderAdapter:
    """An embedder as Mem0 calls it; `embedder` is set after Mem0 has constructed this."""

    embedder: Embedder | None = None

    def __init__(self, config: object):
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of one text."""
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """The vectors of several texts."""
        assert self.embedder is not None, "set by the engine"
        return [[float(number) for number in row] for row in self.embedder.embed(texts)]


class CapturingLlm:
    """Takes the place of Mem0's model, so that no thread waits for one.

    Memories stored as they are never call it. To extract some, Mem0 runs once to capture its prompt
    (`answer` is None: note the question and fail), and again with the model's answer to store its
    memories.
    """

    def __init__(self, config: object = None, answer: str | None = None):
        self.config = config
        self._answer = answer
        self.asked: list[dict[str, str]] | None = None

    def generate_response(
        self, messages: Iterable[Mapping[str, Any]], *args: Any, **options: Any
    ) -> str:
        """The answer; `StoreError` if there is none yet."""
        if self._answer is None:
            self.asked = [dict(message) for message in messages]
            raise StoreError("Mem0 has no `llm` configured; set one in `EVENNIA_AI_MEM0_CONFIG`.")
        return self._answer


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Mem0 from logging as an error that it was only asked for its prompt."""
    log = logging.getLogger("mem0")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def import_mem0(directory: Path) -> Any:
    """Import Mem0 with telemetry off and its own files under `directory`, or `StoreError`."""
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(directory)
    # Warnings about optional packages (spaCy, fastembed) that this product does without.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    try:
        import mem0
    except ImportError as error:
        raise StoreError(
            f"The package `mem0ai` cannot be imported ({error}); install it with"
            " `pip install mem0ai` and restart."
        ) from error
    return mem0


def memory_config(directory: Path, overrides: Mapping[str, Any], dims: int) -> Any:
    """Mem0's `MemoryConfig`: the embedded defaults, replaced by the owner's keys (`overrides`)."""
    from mem0.configs.base import MemoryConfig
    from mem0.embeddings.configs import EmbedderConfig
    from mem0.llms.configs import LlmConfig
    from mem0.utils.factory import EmbedderFactory, LlmFactory

    # The names Mem0 accepts are a fixed list, hence no validation of ours.
    EmbedderFactory.provider_to_class[_PROVIDER] = f"{_HERE}.EmbedderAdapter"
    LlmFactory.register_provider(_PROVIDER, f"{_HERE}.CapturingLlm")
    embedder = EmbedderConfig.model_construct(provider=_PROVIDER, config={"embedding_dims": dims})
    llm = LlmConfig.model_construct(provider=_PROVIDER, config={})
    parts: dict[str, Any] = {"history_db_path": str(directory / "history.db"), **overrides}
    try:
        parts["vector_store"] = _vector_store(directory, overrides.get("vector_store"), dims)
        return MemoryConfig(**{"embedder": embedder, "llm": llm, **parts})
    except (ValueError, TypeError) as error:
        keys = ", ".join(sorted(overrides)) or "none"
        raise StoreError(
            f"`EVENNIA_AI_MEM0_CONFIG` (keys: {keys}) is not a valid Mem0 configuration:"
            f" {first_line(error)}"
        ) from error


def _vector_store(directory: Path, configured: object, dims: int) -> Any:
    from mem0.vector_stores.configs import VectorStoreConfig

    if not configured:
        embedded = {"path": str(directory / "qdrant"), "on_disk": True}
        configured = {"provider": "qdrant", "config": embedded}
    if not isinstance(configured, Mapping):
        raise TypeError("`vector_store` must be a dict with `provider` and `config`")
    provider = configured.get("provider", "qdrant")
    config = {"collection_name": COLLECTION, **(configured.get("config") or {})}
    if isinstance(address := config.get("connection_string"), str):
        config["connection_string"] = _searching_on(address)
    try:
        sized = {"embedding_model_dims": dims, **config}
        return VectorStoreConfig(provider=provider, config=sized)
    except ValueError:
        # Not every store is told the length of its vectors, and those that are not refuse it.
        return VectorStoreConfig(provider=provider, config=config)


def _searching_on(address: str) -> str:
    """A PostgreSQL address by which a search with filters ends only when enough is found.

    pgvector's index otherwise gives the 40 nearest memories of all assistants, and the filter
    leaves what is this one's of them.
    """
    option = "-c hnsw.iterative_scan=strict_order"
    if "options=" in address:
        return address
    if "://" not in address:
        return f"{address} options='{option}'"
    return f"{address}{'&' if '?' in address else '?'}options={quote(option)}"


def first_line(error: BaseException) -> str:
    """An error in one line: its class and the beginning of its text, addresses masked."""
    text = " ".join(str(error).split())[:200]
    text = re.sub(r"://[^@/\s]+@", "://***@", text)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
