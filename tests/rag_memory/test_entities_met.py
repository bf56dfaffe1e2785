"""Whom the assistant met gets a profile while it dreams, and memories are linked to it."""

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.prompt import draft_prompt
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.cycle import entities_met
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.testing import call
from tests.base import AssistantTest
from tests.waiting import wait_for


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

    def test_place_and_things_in_the_prompt(self):
        """What is known of the room and of a thing in it stands in the newest turn."""
        self.talk()
        self.sleep()
        for place in (self.room1, self.obj1):
            known = self.aria.entities.get(stable_id(place))
            known = known or new_profile(stable_id(place), place.key, 0.0, "thing")
            told = observe(known, f"{place.key} is haunted.", 1.0, "m1")
            self.aria.entities.put({known.id: told})
        newest = str(draft_prompt(self.script).messages[-1]["content"])
        told = [row for row in newest.splitlines() if "is haunted" in row]
        self.assertEqual([row.partition(" ")[0] for row in told], ["(About", "(About"], newest)

    def test_speakers_and_the_place(self):
        """Each has a profile under its stable id, once."""
        self.char2.location = self.room1
        self.talk()
        self.assertEqual(self.sleep()["entities_met"]["met"], 3)
        profiles = self.aria.entities.profiles()
        expected = {stable_id(obj): obj.key for obj in (self.char1, self.char2, self.room1)}
        self.assertEqual({key: p.name for key, p in profiles.items()}, expected)
        self.assertEqual(profiles[stable_id(self.room1)].kind, "place")
        self.assertEqual(self.sleep()["entities_met"]["met"], 0)

    def test_whose_words_left_before_the_night(self):
        """A compaction between a talk and the night takes nobody away."""
        self.char2.location = self.room1
        self.talk()
        self.model.default = "They spoke."
        self.script.history.append([Message("assistant", "Well. " * 9)] * 30)
        done = compact_conversation_history(self.script, self.aria, force=True)
        self.assertTrue(wait_for(done)["success"])
        # Few lines of a circle stay, however old they are.
        circle = private([stable_id(self.char1)])
        old = Message("system", "A bell.", created_at="2020-01-01T00:00:00+00:00", audience=circle)
        self.script.history.append([old])
        self.script.state.last_sleep = SleepReport(self.script.now() - 60)
        self.assertNotIn("the mill is mine", str(self.script.history.messages()[-20:]))
        self.assertEqual(self.sleep()["entities_met"]["met"], 3)
        last_seen = self.aria.entities.get(stable_id(self.char1)).last_seen
        self.assertEqual(self.sleep()["entities_met"]["seen_again"], 1, "only the place")
        self.assertEqual(self.aria.entities.get(stable_id(self.char1)).last_seen, last_seen)

    def test_memories_of_the_first_evening_are_linked(self):
        """A journal entry that names somebody met is linked to the profile in the same night."""
        self.talk()
        self.aria.journal.add("Char owns the mill.")
        self.assertEqual(self.sleep()["memory_links"]["linked"], 1)
        (told,) = self.aria.entities.get(stable_id(self.char1)).observations
        self.assertEqual(told.text, "Char owns the mill.")


class TestToldOf(AssistantTest):
    def note(self, name, text, **fact):
        """The model notes something of somebody by name; the result it gets."""
        told = call("update_entity_observation", entity=name, observation=text, **fact)
        self.model.answers = [told, call("noop")]
        self.say("Aria, note that.")
        self.tick()

    def texts(self, entity_id):
        return [item.text for item in self.aria.entities.get(entity_id).observations]

    def test_a_name_of_two_keeps_what_was_noted(self):
        """What is noted of a name that has become ambiguous stands beside what was noted before."""
        self.note("Bram", "Bram owes Alice seven coins.", predicate="owes", value="7 coins")
        self.aria.entities.put({"o1.12": new_profile("o1.12", "Bram", 1.7e9)})
        self.note("Bram", "Bram sails at dawn.")
        told = ["Bram owes Alice seven coins.", "Bram sails at dawn."]
        self.assertEqual(self.texts("n.bram"), told)

    def test_met_at_last(self):
        """What was noted of a mere name goes over to who is met by it."""
        self.char2.location = self.room2
        self.note("Char2", "Char2 owes Alice seven coins.")
        self.char2.location = self.room1
        self.say("It is me.", self.char2)
        self.tick()
        self.assertEqual(entities_met(self.script, self.aria)["joined"], 1)
        met = stable_id(self.char2)
        self.assertEqual(self.texts(met), ["Char2 owes Alice seven coins."])
        self.assertIsNone(self.aria.entities.get("n.char2"))
        again = entities_met(self.script, self.aria)
        self.assertEqual((again["met"], again["joined"]), (0, 0))

    def test_renamed(self):
        """Who goes by another name now, or the old one again, is known by both."""
        for names in (("Char",), ("Carla", "Char"), ("Char", "Carla")):
            self.char1.key = names[0]
            self.say(f"Aria, I am {names[0]}.")
            self.tick()
            entities_met(self.script, self.aria)
            profile = self.aria.entities.get(stable_id(self.char1))
            self.assertEqual(profile.names("public"), names)
