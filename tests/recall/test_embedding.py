"""The packaged static embedder."""

import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from evennia_ai.errors import StoreError
from evennia_ai.recall.embedding import StaticEmbedder, default_embedder


class TestStaticEmbedder(unittest.TestCase):
    def test_shape_and_norm(self):
        """Every text gets one float32 unit vector of `dims` components."""
        vectors = default_embedder().embed(["a cat sat", "rain fell on the mill"])
        self.assertEqual(vectors.shape, (2, default_embedder().dims))
        self.assertEqual(vectors.dtype, np.float32)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    def test_nothing_to_embed_is_zero(self):
        """A text of no known token gives a zero vector, never NaN."""
        vectors = default_embedder().embed(["", "   ", "\ud800", "\x00"])
        self.assertTrue(np.isfinite(vectors).all())
        self.assertEqual(float(np.abs(vectors[0]).sum()), 0.0)

    def test_position_in_a_batch_does_not_matter(self):
        """A text has the same vector alone and among others."""
        alone = default_embedder().embed(["the old mill by the river"])[0]
        among = default_embedder().embed(["x", "the old mill by the river", "y" * 9000])[1]
        np.testing.assert_array_equal(alone, among)

    def test_threads(self):
        """Calls from many threads give what one thread gives."""
        texts = [f"the {n} dragons of the {n}th hill" for n in range(50)]
        expected = default_embedder().embed(texts)
        with ThreadPoolExecutor(8) as workers:
            results = list(workers.map(default_embedder().embed, [texts] * 8))
        for vectors in results:
            np.testing.assert_array_equal(vectors, expected)

    def test_missing_files_are_named(self):
        """A folder without a model is an error that names the folder."""
        with self.assertRaisesRegex(StoreError, "/nowhere/at/all"):
            StaticEmbedder("/nowhere/at/all").embed(["x"])
