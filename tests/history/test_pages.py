"""Stored values: read once until they change, put aside where they cannot be read."""

import unittest
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history.stored import (
    KEPT,
    Cache,
    Stored,
    Unreadable,
    as_plain,
    aside,
    drop_from_aside,
    each_readable,
)
from tests.fake import MemoryStore
from tests.stand_ins import CountingStore


@dataclass(frozen=True, slots=True)
class Coin(Stored):
    name: str
    worth: int = 1
    weight: float | None = None
    is_gold: bool = False
    sides: tuple[str, ...] = ()
    minted: tuple[str, ...] = ("Ford",)
    change: tuple["Coin", ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def check(self):
        if self.worth < 0:
            raise Unreadable("a debt")


def read(raw, odd):
    return each_readable(raw, Coin.from_dict, odd)


class TestStored(unittest.TestCase):
    def test_round_trip(self):
        """What is empty is not stored; a number may be whole; lists are tuples."""
        small = Coin("penny")
        self.assertEqual(small.to_dict(), {"name": "penny", "worth": 1, "minted": ["Ford"]})
        large = Coin(
            "crown", 5, 2, True, ("a", "b"), ("Ash", "Fen"), (small,), {"x": [{"y": None}]}
        )
        self.assertEqual(Coin.from_dict(large.to_dict()), large)
        self.assertEqual(Coin.from_dict({"name": "penny", "odd": 1}), small)
        self.assertEqual(as_plain([(small, 1.5)]), [[small.to_dict(), 1.5]])

    def test_others(self):
        """What has another form is not read."""
        for odd in (
            "x",
            {},
            {"name": 5},
            {"worth": True},
            {"worth": -1},
            {"weight": "2"},
            {"weight": float("nan")},
            {"is_gold": 1},
            {"sides": "ab"},
            {"sides": ["a", 2]},
            {"minted": [5]},
            {"change": [{"name": None}]},
            {"notes": []},
        ):
            stored = {"name": "x", **odd} if odd and isinstance(odd, dict) else odd
            with self.subTest(odd), self.assertRaises(Unreadable):
                Coin.from_dict(stored)


class TestCache(unittest.TestCase):
    def setUp(self):
        self.store = CountingStore("coins")
        read_key = lambda key, raw, odd: read(raw, odd)  # noqa: E731
        self.coins = Cache(self.store, "coins", read_key, as_plain, KEPT)

    def test_read_once(self):
        """Until somebody changes it; the last ones used stay."""
        keys = [f"c{number:03}" for number in range(KEPT + 1)]
        for key in keys:
            self.coins.set(key, [Coin(key)])
        self.store.reads = 0
        self.assertEqual(len(self.coins.all(keys[1:])), KEPT)
        self.assertEqual(self.store.reads, 0)
        self.assertEqual(self.coins.get(keys[0]), [Coin("c000")])
        self.assertEqual(self.store.reads, 1)
        self.store.set(keys[-1], [], "coins")
        self.assertEqual(self.coins.get(keys[-1]), [])
        self.store.delete(keys[-1], "coins")
        self.assertIsNone(self.coins.get(keys[-1]))

    def test_put_aside(self):
        """What cannot be read is put aside at once: a whole value, or items of it."""
        self.store.set("c1", "odd", "coins")
        self.store.set("c2", [5, {"name": "x"}, 6], "coins")
        self.assertEqual(self.coins.all(), {"c2": [Coin("x")]})
        self.assertEqual(self.store.keys("coins"), ("c2",))
        self.assertEqual(self.store.get("c2", "coins"), [Coin("x").to_dict()])
        kept = {"coins_c1": 1, "coins_c2": 2}
        self.assertEqual(aside(self.store), kept)
        drop_from_aside(self.store, lambda value: value == 5)
        self.assertEqual(aside(self.store), {**kept, "coins_c2": 1})

    def test_a_write_that_fails(self):
        """What was rolled back is not remembered."""
        store = MemoryStore()
        cache = Cache(store, None, lambda key, raw, odd: read(raw, odd), as_plain)
        cache.set("purse", [Coin("x")])
        with self.assertRaises(RuntimeError), store.transaction():
            cache.set("purse", [])
            raise RuntimeError
        self.assertEqual(cache.get("purse"), [Coin("x")])
