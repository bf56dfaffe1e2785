"""Values on the wire, and where the two processes meet."""

import os
import pickle
import stat
import tempfile
import unittest
from collections import UserDict, UserList
from datetime import UTC, date, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.errors import ConfigError, ModelError, SpendError, StoreError, WindowError
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest
from evennia_ai.mind.wire import dumps, loads, socket_path
from evennia_ai.recall.values import Query, Turn

VALUES = (
    Message("user", "Hé \ud800 {}", speaker=Speaker("Bob", "o1.x"), tool_calls=({"id": "c1"},)),
    ModelReply(content="Aye.", tool_calls=({"id": "c", "type": "function"},)),
    ModelRequest(model="m", messages=({"role": "user", "content": "x"},), stop=("\n",), key="k"),
    Query("bees", exclude={"m1"}),
    TokenCounter("gpt-4"),
    Turn("t1", "Bob", "bees", datetime(2026, 1, 2, tzinfo=UTC), session=3),
    {"a": {"x", "y"}, "b": [frozenset({"z"})], "c": date(2026, 1, 2)},
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Name(str):
    """A text of another class, as Django's are."""


class TestWire(unittest.TestCase):
    @given(PLAIN)
    def test_values_come_back_as_they_were(self, plain):
        """Also inside of other data, whatever its keys and texts are."""
        for value in (plain, *({"value": [value]} for value in VALUES)):
            with self.subTest(value):
                self.assertEqual(loads(dumps(value)), value)

    def test_other_collections_become_plain_ones(self):
        """Of what hangs on a database row or on another object only the content is sent."""
        saver = UserDict({"bees": UserList([Name("hive")])})
        value = loads(dumps([saver, {"a": 1}.keys(), (each for each in "xy")]))
        self.assertEqual(value, [{"bees": ["hive"]}, ["a"], ["x", "y"]])
        self.assertEqual({type(each) for each in (value[0], value[0]["bees"])}, {dict, list})
        self.assertIs(type(value[0]["bees"][0]), str)

    def test_what_cannot_be_sent(self):
        """A function, another object, or too much is refused, not rendered."""
        endless = []
        for _ in range(100_000):
            endless = [endless]
        for value in (print, object(), {"a": lambda: 1}, self, "x" * 65 * 2**20, endless):
            with self.assertRaises((TypeError, ValueError)):
                dumps(value)

    def test_only_plain_values_are_read(self):
        """No other class or function is found, whoever wrote it."""
        for wicked in (print, os.system, Path("/"), utc_iso):
            with self.assertRaisesRegex(pickle.UnpicklingError, "no plain value"):
                loads(pickle.dumps(wicked))

    def test_errors_come_back(self):
        """With their kind and what they know."""
        for error in (
            StoreError("full"),
            ConfigError("`x`"),
            SpendError("limit"),
            ModelError("down", retryable=True, kind="server"),
            WindowError("too long", "gpt-4"),
        ):
            again = loads(dumps(error))
            self.assertEqual((type(again), str(again)), (type(error), str(error)))
            self.assertEqual(vars(again), vars(error))


class TestSocketPath(unittest.TestCase):
    def test_folder_and_length(self):
        """Only the user may enter; a long path is relative to the game's folder, or refused."""
        base = Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder = base / "mind"
        folder.mkdir(mode=0o755)
        self.assertEqual(os.path.realpath(socket_path(folder)), str(folder.resolve() / "socket"))
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
        game = base / ("long" * 30)
        with self.assertRaisesRegex(ConfigError, "too long"):
            socket_path(game / "server" / "mind")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(game)
        self.assertEqual(socket_path(game / "server" / "mind"), "server/mind/socket")
