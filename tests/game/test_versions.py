"""What a newer version of the package stored is left as it is, and everybody is told so."""

import json
import pickle
from pathlib import Path
from unittest.mock import patch

from django.db import connection
from evennia.typeclasses.attributes import Attribute

from evennia_ai import startstop
from evennia_ai.assistant_script import AssistantScript, all_scripts
from evennia_ai.history.stored import Sealed
from evennia_ai.privacy.old_talk import forget_old_talk
from evennia_ai.privacy.requests import enqueue, forget_queued, queued
from evennia_ai.staff import doctor
from evennia_ai.staff.export import export_assistant
from evennia_ai.turns.schema import VERSION, VERSION_KEY
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

NEWER = "was stored by a newer version of evennia_ai"


class TestNewerVersion(CommandLineTest):
    """After a downgrade nobody guesses what the stored values mean."""

    def test_the_version_is_stored(self):
        """Each assistant says in which shape it is stored."""
        self.assertEqual(self.script.attributes.get(VERSION_KEY), VERSION)
        self.assertFalse(self.script.is_newer)

    def test_sealed_texts_keep_their_name(self):
        """The database holds the names of module and class, as version 1 wrote them."""
        stored = b"cevennia_ai.history.stored\nSealed\n(VHeron\nVo1\ntR."
        self.assertEqual(pickle.loads(stored), Sealed("Heron", "o1"))
        self.assertIn(b"evennia_ai.history.stored", pickle.dumps(Sealed("Heron")))

    def become_newer(self):
        """Aria, who has lived, comes from a later version."""
        self.talk("Aria, my boat is called Heron.", "I shall remember.")
        self.script.at_server_reload()  # stores the newest lines, too
        self.restart(lambda: self.script.attributes.add(VERSION_KEY, VERSION + 1))

    def stored(self):
        """All Attributes in the database, in their stored form."""
        table = Attribute._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT id, db_key, db_value FROM {table} ORDER BY id")
            return cursor.fetchall()

    def test_nothing_is_read_or_changed(self):
        """She hears nothing, says nothing and stores nothing, also at a start."""
        self.become_newer()
        before, asked = self.stored(), len(self.model.requests)
        self.assertEqual(self.talk("Aria, what is my boat called?", "Heron."), "disabled")
        for _ in startstop._repair_all():
            pass
        self.assertEqual(self.tick(), "disabled")
        self.script.at_server_reload()
        self.assertEqual(len(self.model.requests), asked)
        self.assertEqual(self.stored(), before)
        self.assertIn(NEWER, self.script.runtime.last_error)

    def test_everybody_is_told(self):
        """Commands, lists and the doctor say what to do."""
        self.become_newer()
        before = self.stored()
        for line in ("aistatus Aria", "aiconfig Aria persona = A smuggler.", "compact Aria"):
            self.assertTold(line, NEWER, "Install the newer version")
        self.assertTold("ai", "broken", "see aistatus")
        found = doctor.check_assistants(True)
        self.assertIs(found.ok, False)
        self.assertIn(NEWER, found.detail)
        self.assertEqual(self.stored(), before)

    def test_its_old_talk_stays(self):
        """Also where it was to be forgotten by now."""
        self.configure(keep_days=1)
        self.become_newer()
        before, now = self.stored(), self.script.now() + 3 * 86_400
        with patch.object(AssistantScript, "now", lambda script: now):
            wait_for(forget_old_talk(all_scripts))
        self.assertEqual(self.stored(), before)

    def test_what_waits_for_it_stays(self):
        """A request that cannot be carried out drops no line that was heard and not answered."""
        self.say("Aria, are you there?")
        self.script.at_server_reload()
        self.restart(lambda: self.script.attributes.add(VERSION_KEY, VERSION + 1))
        before = self.stored()
        enqueue(["o9.nobody"], "2027", "", all_scripts())
        wait_for(forget_queued(all_scripts))
        self.assertEqual(self.stored(), before)

    def test_a_request_to_forget_waits(self):
        """It cannot be carried out by code that does not know where words may stand."""
        self.become_newer()
        self.typed("aiforget me")
        self.assertTold("aiforget me = yes", "Not everything", "Aria", until="Not everything")
        self.assertEqual(len(queued()), 1)
        self.script.attributes.add(VERSION_KEY, VERSION)
        wait_for(forget_queued(all_scripts))
        self.assertEqual(queued(), [])

    def test_a_file_of_a_newer_version(self):
        """It is refused, and no assistant is made."""
        path = wait_for(self.script.run_exclusive(lambda: export_assistant(self.script)))
        data = json.loads(Path(path).read_text())
        (row,) = (row for row in data["attributes"]["script"] if row["key"] == VERSION_KEY)
        row["value"] += 1
        Path(path).write_text(json.dumps(data))
        number = len(all_scripts())
        self.assertTold(f"ai/import {path.name} = Nia", NEWER, until=NEWER)
        self.assertEqual(len(all_scripts()), number)
