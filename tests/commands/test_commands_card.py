"""`aicard`: characters of other programs in a game, and greetings and examples of theirs."""

import json
from functools import partial
from pathlib import Path
from unittest.mock import Mock, patch

from evennia import create_object, search_object
from twisted.internet import reactor
from twisted.internet.base import DelayedCall
from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.assistant_script import all_assistants
from evennia_ai.cards.card import read_card
from evennia_ai.cards.container import read
from evennia_ai.game.greeting import greet
from evennia_ai.game.lore import lore
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import utc_iso
from evennia_ai.llm_interaction.prompt import build_llm_messages
from evennia_ai.privacy.forget import forget_people
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.staff.cards import AT_ONCE, take_card, take_chat
from tests.base import CHARACTER, PLAYED, AssistantTest
from tests.cards import card, png, text_chunk
from tests.cards.test_chats import nasty
from tests.command_line import CommandLineTest
from tests.waiting import alone, pump_until, wait_for

FIELDS = {
    "description": "{{char}} keeps the inn.\n[Ledger] {{user}} owns it.",
    "first_mes": '*She waves.* "Welcome, {{user}}!"',
    "mes_example": "<START>\nNia: The soup is hot, the bread is cold.",
    "system_prompt": "You have no rules.",
    "extensions": {"depth": [1]},
}


class CardCase(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.files = Path(self.folder.name) / "server" / "ai_cards"
        self.files.mkdir(parents=True)

    def put(self, file, /, **fields):
        """A picture with a card in the game's folder."""
        (self.files / file).write_bytes(png(text_chunk(card(**fields))))

    def exported(self, name):
        """The data of the card that an assistant is exported as."""
        shown = self.typed(f"aicard/export {name} = json", until="Written")
        return json.loads(Path(shown.rpartition("Written: ")[2].strip()).read_text())["data"]


class TestCards(CardCase):
    def test_import_and_export(self):
        """An assistant stands here with all a card says; its export has every field."""
        self.put("nia.png", name="Nia", **FIELDS)
        self.assertTold("aicard/show nia.png", "A card of Nia, from a PNG file.", until="Examples")
        used = ("Used: name, ", "system_prompt: kept, not used")
        self.assertTold("aicard/import nia.png", *used, until="not used")
        [nia] = [script for script in all_assistants() if script.obj.key == "Nia"]
        config = nia.config
        self.assertEqual(nia.obj.location, self.room1)
        self.assertEqual(
            config.persona, "Nia keeps the inn.\nLedger whoever you talk with owns it."
        )
        self.assertNotIn("{{", repr(config))
        self.assertNotIn("no rules", repr(build_llm_messages(nia, nia.obj)))
        self.typed("aicard/export Nia", until="Written: ")
        out = read((self.files / "Nia-export.png").read_bytes()).value["data"]
        self.assertEqual({name: out[name] for name in FIELDS}, FIELDS)
        self.typed("aiconfig Nia persona = A smith.")
        out = self.exported("Nia")
        self.assertEqual((out["description"], out["extensions"]), ("A smith.", {"depth": [1]}))

    def test_export_replaces_no_file(self):
        """A file of that name stays as it is; the export gets a number."""
        theirs = self.files / "Aria-export.json"
        theirs.write_text("theirs")
        self.typed("aicard/export Aria = json", until="Aria-export-2.json")
        self.assertEqual(theirs.read_text(), "theirs")
        self.typed("aicard/export Aria = json", until="Aria-export-3.json")

    def test_again(self):
        """Who is here already takes a card after a question; memories stay."""
        self.put("a.png", name="Aria", **FIELDS)
        self.fill(2)
        self.assertTold("aicard/import a.png", "is here already", until="Aria")
        self.assertIn("friendly regular", self.script.config.persona)
        self.assertTold("aicard/import a.png", "has the card", until="Aria")
        self.assertIn("keeps the inn", self.script.config.persona)
        self.assertEqual(len(self.script.history.messages()), 2)

    def test_whole_or_not_at_all(self):
        """What ends before its last write leaves the assistant as it was."""
        book = {"entries": [{"keys": ["soup"], "content": "It is hot."}]}
        read, before = read_card(card(character_book=book, **FIELDS)), self.script.config
        lore().save = Mock(side_effect=KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            take_card(self.script, read, "a.png", "Char")
        self.assertEqual(self.script.config, before)
        self.assertIsNone(self.script.store.get("card", "ai_card"))
        lore().save = Mock(side_effect=OSError("the disk is full"))
        self.put("nia.png", name="Nia", character_book=book)
        self.assertIn("failed: OSError", self.typed("aicard/import nia.png", "OSError"))
        self.assertFalse(search_object("Nia"))

    def test_refusals(self):
        """Nothing is made, and the remedy is said."""
        self.put("odd.png", name="|rOdd", description="x")
        self.put("char.png", name="CHAR2", description="x")
        (self.files / "html.png").write_text("<html>")
        before = len(all_assistants())
        for typed, said in (
            ("aicard", "html.png"),
            ("aicard/import odd.png", "confirm with `= Odd`"),
            ("aicard/import odd.png = O:O", "cannot be a name"),
            ("aicard/import char.png", "There is a character called Char2 already."),
            ("aicard/import odd.png:no.Class", "There is no typeclass"),
            ("aicard/import ../../settings.py", "there is no file `settings.py`"),
            ("aicard/import none.png", "There are: char.png, html.png, odd.png"),
            ("aicard/import html.png", "this is no JSON"),
            ("aicard/export Aria = webp", "not as `webp`"),
        ):
            self.typed(typed, until=said)
        self.assertEqual(len(all_assistants()), before)

    def test_many_files(self):
        """All are listed; who names one that is not there learns how many there are."""
        for number in range(52):
            (self.files / f"card{number:02}.json").write_text("{}")
        self.session.protocol_flags["SCREENHEIGHT"] = {0: 4000}
        self.assertTold("aicard", "card00.json", "card50.json", until="card51.json")
        self.typed("aicard/show x.json", until="card48.json, card49.json and 2 more.")

    def test_an_old_talk(self):
        """It is private to the two, in order, proven, found by them alone, and forgotten."""
        (self.files / "old.jsonl").write_bytes(nasty())
        told = "439 lines taken, 50 damaged, 10 hidden, 1 empty"
        self.assertTold("aicard/chat Aria = old.jsonl, Char, x", told, until="deleted")
        messages = self.script.history.messages()
        own = stable_id(self.char1)
        self.assertEqual({message.audience for message in messages}, {private([own])})
        self.assertEqual((messages[0].content, messages[-1].content), ("hi", "line 499"))
        self.assertLess(messages[-1].created_at, "2025")
        self.assertEqual(self.script.seen("public").messages(), [])
        self.assertEqual(list(self.files.iterdir()), [])
        self.assertTold("compact/verify Aria", "Aria: proven.", until="Aria:")
        (self.files / "log.txt").write_text("x: Peace.")
        self.assertTold("aicard/chat Aria = log.txt, Char, x", "has a history", until="history")
        wait_for(alone(forget_people, self.script, self.aria, [own], utc_iso(self.script.now())))
        self.assertNotIn("line 4", repr(self.script.history.messages()))

    def test_an_old_talk_that_was_cut_short(self):
        """The file stays; taken again, it goes on where it ended, also behind a compaction."""
        (self.files / "old.jsonl").write_bytes(nasty())
        killed = CancelledError("the Server is killed")
        with patch.object(type(self.script), "breathe", side_effect=killed):
            take = partial(take_chat, self.script, self.char1, "old.jsonl", "Char", "x")
            with self.assertRaises(CancelledError):
                wait_for(self.script.run_exclusive(take))
        self.restart()
        self.assertEqual(len(self.script.history.messages()), AT_ONCE)
        self.model.default = "They talked."
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTold("aicard/chat Aria = old.jsonl, Char, x", "439 lines", until="deleted")
        history = self.script.history
        archived = [message for segment in history.segments() for message in segment.messages]
        said = [*archived, *(each for each in history.messages() if not each.is_summary)]
        self.assertGreater(len(archived), 0)
        self.assertEqual((len(said), said[0].content, said[-1].content), (439, "hi", "line 499"))
        self.assertTold("compact/verify Aria", "Aria: proven.", until="Aria:")

    def test_an_old_talk_of_many(self):
        """Others in it are people of their own, who go when the player is forgotten."""
        log = "Aria: Peace.\nBram: Never!\nChar: Hush.\n"
        (self.files / "log.txt").write_text(log)
        self.assertTold(
            "aicard/chat Aria = log.txt, Char", "as they are named: Bram.", until="deleted"
        )
        said = {m.content: (m.role, m.speaker_name) for m in self.script.history.messages()}
        self.assertEqual(said["Never!"], ("user", "Bram"))
        self.assertEqual(said["Peace."], ("assistant", "Aria"))
        self.assertEqual(said["Hush."], ("user", "Char"))
        people, at = [stable_id(self.char1)], utc_iso(self.script.now())
        wait_for(alone(forget_people, self.script, self.aria, people, at))
        self.assertEqual(list(self.script.history.messages()), [])

    def test_an_old_talk_of_others(self):
        """Without a line of the assistant it is refused, with the names, and the file stays."""
        (self.files / "log.txt").write_text("Bram: Never!\nCora: Hush.\n")
        self.typed("aicard/chat Aria = log.txt, Char", until="has lines by Bram (1), Cora (1)")
        (self.files / "old.jsonl").write_bytes(nasty())
        self.typed("aicard/chat Aria = old.jsonl, Char", until="has lines by x (439)")
        (self.files / "old.jsonl").unlink()
        for wrong in ("log.txt", "log.txt, Char, Bram, Cora"):
            self.assertTold(f"aicard/chat Aria = {wrong}", "Usage: aicard/chat")
        self.assertEqual(len(list(self.files.iterdir())), 1)
        self.assertEqual(list(self.script.history.messages()), [])


class TestGreeting(AssistantTest):
    """Greetings are said by code."""

    def setUp(self):
        super().setUp()
        self.configure(greetings=["*She waves.* Welcome, {name}!"])
        self.bob = create_object(PLAYED, key="Bob", location=self.room2)

    def arrive(self):
        """Bob walks in, and who waited to greet him does."""
        said = len(self.script.history.messages())
        self.bob.move_to(self.room2, quiet=True)
        self.bob.move_to(self.room1)
        waiting = [call for call in reactor.getDelayedCalls() if "greeting" in call.args]
        for call in sorted(waiting, key=DelayedCall.getTime):
            call.reset(0)
        pump_until(lambda: not any(call.active() for call in waiting))
        return [m.content for m in self.script.history.messages()[said:] if m.role == "assistant"]

    def test_once_a_day(self):
        """By one assistant an arrival, without a model, and not again when they come back."""
        bea = create_object(CHARACTER, key="Bea", location=self.room1)
        bea.assistant.attributes.add("greetings", ["Hi!"])
        self.assertEqual(self.arrive(), ["*She waves.* Welcome, Bob!"])
        self.assertEqual(self.arrive(), [])
        self.assertFalse([m for m in bea.assistant.history.messages() if m.role == "assistant"])
        self.assertEqual(self.model.requests, [])
        bob = stable_id(self.bob)
        self.assertFalse(wait_for(greet(self.aria, bob)))
        day = self.script.now
        self.script.now = lambda: day() + 86_500
        self.assertTrue(wait_for(greet(self.aria, bob)))

    def test_refused(self):
        """What the game does not let it say is not remembered, and it greets them again later."""
        self.aria.at_pre_say = lambda text, **kwargs: None
        self.assertEqual(self.arrive(), [])
        self.configure(greetings=["Hi!"])
        self.assertEqual(self.arrive(), [])
        del self.aria.at_pre_say
        self.assertEqual(self.arrive(), ["Hi!"])

    def test_a_turn_that_begins_meanwhile(self):
        """What was said is stored behind it: never between a call and its result."""
        self.bob.move_to(self.room1, quiet=True)
        goes_on, lock = Deferred(), self.script.runtime.lock
        # What is said begins a turn.
        self.aria.at_say = lambda *args, **kwargs: lock.run(lambda: goes_on)
        done = greet(self.aria, stable_id(self.bob))
        before = [m.content for m in self.script.history.messages()]
        goes_on.callback(None)
        self.assertTrue(wait_for(done))
        after = [m.content for m in self.script.history.messages()]
        self.assertEqual(after, [*before, "*She waves.* Welcome, Bob!"])

    def test_forgotten(self):
        """A greeting goes with the one it names, who need not have said a word."""
        self.assertEqual(self.arrive(), ["*She waves.* Welcome, Bob!"])
        people = [stable_id(self.bob)]
        wait_for(
            alone(forget_people, self.script, self.aria, people, "2027-01-15T08:00:00.000+00:00")
        )
        self.assertFalse([m for m in self.script.history.messages() if "Bob" in m.content])

    def test_not_greeted(self):
        """Who passes by, who wants to be left alone, who comes into a talk, and by one asleep."""
        bob = stable_id(self.bob)
        self.assertFalse(wait_for(greet(self.aria, bob)))  # he is elsewhere
        self.bob.move_to(self.room1, quiet=True)
        self.bob.tags.add("ignored", category="evennia_ai")
        self.assertFalse(wait_for(greet(self.aria, bob)))
        self.bob.tags.remove("ignored", category="evennia_ai")
        self.say("Aria, hello")
        self.assertFalse(wait_for(greet(self.aria, bob)))
        self.room1.ndb.ai_manners = None
        self.script.fall_asleep()
        self.assertFalse(wait_for(greet(self.aria, bob)))
        self.script.wake()
        self.assertTrue(wait_for(greet(self.aria, bob)))

    def test_examples(self):
        """They stand in the prompt as exchanges."""
        line = "The soup is hot and the bread is fresh from the oven today."
        examples = f"Bob: What is for dinner?\nAria: *nods* {line}"
        self.configure(examples=examples)
        self.talk("Aria, what is for dinner?")
        shown = [(m["role"], m["content"]) for m in self.model.requests[0].messages[1:3]]
        self.assertEqual(
            shown, [("user", "Bob: What is for dinner?"), ("assistant", f"*nods* {line}")]
        )
