"""Tool calls and their results: legal cuts and mended histories."""

import unittest
from collections import Counter
from dataclasses import replace

from hypothesis import given

from evennia_ai.history.messages import (
    INTERRUPTED,
    RESULT_CHARS,
    Message,
    ToolTraits,
    cut_points,
    mended,
    pairing,
    said_and_done,
)
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from tests.strategies import MANY, call, calls, faults, heard, histories, numbered, reply, result


class TestPairing(unittest.TestCase):
    def test_nearest_open_call(self):
        """A result of an id used twice belongs to the nearest call that has none yet."""
        history = [calls("c1"), calls("c1"), result("c1"), result("c1"), result("c1")]
        self.assertEqual(pairing(history), {2: 1, 3: 0})

    def test_only_an_assistant_calls(self):
        """What stands as `tool_calls` in a message of another role is no call."""
        history = [replace(calls("c1"), role="user"), result("c1")]
        self.assertEqual(pairing(history), {})
        self.assertEqual([m.role for m in mended(history)], ["user"])

    def test_a_late_result_stands_behind_those_there_are(self):
        """Stored late or made up for the prompt: results come in the same order."""
        history = numbered([calls("c1", "c1"), heard("meanwhile"), result("c1"), heard()])
        made = history[0].tool_calls[1]
        name = made["function"]["name"]
        late = Message("tool", INTERRUPTED, tool_call_id=made["id"], name=name)
        self.assertEqual(mended([*history, late]), mended(history))

    @MANY
    @given(histories())
    def test_one_result_a_call(self, history):
        """A result has one call, before it, with its id; a call gets no more than it made."""
        pairs = pairing(history)
        for index, caller in pairs.items():
            self.assertLess(caller, index)
            ids = [made["id"] for made in history[caller].tool_calls]
            self.assertIn(history[index].tool_call_id, ids)
        for caller, size in Counter(pairs.values()).items():
            self.assertLessEqual(size, len(history[caller].tool_calls))


class TestCutPoints(unittest.TestCase):
    @MANY
    @given(histories())
    def test_no_pair_is_parted(self, history):
        """No result that stands with its call is cut from it; both ends are legal."""
        points = cut_points(history)
        self.assertEqual((points[0], points[-1]), (0, len(history)))
        self.assertEqual(sorted(set(points)), list(points))
        for answer, caller in pairing(history).items():
            if all(m.role == "tool" for m in history[caller + 1 : answer]):
                self.assertTrue(set(points).isdisjoint(range(caller + 1, answer + 1)))
        said = {n for n, message in enumerate(history) if message.role != "tool"}
        self.assertLessEqual(said, set(points))


class TestMended(unittest.TestCase):
    @MANY
    @given(histories())
    def test_a_strict_provider_takes_it(self, history):
        """Each call is answered once, at once, and no result stands alone."""
        self.assertEqual(faults(mended(history)), [])

    @MANY
    @given(histories())
    def test_loses_nothing_said(self, history):
        """Every message that is no tool result is there, in order, untouched."""
        before = [id(m) for m in history if m.role != "tool"]
        after = [id(m) for m in mended(history) if m.role != "tool"]
        self.assertEqual(after, before)

    @MANY
    @given(histories())
    def test_paired_results_stay(self, history):
        """Every result that has a call is there once, untouched; nothing else is made up."""
        kept = Counter(id(history[index]) for index in pairing(history))
        shown = [m for m in mended(history) if m.role == "tool"]
        invented = [m for m in shown if not m.id]
        self.assertEqual(Counter(id(m) for m in shown if m.id), kept)
        made = sum(len(m.tool_calls) for m in history if m.role == "assistant")
        self.assertEqual(len(invented), made - len(pairing(history)))


class TestSaidAndDone(unittest.TestCase):
    TRAITS = ToolTraits(speaks=frozenset({"say"}), recalls=frozenset({"search_memory"}))

    def seen(self, *history):
        return said_and_done(history, self.TRAITS)

    def test_searches_leave(self):
        """A search leaves with its result; the text and the other calls beside it stay."""
        search, say = call("c1", "search_memory"), call("c2", "say")
        found, done = result("c1", "{}", name="search_memory"), result("c2", name="say")
        self.assertEqual(self.seen(reply("", tool_calls=(search,)), found), [])
        (left,) = self.seen(reply("Let me think.", tool_calls=(search,), tokens=9), found)
        self.assertEqual(left, reply("Let me think."))
        both = self.seen(reply("", tool_calls=(search, say), tokens=9), found, done)
        self.assertEqual(both, [reply("", tool_calls=(say,)), done])

    def test_long_results_are_cut(self):
        """Of a long result the beginning stays, of a short one all."""
        short = result(content="x" * RESULT_CHARS, tokens=9)
        long = result(content="x" * (RESULT_CHARS + 1), tokens=9)
        cut = result(content="x" * RESULT_CHARS + "...")
        self.assertEqual(self.seen(calls("c1"), short, long), [calls("c1"), short, cut])

    @MANY
    @given(histories())
    def test_nothing_said_is_lost(self, history):
        """Without searches all but results stays as it is, in order."""
        left = said_and_done(history, ToolTraits())
        self.assertEqual(
            [m for m in left if m.role != "tool"], [m for m in history if m.role != "tool"]
        )
        self.assertEqual(pairing(left), pairing(history))


class TestToolTraits(unittest.TestCase):
    """What the package asks of tools without knowing their names."""

    def test_builtin(self):
        """The package's own tools have the traits that memory, compaction and turns rely on."""
        traits = ToolRegistry(BUILTIN_TOOLS).traits
        self.assertEqual(traits.speaks, {"say", "emote", "whisper"})
        self.assertEqual(traits.to_one, {"whisper"})
        self.assertEqual(traits.silent, {"noop"})
        self.assertEqual(traits.recalls, {"search_memory", "expand_memory"})
        extracting = {"add_journal_entry", "update_entity_observation", "noop"}
        self.assertEqual(traits.extracts, extracting)
        self.assertLess(traits.recalls | traits.speaks, traits.tells_nothing_new)
        self.assertTrue(traits.tells_nothing_new.isdisjoint({"look", "move"}))
