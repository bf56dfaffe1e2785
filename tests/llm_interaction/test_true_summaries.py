"""Summaries in many languages: true ones pass whole, what nobody said is struck."""

import tomllib
import unittest
from pathlib import Path

from evennia_ai.history.frames import heard_line
from evennia_ai.llm_interaction.grounding import grounded_in
from evennia_ai.llm_interaction.summary import accepted, request_text
from evennia_ai.llm_interaction.values import ModelReply

TALKS = tomllib.loads(Path(__file__).with_name("summaries.toml").read_text("utf-8"))["talk"]


def ground(talk):
    """A talk as a summariser reads it."""
    rows = [row.split(": ", 1) for row in talk["lines"].strip().splitlines()]
    people = sorted({who for who, _ in rows})
    lines = [heard_line(who, f"o1.{people.index(who)}a", "say", text) for who, text in rows]
    return request_text(["[2026-11-22]", *lines]), people


class TestTalks(unittest.TestCase):
    """Each talk of `summaries.toml`."""

    def test_true_ones_pass(self):
        """Hardly a sentence is struck, and never most of a summary."""
        told = [(ground(talk), text) for talk in TALKS for text in talk["true"]]
        struck = {
            text: grounded_in(accepted(ModelReply(content=text)), *source) for source, text in told
        }
        cut = {text: found.struck for text, found in struck.items() if found.struck}
        self.assertLessEqual(len(cut), 0.04 * len(told), cut)
        for found in struck.values():
            self.assertLess(len(found.struck), max(2, found.sentences / 2), found)
            self.assertNotIn("turned", {each.rule for each in found.struck}, found)

    def test_lists(self):
        """Neither the numbers of a list nor its heading are claims."""
        text = (
            "Zusammenfassung des Gesprächs:\n1. Oskar schläft in der alten Mühle.\n"
            "2. Er schuldet Konrad 340 Taler.\n7) Veit meldet einen Einbruch am Nordtor."
        )
        found = grounded_in(text, *ground(TALKS[0]))
        self.assertEqual(found.struck, ())
        self.assertIn("\n- Oskar schläft", found.text)

    def test_inventions_are_struck(self):
        """A wrong name or number, or a claim turned round, whatever stands before it.

        Names without capitals, and German ones behind no noun, pass: they look like any noun.
        """
        told = [(ground(talk), talk["true"][0], text) for talk in TALKS for text in talk["false"]]
        alone = [text for source, _, text in told if not grounded_in(text, *source).struck]
        self.assertLessEqual(len(alone), 0.18 * len(told), alone)
        whole = [(text, grounded_in(f"{true}\n{text}", *source)) for source, true, text in told]
        behind = [
            text
            for text, found in whole
            if text not in alone and not any(text in each.sentence for each in found.struck)
        ]
        self.assertEqual(behind, [])
