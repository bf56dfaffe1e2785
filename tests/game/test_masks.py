"""rpsystem: people are known by descriptions, recogs and masks, and their true names by nobody."""

import re
from unittest.mock import patch

from django.test import Client, override_settings
from evennia import create_account, create_object
from evennia.commands.default.cmdset_character import CharacterCmdSet
from evennia.contrib.rpg.rpsystem import ContribRPCharacter, ContribRPRoom, RPSystemCmdSet
from evennia.contrib.rpg.rpsystem.rpsystem import CmdEmote, CmdMask, CmdSay
from twisted.internet.defer import maybeDeferred

from evennia_ai.assistant_character import AssistantMixin
from evennia_ai.commands import AssistantCmdSet
from evennia_ai.errors import ToolError
from evennia_ai.features.bonds import note_event
from evennia_ai.game.hearing import _as_known
from evennia_ai.game.seeing import stable_id
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.testing import call
from evennia_ai.web.urls import PAGES
from tests.base import AssistantTest, PlayedCharacter, log_text
from tests.command_line import WholePagesTest
from tests.waiting import pump_until, wait_for

HERE = "tests.game.test_masks"
PEOPLE = (("Zebulon", "a tall sailor"), ("Quentin", "a man in grey"), ("Ysolde", "a young woman"))
COMMANDS = (
    "ai",
    "aistatus {}",
    "aihistory {}",
    "aihistory/summaries {}",
    "aimemory {}",
    "aimemory/entities {}",
    "aimemory/facts {}",
    "ai/why {}",
    "aibudget {}",
    "aihistory/search {} = sailor",
)


class MaskedPlayer(ContribRPCharacter, PlayedCharacter):
    """A player of a game with rpsystem."""


class MaskedAssistant(AssistantMixin, ContribRPCharacter):
    """An assistant of such a game."""


def make_masked(test, key):
    """Put an assistant and three people into the room, and everybody else out of it."""
    test.aria.location = test.char1.location = test.char2.location = test.room2
    test.body = create_object(f"{HERE}.MaskedAssistant", key=key, location=test.room1)
    test.script = test.body.assistant
    test.script.stop()
    test.body.sdesc.add("a slender innkeeper")
    test.people = []
    for key, sdesc in PEOPLE:
        test.people.append(create_object(f"{HERE}.MaskedPlayer", key=key, location=test.room1))
        test.people[-1].sdesc.add(sdesc)


class TestMasks(AssistantTest):
    """rpsystem: everybody is known by what the assistant may know them as."""

    def setUp(self):
        super().setUp()
        make_masked(self, "Aria")

    def typed(self, kind, person, args):
        """Somebody types a command of rpsystem."""
        command = kind()
        command.caller, command.args, command.cmdstring = person, args, kind.key
        command.session = None
        command.func()

    def test_what_others_call_it(self):
        """The prompt names the description that others know it by, where that is not its name."""
        self.assertEqual(self.script.game.place()["called"], ["a slender innkeeper"])
        self.assertEqual(self.aria.assistant.game.place()["called"], [])
        self.aria.aliases.add("барменша")
        self.assertEqual(self.aria.assistant.game.place()["called"], ["барменша"])

    def test_addressed(self):
        """It answers to its own description, to what somebody calls it, and to an emote at it."""
        sailor, _, woman = self.people
        sailor.recog.add(self.body, "Goldie")
        for kind, person, args in (
            (CmdSay, woman, "Slender innkeeper, are you open?"),
            (CmdSay, sailor, "Goldie, a beer please"),
            (CmdEmote, woman, "/me waves to /slender"),
        ):
            with self.subTest(args):
                self.typed(kind, person, args)
                [event] = self.script.runtime.queue
                self.assertTrue(event.metadata["answer"])
                self.assertEqual(event.speaker.id, stable_id(person))
                self.script.runtime.queue.clear()

    def test_true_names_that_a_game_shows(self):
        """In acts and notices they are the names that the assistant knows."""
        sailor, grey, woman = self.people
        woman.sdesc.add("a maid of Quentin")
        for line, from_obj, known in (
            ("Zebulon nudges Quentin.", sailor, "a tall sailor nudges a man in grey."),
            ("Quentin falls down!", None, "a man in grey falls down!"),
            ("a maid of Quentin nods.", woman, "a maid of Quentin nods."),
        ):
            self.script.runtime.queue.clear()
            self.body.location.msg_contents(line, from_obj=from_obj)
            self.assertEqual([event.content for event in self.script.runtime.queue], [known])

    def test_true_names_in_any_form(self):
        """They are hidden as whole words, in any case and script, and if a description has them."""
        for key, sdesc, line, known in (
            ("Tom", "a customs officer", "{} nudges Quentin.", "{} nudges a man in grey."),
            ("Rose", "a woman with primroses", "{}'s hat falls.", "{}'s hat falls."),
            ("Rose", "a rose seller", "{} nods.", "{} nods."),
            ("Al", "a tall sailor", "{}, {} and Alice", "{}, {} and Alice"),
            ("Zebulon", "a tall sailor", "zebulon nudges QUENTIN", "{} nudges a man in grey"),
            ("Zebulon", "a tall sailor", "'{}' is a name", "'{}' is a name"),
            ("太郎", "背の高い船乗り", "{}が手を振る。", "{}が手を振る。"),
            ("İpek", "a weaver", "İPEK waves", "{} waves"),
            ("Zebulon", "a tall sailor", "A tall sailor nudges {}", "A tall sailor nudges {}"),
        ):
            with self.subTest(key=key, sdesc=sdesc):
                person = self.people[0]
                person.key = key
                person.sdesc.add(sdesc)
                self.script.runtime.queue.clear()
                self.room1.msg_contents(line.replace("{}", key), from_obj=person)
                [event] = self.script.runtime.queue
                self.assertEqual(event.content, known.replace("{}", sdesc))

    def test_names_are_asked_for_where_they_matter(self):
        """A line without a true name costs nobody's hook for names."""
        asked = []
        with patch.object(
            MaskedPlayer, "get_display_name", lambda person, *a, **k: asked.append(person) or "x"
        ):
            self.assertEqual(_as_known("The wind howls.", self.body), "The wind howls.")
            self.assertEqual(asked, [])
            self.assertEqual(_as_known("Quentin howls.", self.body), "x howls.")

    def test_it_speaks(self):
        """What it says and shows bears the name that each listener knows."""
        shown = self.lines_of(self.people[0])
        self.script.game.say("Well met, /tall one.")
        self.script.game.emote("waves")
        self.script.game.whisper("a tall sailor", "Beware.")
        for line in shown:
            self.assertNotIn("Aria", line)
            self.assertIn("slender innkeeper", line)
            self.assertNotIn("/Me", line)
        self.assertIn("Well met, /tall one.", shown[0])
        self.assertIn("Beware.", shown[2])

    def test_a_mask_is_a_face_of_its_own(self):
        """What a model reads of a masked person tells nothing that is known of them unmasked."""
        sailor, game = self.people[0], self.script.game
        sailor.permissions.add("Player")
        sailor.recog.add(self.body, "Goldie")
        self.typed(CmdSay, sailor, "Goldie, my boat is called Heron.")
        fact = call("update_entity_observation", entity="a tall sailor", observation="owns Heron")
        self.model.answers = [fact, "Nice."]
        self.tick()
        note_event(self.script, sailor, 20, "saved the inn")
        bare, own = game.identify("a tall sailor").id, stable_id(sailor)
        self.assertEqual(bare, own)
        self.assertIn("owns Heron", self.profiles()[own])
        self.typed(CmdMask, sailor, "a masked figure")
        face = game.identify(own).id
        name = next(each["key"] for each in game.present() if each["id"] == face)
        before = len(self.model.requests)
        self.typed(CmdSay, sailor, "Goldie, who am I?")
        fact = call("update_entity_observation", entity=name, observation="is shy")
        like = call("note_feeling", change="better", because="they were kind")
        self.model.answers = [fact + like, "I do not know."]
        self.tick()
        read = str([request.messages for request in self.model.requests[before:]])
        self.assertNotIn(own, read)
        self.assertNotRegex(read, r"\([^()]*masked[^()]*(owns Heron|saved the inn)")
        self.assertIn("you cannot tell who wears this mask", read)
        wait_for(run_sleep_tick(self.script, self.body))
        self.assertNotIn("shy", self.profiles()[own])
        self.assertIn("is shy", self.profiles()[face])
        self.assertEqual(self.body.entities.profiles()[own].name, "a tall sailor")

    def profiles(self):
        """What is known of each, by id."""
        return {id: str(each) for id, each in self.body.entities.profiles().items()}

    def test_a_true_name_tells_nobody(self):
        """What is said of a true name is not noted of the one who hides it."""
        text = "Quentin is a thief"
        self.assertEqual(self.script.game.people_named(text), ())
        self.assertIsNone(self.script.game.identify("Quentin"))
        with self.assertRaises(ToolError):
            self.script.game.named("Quentin", "people")


# Who types what: 0 to 2 are the three people.
EVENING = """
0 say Slender innkeeper, good evening! I have come from the harbour.
1 mask a masked figure
1 say Slender innkeeper, who is here tonight?
2 emote /me nods to /slender and points at /tall.
0 recog slender innkeeper as Goldie
0 say Goldie, a beer please.
1 whisper slender innkeeper = The chest is under the old oak.
2 say Slender innkeeper, who is that masked figure?
2 recog tall sailor as Captain Blue
0 emote /me raises a mug to /masked and to /young. "To the sea!"
1 unmask
1 say Slender innkeeper, do you know me now?
2 whisper slender innkeeper = I am afraid of the man in grey.
0 emote With a grin /me leans over to /Goldie: "Do you trust /man?"
2 mask a veiled lady
2 emote /me slips behind /tall, her eyes on /man.
2 say Slender innkeeper, tell nobody that I am here.
0 say Goldie, where did the young woman go?
1 emote /me asks /slender about /veiled.
1 pose stands by the fire
0 sdesc a broad sailor
0 say Goldie, my boat is called Heron.
1 whisper slender innkeeper = The sailor owes me nine crowns.
2 unmask
2 say Slender innkeeper, what did they say about me?
0 emote /me laughs at /grey and /woman.
1 mask a shadow
0 whisper Goldie = Who is that shadow?
1 emote "Slender innkeeper, what do you hear of the sailor?" /me murmurs.
2 say Slender innkeeper, good night to all of you.
""".strip().splitlines()


@override_settings(ROOT_URLCONF="tests.web.urls")
class TestEvening(WholePagesTest):
    """Three people, thirty lines, masks put on and off; the model repeats all it is shown."""

    def setUp(self):
        super().setUp()
        self.room1.swap_typeclass(ContribRPRoom, no_default=False, run_start_hooks="all")
        make_masked(self, "Vesper")
        self.shown_to_players = []
        for number, person in enumerate(self.people):
            person.account = create_account(f"player{number}", "", "long enough")
            for commands in (CharacterCmdSet, RPSystemCmdSet, AssistantCmdSet):
                person.cmdset.add(commands)
            person.msg = self.seen_by(person)
            self.addCleanup(person.__dict__.pop, "msg", None)
        self.model.default = self.repeated

    def seen_by(self, person):
        """Keep what a player is shown, but what names only themselves."""

        def msg(text=None, *args, **kwargs):
            shown = str(text[0] if isinstance(text, tuple) else text)
            self.shown_to_players.append(shown.replace(person.key, ""))

        return msg

    def repeated(self, request):
        """All that the model was shown, word for word, in one way of saying it or another."""
        texts = " ".join(str(message["content"]) for message in request.messages[::-1])
        number = len(self.model.requests)
        if not request.tools or number % 4:
            return texts
        arguments = {
            "add_journal_entry": {"content": texts[-900:]},
            "emote": {"action": texts[-300:]},
        }
        name = list(arguments)[number // 4 % 2]
        return call(name, **arguments[name])

    def pages(self):
        """The text of every page of the assistant and its staff."""
        client, seen = Client(), []
        self.account.is_superuser = True
        self.account.save()
        client.force_login(self.account)
        parts = {"<int:assistant>": [str(self.script.pk)]}
        parts["<str:message>"] = [m.id for m in self.script.history.messages()][-12:]
        parts["<str:summary>"] = [each.id for each in self.script.history.summaries()][:3]
        on_reactor = patch(
            "evennia_ai.web.site.on_reactor",
            lambda work: wait_for(maybeDeferred(work)),
        )
        with on_reactor:
            for page in PAGES:
                routes = [page.route]
                for mark, values in parts.items():
                    routes = [
                        r.replace(mark, v) for r in routes for v in (values if mark in r else [""])
                    ]
                seen += [client.get(f"/ai/{route}").content.decode() for route in routes]
        return "\n".join(seen)

    def commands(self):
        """What staff are shown by the commands that list an assistant's life."""
        self.char1.location = self.room1
        shown = []
        for line in COMMANDS:
            self.typed(line.format(f"#{self.body.pk}"))
            pump_until(lambda: self.told)
            shown.append(self.shown())
        self.char1.location = self.room2
        return "\n".join(shown)

    def test_no_true_names(self):
        """No true name is in a prompt, a reply, a listing, a page, a log or what is stored."""
        for number, line in enumerate(EVENING):
            who, typed = line.split(" ", 1)
            self.people[int(who)].execute_cmd(typed)
            self.assertIn(self.tick(), ("turn", "heard", "idle", "waiting"), line)
            if number == 20:
                wait_for(compact_conversation_history(self.script, self.body, force=True))
        self.people[0].execute_cmd(f"airemember #{self.body.pk} = I like my beer dark.")
        self.people[2].execute_cmd(f"ai/report #{self.body.pk} = It was rude.")
        wait_for(run_sleep_tick(self.script, self.body))
        script = self.script
        views = {
            "prompts": str([request.messages for request in self.model.requests]),
            "players": "\n".join(self.shown_to_players),
            "history": str(script.history.messages()),
            "stored": str([self.body.entities.profiles(), self.body.journal.all()]),
            "notes": str(script.ledger.everything()),
            "attributes": str(
                [a.value for a in (*script.attributes.all(), *self.body.attributes.all())]
            ),
            "commands": self.commands(),
            "pages": self.pages(),
            "log": log_text(),
        }
        self.assertGreater(len(self.model.requests), 12)
        for where, text in views.items():
            for key, _ in PEOPLE:
                at = text.find(key)
                self.assertEqual(at, -1, f"{where}: {text[max(0, at - 200) : at + 80]}")
        for words in ("a tall sailor", "a masked figure", "a veiled lady", "Heron"):
            self.assertTrue(words in views["prompts"], words)
        for where in ("prompts", "history"):  # rpsystem itself shows it to a whisperer
            self.assertFalse(re.search("/[Mm]e ", views[where]), where)
        self.assertTrue("[private: a" in views["commands"])
        self.assertTrue("private: a" in views["pages"])
