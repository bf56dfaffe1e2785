"""Marks for providers that cache only what is marked."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.frames import MOMENT_LABEL
from evennia_ai.llm_interaction.wire import marked
from tests.strategies import FEW


def message(role, content):
    return {"role": role, "content": content}


TAIL = message("user", f"{MOMENT_LABEL}\nTime: noon")
PROMPT = [
    message("system", "rules"),
    message("assistant", "an earlier word"),
    message("user", "heard"),
    message("assistant", "said"),
    message("user", "heard since"),
    TAIL,
]


class TestMarks(unittest.TestCase):
    def test_which(self):
        """Rules, the newest words, what stands before the tail, the last; never without text."""
        results = [message("assistant", ""), message("tool", "done")]
        for messages, places in (
            (PROMPT, [0, 3, 4, 5]),
            ([*PROMPT, *results], [0, 3, 4, 7]),
            ([], []),
            (PROMPT[:1], [0]),
            ([PROMPT[0], TAIL], [0, 1]),
            ([TAIL], [0]),
            ([PROMPT[0], message("assistant", "")], [0]),
        ):
            with self.subTest(messages=messages):
                shown = enumerate(marked(messages))
                self.assertEqual([n for n, m in shown if isinstance(m["content"], list)], places)

    @FEW
    @given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text())))
    def test_any_prompt(self, rows):
        """At most four marks, and the texts stay as they are."""
        messages = [message(*row) for row in rows]
        shown = marked(messages)
        parts = [each["content"] for each in shown if isinstance(each["content"], list)]
        self.assertLessEqual(len(parts), 4)
        texts = [c[0]["text"] if isinstance(c, list) else c for c in (m["content"] for m in shown)]
        self.assertEqual(texts, [each["content"] for each in messages])
