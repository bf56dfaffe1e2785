"""Whom the assistant met gets a profile while it dreams, and memories are linked to it."""

from evennia_ai.handlers.identity import stable_id
from evennia_ai.helpers.entity_context import note_met
from tests.base import AssistantTest


class TestEntitiesMet(AssistantTest):
    """The first night after a talk."""

    def talk(self):
        """Two people speak, then nobody does for a while."""
        self.say("Aria, the mill is mine.")
        self.say("Mine too.", self.char2)
        self.tick()

    def sleep(self):
        """One sleep with its dream; the report."""
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        report = self.script.db.last_sleep["steps"]
        self.script.wake()
        return report

    def test_speakers_and_the_place(self):
        """Each has a profile under its stable id, once."""
        self.char2.location = self.room1
        self.talk()
        self.assertEqual(self.sleep()["entities_met"]["met"], 3)
        profiles = self.aria.entities.profiles()
        expected = {stable_id(obj): obj.key for obj in (self.char1, self.char2, self.room1)}
        self.assertEqual({key: p["name"] for key, p in profiles.items()}, expected)
        self.assertEqual(profiles[stable_id(self.room1)]["kind"], "place")
        self.assertEqual(self.sleep()["entities_met"]["met"], 0)

    def test_memories_of_the_first_evening_are_linked(self):
        """A journal entry that names somebody met is linked to the profile in the same night."""
        self.talk()
        self.aria.journal.add("Char owns the mill.")
        self.assertEqual(self.sleep()["memory_links"]["linked"], 1)
        self.assertEqual(len(self.aria.entities.get(stable_id(self.char1))["memory_links"]), 1)

    def test_seen_again(self):
        """A later word moves the last sight, and nothing else."""
        self.talk()
        self.sleep()
        before = self.aria.entities.get(stable_id(self.char1))
        self.talk()
        note_met(self.script, self.aria)
        after = self.aria.entities.get(stable_id(self.char1))
        self.assertGreater(after["last_seen"], before["last_seen"])
        self.assertEqual(after["first_seen"], before["first_seen"])
