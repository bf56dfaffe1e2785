"""The prompt of a base model: a talk, a line each, that ends with the assistant's opened line."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import MESSAGES_LABEL, note, talk_line
from evennia_ai.llm_interaction.contexts import SUMMARY_MARK
from evennia_ai.llm_interaction.conversation import HERE, LANGUAGE, NOW, summary_text
from evennia_ai.llm_interaction.transcript import (
    FACTS,
    MOST_FACTS,
    as_task_prompt,
    as_transcript,
    read_facts,
)
from tests.strategies import FEW


def system(text="Aria is a smith."):
    return {"role": "system", "content": text}


def user(*rows):
    return {"role": "user", "content": "\n".join(rows)}


def aria(text):
    return {"role": "assistant", "content": text}


def lines(*messages):
    return as_transcript(messages, "Aria").splitlines()


class TestTranscript(unittest.TestCase):
    def test_a_talk(self):
        """Labels and ids stay out; who is here stands before the talk, her line last."""
        text = as_transcript(
            (
                system("Aria is a smith.\n\nWhere you are: The Gull"),
                user("Cy: Ho!"),
                aria("Aye."),
                user(summary_text("Bob has a boat.", "s1")),
                user(talk_line("Bob", "say", 'I said "no".\nTwice.')),
                aria("Aye.\nSo be it."),
                user(
                    talk_line("Bob", "pose", "waves"),
                    talk_line("Cy", "arrive", ""),
                    talk_line("Bob", "whisper", "Psst."),
                    "Something odd",
                    "",
                ),
                {"role": "tool", "name": "look", "content": "A low room.\nA fire."},
                user(
                    note(NOW, "noon"),
                    note(HERE, "Bob"),
                    note(LANGUAGE, "German"),
                    note("You remember, m1, 2 days ago", "Bob: I have a boat."),
                    talk_line("Bob", "say", "And you?"),
                ),
            ),
            "Aria",
        )
        self.assertEqual(
            text.splitlines(),
            [
                "Aria is a smith.",
                "",
                "Where you are: The Gull",
                "noon",
                "Also there: Bob.",
                "",
                'Cy says: "Ho!"',
                'Aria says: "Aye."',
                "(Bob has a boat.)",
                "Bob says: \"I said 'no'. Twice.\"",
                'Aria says: "Aye."',
                'Aria says: "So be it."',
                "Bob waves",
                "Cy arrives.",
                'Bob says: "Psst."',
                "Something odd",
                "(A low room. A fire.)",
                "(Bob: I have a boat.)",
                'Bob says: "And you?"',
                'Aria says: "',
            ],
        )

    @FEW
    @given(st.text())
    def test_nobody_types_a_line(self, text):
        """Whatever a person says makes one line with two quote marks."""
        found = lines(system(), aria("a"), aria("b"), user(talk_line("Bob", "say", text + ".")))
        self.assertEqual(len(found), 6)
        self.assertTrue(found[4].startswith('Bob says: "'))
        self.assertEqual(found[4].count('"'), 2)

    def test_facts(self):
        """The prompt ends where the first begins; each is a whole line, counts once, and ends.

        No examples stand in it: they would become facts.
        """
        text = as_task_prompt([system(), user(talk_line("Bob", "say", "I owe Al 4."))], FACTS)
        self.assertTrue(text.endswith("with names and numbers:\n-"))
        self.assertNotIn("traveller", text)
        self.assertEqual(read_facts(" A is B.\n- A is B.\n-\n- C!\n- D is"), ("A is B.", "C!"))
        self.assertEqual(len(read_facts("\n".join(f"- {n} is." for n in range(50)))), MOST_FACTS)

    def test_plain_lines(self):
        """The request is the task, who said what, and where the summary begins."""
        source = (
            MESSAGES_LABEL,
            "[2026-01-02]",
            talk_line("Bob", "say", "Hello"),
            talk_line("Bob", "leave", ""),
            note("assistant", "Good day. [calls look()]"),
            note("assistant", "[calls look()]"),
            note("tool look", "A room."),
            "odd",
        )
        self.assertEqual(
            as_task_prompt([system("Summarise."), user(*source)], SUMMARY_MARK),
            'Summarise.\n\nBob says: "Hello"\nBob leaves.\nI: Good day.\nodd\n\nSUMMARY:',
        )
