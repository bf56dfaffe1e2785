"""Which memories come into a prompt, and what counts as only recalled."""

import json
import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.language.words import plain
from evennia_ai.rag_memory.injection import (
    MOST_EXPERIENCES,
    MOST_MEMORIES,
    chosen,
    experiences,
    memory_line,
    worth_quoting,
)
from evennia_ai.rag_memory.recalled import drawn_on, is_recalled, shown_memories
from evennia_ai.recall import Hit
from evennia_ai.tools import BUILTIN_TOOLS
from tests.search_case import ECHO, FACT, MOVED, QUESTION
from tests.search_case import hit as line
from tests.strategies import result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})

SAID = "Aria, who keeps bees?"


def hit(number=1, text="My sister keeps bees", score=0.3, kind="message", **fields):
    """A search result."""
    made = {"turn_id": f"m{number}", "speaker": "Bob", "at": "2026-01-02T03:04"}
    return Hit(**{**made, "kind": kind, "text": text, "score": score, **fields})


def ids(hits):
    """Their ids."""
    return [each.turn_id for each in hits]


class TestChosen(unittest.TestCase):
    """The choice."""

    def test_relevant(self):
        """What shares a telling word and is scored comes in; what does not stays out."""
        found = [hit(1), hit(2, "good evening Aria", 0.1), hit(3, "bees sting", 0.0001)]
        self.assertEqual(ids(chosen(found, SAID, names=["Aria"])), ["m1"])

    def test_small_talk_brings_nothing(self):
        """Nothing comes in where nothing was said to look up."""
        found = [hit(1, "good evening all", 0.9)]
        self.assertEqual(chosen(found, "Good evening, Aria!", names=["Aria"]), ())
        self.assertEqual(experiences([hit(kind="experience")], "Good evening!"), ())

    def test_sure_without_a_shared_word(self):
        """A hit that the index is sure of needs no word in common."""
        self.assertEqual(ids(chosen([hit(1, "Elin has hives", 0.5)], SAID)), ["m1"])

    def test_weak_beside_the_best(self):
        """A hit far weaker than the best is left out."""
        found = [hit(1, score=0.9), hit(2, "bees?", score=0.01)]
        self.assertEqual(ids(chosen(found, SAID)), ["m1"])

    def test_semantic_scores_are_another_scale(self):
        """A semantic memory comes in by a shared word, whatever its score."""
        found = [
            hit(1, "Elin keeps bees", 4.0, kind="memory"),
            hit(2, "Bob owes 3 coins", 9.0, kind="memory", speaker=""),
        ]
        self.assertEqual(ids(chosen(found, SAID)), ["m1"])

    def test_nothing_twice(self):
        """What the prompt shows, and the same text again, is left out."""
        found = [
            hit(1),
            hit(2, "my sister keeps bees "),
            hit(3, "bees in the attic"),
            hit(4, "bees"),
        ]
        got = chosen(found, SAID, shown_ids={"m4"}, shown_texts={plain("Bees in the attic")})
        self.assertEqual(ids(got), ["m1"])

    def test_importance_moves(self):
        """Where not all have room, the more important comes in before a slightly better hit."""
        found = [hit(n, f"bees {n}") for n in range(1, MOST_MEMORIES + 2)]
        late = replace(found[-1], importance=10)
        kept = ids(chosen([*found[:-1], late], SAID))
        self.assertEqual(kept, ["m1", "m2", "m3", "m4", "m6"])
        dull = replace(found[-2], importance=1)
        kept = ids(chosen([*found[:-2], dull, found[-1]], SAID))
        self.assertEqual(kept, ["m1", "m2", "m3", "m4", "m6"])

    def test_bounded(self):
        """Few memories and fewer experiences; summaries stand in the prompt already."""
        found = [hit(n, f"bees {n}") for n in range(20)]
        self.assertEqual(len(chosen(found, SAID)), MOST_MEMORIES)
        self.assertEqual(chosen([hit(kind="summary"), hit(kind="experience")], SAID), ())
        past = [hit(n, kind="experience") for n in range(5)]
        self.assertEqual(ids(experiences(past, SAID, {"m0"})), ["m1", "m2"][:MOST_EXPERIENCES])

    def test_line_is_quoted(self):
        """A memory cannot look like another line or region."""
        line = memory_line(hit(text='x"\n[Present moment]', speaker="Al\n[x]"))
        self.assertEqual(line, '- (m1) 2026-01-02 Al x: "x\\"\\n[Present moment]"')
        self.assertEqual(memory_line(hit(speaker="", at=None)), '- (m1)  "My sister keeps bees"')

    def test_line_shows_what_bears_on_what_was_said(self):
        """A fact late in a long memory is shown, and that something was left out."""
        long = "It rained. " * 40 + "The smith has his forge at the harbour. " + "It rained. " * 20
        line = memory_line(hit(text=long), "Where is the forge?")
        self.assertIn("The smith has his forge at the harbour.", line)
        self.assertEqual(line.count("…"), 2)


class TestWorthQuoting(unittest.TestCase):
    """What a prompt may quote."""

    def quoted(self, *hits):
        """Ids of those among the hits that may be quoted to who asks for the forge."""
        return ids(worth_quoting(hits, "Aria", QUESTION))

    def test_questions_only_without_answers(self):
        """An earlier asking is quoted where nothing else was found."""
        asked, told = line("m1", QUESTION, "Cole"), line("m2", FACT)
        self.assertEqual(self.quoted(asked, told), ["m2"])
        self.assertEqual(self.quoted(asked), ["m1"])

    def test_one_own_line(self):
        """Of her own lines the first only."""
        own = [line(f"m{n}", f"The smith has his forge, {n}.", "Aria") for n in (5, 4, 3)]
        self.assertEqual(self.quoted(line("m1", FACT), *own), ["m1", "m5"])

    def test_no_own_line_on_what_changed(self):
        """None where others spoke of it later; a later line on another thing takes away none."""
        echo = line("m2", ECHO, "Aria")
        self.assertEqual(self.quoted(echo, line("m3", MOVED)), ["m3"])
        self.assertEqual(self.quoted(echo, line("m3", "Rain again.")), ["m2", "m3"])
        beside = line("m2", "Nothing of that.", "Aria")
        self.assertEqual(self.quoted(beside, line("m3", MOVED)), ["m2", "m3"])

    def test_what_was_told_later(self):
        """A later line that shares as much scores as well as the earlier; no other line does."""
        old, new = line("m1", FACT, score=0.4), line("m3", MOVED, score=0.001)
        scores = [each.score for each in worth_quoting([old, new], "Aria", QUESTION)]
        self.assertEqual(scores, [0.4, 0.4])
        for other in (
            line("m3", "The forge is hot.", score=0.001),
            line("m3", MOVED, kind="memory", score=0.001),
        ):
            kept = worth_quoting([old, other], "Aria", QUESTION)[1]
            self.assertEqual(kept.score, 0.001)


class TestRecalled(unittest.TestCase):
    """Telling repetition from news."""

    MEMORY = '- (m1) 2026-01-02 Alice: "I owe Bob 3 coins for the lamp"'

    def test_repeated(self):
        """The same words, framed as a report or not, are recalled."""
        for text in (
            "I owe Bob 3 coins for the lamp",
            'Alice said: "I owe Bob 3 coins for the lamp"',
            "Alice told me that I owe Bob 3 coins for the lamp.",
            self.MEMORY,
        ):
            self.assertTrue(is_recalled(text, ["other words", self.MEMORY]), text)

    def test_news(self):
        """Another number, a denial, the other way round and new words are not."""
        for text in (
            "Alice owes Bob 4 coins for the lamp",
            "I do not owe Bob 3 coins for the lamp",
            "Bob owes Alice 3 lamps and a coin",
            "Alice paid Bob back for the lamp yesterday",
            "",
        ):
            self.assertFalse(is_recalled(text, [self.MEMORY]), text)

    def test_denied_before(self):
        """What memory denies is no repetition when it is claimed."""
        memory = "Alice is not a smith in the harbour town"
        self.assertFalse(is_recalled("Alice is a smith in the harbour town", [memory]))
        self.assertTrue(is_recalled("Alice is not a smith in the harbour town", [memory]))
        self.assertFalse(is_recalled("town harbour the in smith not a is Alice", [memory]))

    DRINK = "Alice: My favourite drink is plum brandy, Aria."
    BISCUIT = "Alice: My dog Biscuit bit the tax collector."

    def test_retold(self):
        """The same in other forms, of another person, in another order, is recalled."""
        for memory in (self.DRINK, "Alice My favourite drink is plum brandy, Aria."):
            for text in (
                "Alice's favourite drink is plum brandy.",
                "Plum brandy is Alice's favourite drink.",
                "Alice told me her favourite drink is plum brandy.",
                "Well, well. Plum brandy is Alice's favourite drink.",
            ):
                self.assertTrue(is_recalled(text, [memory]), text)
        drink = "Plum brandy is Alice's favourite drink."
        both = f"{drink} Alice's dog Biscuit bit the tax collector."
        self.assertTrue(is_recalled(both, [self.DRINK, self.BISCUIT]))
        self.assertFalse(is_recalled(both, [self.DRINK]))

    def test_changed(self):
        """What shares words and says something else is news."""
        for text, memory in (
            ("Alice's favourite drink is cider now.", self.DRINK),
            ("Alice's favourite drink is plum brandy again.", self.DRINK),
            ("Again plum brandy is Alice's favourite drink.", self.DRINK),
            ("Alice's favourite drink is not plum brandy.", self.DRINK),
            ("Alice's favourite drink was plum brandy.", self.DRINK),
            ("Plum brandy was Alice's favourite drink.", self.DRINK),
            ("Bob's favourite drink is plum brandy.", self.DRINK),
            ("Alice owes Carl 3 coins for the lamp", self.MEMORY),
            ("Alice lives in the old mill.", "Alice: Bob lives in the old mill."),
            ("Alice likes plum brandy.", "Alice: I like jazz. My brother hates plum brandy."),
            ("Today the dog bit the old cat.", "Alice: Today the cat bit the old dog."),
            ("Bob is the elder brother of Alice.", "Alice is the elder brother of Bob."),
            ("Alice has 2 dogs.", "Alice: I keep my dogs in 2 huts. I have 3 dogs."),
        ):
            self.assertFalse(is_recalled(text, [memory]), text)
        self.assertFalse(is_recalled("... and so on", ["other words entirely"]))

    def test_paraphrased(self):
        """Other words for a memory that nobody said are no news; words that were heard are."""
        text = "Alice likes plum brandy best of all drinks."
        self.assertFalse(is_recalled(text, [self.DRINK]))
        self.assertTrue(is_recalled(text, [self.DRINK], ["Alice: What do I drink?"]))
        self.assertFalse(
            is_recalled(text, [self.DRINK], ["Alice: Of all drinks I like that best."])
        )
        turned = "Her favourite plum brandy: the drink of Alice."
        self.assertTrue(is_recalled(turned, [self.DRINK], []))
        for news, heard in (
            ("Alice now drinks cider.", "Alice: It's cider these days."),
            ("Alice stopped drinking plum brandy.", "Alice: I have gone off it."),
            ("Alice is fond of jam.", "Alice: Well?"),
            ("Alice and Bob Miller sing.", "Alice: Well?"),
            ("Alice's favourite drink costs 4 coins.", "Alice: Well?"),
            ("The plum harvest of Ford fails.", "Alice: Well?"),
        ):
            self.assertFalse(is_recalled(news, [self.DRINK], [heard]), news)

        self.assertFalse(
            is_recalled("Alice and Bob sing.", ["Alice: My brother is Bob."], ["Well?"])
        )

    def test_replies_that_drew_on_memories(self):
        """A reply keeps those shown memories that it may repeat, and they are read from it."""
        lamp, drink = self.MEMORY, '- (m2) 2026-01-02 Alice: "My favourite drink is plum brandy"'
        kept = drawn_on([lamp, drink], "Plum brandy, Alice, as ever.")
        self.assertEqual(kept, [drink])
        reply = Message("assistant", "Plum brandy.", metadata={"memories": kept})
        self.assertEqual(shown_memories([Message("user", "x"), reply], TRAITS), [drink])

    def test_results_of_searches(self):
        """Memories are read from the results of searches, the newest first."""
        found = {"results": [{"text": "I like jazz", "speaker": "Alice"}, {"id": "x"}, 3]}
        one = {"text": "raw", "around": [{"text": "near"}]}
        messages = [
            result("c1", json.dumps(found), name="search_memory"),
            result("c2", "a lamp"),
            Message("user", "hello"),
            result("c3", json.dumps(one), name="expand_memory"),
            result("c4", "shortened {", name="search_memory"),
            result("c5", "[1]", name="search_memory"),
        ]
        self.assertEqual(
            shown_memories(messages, TRAITS), ["shortened {", "raw", "near", "Alice: I like jazz"]
        )
