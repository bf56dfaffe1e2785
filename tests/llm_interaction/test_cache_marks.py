"""Marks for providers that cache only what is marked."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.frames import MOMENT_LABEL
from evennia_ai.llm_interaction.cache_marks import marked, marks, wants_marks
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
    """Which messages are marked."""

    def test_of_a_turn(self):
        """Rules, the newest words before the tail, what stands before it, and the last message."""
        self.assertEqual(marks(PROMPT), [0, 3, 4, 5])
        results = [message("assistant", ""), message("tool", "done")]
        self.assertEqual(marks([*PROMPT, *results]), [0, 3, 4, 7])

    def test_small_prompts(self):
        """Nothing is marked twice, nor without a text."""
        self.assertEqual(marks([]), [])
        self.assertEqual(marks(PROMPT[:1]), [0])
        self.assertEqual(marks([PROMPT[0], TAIL]), [0, 1])
        self.assertEqual(marks([TAIL]), [0])
        self.assertEqual(marks([PROMPT[0], message("assistant", "")]), [0])

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

    def test_which_models(self):
        """Anthropic's, whoever serves them."""
        for name, wanted in (
            ("anthropic/claude-sonnet-4-5", True),
            ("bedrock/anthropic.claude-3-haiku", True),
            ("openrouter/anthropic/Claude-3.5", True),
            ("gpt-4o", False),
            ("offline/extractive", False),
        ):
            self.assertEqual(wants_marks(name), wanted)
