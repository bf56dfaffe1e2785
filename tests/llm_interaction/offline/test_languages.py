"""The offline model in each language."""

import unittest
from pathlib import Path

from evennia_ai.language.tables import DEFAULT, language_of, tables
from evennia_ai.llm_interaction.contexts import language_rule
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.offline.prose import sentences
from evennia_ai.llm_interaction.offline.reply import is_fixed
from tests.llm_interaction.offline.requests import SYSTEM, TOOLS, moment, said

TEXTS = Path(__file__).parents[3] / "benchmarks" / "languages.txt"


def facts():
    """Facts and questions by language."""
    told = {}
    for line in TEXTS.read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = told.setdefault(line.strip("[]"), [])
        elif " | " in line:
            rows.append(line.split(" | "))
    return told


def answer(text, tools=TOOLS, rules=""):
    """The reply to one line of Bob's."""
    system = {**SYSTEM, "content": f"{SYSTEM['content']}\n{rules}"}
    return respond([system, said("Bob", text), moment("Bob")], tools)


class TestEachLanguage(unittest.TestCase):
    """Told, asked and greeted."""

    def test_each_has_texts(self):
        """A table without texts is not measured."""
        self.assertEqual(facts().keys(), tables().keys())

    def test_facts_are_written_down(self):
        """And questions are looked up; neither is nonsense."""
        for code, rows in facts().items():
            wrong = []
            for fact, question in rows:
                told = [call.name for call in answer(fact).tool_calls]
                asked = [call.name for call in answer(question).tool_calls]
                wrong += [fact] * (told != ["add_journal_entry"])
                wrong += [question] * (asked != ["search_memory"])
            self.assertLessEqual(len(wrong), 2, (code, wrong))

    def test_answers_are_in_the_language(self):
        """What was told is quoted, what was not is not known, each by a line of the language."""
        for code, rows in facts().items():
            with self.subTest(code):
                fact, question = rows[2]
                messages = [SYSTEM, said("Cora", fact), said("Bob", question), moment("Bob")]
                reply = respond(messages, ()).content
                self.assertIn(fact.rstrip(".。।"), reply)
                self.assertIn(
                    respond([SYSTEM, said("Bob", question), moment("Bob")], ()).content,
                    tables()[code].get("lines", "unknown"),
                )

    def test_its_own_lines_are_known(self):
        """It never takes them for what somebody told."""
        for table in tables().values():
            for kind in ("unknown", "remember", "chatter", "thanks"):
                for line in table.get("lines", kind):
                    if "{" not in line:
                        self.assertTrue(all(map(is_fixed, sentences(line))), line)

    def test_fixed_language(self):
        """It speaks the language that the rules name, whatever it hears."""
        greeting = answer("Hello there!", (), language_rule("de")).content
        self.assertEqual(language_of(greeting), "de")
        self.assertEqual(language_of(answer("Guten Abend!", ()).content), "de")
        unknown = answer("Xyzzy?", (), language_rule("Klingon")).content
        self.assertIn(language_of(unknown), (DEFAULT, ""))

    def test_the_time(self):
        """The clock and the day as the language tells them; a game's own words stay."""
        shown = "about a quarter past nine in the evening, Sunday 22 November 2026"
        tail = {"role": "user", "content": f"[Present moment]\nTime: {shown}"}
        for text, want in (
            ("Wie spät ist es?", "21:15 Uhr"),
            ("Welcher Tag ist heute?", "22.11.2026"),
        ):
            self.assertIn(want, respond([SYSTEM, said("Bob", text), tail], ()).content)
