"""A living AI assistant for Evennia games, with lossless conversation compaction."""

__version__ = "0.1.0"
