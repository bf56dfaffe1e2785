"""The ledger: notes and their states, whom they concern, which close others, what is shown."""

import unittest
from dataclasses import replace

from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Speaker
from evennia_ai.history.stored import Unreadable
from evennia_ai.llm_interaction.budget import Caps
from evennia_ai.llm_interaction.conversation import LEDGER
from evennia_ai.llm_interaction.regions import HEADINGS, Regions, fit_prompt, note_line
from evennia_ai.rag_memory import ledger
from evennia_ai.rag_memory.ledger import STATES, LedgerError, LedgerHandler, Note, moved
from tests.fake import MemoryStore

ALICE = Speaker("Alice", "o1")
BOB = Speaker("Bob", "o2")


def note(text, number=1, state="approved", by=ALICE, **fields):
    """A note with an id that says its number."""
    made = LedgerHandler(MemoryStore(), lambda: float(number)).add(text, by, state=state, **fields)
    return replace(made, id=f"l{number}")


def ledger_block(entries, cap):
    """The ledger's message in a prompt, of so many letters."""
    rows = tuple((HEADINGS[e.kind], note_line(e.id, e.at, e.by, e.text)) for e in entries)
    made = fit_prompt(Regions("", (), ledger=rows), Caps(0, 0, 0, 0, ledger=cap), 9999, len)
    return "".join(m["content"] for m in made.messages)


class TestAmongOthers(unittest.TestCase):
    def test_same(self):
        """The same words of the same person, case and marks aside, while that note lives."""
        entries = [note("I like jazz"), note("x", 2, by=BOB)]
        self.assertEqual(ledger.same_note(entries, "i like Jazz!", "o1", PUBLIC).id, "l1")
        gone = [moved(entries[0], "withdrawn", 1.0, ALICE)]
        for notes, *words in (
            (entries, "I like jazz", "o2", PUBLIC),
            (entries, "I like blues", "o1", PUBLIC),
            (entries, "I like jazz", "o1", private(["o1"])),
            (gone, "I like jazz", "o1", PUBLIC),
        ):
            self.assertIsNone(ledger.same_note(notes, *words))

    def test_the_same_for_others(self):
        """What is valid closes its author's same words for others; a secret does so at once."""
        secret = private(["o1"])
        public, hidden = note("I love Bob", 1), note("I love Bob", 2, audience=secret)
        waiting = note("I love Bob", 3, state="proposed")
        for new, old, is_closed in (
            (note("i love Bob!", 4), hidden, True),
            (note("I love Bob", 4, audience=secret), public, True),
            (note("I love Bob", 4, audience=secret, state="proposed"), public, True),
            (note("I love Bob", 4, audience=secret), waiting, True),
            (waiting, hidden, False),
            (note("I love Bob", 4, by=BOB), hidden, False),
            (note("I love Ann", 4), hidden, False),
            (note("I love Bob", 4), public, False),
        ):
            closed = ledger.superseded(new, [old], 9.0)
            ends = [(each.state, each.superseded_by) for each in closed]
            self.assertEqual(ends, [("superseded", new.id)] * is_closed)


class TestShown(unittest.TestCase):
    def test_order(self):
        """Rules first, then the newer; proposals are shown to nobody."""
        entries = [
            note("old fact", 1),
            note("new fact", 2),
            note("old rule", 3, kind="rule"),
            note("new fact", 4),
            note("proposed rule", 5, kind="rule", state="proposed"),
        ]
        shown = [entry.id for entry in ledger.in_prompt_order(entries)]
        self.assertEqual(shown, ["l3", "l4", "l2", "l1"])

    def test_a_players_flood_leaves_the_staffs_rule(self):
        """Thirty long notes of one player do not push a rule of staff out of the block."""
        rule = note("Never serve ale to children", 0, staff=True)
        flood = [
            note(f"I must say {'word ' * 30}{n}", n, about=["o1"], kind="rule")
            for n in range(1, 31)
        ]
        block = ledger_block(ledger.in_prompt_order([rule, *flood]), 900)
        self.assertIn("Never serve ale", block)
        self.assertLess(block.count("I must say"), 10)

    def test_block(self):
        """A block has its label, then the notes by type, each with its id and giver."""
        likes, rule = note("I like jazz", kind="preference"), note("Never sing", 2, kind="rule")
        entries = ledger.in_prompt_order([likes, rule])
        block = ledger_block(entries, 900).splitlines()
        row = '- (l2) 1970-01-01 Alice [o1]: "Never sing"'
        self.assertEqual(block[:4], [f"{LEDGER}:", "Rules:", row, "Preferences:"])


class TestNote(unittest.TestCase):
    def test_types(self):
        """A note is a fact unless somebody says what it is."""
        self.assertEqual(note("Never sell on credit").kind, "fact")
        self.assertEqual(note("I like jazz", kind=" Rule ").kind, "rule")

    def test_refused(self):
        """No words, too many of them and an unknown type are refused with a reason."""
        for says, fields in (
            ("needs words", {"text": "  "}),
            ("at most 300", {"text": "x" * 301}),
            ("kinds: rule", {"text": "x", "kind": "poem"}),
        ):
            with self.assertRaisesRegex(LedgerError, says):
                note(**fields)

    def test_states(self):
        """A proposal is decided on, an approved note ends; nothing comes back from an end."""
        for state, allowed in (
            ("proposed", {"approved", "superseded", "withdrawn"}),
            ("approved", {"superseded", "withdrawn"}),
            ("superseded", set()),
            ("withdrawn", set()),
        ):
            entry = replace(note("x"), state=state)
            for wanted in STATES:
                if wanted in allowed:
                    decided = moved(entry, wanted, 9.0, BOB)
                    self.assertEqual((decided.state, decided.decided_by), (wanted, BOB))
                    continue
                with self.assertRaisesRegex(LedgerError, f"is {state}"):
                    moved(entry, wanted, 9.0, BOB)

    def test_no_note(self):
        """What has no words, or an unknown kind or state, is no note."""
        whole = note("Be kind").to_dict()
        odd_fields = ({"text": ""}, {"kind": "poem"}, {"state": "odd"})
        for odd in (5, {"text": "x"}, *({**whole, **odd} for odd in odd_fields)):
            with self.assertRaises(Unreadable):
                Note.from_dict(odd)
