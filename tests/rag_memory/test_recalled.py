"""What counts as only recalled."""

import json
import unittest

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.rag_memory.recalled import drawn_on, is_recalled, shown_memories
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests.search_case import told
from tests.strategies import result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})


class TestRecalled(unittest.TestCase):
    """Telling repetition from news."""

    MEMORY = told("Alice: I owe Bob 3 coins for the lamp", "m1")

    def test_repeated(self):
        """The same words, framed as a report or not, are recalled."""
        for text in (
            "I owe Bob 3 coins for the lamp",
            'Alice said: "I owe Bob 3 coins for the lamp"',
            "Alice told me that I owe Bob 3 coins for the lamp.",
            '- (m1) 2026-01-02 Alice: "I owe Bob 3 coins for the lamp"',
        ):
            self.assertTrue(is_recalled(text, [told("other words"), self.MEMORY]), text)

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
        memory = told("Alice is not a smith in the harbour town")
        self.assertFalse(is_recalled("Alice is a smith in the harbour town", [memory]))
        self.assertTrue(is_recalled("Alice is not a smith in the harbour town", [memory]))
        self.assertFalse(is_recalled("town harbour the in smith not a is Alice", [memory]))

    DRINK = told("Alice: My favourite drink is plum brandy, Aria.")
    BISCUIT = told("Alice: My dog Biscuit bit the tax collector.")

    def test_retold(self):
        """The same in other forms, of another person, in another order, is recalled."""
        for memory in (self.DRINK, told("Alice My favourite drink is plum brandy, Aria.")):
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
            memory = told(memory) if isinstance(memory, str) else memory
            self.assertFalse(is_recalled(text, [memory]), text)
        self.assertFalse(is_recalled("... and so on", [told("other words entirely")]))

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
            is_recalled("Alice and Bob sing.", [told("Alice: My brother is Bob.")], ["Well?"])
        )

    def test_replies_that_drew_on_memories(self):
        """A reply keeps those shown memories that it may repeat, and they are read from it."""
        lamp, drink = self.MEMORY, told("Alice: My favourite drink is plum brandy", "m2")
        drawn = drawn_on([lamp, drink], "Plum brandy, Alice, as ever.")
        self.assertEqual(drawn, [drink])
        reply = Message("assistant", "x", metadata={"memories": [drink.to_dict()]})
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
            [(hit.speaker, hit.text) for hit in shown_memories(messages, TRAITS)],
            [("", "shortened {"), ("", "raw"), ("", "near"), ("Alice", "I like jazz")],
        )
