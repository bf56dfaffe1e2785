"""Messages: ids, adoption, tokens, what a model is shown, and masks of tool results."""

import json
import unittest
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    ROLES,
    IdSource,
    Message,
    Speaker,
    in_order,
    is_maskable,
    masked,
    message_tokens,
    placeholder,
    rendered,
    unmasked,
    widest_view_tokens,
)
from evennia_ai.history.stored import Unreadable, reader_of, seal
from tests.strategies import (
    FEW,
    MANY,
    awkward_texts,
    calls,
    heard,
    histories,
    numbered,
    reply,
    result,
)

names = st.text(max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
stored_calls = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": names, "arguments": names})},
    optional={"id": names, "type": names},
)
messages = st.builds(
    Message,
    st.sampled_from(ROLES),
    st.text(),
    names,
    names,
    st.none() | st.builds(Speaker, names, names),
    names,
    names,
    st.integers(-9, 9),
    st.sampled_from((0, 1, 2.5)),
    st.lists(stored_calls, max_size=2).map(tuple),
    names,
    names,
    st.dictionaries(names, json_values, max_size=2),
)


class TestIds(unittest.TestCase):
    @FEW
    @given(st.lists(st.floats(0, 4e9), min_size=2), st.sampled_from((0, 1, 2**29 - 1)))
    def test_increasing_on_any_clock(self, times, bits):
        """Ids grow and differ though the clock stands or jumps back and randomness is poor."""
        clock = iter(times)
        source = IdSource(lambda: next(clock), lambda _: bits)
        made = [source() for _ in times]
        self.assertEqual(made, sorted(set(made)))
        self.assertEqual({len(each) for each in made}, {16})

    def test_threads(self):
        """Threads that make ids at once never get the same one."""
        source = IdSource(lambda: 1.0)
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda _: source("j"), range(2000)))
        self.assertEqual(len(set(made)), 2000)
        self.assertTrue(all(each.startswith("j") for each in made))


class TestFromDict(unittest.TestCase):
    def test_by_hand(self):
        """A role and a text are enough; the rest is stamped and counted."""
        raw = {"role": "user", "content": "hello"}
        adopted = replace(Message.from_dict(raw), id="m1").completed(len, 0.0)
        stamped = {"id": "m1", "created_at": "1970-01-01T00:00:00.000+00:00", "place": 1}
        counted = {
            "audience": PUBLIC,
            "channel": "say",
            "tokens": len("someone: hello") + OVERHEAD_TOKENS,
        }
        self.assertEqual(adopted.to_dict(), raw | stamped | counted)
        self.assertTrue(adopted.is_complete)
        self.assertFalse(Message("user", "hello", id="m1").is_complete)

    @FEW
    @given(messages)
    def test_round_trip(self, message):
        """A message comes back as it was stored, also from texts that are sealed."""
        self.assertEqual(Message.from_dict(message.to_dict()), message)
        sealed = UserDict(seal(message.to_dict(), "o1"))
        self.assertEqual(Message.from_dict(sealed), message)

    def test_no_content(self):
        """A message whose content is None, as APIs write calls without words, has an empty one."""
        raw = {"role": "assistant", "content": None}
        self.assertEqual(Message.from_dict(raw), Message("assistant", ""))
        self.assertEqual(Message.from_dict(UserDict(seal(raw, "o1"))), Message("assistant", ""))

    def test_others(self):
        """What is of another form is no message: nothing of it is guessed."""
        whole = {"role": "user", "content": "hi"}
        for odd in (
            "hi",
            {"role": "user"},
            {**whole, "role": "narrator"},
            {**whole, "tokens": True},
            {**whole, "tokens": 10**500},
            {**whole, "speaker": "Bob"},
            {**whole, "metadata": "note"},
            {**whole, "tool_calls": "look"},
            {**whole, "tool_calls": [{"id": "c1", "function": "look"}]},
            {**whole, "tool_calls": [{"id": "c1", "function": {"name": "look"}}]},
        ):
            with self.subTest(odd), self.assertRaises(Unreadable):
                Message.from_dict(odd)


class TestRendered(unittest.TestCase):
    def test_speech(self):
        """What people said are lines of talk, also of somebody unknown; without words, none."""
        al = Speaker("Al", "o1")
        for message, line in (
            (heard("hi", speaker=al, channel="whisper"), "Al (whispers to you): hi"),
            (heard("hi"), "someone: hi"),
            (heard("\n", speaker=al), ""),
            (heard("", speaker=al, channel="leave"), "(You notice: Al leaves.)"),
        ):
            self.assertEqual(rendered(message), {"role": "user", "content": line})
        self.assertEqual(rendered(reply("hi")), {"role": "assistant", "content": "hi"})

    def test_tools(self):
        """Calls and results keep what pairs them, and nothing of what is only stored."""
        asked = rendered(calls("c1", audience=STAFF))
        self.assertEqual(sorted(asked), ["content", "role", "tool_calls"])
        self.assertIsNone(asked["content"])
        answer = {"role": "tool", "content": "done", "tool_call_id": "c1", "name": "look"}
        self.assertEqual(rendered(result("c1", id="m1")), answer)
        self.assertEqual(rendered(Message("tool", ""))["tool_call_id"], "")

    def test_a_stored_system_message_is_data(self):
        """Only the prompt's own first message is an order; a stored one is a notice."""
        shown = rendered(Message("system", "obey"))
        self.assertEqual(shown, {"role": "user", "content": "(You notice: obey)"})

    @FEW
    @given(histories())
    def test_tokens_cover_what_is_shown(self, history):
        """A message's tokens are those of all texts it is rendered with, and its frame."""
        for message in history:
            shown = rendered(message)
            texts = [shown["content"] or "", shown.get("tool_call_id", ""), shown.get("name", "")]
            if "tool_calls" in shown:
                texts.append(json.dumps(shown["tool_calls"], ensure_ascii=False))
            wanted = sum(map(len, texts)) + OVERHEAD_TOKENS
            self.assertEqual(message_tokens(message, len), wanted)


class TestHistory(unittest.TestCase):
    @FEW
    @given(st.permutations(range(1, 9)))
    def test_by_place(self, places):
        """In whatever order; a late result has the place of its call, and a later id."""
        talk = {place: Message("user", "", id=f"m{place}", place=place) for place in places}
        late = replace(talk[8], id="m9", place=1)
        shown = [m.id for m in in_order([late, *talk.values()])]
        self.assertEqual(shown, ["m1", "m9", *(f"m{n}" for n in range(2, 9))])

    def test_private_talk_counts_for_its_parties_only(self):
        """Public tokens count for all, private ones for those they are between."""
        sizes = {"public": 10, "private:o1.a": 7, "private:o2.b": 3}
        history = [heard(audience=each, tokens=size) for each, size in sizes.items()]
        self.assertEqual(widest_view_tokens([*history, heard(audience="public")]), 17)
        self.assertEqual(widest_view_tokens([]), 0)


AT = "2026-03-04T05:06:07.008+00:00"
LONG = "a barrel of salted herring, " * 60


def dumped(message):
    return json.dumps(message.to_dict(), ensure_ascii=True)


def sized(tokens=500, content=LONG, **fields):
    return numbered([result(content=content, tokens=tokens, metadata={}, **fields)])[0]


class TestMasking(unittest.TestCase):
    @MANY
    @given(awkward_texts, awkward_texts)
    def test_one_line_of_bounded_name(self, name, message_id):
        """No name and no id breaks out of the line or swells it."""
        line = placeholder(Message("tool", "", name=name, id=message_id), AT)
        self.assertEqual(line.splitlines(), [line])
        self.assertLess(len(line), 240 + len(message_id))

    def test_large_results_only(self):
        """Only results of tools, larger than the least and not masked yet, are chosen."""
        history = [
            heard(LONG, tokens=900),
            replace(calls("c1"), tokens=900),
            result(content=LONG, tokens=201),
            result(content=LONG, tokens=200),
            result(content=LONG),
            masked(sized(), AT, len),
        ]
        self.assertEqual([n for n, m in enumerate(history) if is_maskable(m)], [2])

    def test_own_use_of_the_key(self):
        """What a builder wrote under the flag's name is never written over."""
        message = replace(sized(), metadata={"masked": True})
        self.assertFalse(is_maskable(message))
        self.assertIs(unmasked(message), message)
        self.assertEqual(rendered(message)["content"], LONG)

    def test_flag(self):
        """A masked result is rendered as its line, counted as its line, and stored raw."""
        message = masked(sized(), AT, len)
        line = placeholder(sized(), AT)
        flag = {"original_tool": "look", "archived_at": AT, "placeholder": line, "raw_tokens": 500}
        self.assertEqual(message.metadata, {"masked": flag})
        self.assertEqual(message.content, LONG)
        self.assertEqual(rendered(message), {**rendered(sized()), "content": line})
        self.assertEqual(message.tokens, message_tokens(message, len))
        self.assertEqual(message.tokens, 4 + len(line) + len("c1") + len("look"))

    @MANY
    @given(
        awkward_texts,
        awkward_texts,
        awkward_texts,
        st.integers(0, 900),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
    )
    def test_exact_inverse(self, content, key, name, tokens, metadata):
        """Taking a mask away gives the bytes of the message as it was; neither changes it."""
        message = Message("tool", content, key, tokens=tokens, name=name, metadata=metadata)
        before = dumped(message)
        hidden = masked(message, AT, len)
        kept = dumped(hidden)
        self.assertEqual(dumped(unmasked(hidden)), before)
        self.assertEqual((dumped(message), dumped(hidden)), (before, kept))
        self.assertIs(unmasked(message), message)


class TestReaders(unittest.TestCase):
    def test_a_text_of_another_class(self):
        """A text that a game marked in some way is read as plain text."""

        class Marked(str):
            __slots__ = ()

        value = reader_of(str)(Marked("a"))
        self.assertEqual((value, type(value)), ("a", str))
