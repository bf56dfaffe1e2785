"""What the assistant is told before all else."""

import unittest

from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.language.tables import AUTO
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_AWAKE,
    CONTEXT_PRE_COMPACTION,
    CONTEXTS,
    SPOKEN,
)
from evennia_ai.llm_interaction.conversation import (
    answer_language,
    fixed_language,
    job_system_prompt,
    language_rule,
    plain_identity,
    system_prompt,
    writing_rule,
    written_language,
)
from tests.strategies import FEW


def made(context, name, persona):
    """The system message of a situation."""
    if context in SPOKEN:
        return system_prompt(name, persona)
    return job_system_prompt(name, persona, CONTEXTS[context])


class TestContexts(unittest.TestCase):
    def test_rules_of_safety(self):
        """Awake it is told that heard words are no orders, to admit not knowing, to invent nothing.

        What tools are for it is told only where it is offered them.
        """
        rules = CONTEXTS[CONTEXT_AWAKE]
        for words in ("never an order", "you don't know", "never make up", "stays between"):
            self.assertIn(words, rules)
        self.assertIn("before", CONTEXTS[CONTEXT_PRE_COMPACTION].lower())
        for has_tools in (True, False):
            text = system_prompt("Aria", "A bard.", "", has_tools)
            self.assertEqual("name the id" in text, has_tools)
            self.assertEqual("tool" in text.lower(), has_tools)

    @FEW
    @given(st.sampled_from(list(CONTEXTS)), st.text("Aria {}né"), st.text("ab {}name persona\n"))
    @example(CONTEXT_AWAKE, "{persona}", "{name}")
    @example(CONTEXT_PRE_COMPACTION, "{persona}", "{name}")
    def test_name_and_persona_stand_as_they_are(self, context, name, persona):
        """Name and persona are in it word for word, braces and all; no placeholder is left."""
        text = made(context, name, persona)
        self.assertTrue(text.startswith(f"You are {name}."))
        self.assertIn(persona.strip(), text)
        self.assertEqual(text.count("{name}"), (name + persona).count("{name}"))
        ending = " ".join(CONTEXTS[context].split()[-9:])
        self.assertIn(ending, " ".join(text.split()))

    def test_the_order(self):
        """Who it is, persona, place, rules, each a paragraph; what is empty leaves none."""
        text = system_prompt("Aria", "A bard.", "Where you are: Inn")
        self.assertEqual(text.split("\n\n")[1:3], ["A bard.", "Where you are: Inn"])
        self.assertTrue(text.split("\n\n")[3].startswith(CONTEXTS[CONTEXT_AWAKE]))
        self.assertEqual(len(system_prompt("Aria", "").split("\n\n")), 2)

    def test_words_that_two_languages_have(self):
        """By default that of the line and of the talk, in each context."""
        for context in CONTEXTS:
            text = made(context, "Aria", "A bard.")
            self.assertEqual(fixed_language(text), "")
            self.assertIn("the language of the", text)

    def test_one_for_everything(self):
        """A code or any name of it; one that is in no table stays as it is."""
        names = {"de": "German", "DEUTSCH": "German", "Klingon": "Klingon"}
        for language, name in names.items():
            self.assertEqual(fixed_language(language_rule(language)), name)
            self.assertEqual(answer_language(language, ()), name)
            self.assertIn(f"Write in {name}", writing_rule(language))
            self.assertIn(f"Aria speaks {name}.", plain_identity("Aria", "A bard.", language))
        self.assertNotIn("speaks", plain_identity("Aria", "A bard."))

    def test_that_of_most_lines(self):
        """Without a language of its own it writes that of the lines; English is not named."""
        german = ["Bob says: Der Müller hat eine Ziege.", "Guten Abend!", "Al says: It is late."]
        self.assertEqual(written_language(AUTO, german), "de")
        self.assertEqual(written_language("ja", german), "ja")
        for lines, heard_last, name in (
            ([line.removeprefix("Bob says: ") for line in german], "", "German"),
            ([], "", ""),
            (["It is late."], "", ""),
            (["..."], "", ""),
            # Words that two languages have, and lines without any, are in the one heard last.
            (["I lost my red hat."], "en", ""),
            (["340?"], "en", ""),
            (["I met a man."], "en", ""),
            (["My hat!"], "en", ""),
            (["340?"], "de", "German"),
            (["Wo ist das?"], "en", "German"),
        ):
            self.assertEqual(answer_language(AUTO, lines, heard_last), name, lines)
