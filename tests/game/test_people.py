"""People who are renamed, deleted in mid-talk, and accounts with several characters."""

import unicodedata

from evennia import create_object

from evennia_ai.errors import ToolError
from evennia_ai.game.seeing import plain, stable_id
from evennia_ai.sleep.cycle import entities_met
from evennia_ai.testing import call
from tests.base import PLAYED, AssistantTest


class TestPeople(AssistantTest):
    default = "Well met."

    def setUp(self):
        super().setUp()
        self.dora = create_object(PLAYED, key="Dora", location=self.room1)

    def test_renamed(self):
        """A renamed player stays one person, met under both names."""
        for name in ("Dora", "Lady Theodora"):
            self.dora.key = name
            self.say("Aria, what is my boat called?", self.dora)
            self.tick()
            entities_met(self.script, self.aria)
        profiles = self.aria.entities.profiles()
        self.assertEqual(profiles[stable_id(self.dora)].name, "Lady Theodora")
        self.assertNotIn("Dora", [profile.name for profile in profiles.values()])
        [person] = [p for p in self.script.game.present() if p["id"] == stable_id(self.dora)]
        self.assertEqual(person["key"], "Lady Theodora")
        for name in ("Dora", "Lady Theodora"):
            self.assertIn(stable_id(self.dora), self.script.game.people_named(f"who is {name}?"))

    def test_deleted(self):
        """Somebody deleted before or during an answer stops nothing; who stays is answered."""
        self.say("Aria, good evening", self.dora)
        self.dora.delete()
        self.assertNotEqual(self.tick(), "error")
        eve = create_object(PLAYED, key="Eve", location=self.room1)

        def vanish(request):
            eve.delete()
            return call("whisper", target="Eve", text="Psst.")

        self.model.answers = [vanish, "Gone."]
        self.say("Aria, whisper to me", eve)
        self.assertNotEqual(self.tick(), "error")
        self.say("Aria, good evening", self.char1)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.contents()[-1], ("assistant", "Well met."))
        self.assertEqual(self.script.runtime.counts["errors"], 0)

    def test_names_of_any_letters(self):
        """Names of any script, width, form and marks: heard, stored, found and answered."""
        odd = ('Bob "The Axe" Stone', "O'Brien", "Dr: Who", "50% Joe", "{who}", "Mary of the Hill")
        marked = ("|rRed|n Rose", "|lclook|ltMira|le", "Zoe\u0308", "ＡＬＩＣＥ")
        for key in (*odd, *marked, "अर्जुन", "தமிழ்", "Nguyễn", "Zoë", "อารี"):
            with self.subTest(key):
                self.script.runtime.queue.clear()
                self.dora.key = key
                name, own = plain(key), stable_id(self.dora)
                self.say("Aria, good evening", self.dora)
                [event] = self.script.runtime.queue
                self.assertEqual((event.speaker.key, event.content), (name, "Aria, good evening"))
                wave = {"mapping": {"who": self.dora}, "from_obj": self.dora}
                self.room1.msg_contents("{who} waves.", **wave)
                event = self.script.runtime.queue[-1]
                self.assertEqual((event.channel, event.content), ("pose", f"{name} waves."))
                for form in ("NFC", "NFD"):
                    called = unicodedata.normalize(form, name)
                    self.assertEqual(self.script.game.named(called, "people").id, own)
                    if key in ("Zoe\u0308", "Zoë", "अर्जुन", "อารี"):
                        self.assertIn(
                            own, self.script.game.people_named(f"what does {called} want?")
                        )
                self.assertIn(self.tick(), ("turn", "heard"))  # so many answers nobody gets
                self.assertEqual(self.script.runtime.counts["errors"], 0)

    def test_two_of_one_name(self):
        """Two people of one name are told apart by their ids, and by an alias."""
        other = create_object(PLAYED, key="Dora", location=self.room1, aliases=["Dorabella"])
        ids = {stable_id(self.dora), stable_id(other)}
        with self.assertRaisesRegex(ToolError, "several `Dora`") as caught:
            self.script.game.whisper("Dora", "Psst.")
        self.assertEqual({each for each in ids if each in str(caught.exception)}, ids)
        self.assertEqual(self.script.game.named("Dorabella", "people").id, stable_id(other))
        for person in (self.dora, other):
            self.say("Aria, it is me", person)
        self.assertEqual({event.speaker_id for event in self.script.runtime.queue}, ids)

    def test_two_characters_of_one_account(self):
        """Two characters of one account are two people; either can be answered alone."""
        self.char2.account, self.char2.location = self.account, self.room1
        self.say("Aria, I am the first", self.char1)
        self.say("Aria, I am the second", self.char2)
        self.tick()
        self.tick()
        speakers = {m.speaker_id for m in self.script.history.messages() if m.role == "user"}
        self.assertEqual(speakers, {stable_id(self.char1), stable_id(self.char2)})
        self.aria.hear_page(self.account, "and by page?", self.char2)
        self.assertEqual(self.script.runtime.queue[0].speaker_id, stable_id(self.char2))
