"""Names of local models, where their weights lie, and what their headers say."""

import tempfile
import unittest
from pathlib import Path

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.files import (
    Shape,
    installed,
    place_of,
    read_shape,
    weights_of,
)
from tests.gguf_files import header, write_model


class TestFiles(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_what_lies_in_the_folder_is_installed(self):
        """Each file is a name that leads to the same file; other files are none."""
        names = ("mine.gguf", "hf:owner/Some-Model-GGUF:Q4_K_M", "hf:a/b.c:IQ2_XS")
        for name in names:
            write_model(place_of(name, self.folder))
        (self.folder / "half.part").write_text("x")
        found = [name for name in installed(self.folder) if name != "smollm2"]
        self.assertEqual(sorted(found), sorted(names))
        for name in names:
            self.assertTrue(weights_of(name, self.folder).is_file())

    def test_what_is_missing_says_how_to_get_it(self):
        """A model of the hub is pulled, a file is put there; both name what is meant."""
        for name, hint in (("hf:a/b:Q4", "model pull hf:a/b:Q4"), ("x.gguf", "does not exist")):
            with self.assertRaisesRegex(LocalModelError, hint):
                weights_of(name, self.folder)

    def test_other_names_are_refused(self):
        """No folders, no half names of the hub, nothing without a known form."""
        bad = ("x", "", "../x.gguf", "a/b.gguf", "hf:a:Q4", "hf:a/b", "hf:a/../b:Q", "hf:a--b/c:Q")
        for name in bad:
            with self.subTest(name=name), self.assertRaises(LocalModelError):
                place_of(name, self.folder)

    def test_a_path_of_the_settings_is_taken(self):
        """An absolute path names its own file."""
        path = write_model(self.folder / "elsewhere" / "x.gguf")
        self.assertEqual(weights_of(str(path), self.folder), path)

    def shape(self, **changes):
        return read_shape(write_model(self.folder / f"{len(changes)}.gguf", **changes))

    def test_a_model_s_memory_is_read_from_its_header(self):
        """Window, and keys and values of 16 bits for each layer and shared head."""
        self.assertEqual(self.shape(), Shape(8192, 2 * 2 * 30 * 3 * 64, len(header())))

    def test_models_say_it_in_several_ways(self):
        """Heads that share nothing, heads of a stated width, heads listed for each layer."""
        for changes, cache_bytes in (
            ({"llama.attention.head_count_kv": None}, 4 * 30 * 9 * 64),
            ({"llama.attention.key_length": 128, "tokenizer.ggml.model": None}, 4 * 30 * 3 * 128),
            ({"llama.attention.head_count_kv": [1, 3, 2], "a": 1, "b": "x"}, 4 * 30 * 3 * 64),
        ):
            self.assertEqual(self.shape(**changes).cache_bytes, cache_bytes)

    def test_other_files_are_refused(self):
        """Text, nothing, a header that ends early, one without the sizes, a missing file."""
        path = self.folder / "x.gguf"
        for raw in (b"hello, this is text", b"", header()[:60], b"GGUF" + b"\xff" * 40):
            path.write_bytes(raw)
            with self.subTest(raw=raw[:8]), self.assertRaisesRegex(LocalModelError, "GGUF"):
                read_shape(path)
        with self.assertRaises(LocalModelError):
            read_shape(write_model(path, **{"llama.context_length": None}))
        with self.assertRaisesRegex(LocalModelError, "cannot be read"):
            read_shape(self.folder / "none.gguf")

    def test_the_window_is_as_large_as_memory_allows(self):
        """At most 16,384 tokens, halved until it fits, never below 2,048."""
        large = Shape(window=131_072, cache_bytes=100_000, file_bytes=1_000_000_000)
        self.assertEqual(large.fitting_window(2, None), 16_384)
        self.assertEqual(large.fitting_window(2, 10_000_000_000), 16_384)
        self.assertEqual(large.fitting_window(2, large.memory(4_096, 2)), 4_096)
        with self.assertRaisesRegex(LocalModelError, r"1,6\d\d MB of memory, and 1,300 MB are"):
            large.fitting_window(2, 1_300_000_000)
        small = Shape(window=1_024, cache_bytes=10, file_bytes=10)
        self.assertEqual(small.fitting_window(2, None), 1_024)
