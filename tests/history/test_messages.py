"""Messages: ids, adoption, tokens and what a model is shown."""

import json
import threading
import unittest
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
    base32,
    call_ids,
    is_complete,
    message_tokens,
    rendered,
    tool_calls,
    total_tokens,
    utc_iso,
)
from tests.strategies import (
    FEW,
    calls,
    heard,
    histories,
    marker,
    reply,
    result,
    texts,
)

plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
anything = st.recursive(
    plain,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=6,
)
FIELDS = (
    *("id", "role", "content", "created_at", "speaker", "audience", "channel", "tokens"),
    *("tool_calls", "tool_call_id", "name", "metadata", "other"),
)


# What is stored of complete messages, by this version and others: any optional key may be absent,
# present or empty, and there may be keys that nobody knows.
names = st.text(max_size=4)
stored_calls = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": names, "arguments": names})},
    optional={"id": plain, "type": names},
)
complete = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1),
        "role": st.sampled_from(ROLES),
        "content": st.text(),
        "created_at": st.text(min_size=1),
        "audience": st.text(min_size=1),
        "tokens": st.integers(),
    },
    optional={
        "channel": names,
        "speaker": st.fixed_dictionaries({}, optional={"key": names, "id": names, "x": anything}),
        "tool_calls": st.lists(stored_calls, max_size=2),
        "tool_call_id": names,
        "name": names,
        "metadata": st.dictionaries(names, anything, max_size=2),
        "extra": anything,
        "irregular": anything,
        "something": anything,
    },
)


class TestIds(unittest.TestCase):
    """Ids that sort by time and never come twice."""

    def test_base32(self):
        """Numbers are written in 32 digits that cannot be confused, padded with zeros."""
        self.assertEqual([base32(n, 2) for n in (0, 31, 32, 1023)], ["00", "0z", "10", "zz"])

    @FEW
    @given(st.integers(0, 2**60), st.integers(0, 2**60))
    def test_base32_sorts_as_numbers(self, first, second):
        """Of one width the texts sort as the numbers do."""
        self.assertEqual(base32(first, 13) < base32(second, 13), first < second)

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
        source, made = IdSource(lambda: 1.0), []

        def work():
            for _ in range(500):
                made.append(source("j"))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(made)), 2000)
        self.assertTrue(all(each.startswith("j") for each in made))

    def test_time_is_utc(self):
        """Times are UTC ISO 8601 to the millisecond."""
        self.assertEqual(utc_iso(1.5), "1970-01-01T00:00:01.500+00:00")


class TestFromDict(unittest.TestCase):
    """Messages read from what is stored."""

    def adopt(self, raw):
        return Message.from_dict(raw).completed(len, 0.0, lambda prefix: f"{prefix}1")

    def test_by_hand(self):
        """A role and a text are enough; the rest is stamped and counted."""
        self.assertEqual(
            self.adopt({"role": "user", "content": "hello"}).to_dict(),
            {
                "role": "user",
                "content": "hello",
                "id": "m1",
                "created_at": "1970-01-01T00:00:00.000+00:00",
                "audience": PUBLIC,
                "channel": "say",
                "metadata": {},
                "tokens": 5 + OVERHEAD_TOKENS,
            },
        )

    def test_a_new_message_is_stamped_alike(self):
        """A message made in code and one written by hand are stored alike."""
        by_hand = self.adopt({"role": "user", "content": "hello"})
        made = Message("user", "hello").completed(len, 0.0, lambda prefix: f"{prefix}1")
        self.assertEqual(made, by_hand)

    def test_what_is_there_stays(self):
        """A complete message is read as it is."""
        whole = self.adopt(
            result("c1", id="m9", tokens=7, audience=STAFF, metadata={"a": 1}).to_dict()
        )
        self.assertEqual(self.adopt(whole.to_dict()), whole)
        self.assertEqual((whole.id, whole.tokens, whole.channel), ("m9", 7, "tool"))

    @FEW
    @given(complete)
    def test_round_trip(self, stored):
        """A complete message comes back as it was stored, unknown and absent keys too."""
        before = json.dumps(stored)
        self.assertTrue(is_complete(stored))
        self.assertEqual(Message.from_dict(stored).to_dict(), stored)
        self.assertEqual(json.dumps(stored), before)

    @FEW
    @given(complete, texts)
    def test_a_change_keeps_the_rest(self, stored, content):
        """A copy with another text differs in that text alone, once stored."""
        changed = replace(Message.from_dict(stored), content=content)
        self.assertEqual(changed.to_dict(), {**stored, "content": content})

    def test_odd_values(self):
        """Unknown roles become speech, other contents JSON, odd audiences staff's."""
        odd = self.adopt({"role": "narrator", "content": {"a": "é"}, "audience": "all"})
        self.assertEqual((odd.role, odd.content, odd.audience), ("user", '{"a": "é"}', STAFF))
        self.assertEqual(self.adopt({"content": None}).content, "")
        self.assertEqual(self.adopt({"content": {(1, 2): 3}}).content, "{(1, 2): 3}")
        for wrong in (True, 0, -3, "9", 2.5):
            self.assertEqual(self.adopt({"content": "ab", "tokens": wrong}).tokens, 6)

    def test_parts_by_hand(self):
        """A speaker that is just a name, and parts of the wrong form, are brought into form."""
        raw = {"content": "hi", "speaker": "Bob", "metadata": "note", "tool_calls": ["look"]}
        whole = self.adopt({**raw, "tool_call_id": 7, "name": None})
        self.assertEqual(whole.speaker, Speaker("Bob", ""))
        self.assertEqual((whole.speaker_name, whole.speaker_id), ("Bob", ""))
        self.assertEqual(whole.metadata, {"value": "note"})
        self.assertEqual((whole.tool_calls, whole.tool_call_id), ((), "7"))
        self.assertEqual((whole.name, self.adopt({"tool_calls": 5}).tool_calls), ("", ()))
        self.assertEqual(rendered(whole)["content"], 'Bob says: "hi"')
        self.assertEqual(self.adopt({"speaker": None}).speaker, Speaker())

    @FEW
    @given(st.dictionaries(st.sampled_from(FIELDS), anything))
    def test_anything_becomes_a_message(self, raw):
        """Whatever a builder stored, it becomes a complete message that can be shown."""
        before = json.dumps(raw)
        whole = self.adopt(raw)
        self.assertEqual(json.dumps(raw), before)
        self.assertTrue(is_complete(whole.to_dict()))
        self.assertEqual(Message.from_dict(whole.to_dict()), whole)
        self.assertGreaterEqual(message_tokens(whole, len), OVERHEAD_TOKENS)
        self.assertIn(rendered(whole)["role"], ROLES)
        self.assertEqual(call_ids(whole), [str(c.get("id", "")) for c in tool_calls(whole)])

    def test_incomplete(self):
        """Each part that is missing or of the wrong form makes a message incomplete."""
        whole = self.adopt({"role": "user", "content": "hello"}).to_dict()
        self.assertTrue(is_complete(whole))
        for part in ("id", "created_at", "audience", "tokens", "content", "role"):
            rest = {key: value for key, value in whole.items() if key != part}
            self.assertFalse(is_complete(rest), part)
        for part in ("metadata", "speaker", "tool_calls"):
            self.assertFalse(is_complete({**whole, part: "odd"}), part)
        for part in ("channel", "name", "tool_call_id"):
            self.assertFalse(is_complete({**whole, part: 5}), part)

    def test_calls_by_hand(self):
        """A call whose function is a text, or lacks parts, is brought into form once."""
        forms = {
            "look": {"name": "look", "arguments": "{}"},
            None: {"name": "", "arguments": "{}"},
        }
        for function, wanted in forms.items():
            raw = {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}
            whole = self.adopt(raw)
            self.assertEqual(whole.tool_calls[0]["function"], wanted)
            self.assertTrue(is_complete(whole.to_dict()))
            self.assertFalse(is_complete({**whole.to_dict(), **raw}))
        self.assertFalse(is_complete({**self.adopt({"content": "x"}).to_dict(), "tool_calls": [5]}))
        kept = {"name": "look", "arguments": '{"at": "me"}'}
        raw = {"role": "assistant", "tool_calls": [{"id": "c1", "function": kept}]}
        self.assertEqual(self.adopt(raw).tool_calls[0]["function"], kept)


class TestRendered(unittest.TestCase):
    """Messages in the chat format."""

    def test_speech(self):
        """What somebody said is quoted; what nobody is named for stands as it is."""
        said = heard("hi", speaker=Speaker("Al", "o1"), channel="whisper")
        self.assertEqual(rendered(said)["content"], 'Al [o1] whispers to you: "hi"')
        self.assertEqual(rendered(heard("hi")), {"role": "user", "content": "hi"})
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
        self.assertEqual(shown, {"role": "user", "content": "[Notice] obey"})

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


class TestViews(unittest.TestCase):
    """Small questions about messages."""

    def test_questions(self):
        """Ids, sums, markers, audiences."""
        first, second = heard(id="m1", tokens=3), calls("c1", "c2", id="m2")
        self.assertEqual(call_ids(second), ["c1", "c2"])
        self.assertEqual((call_ids(first), call_ids(replace(second, role="user"))), ([], []))
        self.assertEqual(total_tokens([first, second]), 3)
        self.assertEqual((marker().is_summary, first.is_summary), (True, False))
