"""Whether assistants work in this game: ``evennia test --settings settings.py evennia_ai``.

The tests type the game's own commands, as its own characters in its own rooms. A game may subclass
`TestThisGame` to try a room of another kind. Each test is a row of docs/games.md.
"""

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import evennia
from django.conf import settings
from django.test import override_settings
from evennia import create_object
from evennia.utils.ansi import strip_ansi
from evennia.utils.test_resources import EvenniaTest
from evennia.utils.utils import class_from_module
from twisted.internet import reactor

from evennia_ai import services
from evennia_ai.assistant_character import AssistantCharacter, AssistantMixin
from evennia_ai.game.seeing import name_of, stable_id
from evennia_ai.history.audience import PUBLIC, members
from evennia_ai.mind.mind import IndexFile
from evennia_ai.rag_memory.search import RecallJobs
from evennia_ai.testing import InlineWorker, MemorySemanticStore, ScriptedModel


class Assistant(AssistantMixin, class_from_module(settings.BASE_CHARACTER_TYPECLASS)):  # type: ignore
    """An assistant in a body of this game."""


class TestThisGame(EvenniaTest):
    """What an assistant hears, sees and does in this game."""

    body_class: type = Assistant

    def setUp(self) -> None:
        """Two characters and an assistant stand in a room; one of them types."""
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        changed = override_settings(
            EVENNIA_AI_DATA_DIR=folder.name,
            EVENNIA_AI_LLM_MODEL="scripted/model",
            EVENNIA_AI_MODERATE=None,
            EVENNIA_AI_OPTIONS={},
        )
        changed.enable()
        self.addCleanup(changed.disable)
        self.model, worker = ScriptedModel(default="Well met."), InlineWorker()
        services.reset()
        self.addCleanup(services.reset)
        index = RecallJobs(worker, IndexFile(Path(folder.name) / "recall.sqlite3"))
        services.use(model=self.model, memories=MemorySemanticStore(), recall=index, ready=True)
        services.kept("disk", lambda: worker)
        super().setUp()
        self.account.is_superuser = False
        self.account.save()
        self.room = self.make_room()
        self.body = create_object(self.body_class, key="Testaria", location=self.room)
        if hasattr(self.body, "sdesc"):
            self.body.sdesc.add("a quiet stranger")
        self.script = self.body.assistant
        self.script.stop()
        for person in (self.char1, self.char2):
            person.location = self.room
            person.permissions.add("Player")
        self.script.runtime.queue.clear()

    def tearDown(self) -> None:
        """Leave nothing of the assistant behind."""
        self.script.stop()
        self.body.delete()
        for call in reactor.getDelayedCalls():  # type: ignore[attr-defined]
            call.cancel()
        super().tearDown()

    def make_room(self) -> Any:
        """The room that everything happens in."""
        return self.room1

    def typed(self, line: str) -> str:
        """Type a line as the first character; returns what its player is shown."""
        with patch.object(evennia.SESSION_HANDLER, "data_out", Mock()) as shown:
            self.char1.execute_cmd(line, session=self.session)
        texts = [call.kwargs.get("text") for call in shown.call_args_list]
        texts = [text[0] if isinstance(text, tuple) else text for text in texts]
        return strip_ansi(" ".join(map(str, texts)))

    @property
    def name(self) -> str:
        """What the first character calls the assistant."""
        return name_of(self.body, self.char1)

    def heard(self, line: str) -> Any:
        """The one event that a typed line is heard as, from whom typed it."""
        self.script.runtime.queue.clear()
        shown = self.typed(line)
        queue = list(self.script.runtime.queue)
        self.assertEqual(len(queue), 1, f"`{line}` was heard as {queue}; shown: {shown}")
        self.assertEqual(queue[0].speaker.id, stable_id(self.char1))
        self.assertEqual(queue[0].speaker.key, name_of(self.char1, self.body))
        return queue[0]

    def test_hears_say(self) -> None:
        """What is said aloud is heard without its frame, by everybody, and answered by name."""
        event = self.heard(f"say {self.name}, good evening")
        self.assertEqual(event.content.lower(), f"{self.name}, good evening".lower())
        self.assertEqual((event.channel, event.audience), ("say", PUBLIC))
        self.assertTrue(event.metadata["answer"])

    def test_whisper_is_private(self) -> None:
        """What is whispered stays between the two."""
        event = self.heard(f"whisper {self.name} = the key is red")
        self.assertEqual((event.channel, event.content), ("whisper", "the key is red"))
        self.assertEqual(members(event.audience), {stable_id(self.char1)})

    def test_hears_pose(self) -> None:
        """A pose is heard with the name that the assistant knows."""
        known = self.char1.cmdset.current
        pose = "pose" if known.get("pose") and not known.get("sdesc") else "emote"
        event = self.heard(f"{pose} waves merrily.")
        self.assertEqual((event.channel, event.audience), ("pose", PUBLIC))
        self.assertEqual(
            event.content.lower(), f"{event.speaker.key} waves merrily.".lower(), event.content
        )

    def test_page_is_heard_once(self) -> None:
        """A page is heard and shown once, from another room, too."""
        self.body.move_to(self.room2, quiet=True, move_hooks=False)
        event = self.heard("page Testaria = are you there?")
        self.assertEqual((event.channel, event.content), ("page", "are you there?"))
        self.assertEqual(members(event.audience), {stable_id(self.char1)})

    def test_sees(self) -> None:
        """People, things, ways and the description are those that it sees."""
        thing = create_object(settings.BASE_OBJECT_TYPECLASS, key="lamp", location=self.room)
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
        thing = create_object(settings.BASE_OBJECT_TYPECLASS, key="hoard", location=self.room)
        for hidden in (thing, self.char2):
            hidden.locks.add("view:false()")
        game = self.script.game
        self.assertNotIn(stable_id(self.char2), {each["id"] for each in game.present()})
        self.assertNotIn(stable_id(thing), game.things())
        self.assertNotIn("hoard", game.look())

    def test_acts(self) -> None:
        """It answers aloud, whispers, poses, picks up and gives."""
        thing = create_object(settings.BASE_OBJECT_TYPECLASS, key="lamp", location=self.room)
        self.typed(f"say {self.name}, good evening")
        self.script.runtime.last_turn_at = 0.0
        with patch.object(evennia.SESSION_HANDLER, "data_out", Mock()) as shown:
            self.assertTrue(self.script.at_tick().called)
            self.script.game.emote("smiles.")
            self.script.game.whisper(stable_id(self.char1), "Psst.")
        seen = strip_ansi(str(shown.call_args_list))
        for words in ("Well met.", "smiles.", "Psst."):
            self.assertIn(words, seen)
        self.assertNotIn("/Me", seen)
        self.script.game.get("lamp")
        self.assertEqual(thing.location, self.body)
        self.script.game.give("lamp", stable_id(self.char1))
        self.assertEqual(thing.location, self.char1)


class TestPlainBody(TestThisGame):
    """The same in the body that `ai/create` makes unless another class is named."""

    body_class = AssistantCharacter
