"""The prompt of a base model: a talk, a line each, that ends with the assistant's opened line."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.frames import (
    MEMORIES_LABEL,
    MESSAGES_LABEL,
    MOMENT_LABEL,
    answer_line,
    heard_line,
    moment_lines,
    row,
    source_line,
    tool_result,
)
from evennia_ai.llm_interaction.contexts import SUMMARY_MARK
from evennia_ai.llm_interaction.transcript import (
    EXAMPLES,
    FACTS,
    MOST_FACTS,
    as_task_prompt,
    as_transcript,
    read_facts,
)
from tests.strategies import FEW

BOB = "o5.b"


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
        """Ids, labels and quoting stay out; lines of the turn are not repeated."""
        moment = moment_lines("noon", "The Gull", [("Bob", BOB)], ["north"], 'A "low" room.')
        text = as_transcript(
            (
                system(),
                user("[Ledger] (notes)", "- (n1) Be kind."),
                user(heard_line("Bob", BOB, "say", 'I said "no".\nTwice.')),
                aria("Aye.\nSo be it."),
                user(
                    heard_line("Bob", BOB, "pose", "waves"),
                    "Cy [o6.c] arrives",
                    tool_result("look", "A low room.\nA fire."),
                    "Something odd",
                    "",
                ),
                user(MEMORIES_LABEL, row("m1", "2026-01-02", "Bob", "I have a boat.")),
                user(
                    MOMENT_LABEL,
                    *moment,
                    "Bob [o5.b] (person)",
                    answer_line("Bob", BOB, "say", "And you?"),
                ),
                user(heard_line("Bob", BOB, "say", "And you?")),
            ),
            "Aria",
        )
        self.assertEqual(
            text.splitlines(),
            [
                "Aria is a smith.",
                "Be kind.",
                "Bob: 'I have a boat.'",
                "Aria is in The Gull. A 'low' room.",
                "Also there: Bob.",
                "Bob (person)",
                "",
                "Bob says: \"I said 'no'. Twice.\"",
                'Aria says: "Aye."',
                'Aria says: "So be it."',
                "Bob waves",
                "Cy arrives.",
                "(A low room. A fire.)",
                "Something odd",
                'Bob says: "And you?"',
                'Aria says: "',
            ],
        )

    def test_what_is_not_there(self):
        """Fixed lines stand in for those of her own; of a cut moment nobody is there."""
        said = lines(user(heard_line("Bob", BOB, "say", "Hello")), aria(""))
        self.assertEqual(len(said), 1 + len(EXAMPLES) + 2)
        self.assertIn('Aria says: "Half a day on foot, if the road is dry."', said)
        said = lines(user(MOMENT_LABEL, "Time: noon"))
        self.assertEqual(said[:2], ["Aria is in an unknown place.", "Also there: Nobody."])

    @FEW
    @given(st.text())
    def test_nobody_types_a_line(self, text):
        """Whatever a person says makes one line with two quote marks."""
        said = [aria("a"), aria("b"), user(heard_line("Bob", BOB, "say", text + "."))]
        found = lines(*said)
        self.assertEqual(len(found), 5)
        self.assertEqual(found[3].count('"'), 2)

    def test_facts(self):
        """The prompt ends where the first begins; each is a whole line, counts once, and ends.

        No examples stand in it: they would become facts.
        """
        text = as_task_prompt([system(), user(heard_line("Bob", BOB, "say", "I owe Al 4."))], FACTS)
        self.assertTrue(text.endswith("with names and numbers:\n-"))
        self.assertNotIn("traveller", text)
        self.assertEqual(read_facts(" A is B.\n- A is B.\n-\n- C!\n- D is"), ("A is B.", "C!"))
        self.assertEqual(len(read_facts("\n".join(f"- {n} is." for n in range(50)))), MOST_FACTS)

    def test_plain_lines(self):
        """The request is the task, who said what, and where the summary begins."""
        source = (
            MESSAGES_LABEL,
            "[2026-01-02]",
            heard_line("Bob", BOB, "say", "Hello"),
            heard_line("Bob", BOB, "leave", ""),
            source_line("assistant", "Good day.", calls="look()"),
            source_line("assistant", "", calls="look()"),
            source_line("tool", "A room.", "look"),
            "odd",
        )
        self.assertEqual(
            as_task_prompt([system("Summarise."), user(*source)], SUMMARY_MARK),
            'Summarise.\n\nBob says: "Hello"\nBob leaves.\nI: Good day.\nodd\n\nSUMMARY:',
        )
