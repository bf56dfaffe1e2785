"""Caches of functions, which hold what was said, are emptied when somebody is forgotten."""

import ast
import gc
import unittest
from functools import _lru_cache_wrapper
from pathlib import Path

import evennia_ai
from evennia_ai.game.seeing import _telling
from evennia_ai.language.tables import language_of, tables
from evennia_ai.llm_interaction.tokens import _short_tokens, counter_for
from evennia_ai.mind.wire import is_work
from evennia_ai.privacy.caches import clear_caches
from evennia_ai.turns.turn_taking import _opening

SECRET = "the vault is under the well"


def size(function):
    return function.cache_info().currsize


class TestCaches(unittest.TestCase):
    def test_emptied(self):
        """Those that hold talk; what is made of the package's own tables stays."""
        _telling(SECRET)
        language_of(SECRET)
        counter_for("gpt-4o")(SECRET)
        tables()
        _opening()
        self.assertTrue(size(_telling) and size(_short_tokens))
        clear_caches()
        talk = (_telling, language_of, _short_tokens)
        self.assertEqual([size(each) for each in talk], [0] * len(talk))
        self.assertTrue(size(tables) and size(_opening))

    def test_none_is_left(self):
        """Of all bounded caches of the package that there are in this process."""
        clear_caches()
        left = [
            each.__qualname__
            for each in gc.get_objects()
            if type(each) is _lru_cache_wrapper
            and str(each.__module__).startswith("evennia_ai.")
            and each.cache_parameters()["maxsize"]
            and size(each)
        ]
        self.assertEqual(left, [])

    def test_all_can_be_found(self):
        """A cache of a bounded size belongs to a module, not to a class or a function."""
        for path in Path(evennia_ai.__file__).parent.rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            made = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            bounded = [node for node in made if "lru_cache" in ast.unparse(node.func)]
            inner = [
                node
                for outer in tree.body
                for node in ast.walk(outer)
                if node is not outer and isinstance(node, ast.FunctionDef | ast.ClassDef)
            ]
            hidden = {sub for node in inner for sub in ast.walk(node)}
            self.assertEqual([ast.unparse(node) for node in bounded if node in hidden], [], path)

    def test_in_the_mind(self):
        """The mind's process does it, too."""
        self.assertTrue(is_work(clear_caches))
