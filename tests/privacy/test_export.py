"""A player's copy holds what is theirs, and of what others told only what they may know."""

import json
import tempfile
import unittest
from itertools import product

from django.test import override_settings

from evennia_ai.feature import listed_features
from evennia_ai.features.bonds import note_event
from evennia_ai.features.errands import take
from evennia_ai.history.archive import Segment
from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.privacy.export import delete_exports, export_folder, export_player
from evennia_ai.rag_memory.entities import new_profile, observe
from tests.fake import FakeAssistant
from tests.waiting import wait_for

ALICE, BOB, CORA = (
    Speaker(n, i) for n, i in (("Alice", "o1.a"), ("Bob", "o2.b"), ("Cora", "o3.c"))
)
ACCOUNT = "a1.a"
OPEN = (PUBLIC, private([ALICE.id]), private([ACCOUNT]), private([ALICE.id, BOB.id]))
CLOSED = (STAFF, private([BOB.id]), private([BOB.id, CORA.id]), private(["o9.aria"]))
SECRET = "the vault is under the well"


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.script = FakeAssistant(features=listed_features())
        self.body = self.script.obj
        self.body.pk = 9
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(override_settings(GAME_DIR=folder))

    def line(self, speaker, audience=PUBLIC, text="Good day.", role="user"):
        message = Message(role, text, speaker=speaker, audience=audience, channel="say")
        return self.script.history.append([message])[0]

    def copy(self):
        """What Alice's copy says of Aria, and its whole text."""
        path = wait_for(export_player([self.script], [ALICE.id, ACCOUNT]))
        text = path.read_text()
        return json.loads(text)["assistants"]["Aria (#9)"], text


class TestWhatOthersTold(ExportTest):
    """Each kind of thing that others' words are in, for each audience."""

    def journal_of_her_line(self, audience):
        hers = self.line(ALICE)
        self.body.journal.add(SECRET, source_message_ids=[hers.id], audience=audience)

    def journal_of_both(self, audience):
        sources = [self.line(BOB, audience).id, self.line(ALICE).id]
        self.body.journal.add(SECRET, source_message_ids=sources, audience=audience)

    def observation(self, audience):
        profile = new_profile(ALICE.id, "Alice", self.script.now())
        profile = observe(profile, SECRET, self.script.now(), self.line(BOB).id, audience)
        self.body.entities.put({profile.id: profile})

    def note_about_her(self, audience):
        self.script.ledger.add(SECRET, BOB, state="approved", about=[ALICE.id], audience=audience)

    def bond(self, audience):
        note_event(self.script, ALICE, 3, SECRET, audience=audience)

    kinds = (journal_of_her_line, journal_of_both, observation, note_about_her, bond)

    def test_only_what_she_may_know(self):
        for kind, audience in product(self.kinds, (*OPEN, *CLOSED)):
            with self.subTest(kind=kind.__name__, audience=audience):
                self.setUp()
                kind(self, audience)
                self.assertEqual(SECRET in self.copy()[1], audience in OPEN)

    def test_never(self):
        """What is neither hers nor about her, also where all could hear it."""

        def said(audience, role="user", speaker=BOB):
            return self.line(speaker, audience, SECRET, role)

        def archived(audience):
            message = said(audience)
            self.script.history.archive(Segment.sealed("g1", "s1", [message]))
            self.script.history.replace([])

        def profile(audience):
            his = new_profile(BOB.id, "Bob", self.script.now())
            his = observe(his, SECRET, self.script.now(), self.line(ALICE).id, audience)
            self.body.entities.put({his.id: his})

        for name, make in {
            "line": said,
            "archived line": archived,
            "reply": lambda audience: said(audience, "assistant", Speaker("Aria", "o9.aria")),
            "tool": lambda audience: said(audience, "tool", None),
            "journal": lambda audience: self.body.journal.add(
                SECRET, source_message_ids=[self.line(BOB).id], audience=audience
            ),
            "synthesis": lambda audience: self.body.journal.add(
                SECRET,
                source_type="compaction",
                source_message_ids=[self.line(ALICE).id],
                audience=audience,
            ),
            "observation": profile,
            "note": lambda audience: self.script.ledger.add(
                SECRET, BOB, state="approved", audience=audience
            ),
            "errand": lambda _: take(self.script, BOB, CORA, SECRET),
            "bond": lambda audience: note_event(self.script, BOB, 3, SECRET, audience=audience),
        }.items():
            for audience in (*OPEN, *CLOSED):
                with self.subTest(name, audience=audience):
                    self.setUp()
                    make(audience)
                    self.line(ALICE)
                    self.assertNotIn(SECRET, self.copy()[1])


class TestHerOwn(ExportTest):
    def test_all_of_it(self):
        """What she said and left, to whomever: live and archived, once each, in order."""
        for number, audience in enumerate(OPEN):
            self.script.clock.advance(1)
            self.line(ALICE, audience, f"line {number}")
        live = self.script.history.messages()
        self.script.history.archive(Segment.sealed("g1", "s1", live[:2]))
        self.script.history.replace(live[1:])
        self.script.ledger.add("I like jazz.", ALICE, state="proposed", audience=OPEN[1])
        take(self.script, ALICE, BOB, "the boat is ready")
        take(self.script, BOB, ALICE, "so is the ox")
        copy, _ = self.copy()
        self.assertEqual([m["content"] for m in copy["said"]], [f"line {n}" for n in range(4)])
        self.assertEqual([note["text"] for note in copy["notes"]], ["I like jazz."])
        texts = [errand["text"] for errand in copy["errands"]]
        self.assertEqual(texts, ["the boat is ready", "so is the ox"])

    def test_forgotten(self):
        """Copies go with whoever is forgotten, and files that name them; others stay."""
        self.copy()
        for name, text in (("mine.json", f'"{ALICE.id}"'), ("his.json", f'"{BOB.id}"')):
            (export_folder() / name).write_text(text)
        delete_exports([ALICE.id])
        self.assertEqual([path.name for path in export_folder().iterdir()], ["his.json"])
