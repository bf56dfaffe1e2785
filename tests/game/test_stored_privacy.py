"""What Evennia's own building commands show of an assistant, and to whom."""

from django.core.checks import run_checks
from evennia import DefaultCharacter, DefaultScript, create_object, search_object
from evennia.objects.models import ObjectDB
from evennia.typeclasses.attributes import Attribute

from evennia_ai.assistant_character import OWNER_LOCKS, AssistantCharacter
from evennia_ai.assistant_script import AssistantScript, all_assistants
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from tests.base import CHARACTER
from tests.command_line import CommandLineTest
from tests.steps import verify_history
from tests.waiting import wait_for

SECRET = "xylophone"
READS = (
    "examine Aria",
    "examine Aria/journal",
    "examine/script Aria",
    "examine/script Aria/conversation_history",
    "set Aria/o1.a:ai_entities",
    "set Aria/journal",
    "set Aria/journal['entries'][0]['content']",
    "set Aria",
    "set/script Aria/conversation_history",
    "set/script Aria/conversation_history[0]",
    "set/script Aria/conversation_history[0]['content']",
    "set/script Aria/conversation_tail",
    "set/script Aria/conversation_tail['messages'][0]['content']",
    "set/script Aria",
    "set/script Aria/ledger:ai_ledger",
    "set/script Aria/last_extraction",
    "set/edit Aria/journal",
    "cpattr Aria/journal = Char2/notes",
    "cpattr Aria/journal = Char2",
    "examine Char2/notes",
    "set Char2/notes['entries'][0]['content']",
    "mvattr Aria/journal = Char2/notes",
    "mvattr Char2/notes = Aria/journal",
    "find Aria",
    "scripts Aria",
    "examine here",
    "copy Aria = Clone",
    "spawn/olc",
)
WRITES = (
    "set Aria/journal = []",
    "set Aria/journal =",
    "set/script Aria/conversation_history = []",
    "set/script Aria/conversation_tail = [{'id': 7, 'role': 'user', 'content': 'hi'}]",
    "wipe Aria/journal",
    "wipe Aria",
    "type/force Aria = evennia.DefaultCharacter",
)


class StoredLifeTest(CommandLineTest):
    """An assistant with a secret in everything that it stores; the caller is a builder."""

    def setUp(self):
        super().setUp()
        alice = Speaker("Alice", "o77.x")
        for text, audience in (("Psst", private([alice.id])), ("Aloud", "public")):
            line = Message("user", f"{text}: {SECRET}.", speaker=alice, audience=audience)
            self.script.history.append([line])
        self.script.history.replace(self.script.history.messages())
        self.script.history.append([Message("user", f"New: {SECRET}.", speaker=alice)])
        self.aria.journal.add(f"Alice said {SECRET}.", audience=private([alice.id]))
        self.script.state.extracted = [SECRET]
        self.be("Builder")

    def own(self):
        """Make the caller the assistant's owner."""
        self.aria.locks.add(OWNER_LOCKS.format(id=self.char1.id))

    def shown_rows(self):
        """All Attributes of the game, as anything that prints them shows them."""
        return " ".join(str(row.value) for row in Attribute.objects.all())

    def life(self):
        return self.script.history.messages(), self.aria.journal.recent()


class TestBuilders(StoredLifeTest):
    """Builders, also those who own an assistant, read and change its options only."""

    def test_reads(self):
        """No command of Evennia's shows a builder what was said, there or in a copy of it."""
        self.own()
        before = self.life()
        for line in READS:
            with self.subTest(line):
                self.assertNotIn(SECRET, self.typed(line))
                self.assertNotIn(SECRET, self.shown_rows())
        self.assertEqual(self.life(), before)

    def test_shows_the_length(self):
        """Where a text stands, its length is shown, and what is no text as it is."""
        line = "set/script Aria/conversation_history[0]"
        self.assertTold(f"{line}['content']", "<16 characters>")
        self.assertTold(f"{line}['audience']", "private:o77.x")
        self.assertNotIn("= P", self.typed(f"{line}['content'][0]"))

    def test_writes(self):
        """What builders do not own they do not change, as of any object."""
        before = self.life()
        for line in WRITES:
            with self.subTest(line):
                self.typed(line)
                self.assertEqual(self.life(), before)

    def test_an_owner_who_overwrites(self):
        """Owners may overwrite what they cannot read; the proof says what is missing."""
        self.own()
        self.typed("set/script Aria/conversation_history = []")
        self.assertTrue(verify_history(self.script))

    def test_another_typeclass(self):
        """What is stored stays sealed whatever the body or the script becomes, and comes back."""
        self.own()
        before = self.life()
        for line in (
            "type/force Aria = evennia.DefaultCharacter",
            "examine Aria/journal",
            "set Aria/journal['entries'][0]['content']",
        ):
            self.assertNotIn(SECRET, self.typed(line))
        self.aria.swap_typeclass(AssistantCharacter)
        self.assertEqual(self.life(), before)

    def test_given_to_another_assistant(self):
        """An assistant cannot read what was copied to it from another one."""
        borg = create_object(CHARACTER, key="Borg", location=self.room1)
        self.typed("cpattr Aria/journal = Borg")
        self.assertNotIn(SECRET, str(borg.journal.recent()))
        self.assertNotIn(SECRET, str(AttributeStore(borg).get("journal")))
        borg.journal.add("A new day.")
        self.assertEqual(borg.journal.recent()[-1].content, "A new day.")

    def test_options_are_theirs(self):
        """Options and a game's own Attributes are read and written as ever."""
        self.own()
        self.typed("set/script Aria/persona = A smith.")
        self.assertEqual(self.script.config.persona, "A smith.")
        self.assertTold("set/script Aria/persona", "A smith.")
        self.typed("set Aria/desc = A tall woman.")
        self.assertTold("examine Aria", "A tall woman.")

    def test_code_reads(self):
        """Code reads `db` as ever; what asks on behalf of somebody asks for a rank."""
        first = self.script.db.conversation_history[0]
        self.assertEqual(first["content"], f"Psst: {SECRET}.")
        self.assertTrue(first["content"].startswith("Psst"))
        attributes = self.aria.attributes
        self.assertIsNone(attributes.get("journal", accessing_obj=self.char1))
        attributes.remove("journal", accessing_obj=self.char1)
        keys = [each.key for each in attributes.all(accessing_obj=self.char1)]
        self.assertNotIn("journal", keys)
        self.be("Admin")
        entries = attributes.get("journal", accessing_obj=self.char1)["entries"]
        self.assertIn(SECRET, entries[0]["content"])

    def test_put_in_by_hand(self):
        """What code or hands put in is read, and sealed and locked when it is stored again."""
        self.script.db.conversation_history = [{"role": "user", "content": f"By hand: {SECRET}"}]
        self.assertIn(SECRET, self.script.history.messages()[0].content)
        stored = self.script.attributes.get("conversation_history", return_obj=True)
        self.assertNotIn(SECRET, str(stored.value))
        self.script.attributes.remove("conversation_history")
        self.script.db.conversation_history = []
        self.script.history.replace(self.script.history.messages())
        stored = self.script.attributes.get("conversation_history", return_obj=True)
        self.assertFalse(stored.access(self.char1, "attrread"))

    def test_objects_in_it(self):
        """Texts beside game objects are sealed; what is plain comes back as it was."""
        store = AttributeStore(self.script)
        store.set("last_extraction", [{"content": SECRET, "who": self.char1}])
        self.assertNotIn(SECRET, str(self.script.db.last_extraction))
        value = [{"content": SECRET, "list": ({1}, [SECRET])}]
        for key in ("last_extraction", "summaries_stale"):
            store.set(key, value)
            self.assertNotIn(SECRET, str(self.script.attributes.get(key)))
            self.assertEqual(store.get(key), value)

    def test_the_rest_api(self):
        """Evennia's REST API, where a game switches it on, shows options and no talk."""
        from evennia.web.api.serializers import ObjectDBSerializer, ScriptDBSerializer

        self.script.state.configure({"persona": "A smith."})
        served = str(ObjectDBSerializer(self.aria).data) + str(ScriptDBSerializer(self.script).data)
        self.assertIn("A smith.", served)
        self.assertNotIn(SECRET, served)

    def test_prototypes(self):
        """The menu that makes prototypes of objects shows a builder no talk; what is spawned has
        a life of its own."""
        self.own()
        for line in ("spawn/olc", "search", "Aria", "examine 1", "create 1", "spawn", "1", "quit"):
            self.assertNotIn(SECRET, self.typed(line))
            self.assertNotIn(SECRET, self.shown_rows())

    def test_destroyed(self):
        """Whoever may destroy an assistant destroys all rows of it."""
        self.own()
        keys = {row.pk for obj in (self.aria, self.script) for row in obj.db_attributes.all()}
        self.typed("destroy/force Aria")
        self.assertFalse(ObjectDB.objects.filter(db_key="Aria"))
        self.assertFalse(Attribute.objects.filter(pk__in=keys))


class TestCopies(StoredLifeTest):
    """`copy` and prototypes make another assistant with the same options."""

    def assertNewborn(self, clone):  # noqa: N802 - unittest's own form
        """It has one script, the options of the original, and none of its life."""
        self.assertEqual(len(clone.scripts.all()), 1)
        self.assertEqual(clone.assistant.config.persona, "A smith.")
        self.assertEqual(clone.assistant.history.messages(), ())
        self.assertEqual(clone.journal.count(), 0)
        self.assertFalse(clone.attributes.has("journal"))
        self.assertNotEqual(clone.stable_id, self.aria.stable_id)
        self.assertIn(clone.assistant, all_assistants())
        wait_for(clone.assistant.at_tick())

    def test_a_copy(self):
        """Whoever copies it, also a copy of a copy, and by code."""
        self.script.state.configure({"persona": "A smith."})
        before = self.life()
        for rank in ("Builder", "Admin"):
            self.be(rank)
            self.typed(f"copy Aria = Clone{rank}")
            self.assertNewborn(search_object(f"Clone{rank}")[0])
        self.typed("copy CloneAdmin = Third")
        self.assertNewborn(search_object("Third")[0])
        self.assertNewborn(self.aria.copy("Fourth"))
        self.assertEqual(self.life(), before)
        self.assertEqual(len(self.aria.scripts.all()), 1)

    def test_spawned(self):
        """A prototype that was made of an assistant makes another one."""
        from evennia.prototypes.spawner import prototype_from_object, spawn

        self.script.state.configure({"persona": "A smith."})
        prototype = prototype_from_object(self.aria)
        self.assertNotIn(SECRET, str(prototype))
        self.assertNewborn(spawn({**prototype, "key": "Twin"})[0])

    def test_a_second_script(self):
        """A body has one script, whoever gives it another."""
        before = self.life()
        self.be("Developer")
        self.typed("script Aria = evennia_ai.assistant_script.AssistantScript")
        self.assertEqual(list(self.aria.scripts.all()), [self.script])
        self.assertEqual(self.life(), before)


class TestHooks(CommandLineTest):
    """Evennia is extended by its hooks; no field, handler or relation of its classes is hidden."""

    def test_nothing_is_shadowed(self):
        """Where one of our typeclasses has a name of Evennia's, both are methods."""
        for ours, theirs in (
            (AssistantCharacter, DefaultCharacter),
            (AssistantScript, DefaultScript),
        ):
            relations = {field.name for field in theirs._meta.get_fields()}
            made_for_each = {"objects", "path", "typename"}
            made_for_each |= {"DoesNotExist", "MultipleObjectsReturned"}
            made_for_each |= {"is_connected"}  # computed by Evennia, too; channels ask it
            for kind in ours.__mro__:
                if not kind.__module__.startswith("evennia_ai"):
                    continue
                for name in vars(kind).keys() - made_for_each:
                    self.assertNotIn(name, relations)
                    if hasattr(theirs, name) and not name.startswith("_"):
                        self.assertTrue(callable(getattr(theirs, name)), f"{kind.__name__}.{name}")
                        self.assertTrue(callable(getattr(kind, name)), f"{kind.__name__}.{name}")

    def test_system_checks(self):
        """Django finds nothing wrong with the models, as the tests of a game ask it to."""
        self.assertEqual(run_checks(tags=["models"]), [])
