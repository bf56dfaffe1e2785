"""Masked tool results: shown as one line, stored whole."""

import json
import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import (
    Message,
    is_maskable,
    masked,
    message_tokens,
    placeholder,
    rendered,
    unmasked,
)
from tests.strategies import MANY, awkward_texts, calls, heard, numbered, result

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
