"""Who can hear an assistant, and what it sees and names: by the game's own locks and hooks."""

from evennia import DefaultObject, DefaultRoom, create_object

from evennia_ai.errors import ToolError
from evennia_ai.game.seeing import stable_id
from evennia_ai.game.world import DARK, UNSEEN
from evennia_ai.history.audience import private
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.testing import call
from tests.base import CHARACTER, PLAYED, AssistantTest
from tests.waiting import pump_until

OBJECT = "evennia.objects.objects.DefaultObject"
EXIT = "evennia.objects.objects.DefaultExit"


class Puppet(DefaultObject):
    """A plain object that somebody plays."""

    has_account = True


class Parrot(DefaultObject):
    """A plain object that takes in what it hears."""

    def at_msg_receive(self, text=None, from_obj=None, **kwargs):
        return True


class DarkRoom(DefaultRoom):
    """A room in which nobody sees anything, by Evennia's hook."""

    def filter_visible(self, obj_list, looker, **kwargs):
        return []


class TellingRoom(DefaultRoom):
    """A room that sends what is seen by itself, in parts, and returns nothing."""

    def return_appearance(self, looker, **kwargs):
        looker.msg(f"|c{self.key}|n", **self.db.ways)
        looker.msg(("Casks line the wall.", {"type": "look"}), **self.db.ways)
        return self.db.returned


class SenseTest(AssistantTest):
    """Char and Char2 are players; what all of them see is kept."""

    def setUp(self):
        super().setUp()
        self.room1.key = "Tavern"
        self.alice = create_object(PLAYED, key="Alice", location=self.room1)
        self.char1.location = self.char2.location = self.room2
        self.account.is_superuser = False
        self.account.save()

    def asked(self, text="Aria, who and what is here?", speaker=None, whisper=False):
        """Somebody asks; returns all that the model was shown for it."""
        before = len(self.model.requests)
        speaker = speaker or self.alice
        speaker.at_say(text, receivers=[self.aria] if whisper else None, whisper=whisper)
        self.assertEqual(self.tick(), "turn")
        requests = self.model.requests[before:]
        return " ".join(str(message["content"]) for each in requests for message in each.messages)


class TestComings(SenseTest):
    """Who enters and who leaves."""

    def test_in_and_out_between_two_ticks(self):
        """Each move is what it was, whoever is here when the assistant stores it."""
        for room in (self.room2, self.room1, self.room2):
            self.alice.move_to(room)
            pump_until(lambda: all(e.channel != "move" for e in self.script.runtime.queue))
        self.tick()
        channels = [m.channel for m in self.script.history.messages()]
        self.assertEqual(channels, ["leave", "arrive", "leave"])


class TestListeners(SenseTest):
    """What was whispered is said aloud only where all who can hear it may know it."""

    def listeners(self):
        """By name: things that bring a hearer into the room besides Aria and Alice."""
        kinds = {"puppet": Puppet, "parrot": Parrot, "hidden": PLAYED, "cart": OBJECT}
        kinds |= {"player": PLAYED, "assistant": CHARACTER}
        made = {
            name: create_object(kind, key=name, location=self.room2) for name, kind in kinds.items()
        }
        made["hidden"].locks.add("view:false()")
        create_object(PLAYED, key="Driver", location=made["cart"])
        return made

    def told(self, listener):
        """Whether what Aria says to a circle of Alice alone is said so that others hear it."""
        lines, circle = self.lines_of(self.alice), private([self.alice_id])
        listener.location = self.room1
        self.script.game.speak("The key is under the mat.", circle, "say", self.alice_id)
        listener.location = self.room2
        self.assertIn("under the mat", " ".join(lines))
        return "whispers" not in " ".join(lines)

    @property
    def alice_id(self):
        return stable_id(self.alice)

    def test_alone(self):
        """With the circle alone it speaks aloud; a mug and a way out hear nothing."""
        create_object(EXIT, key="north", location=self.room1, destination=self.room2)
        self.assertTrue(self.told(create_object(OBJECT, key="mug")))

    def test_whoever_can_hear(self):
        """A puppeted object, a vehicle's crew, a listening thing, somebody unseen: it whispers."""
        for name, listener in self.listeners().items():
            with self.subTest(name):
                self.assertFalse(self.told(listener))

    def test_what_tools_say(self):
        """What it says or poses by a tool reaches those alone whom the turn is for, too."""
        bystander = create_object(PLAYED, key="Bo", location=self.room1)
        overheard, lines = self.lines_of(bystander), self.lines_of(self.alice)
        for name in ("say", "emote"):
            self.model.answers = [call(name, text=f"shows the key under mat {name}.")]
            self.asked("where is the key?", whisper=True)
            self.assertIn(f"under mat {name}", " ".join(lines))
        self.assertNotIn("under mat", " ".join(overheard))
        self.assertEqual(len(self.model.requests), 2)

    def test_in_a_private_room(self):
        """Whoever can hear in a room marked private is of the circle, and nobody else."""
        self.room1.tags.add("private", category="evennia_ai")
        puppet = create_object(Puppet, key="puppet", location=self.room1)
        self.alice.at_say("Aria, the key is under the mat.")
        [event] = self.script.runtime.queue
        self.assertEqual(event.audience, private([self.alice_id, stable_id(puppet)]))

    def test_a_puppet_is_heard(self):
        """What somebody says by way of a plain object is heard and answered."""
        puppet = create_object(Puppet, key="Golem", location=self.room1)
        self.assertIn("Golem", self.asked("Aria, do you hear me?", puppet))


class TestSight(SenseTest):
    """What the body or the one it answers may not see is in no prompt, and has no name."""

    def setUp(self):
        super().setUp()
        self.ghost = create_object(PLAYED, key="Ghost", location=self.room1)
        door = create_object(EXIT, "trapdoor", self.room1, aliases=["hatch"])
        door.destination = self.room2
        chest = create_object(OBJECT, "strongbox", self.room1, aliases=["box"])
        self.hidden = (self.ghost, door, chest)

    def hide(self, lock):
        for each in self.hidden:
            each.locks.add(lock)

    def assertHidden(self, prompt):  # noqa: N802 - unittest's own form
        self.assertEqual([each.key for each in self.hidden if each.key in prompt], [])

    def test_hidden_from_all(self):
        """By the locks `view` and `search`, whoever asks; without one they are in the prompt."""
        prompt = self.asked()
        self.assertIn("Ghost", prompt)
        self.assertIn("trapdoor", prompt)
        for lock in ("view:false()", "search:false()", f"view:id({self.ghost.id})"):
            self.hide("view:all();search:all()")
            self.hide(lock)
            with self.subTest(lock):
                self.assertHidden(self.asked())

    def test_hidden_from_one(self):
        """What only the assistant sees is not told to whoever does not, and the other way round."""
        for owner in (self.aria, self.alice):
            self.hide(f"view:id({owner.id})")
            with self.subTest(owner.key):
                looks = call("look") + call("look", target="box")
                self.model.answers = [looks, "I see nothing."]
                self.assertHidden(self.asked("Aria, look around"))

    def test_tools_find_nothing(self):
        """No tool finds or names them, not even in its refusals."""
        self.hide("view:false()")
        self.aria.permissions.add("Builder")
        self.alice.permissions.add("Builder")
        tries = call("move", direction="nowhere") + call("whisper", target="ghos", text="boo")
        tries += call("get", thing="strongbo") + call("look", target="hatc")
        self.model.answers = [tries, "No."]
        self.assertHidden(self.asked())
        for name in ("Ghost", "hatch", "strongbox"):
            self.assertIsNone(self.script.game.identify(name))
            with self.assertRaises(ToolError):
                self.script.game.named(name, "people")

    def test_an_unseen_voice(self):
        """What somebody unseen says is heard from `someone`, comes unannounced, and is answered."""
        self.hide("view:false()")
        self.ghost.move_to(self.room2)
        self.ghost.move_to(self.room1)
        self.room1.msg_contents(("Ghost rattles.", {"type": "pose"}), from_obj=self.ghost)
        prompt = self.asked("Aria, boo!", self.ghost)
        self.assertIn(UNSEEN, prompt)
        self.assertHidden(prompt)
        lines = self.lines_of(self.ghost)
        self.model.answers = ["Who is there?"]
        self.assertHidden(self.asked("boo", self.ghost, whisper=True))
        self.assertIn("Who is there?", " ".join(lines))

    def test_whom_it_answers(self):
        """Somebody alone with it, as far as they see, is answered without calling it."""
        self.asked("Aria, what a night")
        self.hide("view:false()")
        self.room1.ndb.ai_manners = None
        self.assertIn("what a day", self.asked("what a day"))

    def test_in_the_dark(self):
        """In a dark room there is nobody, nothing and no way; what is said is heard."""
        dark = create_object(DarkRoom, key="Cellar", location=None)
        for each in (self.aria, self.alice, *self.hidden):
            each.location = dark
        self.assertHidden(self.asked())
        dark.locks.add("view:false()")
        prompt = self.asked()
        self.assertHidden(prompt)
        self.assertIn(DARK, prompt)

    def test_messages_at_any_time(self):
        """A prompt made for nobody shows what the body sees."""
        self.hide("view:false()")
        self.assertHidden(str(build_llm_messages(self.script, self.aria)))

    def test_a_room_that_tells(self):
        """What a room sends to whoever looks is seen, and is nobody's line."""
        room = create_object(f"{__name__}.TellingRoom", key="Cellar")
        for body in (self.alice, self.aria):
            body.location = room
        self.script.runtime.queue.clear()
        for ways in ({}, {"from_obj": room}):
            for returned in (None, ""):
                with self.subTest(ways=ways, returned=returned):
                    room.db.ways, room.db.returned = ways, returned
                    seen = self.script.game.asked_by(stable_id(self.alice)).look()
                    self.assertEqual(seen, "Cellar\nCasks line the wall.")
                    self.assertEqual(self.script.runtime.queue, [])
        room.db.ways, room.db.returned = {}, "A cellar."
        self.assertEqual(self.script.game.look(), "A cellar.")
