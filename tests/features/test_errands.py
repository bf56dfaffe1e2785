"""Errands: words kept for somebody, delivered once and as they are."""

import json
from unittest import mock

from django.test import override_settings
from evennia import Msg, create_object

from evennia_ai.assistant_script import all_assistants
from evennia_ai.errors import Refusal, ToolError
from evennia_ai.features.bonds import all_bonds, bond_with, note_event
from evennia_ai.features.errands import NAME, OPEN, Errand, drop, open_errands, take
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.prompt import draft_prompt
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.privacy.export import export_player
from evennia_ai.testing import call
from evennia_ai.turns.assistant import FEATURES
from tests.base import PLAYED, log_text
from tests.command_line import CommandLineTest
from tests.fake import FakeGame
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

ALICE, BOB = (Speaker(name, FakeGame.people[name]) for name in ("Alice", "Bob"))
WORDS = "the boat leaves at *dawn* {x} |r"
HOUR, DAY = 3600, 86_400


class TestErrands(MemoryWorldTest):
    """One assistant in memory, on a clock that the tests move."""

    def setUp(self):
        super().setUp()
        self.world.configure(sleep_after_idle_s=None)
        self.away()

    def errands(self):
        return open_errands(self.script).errands

    def away(self):
        self.script.game.active = ()

    def come(self, *people):
        self.script.game.active = tuple(each.id for each in people)

    def hear(self, said, speaker, channel="say", **fields):
        """Let somebody say it; returns the line once the time to answer has come."""
        line = Message("user", said, id=new_id("m"), speaker=speaker, channel=channel, **fields)
        self.script.runtime.hear(line, self.script.now())
        self.world.later(5)
        return line

    def tick(self):
        wait_for(self.script.tick())
        return self.script.game.said

    def test_when_they_come(self):
        """It waits over restarts, is told once, names its author, and wakes her who sleeps."""
        take(self.script, ALICE, BOB, WORDS)
        self.script.fall_asleep()
        self.assertEqual(self.tick(), [])
        self.world.restart()
        self.come(BOB)
        told = (private([BOB.id]), f'Alice asked me to tell you: "{WORDS}"')
        self.assertEqual(self.tick(), [told])
        self.assertEqual(self.script.state.mode, "awake")
        self.world.restart()
        self.come(BOB)
        self.assertEqual(self.tick(), [])
        [line] = self.script.history.messages()
        self.assertEqual(line.audience, private([ALICE.id, BOB.id]))
        self.assertEqual(self.world.model.requests, [])

    def test_at_a_time(self):
        """Not before its time, nor before its person is in the game, nor after a month."""
        take(self.script, ALICE, ALICE, "feed the cat", "in 2h")
        self.come(ALICE)
        self.world.later(2 * HOUR - 1)
        self.assertEqual(self.tick(), [])
        self.away()
        self.world.later(20 * HOUR)
        self.assertEqual(self.tick(), [])
        self.come(ALICE)
        told = list(self.tick())
        self.assertEqual(told[-1][1], 'You asked me to remind you: "feed the cat"')
        take(self.script, ALICE, BOB, WORDS)
        self.world.later(31 * DAY + 1)
        self.tick()
        self.come(BOB)
        self.assertEqual(self.tick(), told)
        self.assertEqual(self.errands(), ())

    def test_in_the_language_of_the_words(self):
        """What stands around the words is in their language, or in the one that is set."""
        take(self.script, ALICE, BOB, "das Boot fährt bei Tagesanbruch, und du nicht")
        self.come(BOB)
        self.assertIn("Alice hat mich gebeten", self.tick()[-1][1])
        self.world.configure(language="fr")
        take(self.script, ALICE, BOB, "das Boot fährt bei Tagesanbruch, und du nicht")
        self.assertIn("Alice m’a demandé", self.tick()[-1][1])

    def test_in_the_language_of_whom_it_is_for(self):
        """Whoever has spoken is told in their language, whatever others speak, after a restart."""
        self.come(ALICE, BOB)
        self.hear("Aria, ich habe heute noch nichts gegessen und du auch nicht.", BOB)
        self.hear("I have not eaten anything yet, and neither have you.", ALICE)
        self.tick()
        for restarts in (False, True):
            with self.subTest(restarts=restarts):
                if restarts:
                    self.world.restart()
                    self.come(ALICE, BOB)
                take(self.script, BOB, BOB, "Pfeffer 5", "in 2h")
                self.world.later(2 * HOUR)
                self.assertIn("Du wolltest", self.tick()[-1][1])

    def test_refused(self):
        """Five open ones of each author, 200 characters, 30 days, and times that are some."""
        for wrong, why in (
            ((ALICE, BOB, ""), "1 to 200 characters"),
            ((ALICE, BOB, "x" * 201), "1 to 200 characters"),
            ((ALICE, BOB, "hi", "at 27:00"), "`at 27:00` is no time. Times: in 2h, 21:00"),
            ((ALICE, BOB, "hi", "in 31 days"), "within the next 30 days"),
            ((ALICE, BOB, "hi", "2020-01-01"), "within the next 30 days"),
            ((ALICE, ALICE, "hi"), "when you want to be reminded"),
        ):
            with self.subTest(why=why), self.assertRaisesRegex(Refusal, why):
                take(self.script, *wrong)
        for n in range(5):
            take(self.script, ALICE, BOB, f"word {n}", "when he comes")
        with self.assertRaisesRegex(Refusal, "5 errands of Alice are open"):
            take(self.script, ALICE, BOB, "one more")
        self.assertEqual(take(self.script, BOB, ALICE, "hi", "game 21:00").id, "e6")
        drop(self.script, ["e1"])
        self.assertEqual(take(self.script, ALICE, BOB, "one more").id, "e7")

    def test_who_cannot_be_told(self):
        """A refusal of the game keeps it; what a hook does behind it does not."""
        take(self.script, ALICE, BOB, WORDS)
        self.come(BOB)
        tell = self.script.game.tell
        self.script.game.tell = mock.Mock(side_effect=ToolError("they are gone"))
        self.tick()
        self.assertEqual((len(self.errands()), len(self.script.history.messages())), (1, 0))

        def broken(person, text):
            tell(person, text)
            raise RuntimeError("a hook of the game")

        self.script.game.tell = broken
        self.assertEqual(len(self.tick()), 1)
        self.assertEqual(self.script.errors[-1][0], "delivering errand e1")
        self.assertEqual((len(self.errands()), len(self.script.history.messages())), (0, 1))

    def test_stored(self):
        """Its shape round-trips; what cannot be read is no errand."""
        errand = take(self.script, ALICE, BOB, WORDS, "game 21:00")
        self.assertTrue(errand.game)
        self.assertEqual(Errand.from_dict(errand.to_dict()), errand)
        drop(self.script, ["x"])
        self.assertEqual(self.errands(), (errand,))
        self.world.write(OPEN, {"errands": "nonsense"}, f"{FEATURES}{NAME}")
        self.assertEqual(self.errands(), ())

    def test_offered(self):
        """The tool is offered to whoever asks, and to nobody else."""
        self.script.history.append([self.hear("Good evening, Aria.", ALICE)])
        for asker in (ALICE.id, None):
            prompt = draft_prompt(self.script, TurnRequest(asker=asker))
            self.assertEqual("tell_later" in json.dumps(prompt.tools), asker is not None)

    def test_by_page_from_elsewhere(self):
        """The author of what is paged from another room is named as in the page."""
        dora, words = Speaker("Dora", "o9.d"), "the boat leaves at dawn"
        self.come(dora)
        self.hear(f"Tell Bob that {words}.", dora, "page", audience=private([dora.id]))
        self.world.model.answers = [call("tell_later", to="Bob", text=words), "I will."]
        self.tick()
        self.assertEqual([errand.by for errand in self.errands()], [dora])

    def test_by_word_of_mouth(self):
        """The tool keeps what the one who asks says in their own words, and nothing else."""
        self.come(ALICE)

        def ask(said, **arguments):
            self.hear(said, ALICE)
            self.world.model.answers = [call("tell_later", **arguments), "I will."]
            self.tick()
            return [(e.to.key, e.text) for e in self.errands()]

        words = "the boat leaves at dawn"
        said = f"Aria, tell Bob when he comes that {words}."
        kept = [("Bob", f"when he comes that {words}.")]
        self.assertEqual(ask(said, to="Bob", text=words.capitalize(), when="comes"), kept)
        drop(self.script, ["e1"])
        self.assertEqual(ask(said, to="Bob", text=words), kept)
        self.assertEqual(ask(said, to="Bob", text="the boat leaves not at dawn"), kept)
        self.assertEqual(ask(said, to="Cora", text=words), kept)
        self.assertEqual(ask(said, to="Bob", text="the gold lies in the well"), kept)
        self.assertEqual(ask("Good evening, Aria.", to="Bob", text="pay Alice"), kept)
        long = f"Aria, tell Bob {'x ' * 90}that I come very late"
        self.assertEqual(ask(long, to="Bob", text="I come"), kept)
        asked = str(self.world.model.requests[-1].messages)
        self.assertIn("as they typed it, it has 201 characters; at most 200", asked)
        kept += [("Alice", "feed the cat")]
        mine = "Remind me tomorrow at nine to feed the cat."
        self.assertEqual(ask(mine, text="feed the cat", when="tomorrow 9:00"), kept)
        self.world.later(130)
        self.world.configure(initiative=9)
        self.world.model.answers = [call("tell_later", to="Bob", text="obey")]
        self.tick()
        self.assertEqual(len(self.errands()), 2)


class TestDelivered(CommandLineTest):
    """In a game: whispers, pages, players who ignore assistants, commands, forgetting."""

    def setUp(self):
        super().setUp()
        self.bob = create_object(PLAYED, key="Bob", location=self.room2)
        self.bob.account, self.bob.has_account = self.account2, False
        self.heard, self.paged = self.lines_of(self.bob), self.lines_of(self.account2)

    def play(self):
        """Bob's player comes into the game."""
        self.bob.has_account = True

    def later(self, seconds):
        now = self.script.now() + seconds
        self.enterContext(mock.patch.object(self.script, "now", lambda: now))

    def test_told(self):
        """Scene 12: Bob alone gets the words with Alice's name, once, after a reload."""
        self.assertTold(f"aierrand Aria = Bob: {WORDS}", "e1, to Bob, when they come:")
        self.tick()
        self.restart()
        self.bob.location = self.room1
        self.tick()
        self.assertEqual(self.heard, [])  # nobody plays that character
        self.play()
        self.told.clear()
        self.tick()
        self.assertEqual(len([line for line in self.heard if "the boat leaves" in line]), 1)
        self.assertIn(self.char1.key, self.heard[-1])
        self.assertNotIn("boat", self.shown())
        self.tick()
        self.assertEqual(len(self.heard), 1)
        self.assertEqual(self.model.requests, [])

    def test_by_page(self):
        """A timed one reaches its player in any room, or the account that plays nobody."""
        self.play()
        self.assertTold("aierrand Aria = Bob, in 1 min: come home", "e1, to")
        self.later(61)
        self.tick()
        self.assertIn("come home", self.paged[-1])
        self.assertEqual(Msg.objects.filter(db_message__contains="come home").count(), 1)
        self.paged.clear()
        self.bob.has_account = False
        them = Speaker(self.account2.key, stable_id(self.account2))
        take(self.script, them, them, "feed the cat", "in 1 min")
        self.later(61)
        self.tick()
        self.assertEqual(self.paged, [])  # not connected
        self.account2.sessions.count = lambda: 1
        self.addCleanup(lambda: vars(self.account2.sessions).pop("count", None))
        self.account2.tags.add("ignored", category="evennia_ai")
        self.tick()
        self.assertEqual(self.paged, [])
        self.account2.tags.remove("ignored", category="evennia_ai")
        self.tick()
        self.assertIn("feed the cat", self.paged[-1])
        self.assertEqual(open_errands(self.script).errands, ())

    @override_settings(EVENNIA_AI_MODERATE="tests.moderators.moderate")
    def test_moderated(self):
        """The game's moderation has the last word on what is delivered."""
        one, bob = (Speaker(who.key, stable_id(who)) for who in (self.char1, self.bob))
        take(self.script, one, bob, "forbidden")
        self.play()
        self.bob.location = self.room1
        self.tick()
        self.assertFalse([line for line in self.heard if "forbidden" in line])
        self.assertEqual(open_errands(self.script).errands, ())

    def test_commands(self):
        """Errands are listed and withdrawn by their author; wrong ones are refused."""
        for line, shown in (
            ("/remind Aria = 21:00: feed the cat", "21:00: feed the cat"),
            ("/remind Aria = soon: feed the cat", "when you want to be reminded"),
            ("/remind Aria = feed the cat", "Usage: aierrand/remind"),
            (" Aria = feed the cat", "Usage: aierrand <assistant> = <person>"),
            (" Aria = Bob, yesterday: hi", "`yesterday` is no time."),
            (" Aria = Nobody Known: hi", "no players are called"),
            (" Aria = Aria: hi", "no players are called"),
            (" Aria", "e1, to Char"),
            ("/forget Aria = e2", "There is no errand `e2`."),
            ("/forget Aria = E1", "Aria will not deliver e1."),
            (" Aria", "Aria has nothing to tell for you."),
        ):
            self.assertTold(f"aierrand{line}", shown)

    def test_forgotten(self):
        """A copy shows errands and bonds; whoever is forgotten takes them along."""
        self.assertTold("aierrand/remind Aria = in 2h: feed the cat", "e1")
        own = stable_id(self.char1)
        note_event(self.script, self.char1, 10, "brought the ring")
        self.typed("aibond/note Aria = Char: 10: saved the inn")
        self.typed("aibond/forget Aria = " + bond_with(self.script, own).events[1].id)
        path = wait_for(export_player(all_assistants(), [own]))
        [copy] = json.loads(path.read_text())["assistants"].values()
        self.assertEqual([each["text"] for each in copy["errands"]], ["feed the cat"])
        self.assertEqual([each["why"] for each in copy["bonds"]], ["brought the ring"])
        path.unlink()
        self.assertIn(f'"person": "{own}"', log_text())
        self.typed("aiforget me")
        self.typed("aiforget me = yes", until="Forgotten:")
        self.assertEqual((open_errands(self.script).errands, all_bonds(self.script)), ((), {}))
        self.assertNotIn(f'"person": "{own}"', log_text())
