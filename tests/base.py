"""An assistant in a room of a real Evennia database, with a scripted model."""

import tempfile
from pathlib import Path

from django.test import override_settings
from evennia import DefaultCharacter, create_object
from evennia.scripts.models import ScriptDB
from evennia.typeclasses.attributes import Attribute
from evennia.utils.test_resources import BaseEvenniaTest
from twisted.internet import reactor

from evennia_ai import services
from evennia_ai.background import Worker
from evennia_ai.game.deletions import delete_queued
from evennia_ai.history.messages import Message
from evennia_ai.mind.mind import IndexFile
from evennia_ai.rag_memory.recall_jobs import RecallJobs
from evennia_ai.testing import MemorySemanticStore, ScriptedModel
from evennia_ai.turns.options import OPTIONS
from evennia_ai.turns.runtime import forget_runtime
from tests.waiting import wait_for

CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"
PLAYED = "tests.base.PlayedCharacter"


class PlayedCharacter(DefaultCharacter):
    """A character whose player is connected."""

    has_account = True


def label(number):
    """Two letters for a number, so that a line has no number or name to be kept."""
    return chr(97 + number // 26) + chr(97 + number % 26)


class AssistantTest(BaseEvenniaTest):
    """Makes `self.aria` and `self.script`; `self.char1` stands beside her."""

    answers = ()
    default = ""

    def setUp(self):
        # What is still being deleted of an earlier assistant may write here to the very end.
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        path = Path(self.folder.name)
        self.settings_on = override_settings(
            EVENNIA_AI_DATA_DIR=str(path),
            LOG_DIR=str(path),
            EVENNIA_AI_LLM_MODEL="scripted/model",
            EVENNIA_AI_MODELS=["scripted/*", "local/*", "offline/extractive", "gpt-4o"],
        )
        self.settings_on.enable()
        self.model = ScriptedModel(self.answers, self.default)
        self.semantic = MemorySemanticStore()
        services.reset()
        services.use(
            model=self.model,
            memories=self.semantic,
            recall=RecallJobs(Worker("test-recall"), IndexFile(path / "recall.sqlite3")),
            ready=True,
        )
        super().setUp()
        self.aria = create_object(CHARACTER, key="Aria", location=self.room1)
        self.script = self.aria.assistant
        self.script.stop()

    def tearDown(self):
        from evennia_ai.assistant_script import all_scripts

        # What ticks, or runs behind the ticks, must not write after the test: the assistants of
        # the next one have the same keys in the database.
        for script in all_scripts():
            script.stop()
            script.stop_thinking()
            for planned in (script.runtime.called, script.runtime.sign):
                if planned is not None and planned.active():
                    planned.cancel()
            script.runtime.called = None  # it may wait for its turn
        if self.script.pk:
            self.script.delete()
        for waiting in reactor.getDelayedCalls():
            if waiting.func is delete_queued:  # the files go with the folder
                waiting.cancel()
        super().tearDown()
        wait_for(services.close())
        services.reset()
        self.settings_on.disable()
        self.folder.cleanup()

    def restart(self, before_start=lambda: None):
        """Throw Evennia's caches away, with every object, handler and runtime; start anew."""
        pk = self.script.pk
        forget_runtime(self.script.scope)
        # Evennia spares objects with an `ndb` unless it is forced.
        for stored in (self.aria, self.script):
            stored.flush_from_cache(force=True)
        Attribute.flush_instance_cache(force=True)
        gone, self.script = self.script, ScriptDB.objects.get(pk=pk)
        assert gone is not self.script, "the script was not dropped"
        self.aria = self.script.obj
        before_start()
        self.script.at_server_start()
        self.script.stop()

    def teardown_accounts(self):
        """The transaction of the test is rolled back: to delete them first only takes time."""

    def configure(self, **values):
        """Set configuration Attributes, and attributes of the class for this assistant alone."""
        for name, value in values.items():
            if name in OPTIONS:
                self.script.attributes.add(name, value)
            else:
                assert hasattr(self.script, name), name
                setattr(self.script, name, value)

    def fill(self, count, words=10, **fields):
        """Put `count` messages of `words` words into the history, players' and Aria's in turn."""
        messages = [
            Message(
                "user" if n % 2 == 0 else "assistant",
                f"line {label(n)}: " + "word " * words,
                **fields,
            )
            for n in range(count)
        ]
        return self.script.history.append(messages)

    def say(self, text, speaker=None):
        """Somebody says something in Aria's room."""
        (speaker or self.char1).at_say(text, msg_self=True)

    def tick(self):
        """Run a tick; returns what it did."""
        self.script.runtime.last_turn_at = 0.0
        return wait_for(self.script.at_tick())

    def contents(self):
        """Roles and contents of the live history."""
        return [(m.role, m.content) for m in self.script.history.messages()]
