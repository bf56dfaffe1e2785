"""Whether assistants work in this game: ``evennia test --settings settings.py evennia_ai``.

The tests type the game's own commands, as its own characters in its own rooms, beside the body
that `ai/create` makes. They print what was heard as what, who spoke as others saw it, and the line
to add where something is missing. A game may subclass `TestThisGame` to try a room of another kind.
Each test is a column of the table in docs/games.md.
"""

import inspect
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar
from unittest.mock import Mock, patch

import evennia
from django.test import override_settings
from evennia import DefaultExit, DefaultScript, create_object
from evennia.server.serversession import ServerSession
from evennia.utils.test_resources import EvenniaTest
from twisted.internet import reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from evennia_ai import conf, services
from evennia_ai.errors import ToolError
from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.game.hearing import line_and_type
from evennia_ai.game.seeing import name_of, plain, stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Speaker
from evennia_ai.testing import stand_in

# What the assistant says and does, by the way in which it does.
WORDS = {"say": "Well met.", "pose": "smiles."}
LOOP = 'or getattr(obj, "is_assistant_body", False)'
# How long a command may take that waits.
_MOST_S = 10.0
# How long a command of the game's that waits is waited for.
_WAIT_S = 2.0
# How some games' players give something.
_GIVE = "give {thing} {person}"
# The tests that failed, and what the game lacks: lines of code, and entries of settings.
_FAILED: list[str] = []
_CODE: list[str] = []
_ENTRIES: dict[str, dict[str, str]] = {"PUBLIC_COMMANDS": {}, "SPEAK_BY": {}, "ACT_BY": {}}


def lines_to_add() -> list[str]:
    """What the owner of this game adds."""
    lines = sorted({*_CODE})
    for name, entries in _ENTRIES.items():
        value = conf.setting(name)
        value = {**value, **entries} if isinstance(value, dict) else sorted({*value, *entries})
        if entries:
            lines.append(f"EVENNIA_AI_{name} = {json.dumps(value, sort_keys=True)}")
    return lines


@override_settings(
    EVENNIA_AI_LLM_MODEL="scripted/model", EVENNIA_AI_MODERATE=None, EVENNIA_AI_OPTIONS={}
)
class TestThisGame(EvenniaTest):
    """What an assistant hears, sees and does in this game."""

    body_class = "evennia_ai.body.Assistant"
    exit_typeclass, script_typeclass = DefaultExit, DefaultScript
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
        lines = lines_to_add()
        print("\n".join(["", f"{cls.__name__}:", *sorted(cls.rows)]))
        print("\n".join(f"To add: {line}" for line in lines))
        conf.data_dir().mkdir(parents=True, exist_ok=True)
        note = json.dumps({"at": time.time(), "failed": _FAILED, "add": lines})
        conf.suite_note().write_text(note, encoding="utf-8")

    def run(self, result: Any = None) -> Any:
        """Run a test; one that fails is noted."""
        before = len(result.failures) + len(result.errors)
        done = super().run(result)
        if len(result.failures) + len(result.errors) > before:
            _FAILED.append(self._testMethodName)
        return done

    def setUp(self) -> None:
        """Two players' characters, a guard without one and an assistant; a player types."""
        stand_in(default="Well met.")
        self.addCleanup(services.reset)
        super().setUp()
        self.account.is_superuser = False
        self.account.save()
        self.char2.locks.add(f"puppet:pid({self.account2.id})")
        session = ServerSession()
        session.init_session("telnet", ("localhost", "testmode"), evennia.SESSION_HANDLER)
        session.sessid = 2
        evennia.SESSION_HANDLER.portal_connect(session.get_sync_data())
        session = evennia.SESSION_HANDLER.session_from_sessid(2)
        evennia.SESSION_HANDLER.login(session, self.account2, testmode=True)
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
        self.thing = create_object(self.object_typeclass, key="lamp", location=self.room)

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

    def row(self, done: str, outcome: object) -> None:
        """Add a row to the report."""
        self.rows.append(f"  {done:44} {outcome}")

    def command(self, name: str) -> Any:
        """A command of the first character, or of its account."""
        sets = self.char1.cmdset.current, self.account.cmdset.current
        return sets[0].get(name) or sets[1].get(name)

    @property
    def pose(self) -> str:
        """The command that shows what somebody does: in `rpsystem`, `pose` is something else."""
        return "pose" if self.command("pose") and not self.command("sdesc") else "emote"

    def shown(self, act: Any) -> dict[Any, list[str]]:
        """Do something to its end; returns what each player is shown meanwhile, by character."""
        lines: dict[Any, list[str]] = {self.char1: [], self.char2: []}
        outcomes: list[Any] = []
        with patch.object(evennia.SESSION_HANDLER, "data_out", Mock()) as sent:
            end = time.monotonic() + _MOST_S
            maybeDeferred(act).addBoth(outcomes.append)
            while not outcomes:
                self.assertLess(time.monotonic(), end, "it takes too long")
                reactor.runUntilCurrent()  # type: ignore[attr-defined]
                time.sleep(0.01)
        if isinstance(outcomes[0], Failure):
            outcomes[0].raiseException()
        for call in sent.call_args_list:
            (line, _), person = line_and_type(call.kwargs.get("text")), call.args[0].puppet
            if line and person in lines:
                lines[person].append(line)
        return lines

    def type(self, line: str) -> dict[Any, list[str]]:
        """Type a line as the first character; returns what each player is shown."""
        self.script.runtime.queue.clear()

        def act() -> Deferred[Any] | None:
            self.char1.execute_cmd(line, session=self.session)
            if inspect.isgeneratorfunction(self.command(line.split()[0]).func):
                return deferLater(reactor, _WAIT_S)
            return None

        shown = self.shown(act)
        self.assertFalse(list(filter(has_failed, shown[self.char1])), f"`{line}` raises an error")
        return shown

    def hears(self, line: str, channel: str, words: str, is_aloud: bool = True) -> Any:
        """A typed line is one event with these words, from whom typed it, for all or those two.

        Returns the event. What the game lacks for it is noted.
        """
        verb = line.split()[0]
        command, own = self.command(verb), stable_id(self.char1)
        if command is None:
            why = f"players have no command `{verb}`"
            self.assertNotEqual(verb, "say", f"{why}: does the game's set of commands load?")
            self.skipTest(why)
        shown, queue = self.type(line)[self.char1], [*self.script.runtime.queue]
        kinds = [f"{event.channel} ({event.audience.partition(':')[0]})" for event in queue]
        self.row(line, f"heard as {', '.join(kinds) or 'nothing'}")
        if not queue:
            with patch.object(type(self.body), "has_account", True):  # as if it were a player's
                self.type(line)
            if queue := [*self.script.runtime.queue]:
                _CODE.append(f"{LOOP} (behind `obj.has_account`, in `{verb}`)")
        if is_aloud and any(event.audience != PUBLIC for event in queue):
            _ENTRIES["PUBLIC_COMMANDS"][command.key] = ""
        elif is_aloud and (not queue or queue[0].channel != channel):
            _CODE.append(f'evennia_ai.heard(listeners, caller, words, "{channel}") (in `{verb}`)')
        self.assertEqual(len(kinds), 1, f"`{line}` was heard as {queue}; shown: {shown}")
        [event], audience, words = queue, PUBLIC, words.lower()
        if not is_aloud:
            audience = private([own])
        self.assertIn(words, event.content.lower())
        if channel != "pose":
            self.assertEqual(words, event.content.lower())
        speaker = Speaker(name_of(self.char1, self.body), own)
        heard = (event.channel, event.audience, event.speaker)
        self.assertEqual(heard, (channel, audience, speaker))
        return event

    def answered(self) -> list[str]:
        """What each player is shown of the answer to what was heard, as one text each."""
        self.script.runtime.last_turn_at = 0.0
        seen = self.shown(self.script.at_tick)
        return [" ".join(seen[person]) for person in (self.char1, self.char2)]

    def test_hears_say(self) -> None:
        """What is said aloud is heard without its frame, by everybody, and answered.

        A line that the room sends past somebody is not for everybody.
        """
        left_out = {"exclude": [self.char2], "from_obj": self.char1}
        self.room.msg_contents(text="Psst.", **left_out)
        self.assertNotIn(PUBLIC, [event.audience for event in self.script.runtime.queue])
        words = f"{name_of(self.body, self.char1)}, good evening"
        event = self.hears(f"say {words}", "say", words)
        self.assertTrue(event.metadata["answer"])
        self.assertIn("Well met.", self.answered()[0])

    def test_whisper_is_private(self) -> None:
        """What is whispered stays between the two, and the answer as well."""
        name = name_of(self.body, self.char1)
        self.hears(f"whisper {name} = the key is red", "whisper", "the key is red", is_aloud=False)
        own, other = self.answered()
        self.assertIn("Well met.", own)
        self.assertNotIn("Well met.", other)
        self.row("a whisper, and its answer", "private")

    def test_hears_pose(self) -> None:
        """A pose is heard with the name that the assistant knows."""
        name = name_of(self.char1, self.body)
        self.hears(f"{self.pose} waves merrily.", "pose", f"{name} waves merrily.")

    def test_page_is_heard_once(self) -> None:
        """A page is heard and shown once, from another room, too."""
        self.body.move_to(self.room2, quiet=True, move_hooks=False)
        self.hears("page Testaria = are you there?", "page", "are you there?", is_aloud=False)

    def test_sees(self) -> None:
        """People, things and the description are those it sees; what is hidden is not there."""
        game = self.script.game

        def seen() -> dict[str, str]:
            return {**game.things(), **{each["id"]: each["key"] for each in game.present()}}

        place, around = game.place(), seen()
        self.assertNotRegex(place["description"], r"\$\w+\(|\|[a-z]")
        self.assertIn(place["key"].lower(), game.look().lower())
        for thing in (self.char2, self.thing):
            self.assertIn(name_of(thing, self.body), around[stable_id(thing)])
            thing.locks.add("view:false()")
            self.assertNotIn(stable_id(thing), seen())
        self.assertNotIn("lamp", game.look())

    def test_acts(self) -> None:
        """It picks up and gives."""
        self.shown(lambda: self.script.game.get("lamp"))
        self.assertEqual(self.thing.location, self.body)
        if self.gives():
            return
        with override_settings(EVENNIA_AI_ACT_BY={"give": _GIVE}):
            if self.gives():
                _ENTRIES["ACT_BY"]["give"] = _GIVE
        self.thing.location = self.char1
        line = f"give {self.thing.key} to {name_of(self.char2, self.char1)}"
        self.shown(lambda: self.char1.execute_cmd(line, session=self.session))
        if _ENTRIES["ACT_BY"] or self.thing.location == self.char2:
            self.fail("it cannot give a thing as players do")
        self.row("give", "no player can")

    def gives(self) -> bool:
        """Whether it can give a thing to the first character."""
        with suppress(ToolError):
            self.shown(lambda: self.script.game.give(self.thing.key, stable_id(self.char1)))
        return bool(self.thing.location == self.char1)

    def spoken(self) -> Iterator[tuple[str, Any, list[str]]]:
        """It says and poses something: the way, a player's character, and the lines with it."""
        for way, act in (("say", self.script.game.say), ("pose", self.script.game.emote)):
            for person, shown in self.shown(partial(act, WORDS[way])).items():
                yield way, person, [line for line in shown if WORDS[way] in line]

    def test_others_see_who_speaks(self) -> None:
        """Whoever sees what it says and does sees who does it, by the name that they know."""
        for way, person, lines in self.spoken():
            self.row(f"it {way}s {WORDS[way]!r}, shown to {person.key}", lines)
            self.assertTrue(lines, "nothing is shown")
            for line in lines:
                self.assertIn(name_of(self.body, person).lower(), line.lower())
                self.assertNotIn("/me", line.lower())
            if person == self.char2:
                self.compare(way, lines[0])

    def test_others_see_it_once(self) -> None:
        """Each sees once what it says and does, and a whisper reaches one alone."""
        for _, _, lines in self.spoken():
            self.assertEqual(len(lines), 1, lines)
        shown = self.shown(lambda: self.script.game.whisper(stable_id(self.char1), "Psst."))
        for person, times in ((self.char1, 1), (self.char2, 0)):
            self.assertEqual(sum("Psst." in line for line in shown[person]), times)

    def compare(self, way: str, line: str) -> None:
        """Note the line to add where players of this game speak in another form than in `line`."""
        command = self.command("say" if way == "say" else self.pose)
        if command is None or way in conf.setting("SPEAK_BY"):
            return
        shown = self.type(f"{command.key} {WORDS[way]}")[self.char2]
        theirs = next((each for each in shown if WORDS[way] in each), "")
        forms = [
            plain(form).lower().replace(name_of(speaker, self.char2).lower(), "NAME")
            for speaker, form in ((self.char1, theirs), (self.body, line))
        ]
        if forms[0] != forms[1]:
            _ENTRIES["SPEAK_BY"][way] = command.key
