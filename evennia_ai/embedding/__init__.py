"""Static sentence embeddings shipped with the package: no network, no GPU, no torch.

The weights in `data/` were distilled by `scripts/distill_embedder.py`; `NOTICE` names their
source. Importing this module loads nothing; the weights are read at the first `embed`.
"""

from evennia_ai.embedding.static import StaticEmbedder, default_embedder

__all__ = ["StaticEmbedder", "default_embedder"]
