"""`ai/new`: questions, a way back, defaults, and nothing made before the end."""

from evennia_ai.assistant_script import all_assistants
from evennia_ai.commands.base import named
from evennia_ai.commands.wizard import STEPS
from tests.command_line import CommandLineTest


class TestWizard(CommandLineTest):
    """Scene 8."""

    def setUp(self):
        super().setUp()
        self.session.msg = self._record

    def answer(self, *typed):
        """Type answers, as a session sends them; each text shown fits 78 columns."""
        for line in typed:
            self.told.clear()
            self.session.execute_cmd(line)
            shown = self.shown()
            for row in shown.splitlines():
                self.assertLessEqual(len(row), 78, row)
        return shown

    def test_defaults(self):
        """Empty input takes each default; then there is one assistant with the first persona."""
        self.assertIn("What is it called?", self.answer("ai/new"))
        shown = self.answer("", *[""] * len(STEPS))
        self.assertIn("name: Cora", shown)
        self.assertEqual(len(all_assistants()), 1)
        self.assertIn("Cora is here and listens", self.answer(""))
        script = named("Cora")
        self.assertIs(script.obj.location, self.room1)
        self.assertIn("innkeeper", script.config.persona)
        self.assertEqual((script.config.initiative, script.config.routine), (0, None))

    def test_back_and_again(self):
        """Wrong answers are asked again; a step back changes one; the summary says what is made."""
        self.assertIn("What is it called?", self.answer("ai/new"))
        self.assertIn("cannot be a name", self.answer("*"))
        self.assertIn("Who is it?", self.answer("Bram"))
        self.assertIn("Which language", self.answer("A quiet smith, {name} | $fun()."))
        self.assertIn("Who is it?", self.answer("back"))
        self.assertIn("Which language", self.answer("2"))
        self.answer("German")
        self.assertIn("`routine` takes a plan", self.answer("at noon"))
        self.answer("20:00 Taproom: wipes the bar", "2")
        self.assertIn("`initiative` takes", self.answer("often"))
        shown = self.answer("4")
        for words in ("name: Bram", "town watch", "German", "20:00 Taproom", "addressed", "4"):
            self.assertIn(words, shown)
        self.assertIn("Type 'yes' to make it", self.answer("no"))
        self.assertIsNone(named("Bram"))
        self.answer("yes")
        config = named("Bram").config
        self.assertEqual((config.attention, config.initiative), ("addressed", 4))
        self.assertEqual(config.routine, "20:00 Taproom: wipes the bar")

    def test_names_of_people(self):
        """A person's name is neither proposed nor taken."""
        self.char2.key = "CORA"
        self.assertIn("Finn", self.answer("ai/new"))
        self.assertIn("There is a character called CORA already.", self.answer("cora"))
        self.assertIn("Who is it?", self.answer(""))

    def test_left(self):
        """Whoever leaves, or whose line drops, has made nothing."""
        self.assertIn("nothing was made", self.answer("ai/new", "Bram", "", "quit"))
        self.assertIsNone(named("Bram"))
        self.answer("ai/new", "Bram", "")
        self.assertIsNone(self.char1.ndb._evmenu)  # it is the session's, and ends with it
        self.session.ndb._evmenu.close_menu()
        self.assertIsNone(named("Bram"))
        self.be("Player")
        self.assertTold("ai/new", "Players may type")
