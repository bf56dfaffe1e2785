"""What Evennia's own building commands show of an assistant, and to whom."""

from evennia import search_object
from evennia.objects.models import ObjectDB
from evennia.typeclasses.attributes import Attribute

from evennia_ai.assistant_character import OWNER_LOCKS
from evennia_ai.assistant_script import all_assistants
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

SECRET = "xylophone"
READS = (
    "examine Aria",
    "examine Aria/journal",
    "examine/script Aria",
    "examine/script Aria/conversation_history",
    "set Aria/journal",
    "set Aria/journal[entries]",
    "set Aria/entity_profiles",
    "set Aria",
    "set/script Aria/conversation_history",
    "set/script Aria/conversation_history[0]",
    "set/script Aria/conversation_tail",
    "set/script Aria",
    "set/script Aria/ledger:ai_ledger",
    "set/script Aria/last_extraction",
    "set/edit Aria/journal",
    "cpattr Aria/journal = Char2/notes",
    "cpattr Aria/journal = Char2",
    "mvattr Aria/journal = Char2/notes",
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


class TestBuilders(CommandLineTest):
    """Builders, also those who own an assistant, read and change its options only."""

    def setUp(self):
        super().setUp()
        alice = Speaker("Alice", "o77.x")
        self.script.history.append(
            [
                Message("user", f"Psst: {SECRET}.", speaker=alice, audience=private([alice.id])),
                Message("user", f"Aloud: {SECRET}.", speaker=alice, audience="public"),
            ]
        )
        self.script.history.checkpoint()
        self.script.history.append([Message("user", f"New: {SECRET}.", speaker=alice)])
        self.aria.journal.add(f"Alice said {SECRET}.", audience=private([alice.id]))
        self.script.state.note_extraction({"ids": ["x"], "profiles": {"o1.a": {"name": SECRET}}})
        self.be("Builder")
        self.aria.locks.add(OWNER_LOCKS.format(id=self.char1.id))
        self.other_rows = self.rows()

    def rows(self):
        """What Attributes of other objects hold."""
        own = {row.pk for obj in (self.aria, self.script) for row in obj.db_attributes.all()}
        return " ".join(str(row.value) for row in Attribute.objects.exclude(pk__in=own))

    def test_reads(self):
        """No command of Evennia's shows a builder what was said, or copies it elsewhere."""
        for line in READS:
            with self.subTest(line):
                self.assertNotIn(SECRET, self.typed(line))
                self.assertNotIn(SECRET, self.rows())

    def test_says_why(self):
        """A refusal says who may read it."""
        self.assertTold("set Aria/journal", "is for admins")

    def test_writes(self):
        """No command of Evennia's lets a builder change it."""
        before = self.script.history.messages(), self.aria.journal.recent()
        for line in WRITES:
            with self.subTest(line):
                self.typed(line)
                self.assertEqual(
                    (self.script.history.messages(), self.aria.journal.recent()), before
                )
                self.assertIn("for admins", self.shown())

    def test_options_are_theirs(self):
        """Options and a game's own Attributes are read and written as ever."""
        self.typed("set/script Aria/persona = A smith.")
        self.assertEqual(self.script.config.persona, "A smith.")
        self.assertTold("set/script Aria/persona", "A smith.")
        self.typed("set Aria/desc = A tall woman.")
        self.assertTold("examine Aria", "A tall woman.")

    def test_admins_read(self):
        """Admins see the stored values."""
        self.be("Admin")
        for line in (
            "examine Aria/journal",
            "set Aria/journal",
            "set/script Aria/conversation_tail",
        ):
            with self.subTest(line):
                self.assertIn(SECRET, self.typed(line))

    def test_code_reads(self):
        """Code reads and writes `db` as ever; what asks on behalf of somebody asks for a rank."""
        self.assertIn(SECRET, str(self.script.db.conversation_history))
        self.assertIsNone(self.aria.attributes.get("journal", accessing_obj=self.char1))
        self.aria.attributes.add("journal", [], accessing_obj=self.char1)
        self.assertIn(SECRET, str(self.aria.db.journal))
        self.be("Admin")
        self.assertIn(SECRET, str(self.aria.attributes.get("journal", accessing_obj=self.char1)))

    def test_the_rest_api(self):
        """Evennia's REST API, where a game switches it on, shows options and no talk."""
        from evennia.web.api.serializers import ObjectDBSerializer, ScriptDBSerializer

        self.script.state.configure({"persona": "A smith."})
        served = str(ObjectDBSerializer(self.aria).data) + str(ScriptDBSerializer(self.script).data)
        self.assertIn("A smith.", served)
        self.assertNotIn(SECRET, served)

    def test_prototypes(self):
        """The menu that makes prototypes of objects shows a builder, and copies, no talk."""
        for line in ("spawn/olc", "search", "Aria", "examine 1", "create 1", "spawn", "1", "quit"):
            self.assertNotIn(SECRET, self.typed(line))
        self.assertNotIn(SECRET, self.rows())

    def test_destroyed(self):
        """Whoever may destroy an assistant destroys all rows of it."""
        keys = {row.pk for obj in (self.aria, self.script) for row in obj.db_attributes.all()}
        self.typed("destroy/force Aria")
        self.assertFalse(ObjectDB.objects.filter(db_key="Aria"))
        self.assertFalse(Attribute.objects.filter(pk__in=keys))


class TestCopies(CommandLineTest):
    """`copy` makes another assistant with the same options."""

    def test_a_copy(self):
        """A copy has one script, the options of the original, and none of its life."""
        for rank in ("Builder", "Admin"):
            with self.subTest(rank):
                self.be(rank)
                self.script.state.configure({"persona": "A smith."})
                self.script.history.append([Message("user", f"{SECRET}.", audience="public")])
                self.aria.journal.add(f"{SECRET}.")
                self.typed(f"copy Aria = Clone{rank}")
                clone = search_object(f"Clone{rank}")[0]
                self.assertEqual(len(clone.scripts.all()), 1)
                self.assertEqual(clone.assistant.config.persona, "A smith.")
                self.assertEqual(clone.assistant.history.messages(), ())
                self.assertEqual(clone.journal.count(), 0)
                self.assertNotEqual(clone.stable_id, self.aria.stable_id)
                self.assertIn(clone.assistant, all_assistants())
                wait_for(clone.assistant.at_tick())
