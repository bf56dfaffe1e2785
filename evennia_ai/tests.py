"""Whether assistants work in this game: ``evennia test --settings settings.py evennia_ai``.

The tests type the game's own commands, as its own characters in its own rooms, beside the body
that `ai/create` makes. They print what was heard as what, who spoke as others saw it, and the line
to add where something is missing. A game may subclass `TestThisGame` to try a room of another kind.
Each test is a column of the table in docs/games.md.
"""

import inspect
import json
import tempfile
import time
from contextlib import suppress
from typing import Any, ClassVar
from unittest.mock import Mock, patch

import evennia
from django.conf import settings
from django.test import override_settings
from evennia import create_object
from evennia.scripts.scripts import DefaultScript
from evennia.server.serversession import ServerSession
from evennia.utils.ansi import strip_ansi
from evennia.utils.test_resources import EvenniaTest
from evennia.utils.utils import class_from_module
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

import evennia_ai
from evennia_ai import conf, services
from evennia_ai.errors import ToolError
from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.game.seeing import name_of, plain, stable_id
from evennia_ai.history.audience import PUBLIC, is_private, members
from evennia_ai.testing import stand_in

# What the assistant says and does, by the way in which it does.
WORDS = {"say": "Well met.", "pose": "smiles."}
LOOP = 'or getattr(obj, "is_assistant_body", False)'
# How long a command may take that waits.
_MOST_S = 10.0
# How long a command of the game's that waits is waited for.
_WAIT_S = 2.0
# What the game lacks: conditions in its code, and entries of settings.
_CODE: list[str] = []
_ENTRIES: dict[str, dict[str, str]] = {"PUBLIC_COMMANDS": {}, "SPEAK_BY": {}, "ACT_BY": {}}
# How some games' players give something.
_GIVE = "give {thing} {person}"
_FAILED: list[str] = []


def lines_to_add() -> list[str]:
    """What the owner of this game adds."""
    lines = list(dict.fromkeys(_CODE))
    for name, entries in _ENTRIES.items():
        value = conf.setting(name)
        if entries and isinstance(value, dict):
            value = {**value, **entries}
        elif entries:
            value = sorted({*value, *entries})
        if entries:
            lines.append(f"EVENNIA_AI_{name} = {json.dumps(value, sort_keys=True)}")
    return lines


def class_of(kind: str) -> type:
    """A typeclass of the game, or Evennia's own where the game's module is missing."""
    fallback = getattr(settings, f"FALLBACK_{kind}_TYPECLASS")
    found: type = class_from_module(getattr(settings, f"BASE_{kind}_TYPECLASS"), fallback=fallback)
    return found


class TestThisGame(EvenniaTest):
    """What an assistant hears, sees and does in this game."""

    body_class = "evennia_ai.body.Assistant"
    account_typeclass = class_of("ACCOUNT")
    object_typeclass = class_of("OBJECT")
    character_typeclass = class_of("CHARACTER")
    exit_typeclass = class_of("EXIT")
    room_typeclass = class_of("ROOM")
    script_typeclass = DefaultScript
    rows: ClassVar[list[str]] = []

    @classmethod
    def setUpClass(cls) -> None:
        """Begin a report."""
        super().setUpClass()
        cls.rows = []

    @classmethod
    def tearDownClass(cls) -> None:
        """Print the report, and note for the doctor when this was run."""
        super().tearDownClass()
        print("\n".join(["", f"{cls.__name__}:", *sorted(cls.rows)]))
        print("\n".join(f"To add: {line}" for line in lines_to_add()))
        note = {"at": time.time(), "failed": _FAILED, "add": lines_to_add()}
        conf.data_dir().mkdir(parents=True, exist_ok=True)
        conf.suite_note().write_text(json.dumps(note), encoding="utf-8")

    def run(self, result: Any = None) -> Any:
        """Run a test; what fails is noted."""
        before = len(result.failures) + len(result.errors)
        done = super().run(result)
        if len(result.failures) + len(result.errors) > before:
            _FAILED.append(self._testMethodName)
        return done

    def setUp(self) -> None:
        """Two players' characters, a guard without one and an assistant; a player types."""
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        changed = override_settings(
            EVENNIA_AI_DATA_DIR=self.enterContext(folder),
            EVENNIA_AI_LLM_MODEL="scripted/model",
            EVENNIA_AI_MODERATE=None,
            EVENNIA_AI_OPTIONS={},
        )
        self.enterContext(changed)
        self.model = stand_in(default="Well met.")
        self.addCleanup(services.reset)
        super().setUp()
        self.account.is_superuser = False
        self.account.save()
        self.char2.locks.add(f"puppet:pid({self.account2.id})")
        self.connect(self.account2, 2)
        for account, person in ((self.account, self.char1), (self.account2, self.char2)):
            if person not in account.get_all_puppets():
                account.puppet_object(account.sessions.all()[0], person)
        self.room = self.make_room()
        self.body = create_object(self.body_class, key="Testaria", location=self.room)
        if hasattr(self.body, "sdesc"):
            self.body.sdesc.add("a quiet stranger")
        self.script = self.body.assistant
        self.script.stop()
        guard = create_object(self.character_typeclass, key="Testguard")
        for person in (self.char1, self.char2, guard):
            person.location = self.room
            person.permissions.add("Player")
        self.script.runtime.queue.clear()

    def connect(self, account: Any, number: int) -> None:
        """Log an account in, by a session of that number."""
        session = ServerSession()
        session.init_session("telnet", ("localhost", "testmode"), evennia.SESSION_HANDLER)
        session.sessid = number
        evennia.SESSION_HANDLER.portal_connect(session.get_sync_data())
        session = evennia.SESSION_HANDLER.session_from_sessid(number)
        evennia.SESSION_HANDLER.login(session, account, testmode=True)

    def tearDown(self) -> None:
        """Leave nothing of the assistant behind."""
        self.script.stop()
        self.body.delete()
        for call in reactor.getDelayedCalls():  # type: ignore[attr-defined]
            call.cancel()
        evennia.SESSION_HANDLER.pop(2, None)  # else the account ends it by way of the Portal
        super().tearDown()

    def make_room(self) -> Any:
        """The room that everything happens in."""
        return self.room1

    def row(self, done: str, outcome: str) -> None:
        """Add a row to the report."""
        self.rows.append(f"  {done:44} {outcome}")

    def shown(self, act: Any) -> dict[Any, list[str]]:
        """Do something to its end; returns what each player is shown meanwhile, by character."""
        lines: dict[Any, list[str]] = {self.char1: [], self.char2: []}
        failures: list[Any] = []
        with patch.object(evennia.SESSION_HANDLER, "data_out", Mock()) as sent:
            pending, begun = act(), time.monotonic()
            while getattr(pending, "called", True) is False:
                self.assertLess(time.monotonic() - begun, _MOST_S, "it takes too long")
                reactor.runUntilCurrent()  # type: ignore[attr-defined]
                time.sleep(0.01)
            if isinstance(pending, Deferred):
                pending.addErrback(failures.append)
        for failure in failures:
            failure.raiseException()
        for call in sent.call_args_list:
            text = call.kwargs.get("text")
            text = text[0] if isinstance(text, tuple | list) and text else text
            person = call.args[0].puppet if call.args else None
            if text and person in lines:
                lines[person].append(strip_ansi(str(text)))
        return lines

    def type(self, line: str) -> dict[Any, list[str]]:
        """Type a line as the first character; returns what each player is shown."""
        command = self.command(line.split()[0])
        waits = inspect.isgeneratorfunction(getattr(command, "func", None))

        def act() -> Deferred[Any] | None:
            self.char1.execute_cmd(line, session=self.session)
            return deferLater(reactor, _WAIT_S, lambda: None) if waits else None

        shown = self.shown(act)
        self.assertFalse(list(filter(has_failed, shown[self.char1])), f"`{line}` raises an error")
        return shown

    @property
    def name(self) -> str:
        """What the first character calls the assistant."""
        return name_of(self.body, self.char1)

    def heard(self, line: str, aloud: str = "") -> Any:
        """The one event that a typed line is heard as, from whom typed it.

        `aloud` is the channel of a line that everybody in the room is to hear.
        """
        verb = line.split()[0]
        if self.command(verb) is None:
            why = f"players have no command `{verb}`"
            self.assertNotEqual(verb, "say", f"{why}: does the game's set of commands load?")
            self.skipTest(why)
        self.script.runtime.queue.clear()
        shown = self.type(line)[self.char1]
        queue = list(self.script.runtime.queue)
        kinds = [f"{e.channel} for {self.who_knows(e)}" for e in queue]
        self.row(line, f"heard as {', '.join(kinds) or 'nothing'}")
        if not queue:
            with patch.object(type(self.body), "has_account", True):  # as if it were a player's
                self.type(line)
            if queue := list(self.script.runtime.queue):
                _CODE.append(f"{LOOP} (behind `obj.has_account`, in `{verb}`)")
        if aloud and any(is_private(event.audience) for event in queue):
            _ENTRIES["PUBLIC_COMMANDS"][self.command(verb).key] = ""
        elif aloud and (not queue or queue[0].channel != aloud):
            _CODE.append(f'evennia_ai.heard(listeners, caller, words, "{aloud}") (in `{verb}`)')
        self.assertEqual(len(kinds), 1, f"`{line}` was heard as {queue}; shown: {shown}")
        event = queue[0]
        if aloud:
            self.assertEqual((event.channel, event.audience), (aloud, PUBLIC))
        self.assertEqual(event.speaker.id, stable_id(self.char1))
        self.assertEqual(event.speaker.key, name_of(self.char1, self.body))
        return event

    def who_knows(self, event: Any) -> str:
        """Whom an event may be told, in words."""
        if not is_private(event.audience):
            return "everybody" if event.audience == PUBLIC else "staff"
        here = {stable_id(person): person.key for person in (self.char1, self.char2)}
        return ", ".join(sorted(here.get(id, id) for id in members(event.audience)))

    def answered(self) -> list[str]:
        """What each player is shown of the answer to what was heard, as one text each."""
        self.script.runtime.last_turn_at = 0.0
        seen = self.shown(self.script.at_tick)
        return [" ".join(seen[person]) for person in (self.char1, self.char2)]

    def command(self, name: str) -> Any:
        """A command of the first character, or of its account."""
        found = self.char1.cmdset.current.get(name)
        return found or self.account.cmdset.current.get(name)

    @property
    def pose(self) -> str:
        """The command that shows what somebody does: in `rpsystem`, `pose` is something else."""
        return "pose" if self.command("pose") and not self.command("sdesc") else "emote"

    def test_hears_say(self) -> None:
        """What is said aloud is heard without its frame, by everybody, and answered by name."""
        event = self.heard(f"say {self.name}, good evening", "say")
        self.assertEqual(event.content.lower(), f"{self.name}, good evening".lower())
        self.assertTrue(event.metadata["answer"])

    def test_whisper_is_private(self) -> None:
        """What is whispered stays between the two, and the answer as well."""
        event = self.heard(f"whisper {self.name} = the key is red")
        self.assertEqual((event.channel, event.content), ("whisper", "the key is red"))
        self.assertEqual(members(event.audience), {stable_id(self.char1)})
        own, other = self.answered()
        self.assertIn("Well met.", own)
        self.assertNotIn("Well met.", other)
        self.row("a whisper, and its answer", "private")

    def test_hears_pose(self) -> None:
        """A pose is heard with the name that the assistant knows."""
        event = self.heard(f"{self.pose} waves merrily.", "pose")
        self.assertIn(f"{event.speaker.key} waves merrily.".lower(), event.content.lower())

    def test_page_is_heard_once(self) -> None:
        """A page is heard and shown once, from another room, too."""
        self.body.move_to(self.room2, quiet=True, move_hooks=False)
        event = self.heard("page Testaria = are you there?")
        self.assertEqual((event.channel, event.content), ("page", "are you there?"))
        self.assertEqual(members(event.audience), {stable_id(self.char1)})

    def test_sees(self) -> None:
        """People, things, ways and the description are those that it sees."""
        thing = create_object(self.object_typeclass, key="lamp", location=self.room)
        game = self.script.game
        names = {each["id"]: each["key"] for each in game.present()}
        self.assertEqual(names[stable_id(self.char2)], name_of(self.char2, self.body))
        self.assertIn(stable_id(thing), game.things())
        place = game.place()
        self.assertTrue(place["key"])
        self.assertNotRegex(place["description"], r"\$\w+\(|\|[a-z]")
        self.assertIn(place["key"].lower(), game.look().lower())

    def test_hides(self) -> None:
        """What is hidden from it is not there."""
        thing = create_object(self.object_typeclass, key="hoard", location=self.room)
        for hidden in (thing, self.char2):
            hidden.locks.add("view:false()")
        game = self.script.game
        self.assertNotIn(stable_id(self.char2), {each["id"] for each in game.present()})
        self.assertNotIn(stable_id(thing), game.things())
        self.assertNotIn("hoard", game.look())

    def test_acts(self) -> None:
        """It answers aloud, picks up and gives."""
        thing = create_object(self.object_typeclass, key="lamp", location=self.room)
        evennia_ai.heard([self.body], self.char1, f"{self.name}, good evening", to=self.body)
        self.assertIn("Well met.", self.answered()[0])
        self.shown(lambda: self.script.game.get("lamp"))
        self.assertEqual(thing.location, self.body)
        if not self.gives(thing):
            with override_settings(EVENNIA_AI_ACT_BY={"give": _GIVE}):
                if self.gives(thing):
                    _ENTRIES["ACT_BY"]["give"] = _GIVE
            if _ENTRIES["ACT_BY"] or self.player_gives(thing):
                self.fail("it cannot give a thing as players do")
            self.row("give", "no player can")

    def gives(self, thing: Any) -> bool:
        """Whether it can give a thing to the first character."""
        with suppress(ToolError):
            self.shown(lambda: self.script.game.give(thing.key, stable_id(self.char1)))
        return bool(thing.location == self.char1)

    def player_gives(self, thing: Any) -> bool:
        """Whether the first character can give a thing to the second one."""
        thing.location = self.char1
        line = f"give {thing.key} to {name_of(self.char2, self.char1)}"
        self.shown(lambda: self.char1.execute_cmd(line, session=self.session))
        return bool(thing.location == self.char2)

    def spoken(self, way: str) -> dict[Any, list[str]]:
        """What each player is shown of what the assistant says or does: lines with the words."""
        act = self.script.game.say if way == "say" else self.script.game.emote
        shown = self.shown(lambda: act(WORDS[way]))
        return {
            person: [line for line in lines if WORDS[way] in line]
            for person, lines in shown.items()
        }

    def test_speaks_as_itself(self) -> None:
        """Others see who speaks, by the name that they know."""
        for way, words in WORDS.items():
            spoken = self.spoken(way)
            for person, lines in spoken.items():
                self.row(f"it {way}s {words!r}, seen by {person.key}", f"{lines}")
                name = name_of(self.body, person)
                self.assertTrue(lines, f"{person.key} was shown nothing of what it {way}s")
                for line in lines:
                    self.assertIn(name.lower(), line.lower())
                    self.assertNotIn("/me", line.lower())
            self.compare(way, spoken[self.char2][0])

    def compare(self, way: str, line: str) -> None:
        """Note the line to add where players of this game speak in another form than in `line`."""
        command = self.command("say" if way == "say" else self.pose)
        if command is None or way in conf.setting("SPEAK_BY"):
            return
        shown = self.type(f"{command.key} {WORDS[way]}")[self.char2]
        theirs = next((each for each in shown if WORDS[way] in each), "")
        forms = {
            plain(form).lower().replace(name_of(speaker, self.char2).lower(), "NAME")
            for speaker, form in ((self.char1, theirs), (self.body, line))
        }
        if len(forms) > 1:
            _ENTRIES["SPEAK_BY"][way] = command.key

    def test_speaks_once(self) -> None:
        """What it says, does or whispers is shown once to each, and a whisper to one alone."""
        for way, words in WORDS.items():
            for person, lines in self.spoken(way).items():
                self.row(f"it {way}s {words!r}, shown to {person.key}", f"times: {len(lines)}")
                self.assertEqual(len(lines), 1, lines)
        shown = self.shown(lambda: self.script.game.whisper(stable_id(self.char1), "Psst."))
        for person, times in ((self.char1, 1), (self.char2, 0)):
            self.assertEqual(sum("Psst." in line for line in shown[person]), times)
