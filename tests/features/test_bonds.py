"""Bonds: events with sources, added by code and known by audience."""

from contextlib import suppress
from types import SimpleNamespace

from evennia import create_object

from evennia_ai.errors import Refusal
from evennia_ai.features.bonds import (
    EVENTS_KEPT,
    GIFT,
    HALF_LIFE_S,
    TALK,
    Bond,
    Bonds,
    Feeling,
    all_bonds,
    bond_with,
    drop,
    note_event,
    note_talk,
    seen_bond,
)
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Speaker
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.rag_memory.entities import new_profile
from evennia_ai.testing import call
from tests.base import PLAYED
from tests.command_line import CommandLineTest
from tests.fake import FakeGame
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

ALICE, BOB = (Speaker(name, FakeGame.people[name]) for name in ("Alice", "Bob"))
DAY = 86_400


class TestBonds(MemoryWorldTest):
    def level(self, viewer, person=ALICE):
        return seen_bond(self.script, self.script.seen(viewer), person.id).level(self.script.now())

    def feelings(self, *people):
        """What prompts of a public turn say of people who are here."""
        present = {person.id: person.key for person in people}
        return [*Bonds().lines(self.script, TurnRequest(), present)]

    def say(self, text, *answers):
        self.hear(text, ALICE)
        self.world.later(5)
        self.world.model.answers = list(answers)
        wait_for(self.script.tick())
        return self.world.model.requests[-1].messages[-1]["content"]

    def test_scene(self):
        """Scene 10: who does not know a reason sees neither it nor its points."""
        note_event(self.script, ALICE, 10, "brought the lost ring", "quest:ring")
        note_event(self.script, ALICE, 5, "told you her secret", audience=private([ALICE.id]))
        self.assertEqual(self.level(PUBLIC), "neutral")
        self.assertEqual(self.level(private([BOB.id])), "neutral")
        self.assertEqual(self.level(private([ALICE.id])), "friendly")
        self.assertEqual(self.level(STAFF), "friendly")
        self.assertNotIn("secret", " ".join(self.feelings()))
        note_event(self.script, ALICE, 10, "paid her debts")
        prompt = self.say("Good evening.", "Good evening, Alice.")
        self.assertIn('You are friendly to Alice; newest reason: "paid her debts"', prompt)
        self.assertIn('Your mood: pleased, because of Alice: "paid her debts"', prompt)
        self.assertNotIn("secret", prompt)

    def test_compliments(self):
        """60 compliments in four days: three points a day, a point a scene, 14 in all.

        Insults weigh as much.
        """
        praise = call("note_feeling", change="better", because="pays a compliment")
        for n in range(60):
            if n % 15 == 0:
                self.world.later(DAY)
            self.world.later(700)
            self.world.configure(sleep_after_idle_s=None)
            self.say(f"You are wonderful, for the {n}th time.", praise, "Thank you.")
        events = bond_with(self.script, ALICE.id).events
        self.assertEqual({event.by for event in events}, {TALK})
        self.assertLessEqual(sum(event.points for event in events), 14)
        self.assertGreaterEqual(len(events), 6)
        for start in events:
            within = [e for e in events if 0 <= e.at - start.at < DAY]
            self.assertLessEqual(len(within), 3)
        self.assertEqual(self.level(PUBLIC), "neutral")
        for person, point in ((ALICE, 1), (BOB, -1)):
            for _ in range(20):
                self.world.later(DAY)
                with suppress(Refusal):
                    note_talk(self.script, person, point, "again", "", PUBLIC)
            points = [event.points for event in bond_with(self.script, person.id).events]
            self.assertEqual(sum(points), 14 * point)
            note_talk(self.script, person, -point, "for once not", "", PUBLIC)

    def test_offered_for_acquaintances(self):
        """A prompt offers the tool for whom it has met before, and not for a newcomer."""

        def offered():
            self.say("Good evening.", "Good evening, Alice.")
            tools = self.world.model.requests[-1].tools
            return "note_feeling" in [tool["function"]["name"] for tool in tools]

        self.assertFalse(offered())
        profile = new_profile(ALICE.id, "Alice", self.script.now())
        self.script.entities.put({profile.id: profile})
        self.assertTrue(offered())

    def test_only_from_own_lines(self):
        """The tool notes nothing for others, and nothing in turns that nobody asked for."""
        for arguments in (
            {"person": "Bob", "change": "better", "because": "is kind"},
            {"change": "best", "because": "is kind"},
        ):
            self.say("Do you like Bob?", call("note_feeling", **arguments), "I do.")
            self.world.later(700)
        self.assertEqual(all_bonds(self.script), {})
        self.say("I like you.", call("note_feeling", person="Alice", change="worse", because="x"))
        self.assertEqual([e.points for e in bond_with(self.script, ALICE.id).events], [-1])
        self.script.memory.quarantine.add({ALICE.id: "Alice"})
        seen = self.script.seen(PUBLIC, trusted=True)
        self.assertEqual(seen_bond(self.script, seen, ALICE.id).events, ())

    def test_levels_and_decay(self):
        """The sum makes the level; half of it is left after the half-life."""
        for points, level in (
            ((-20, -20, -10), "hostile"),
            ((-15,), "wary"),
            ((-14,), "neutral"),
            ((14,), "neutral"),
            ((15,), "friendly"),
            ((20, 20, 10), "close"),
        ):
            bond = Bond("Al", tuple(Feeling(str(n), 0.0, p, "x") for n, p in enumerate(points)))
            self.assertEqual(bond.level(0.0), level)
            self.assertEqual(bool(bond.line("Al", 0.0)), level != "neutral")
        self.assertEqual(bond.points(HALF_LIFE_S), 25)
        self.assertEqual(bond.points(-5.0), 50)

    def test_many_events(self):
        """Old events of one kind and audience become one; nothing of their sum is lost."""
        few = [PUBLIC, private([ALICE.id])] * 50
        for audiences, of_public in ((few, 50), ([private([f"o{n}.x"]) for n in range(60)], 0)):
            bond = Bond()
            for n, audience in enumerate(audiences):
                bond = bond.with_event(Feeling(f"b{n}", 0.0, 1, "x", audience=audience), "Al")
            self.assertEqual(len(bond.events), EVENTS_KEPT)
            self.assertEqual(bond.only(lambda e: e.audience == PUBLIC).points(0.0), of_public)
            self.assertEqual(Bond.from_dict(bond.to_dict()), bond)

    def test_mood_of_those_present(self):
        """The newest event of the last hour with somebody present makes the mood."""
        note_event(self.script, BOB, -5, "broke a jug")
        self.world.later(60)
        note_event(self.script, ALICE, 5, "swept up")

        self.assertEqual(self.feelings(), [])
        self.assertEqual(self.feelings(BOB), ['Your mood: upset, because of Bob: "broke a jug"'])
        self.assertEqual(
            self.feelings(BOB, ALICE), ['Your mood: pleased, because of Alice: "swept up"']
        )
        self.world.later(3600)
        self.assertEqual(self.feelings(BOB, ALICE), [])

    def test_refused(self):
        """Points outside the range, and no reason."""
        for points, why in ((0, "x"), (21, "x"), (-21, "x"), (1.5, "x"), (5, " ")):
            with self.subTest(points=points), self.assertRaises(Refusal):
                note_event(self.script, ALICE, points, why)

    def test_forgotten(self):
        """The bonds of whom is forgotten go, and events that rest on them or repeat their words."""
        note_event(self.script, ALICE, 10, "brought the ring")
        for why, source in (
            ("kept his word", "m1"),
            ("helped Alice home", ""),
            ("as Alice had told", ALICE.id),
            ("repeats it", ""),
        ):
            note_event(self.script, BOB, 5, why, source)
        gone = SimpleNamespace(gone={"m1"}, holds_own=lambda text: text == "repeats it")
        Bonds().forget(self.script, [ALICE.id], gone)
        self.assertEqual(list(all_bonds(self.script)), [BOB.id])
        self.assertEqual(
            [e.why for e in bond_with(self.script, BOB.id).events], ["helped Alice home"]
        )
        self.assertTrue(drop(self.script, bond_with(self.script, BOB.id).events[0].id))
        self.assertFalse(drop(self.script, "b1"))
        self.assertEqual(all_bonds(self.script), {})

    def test_a_friend_comes(self):
        """The coming of somebody it likes is a reason to speak unasked."""
        self.world.configure(initiative=4)
        note_event(self.script, ALICE, 20, "brought the ring")
        cues = []
        for who in (BOB, ALICE):
            self.hear("comes", who, channel="move")
            wait_for(self.script.tick())
            cues.append(self.script.runtime.cue)
        self.assertIsNone(cues[0])
        self.assertEqual(cues[1].text, "Alice, whom you like, has come")


class TestInGame(CommandLineTest):
    def test_game_code(self):
        """`note_event` takes an object of the game; `aibond` shows what its reader may know."""
        note_event(self.script, self.char1, 10, "brought the lost ring", "quest:ring")
        own, bobs = private([stable_id(self.char1)]), private(["o99.bob"])
        note_event(self.script, self.char1, 5, "told you a secret", audience=own)
        note_event(self.script, self.char1, -9, "Bob says she steals", audience=bobs)
        self.be("Player")
        self.assertTold("aibond Aria", "Char: friendly (+15)", "(quest:ring)", "told you a secret")
        self.assertNotIn("steals", self.typed("aibond Aria"))
        self.assertTold("aibond/note Aria = Char: 20: because", "for admins")

    def test_staff(self):
        """Admins see all bonds, add events and take them back."""
        self.assertTold("aibond Aria", "Aria has no bond")
        self.assertTold("aibond/note Aria = Char: +20: saved the inn", "Aria on Char: b", "+20")
        self.assertTold("aibond/note Aria = Char: 200: saved the inn", "points from -20 to 20")
        self.assertTold("aibond/note Aria = Char: saved the inn", "Usage: aibond/note")
        for points in ("+-5", "--5", "5-", "+", "1000", "²"):
            self.assertTold(f"aibond/note Aria = Char: {points}: x", "Usage: aibond/note")
        [event] = bond_with(self.script, stable_id(self.char1)).events
        self.assertTold("aibond Aria", "Char: friendly (+20)", "saved the inn (by Char)")
        self.assertTold(f"aibond/forget Aria = {event.id}", "no longer counts")
        self.assertTold(f"aibond/forget Aria = {event.id}", "There is no event")

    def test_gift(self):
        """A player's gift counts, once a day."""
        giver = create_object(PLAYED, key="Bob", location=self.room1)
        for key in ("apple", "pear"):
            fruit = create_object("evennia.objects.objects.DefaultObject", key=key, location=giver)
            fruit.move_to(self.aria, quiet=True, move_type="give")
        [event] = bond_with(self.script, stable_id(giver)).events
        self.assertEqual((event.by, event.points, event.why), (GIFT, 2, "gave you apple"))
