"""A store that counts what is read, and an embedder that needs no model."""

import zlib

import numpy

from tests.fake import MemoryStore


class CountingStore(MemoryStore):
    """Counts the values of one category that are read."""

    def __init__(self, category):
        super().__init__()
        self.counted, self.reads = category, 0

    def get(self, key, category=None, default=None):
        """The value, as `MemoryStore` gives it."""
        self.reads += category == self.counted
        return super().get(key, category, default)


class HashingEmbedder:
    """Words hashed into a fixed number of buckets; texts that share words are near."""

    def __init__(self, dims=64):
        self.dims = dims

    def embed(self, texts):
        """A unit vector a text, as a float32 array of shape (n, dims)."""
        rows = numpy.zeros((len(texts), self.dims), dtype=numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.strip(".,?!").encode()) % self.dims] += 1.0
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        return rows / numpy.where(lengths == 0, 1, lengths)
