"""Old talk in a real database: who is due, and what of the game's own tables and files goes."""

import time
from unittest.mock import patch

from django.db import OperationalError
from evennia.comms.models import Msg
from evennia.utils.create import create_message

from evennia_ai.assistant_script import AssistantScript, all_scripts
from evennia_ai.models import Event
from evennia_ai.privacy import old_talk, requests
from evennia_ai.privacy.old_talk import DAY_S, LATE_S, LULL_S, forget_old_talk, is_due
from evennia_ai.privacy.requests import enqueue, queued
from tests.base import events
from tests.commands.test_commands_privacy import SECRET, ForgettingGameTest
from tests.steps import verify_history
from tests.waiting import wait_for


class TestOldTalkInAGame(ForgettingGameTest):
    """Aria keeps what was said for 30 days; Borg, who heard the same, for ever."""

    def setUp(self):
        super().setUp()
        self.later_s = 0.0
        clock = patch.object(AssistantScript, "now", lambda script: time.time() + self.later_s)
        clock.start()
        self.addCleanup(clock.stop)
        self.be("Admin")

    def age(self):
        wait_for(forget_old_talk(all_scripts))

    def kept_by(self, name):
        """The lines of an assistant that hold the word."""
        [script] = [each for each in all_scripts() if each.obj.key == name]
        return [m for m in self.lines(script) if SECRET in m.content]

    def test_what_goes(self):
        """Of one assistant alone: its Attributes, index, memories, pages and talk in the log."""
        self.be("Player")
        self.lived()
        own, other, at = self.account, self.account2, [self.aria]
        pairs = (self.aria, [other]), (own, at), (own, [*at, other]), (own, [other])
        for sender, to in pairs:
            create_message(sender, SECRET, receivers=to, tags=[("page", "comms")])
        self.script.audit("report", by="o9.x", words="Rude.", lines=[SECRET], speakers=["o9.x"])
        self.borg.assistant.audit("error", what=SECRET)
        pages = [page.pk for page in Msg.objects.order_by("pk")]
        events()
        self.configure(keep_days=30)
        self.age()
        self.assertTrue(self.kept_by("Aria"))
        self.later_s = 31 * DAY_S
        self.age()
        self.assertFalse(self.kept_by("Aria"))
        self.assertTrue(self.kept_by("Borg"))
        self.assertEqual([page.pk for page in Msg.objects.order_by("pk")], pages[2:])
        logged = {event.assistant for event in Event.objects.all() if SECRET in event.text}
        self.assertEqual(logged, {self.borg.assistant.key})
        [report] = events("report")
        self.assertEqual(report.facts, {"by": "o9.x", "words": "Rude."})
        [_, forgotten] = events("forgotten")
        self.assertEqual(forgotten.facts["days"], 30)
        self.assertGreater(forgotten.facts["messages"], 36)
        self.assertEqual(verify_history(self.script), ())
        self.assertNotIn(SECRET, str(self.semantic.memories[self.script.scope]))
        self.borg.assistant.attributes.add("keep_days", 30)
        self.age()
        self.assertNotIn(SECRET, self.everything())

    def test_who_is_due(self):
        """Once a day, in a lull, or two days late without one; nobody without the option."""
        now, runtime = self.script.now(), self.script.runtime
        runtime.player_spoke_at = now
        for days, since_s, quiet_s, due in (
            (None, 3 * DAY_S, LULL_S, False),
            (30, DAY_S - 60, LULL_S, False),
            (30, DAY_S + 60, LULL_S - 60, False),
            (30, DAY_S + 60, LULL_S + 60, True),
            (30, LATE_S + 60, 0, True),
            (30, -DAY_S, 0, True),  # the clock was set back
        ):
            with self.subTest(days=days, since_s=since_s, quiet_s=quiet_s):
                self.configure(keep_days=days)
                self.script.state.nights = {"old_talk": now - since_s}
                runtime.player_spoke_at = now - quiet_s
                self.assertEqual(is_due(self.script), due)

    def test_a_part_at_a_time(self):
        """It goes on at the next look until all is gone, and then is done for the day."""
        self.fill(12)
        self.configure(keep_days=30)
        self.later_s = 31 * DAY_S
        with patch.object(old_talk, "MOST", 5):
            for left in (7, 2, 0):
                self.assertTrue(is_due(self.script))
                self.age()
                self.assertEqual(len(self.lines(self.script)), left)
        self.assertFalse(is_due(self.script))

    def test_what_fails(self):
        """Staff are told, the next look tries again, and other assistants are cleared."""
        self.fill(3)
        self.borg.assistant.attributes.add("keep_days", 30)
        self.configure(keep_days=30)
        self.script.audit("error", what="turn")
        events()
        self.later_s = 31 * DAY_S
        with patch.object(Event, "forget", side_effect=OperationalError("locked")):
            self.age()
        self.assertIn("old talk is left in: Aria", self.script.runtime.trouble.text)
        self.assertTrue(is_due(self.script))
        self.assertFalse(is_due(self.borg.assistant))
        self.age()
        self.assertFalse(is_due(self.script))

    def test_what_waits(self):
        """An assistant that is switched off keeps no old line that it has not answered."""
        self.configure(keep_days=30)
        self.script.db.enabled, self.borg.location = False, None
        self.be("Player")
        self.say(f"Aria, my boat is {SECRET}.")
        self.later_s = 29 * DAY_S
        self.age()
        self.assertIn(SECRET, self.attributes())
        self.later_s = 31 * DAY_S
        self.age()
        self.assertNotIn(SECRET, self.attributes())
        self.assertEqual(self.script.runtime.queue, [])

    def test_files_that_fail(self):
        """What was removed leaves the files at the next look, though nothing more is removed."""
        self.fill(3)
        self.configure(keep_days=30)
        self.later_s = 31 * DAY_S
        with patch.object(requests, "erase_free_pages", side_effect=OperationalError("locked")):
            self.age()
        self.assertIn("old talk is left in: database", self.script.runtime.trouble.text)
        with patch.object(requests, "erase_free_pages", side_effect=[""]) as erased:
            self.age()
            erased.assert_called_once_with()
        self.assertFalse(is_due(self.script))

    def test_one_fails_for_long(self):
        """What others have forgotten leaves the files all the same."""
        self.fill(3)
        self.borg.assistant.attributes.add("keep_days", 30)
        self.configure(keep_days=30)
        self.later_s = 31 * DAY_S
        broken = patch.object(self.script.history, "drop_drafts", side_effect=ValueError("odd"))
        with broken, patch.object(requests, "erase_free_pages", side_effect=[""]) as erased:
            self.age()
            erased.assert_called_once_with()
        self.assertTrue(is_due(self.script))
        self.assertFalse(is_due(self.borg.assistant))

    def test_somebody_asks_meanwhile(self):
        """Who asks to be forgotten while old talk goes is forgotten behind it."""
        self.fill(3)
        self.configure(keep_days=30)
        self.later_s = 31 * DAY_S
        done = forget_old_talk(all_scripts)
        enqueue(["o1.a"], "2027", "", all_scripts())
        wait_for(done)
        self.assertEqual(queued(), [])

    def test_only_admins(self):
        """It deletes, and what was promised to players must not end unseen."""
        self.aria.locks.add("control:all()")
        self.be("Builder")
        self.assertTold("aiconfig Aria keep_days = 1", "Only admins set `keep_days`")
        self.be("Admin")
        self.assertTold("aiconfig Aria keep_days = 30", "is now 30")
        self.be("Builder")
        self.assertTold("aiconfig Aria keep_days = default", "Only admins set `keep_days`")
