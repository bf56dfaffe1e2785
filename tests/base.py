"""An assistant in a room of a real Evennia database, with a scripted model."""

import tempfile
from pathlib import Path
from unittest.mock import Mock, patch

import evennia
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.test import TestCase, override_settings
from evennia import Command, DefaultCharacter, create_object
from evennia.scripts.models import ScriptDB
from evennia.server.serversession import ServerSession
from evennia.typeclasses.attributes import Attribute
from evennia.utils.ansi import strip_ansi
from evennia.utils.idmapper.models import SharedMemoryModel
from evennia.utils.test_resources import EvenniaTestMixin

from evennia_ai import services
from evennia_ai.assistant_script import all_scripts, write_events
from evennia_ai.background import Worker
from evennia_ai.history.messages import Message
from evennia_ai.mind.mind import IndexFile
from evennia_ai.models import Event
from evennia_ai.options import OPTIONS
from evennia_ai.rag_memory.memory import RecallJobs
from evennia_ai.turns.runtime import RUNTIMES
from tests.memories import MemorySemanticStore
from tests.models import ScriptedModel
from tests.postgres import number_from_last
from tests.waiting import pump_until, wait_for

CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"
PLAYED = "tests.base.PlayedCharacter"


def events(kind=""):
    """What happened, or all of a kind of it, oldest first."""
    write_events()
    return [*Event.objects.filter(kind__startswith=kind).order_by("pk")]


def log_text():
    """All that the audit log holds."""
    return "\n".join(event.text for event in events())


class OrderedWorker(Worker):
    """Runs everything in the order in which it came, so that a search finds what was just said."""

    submit = Worker.submit_later


# A thread of each kind for all tests, as a game has.
RECALL, DISK = OrderedWorker("test-recall"), Worker("test-disk")


class PlayedCharacter(DefaultCharacter):
    """A character whose player is connected."""

    has_account = True


def command(func):
    """A command of a game's own."""
    return type(func.__name__, (Command,), {"key": func.__name__.lower(), "func": func})


def label(number):
    """Two letters for a number, so that a line has no number or name to be kept."""
    return chr(97 + number // 26) + chr(97 + number % 26)


def forget_instances():
    """Empty Evennia's cache of database objects, also of those it would spare."""
    for model in apps.get_models():
        if issubclass(model, SharedMemoryModel):
            model.flush_instance_cache(force=True)


class AssistantTest(TestCase):
    """`self.aria` with `self.script`, in the world of Evennia's own test class.

    Two accounts, `account` and `account2`, with the characters `char1` (who is connected, by
    `session`, and stands beside her) and `char2`, the rooms `room1` and `room2`, `exit` from one to
    the other, and the things `obj1` and `obj2`. Each test gets fresh Python objects for them, and
    what it changes in the database is rolled back.
    """

    answers = ()
    default = None
    # Of each object its class and key, by name; and the statements that wrote them all.
    world_rows, written = {}, []

    @classmethod
    def setUpTestData(cls):
        number_from_last()
        if AssistantTest.written:  # with the same keys again
            with connection.cursor() as cursor:
                for statement in AssistantTest.written:
                    cursor.execute(*statement)
        else:
            AssistantTest.world_rows, AssistantTest.written = cls.make_world()
        forget_instances()

    @staticmethod
    def make_world():
        """Make what all tests find in the database; returns `world_rows` and `written`."""
        world, written = EvenniaTestMixin(), []

        def note(execute, sql, params, many, context):
            if sql.startswith(("INSERT", "UPDATE", "DELETE")):
                written.append((sql, params))
            return execute(sql, params, many, context)

        with patch.object(evennia.SESSION_HANDLER, "data_out"), connection.execute_wrapper(note):
            world.create_accounts()
            world.create_rooms()
            world.create_objs()
            world.create_chars()
            world.setup_session()
            del evennia.SESSION_HANDLER[world.__dict__.pop("session").sessid]
            world.aria = create_object(CHARACTER, key="Aria", location=world.room1)
            world.script = world.aria.assistant
            world.script.stop()
        rows = {name: (value.__dbclass__, value.pk) for name, value in vars(world).items()}
        world.script.pk = None  # what goes on behind this instance ends
        return rows, written

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        path = Path(self.folder.name)
        names = ["scripted/*", "offline/extractive", "gpt-4o"]
        self.enterContext(override_settings(EVENNIA_AI_DATA_DIR=str(path), LOG_DIR=str(path)))
        self.enterContext(override_settings(EVENNIA_AI_LLM_MODEL="scripted/model"))
        self.enterContext(override_settings(EVENNIA_AI_MODELS=names))
        self.model = ScriptedModel(self.answers, self.default)
        self.semantic = MemorySemanticStore()
        services.reset()
        services.use(
            model=self.model,
            memories=self.semantic,
            recall=RecallJobs(RECALL, IndexFile(path / "recall.sqlite3")),
            ready=True,
        )
        services.kept("disk", lambda: DISK)
        silent = {"data_out": Mock(), "disconnect": Mock()}
        self.enterContext(patch.multiple(evennia.SESSION_HANDLER, **silent))
        for name, (model, pk) in self.world_rows.items():
            setattr(self, name, model.objects.get(pk=pk))
        self.session = self.new_session()
        self.addCleanup(forget_instances)

    def new_session(self):
        """A session as after a reload of the server."""
        session = ServerSession()
        session.init_session("telnet", ("localhost", "testmode"), evennia.SESSION_HANDLER)
        session.sessid, session.account, session.puid = 1, self.account, self.char1.pk
        session.uid, session.uname, session.logged_in = self.account.pk, self.account.key, True
        session.cmdset_storage = settings.CMDSET_SESSION
        evennia.SESSION_HANDLER[1] = session  # an object drops a session that is not there
        session.at_sync()
        self.addCleanup(evennia.SESSION_HANDLER.pop, 1, None)
        return session

    def tearDown(self):
        # What ticks, or runs behind the ticks, must not write after the test: the assistants of
        # the next one have the same keys in the database.
        for script in all_scripts():
            if script.ndb._task:  # stopping one that does not tick writes, too
                script.stop()
            script.at_script_delete()
            script.pk = None  # as Django does at a deletion: what goes on behind it ends
        super().tearDown()
        wait_for(services.close())
        for worker in (RECALL, DISK):  # what they write goes with the folder
            wait_for(worker.submit_later(lambda: None))
        services.reset()
        self.folder.cleanup()

    def restart(self, before_start=lambda: None):
        """Throw Evennia's caches away, with every object, handler and runtime; start anew."""
        pk = self.script.pk
        RUNTIMES.pop(self.script.scope, None)
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

    def talk(self, text, *answers, speaker=None):
        """Somebody speaks, and a tick follows, in which the model gives these answers, if any."""
        if answers:
            self.model.answers = list(answers)
        self.say(text, speaker)
        return self.tick()

    def asked_slowly(self, text, *answers):
        """A tick in which a held model is asked for these answers, once it was asked."""
        self.model.held, self.model.answers = True, list(answers)
        self.say(text)
        self.script.runtime.last_turn_at = 0.0
        before = len(self.model.requests)
        running = self.script.at_tick()
        pump_until(lambda: len(self.model.requests) > before)
        return running

    def lines_of(self, person):
        """All that a person is shown from now on, as it comes."""
        lines = []
        person.msg = lambda text=None, *args, **kwargs: lines.append(
            strip_ansi(str(text[0] if isinstance(text, tuple) else text))
        )
        self.addCleanup(person.__dict__.pop, "msg", None)
        return lines

    def tick(self):
        """Run a tick; returns what it did."""
        self.script.runtime.last_turn_at = 0.0
        return wait_for(self.script.at_tick())

    def contents(self):
        """Roles and contents of the live history."""
        return [(m.role, m.content) for m in self.script.history.messages()]
