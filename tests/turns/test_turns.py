"""Turns in a room of several: for whom, how much, when not, and with which model."""

import json
from unittest import mock

from django.test import override_settings
from evennia import create_object

from evennia_ai.errors import BoundError
from evennia_ai.game.identity import stable_id
from evennia_ai.game.people import SAME_LINE_S, is_to_answer
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.llm_interaction.budget import ReplyTrace
from evennia_ai.llm_interaction.prompt import draft_prompt, model_request
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, READ_AHEAD, ModelReply, TurnRequest
from evennia_ai.privacy.requests import enqueue
from evennia_ai.testing import call
from evennia_ai.turns.heard import QUEUE_LIMIT
from evennia_ai.turns.runtime import NOTES_PER_HOUR, Runtime
from evennia_ai.turns.tools.base import MOST_ACTS
from tests.asked import model_down
from tests.base import CHARACTER, PLAYED, AssistantTest
from tests.waiting import pump_until, wait_for

LONG = "The ferry leaves at dawn, whatever the weather may be."


class TurnTest(AssistantTest):
    """Aria in a room with the players Alice and Bob, who see what is shown to them."""

    def setUp(self):
        super().setUp()
        self.char1.location = self.room2
        self.seen = {}
        self.alice, self.bob = map(self.player, ("Alice", "Bob"))
        self.script.audit = mock.Mock()

    def player(self, name):
        person = create_object(PLAYED, key=name, location=self.room1)
        person.permissions.add("Player")
        self.seen[name] = self.lines_of(person)
        return person

    def another_assistant(self):
        boris = create_object(CHARACTER, key="Boris", location=self.room1)
        boris.assistant.stop()
        self.addCleanup(boris.assistant.delete)
        return boris

    def shown(self, name, words):
        return [line for line in self.seen[name] if words in line]

    def spoken(self):
        return [m.content for m in self.script.history.messages() if m.role == "assistant"]

    def asked(self, number=-1):
        """The messages of a request."""
        return self.model.requests[number].messages


class TestForWhom(TurnTest):
    """One player a turn."""

    def test_two_at_once(self):
        """Each gets a turn, whose prompt names whom and what it answers."""
        self.model.answers = ["To Alice.", "To Bob."]
        self.say("Aria, an ale!", self.alice)
        self.say("Aria, a bed!", self.bob)
        self.tick()
        self.assertEqual(self.spoken(), ["To Alice.", "To Bob."])
        for request, who, other in ((0, "Alice", "Bob"), (1, "Bob", "Alice")):
            tail = self.asked(request)[-1]["content"]
            self.assertIn(f"Answer now: {who} [", tail)
            self.assertNotIn(f"Answer now: {other} [", tail)

    def test_two_assistants_decide_once(self):
        """The one who is called answers; the other hears it."""
        boris = self.another_assistant()
        self.say("Hello Boris", self.alice)
        self.tick()
        self.assertEqual(self.model.requests, [])
        self.model.answers = ["Good day."]
        wait_for(boris.assistant.at_tick())
        self.assertEqual([m.content for m in boris.assistant.history.messages()][-1], "Good day.")
        self.say("And how is the river?", self.alice)  # their talk goes on
        self.tick()
        self.assertEqual(len(self.model.requests), 1)
        self.assertFalse(self.script.runtime.heard())

    def test_a_whisper_to_two(self):
        """The same words whispered to one after the other are for each of them."""
        boris = self.another_assistant()
        for body in (self.aria, boris):
            self.alice.at_say("Are you there?", receivers=[body], whisper=True)
        self.tick()
        wait_for(boris.assistant.at_tick())
        self.assertEqual(len(self.model.requests), 2)

    def test_scripted_characters_get_two_replies(self):
        """One nobody plays does not keep her talking; a player's line counts anew."""
        parrot = create_object("evennia.DefaultCharacter", key="Parrot", location=self.room1)
        for number in range(4):
            self.say(f"Aria, squawk {number}!", parrot)
            self.tick()
        self.assertEqual(len(self.model.requests), 2)
        self.say("Aria, hello!", self.alice)
        self.say("Aria, squawk!", parrot)
        self.tick()
        self.assertEqual(len(self.model.requests), 4)


class TestOneDecision(TurnTest):
    """What a room decides for all its assistants, and remembers."""

    def heard(self, speaker, text, channel="say"):
        return Message(
            "user", text, speaker=Speaker(speaker.key, stable_id(speaker)), channel=channel
        )

    def test_a_line_counts_once(self):
        """Two assistants whom a scripted character calls both answer; said again, neither."""
        boris = self.another_assistant()
        parrot = create_object("evennia.DefaultCharacter", key="Parrot", location=self.room1)
        line = self.heard(parrot, "Hello everyone!")
        for at, answer in ((100.0, True), (100.0 + SAME_LINE_S, False)):
            answers = [is_to_answer(body, line, at) for body in (self.aria, boris)]
            self.assertEqual(answers, [answer, answer])

    def test_the_same_words_later(self):
        """They are decided on anew, for whoever is in the room by then."""
        line = self.heard(self.alice, "Hello everyone!")
        self.assertTrue(is_to_answer(self.aria, line, 100.0))
        boris = self.another_assistant()
        self.assertTrue(is_to_answer(boris, line, 200.0))

    def test_pages_are_no_talk_of_the_room(self):
        """A page is answered wherever she is, and the room remembers nothing of it."""
        self.assertTrue(is_to_answer(self.aria, self.heard(self.alice, "hello", "page"), 100.0))
        self.assertIsNone(self.room1.ndb.ai_manners)

    def test_the_name_before_a_pose(self):
        """The name of whoever poses calls nobody who bears a part of it."""
        swift = self.player("Aria Swift")
        self.assertFalse(
            is_to_answer(self.aria, self.heard(swift, "Aria Swift sits.", "pose"), 1.0)
        )
        posed = self.heard(swift, "Aria Swift nods to Aria.", "pose")
        self.assertTrue(is_to_answer(self.aria, posed, 2.0))

    def test_a_name_like_the_speaker_s(self):
        """Words that begin as the speaker's own name does are heard whole."""
        said = self.heard(self.player("Ari"), "Aria, an ale!")
        self.assertTrue(is_to_answer(self.aria, said, 1.0))


class TestTooLate(TurnTest):
    """What is remembered, not answered."""

    def later(self, seconds):
        now = self.script.now() + seconds
        self.script.now = lambda: now

    def test_stale(self):
        """A line that waited too long."""
        self.say("Aria, hello!", self.alice)
        self.later(91)
        self.tick()
        self.assertEqual((self.model.requests, len(self.contents())), ([], 1))
        self.assertEqual(self.script.runtime.pending(), [])

    def test_own_work_does_not_count(self):
        """Time in which something held the turn lock is no delay of the speaker's."""
        self.say("Aria, hello!", self.alice)
        self.script.runtime.lock._worked_s += 60
        self.later(91)
        self.tick()
        self.assertEqual(len(self.model.requests), 1)

    def test_the_speaker_left(self):
        """Before the turn, and while the model thinks: nothing is said to nobody."""
        self.say("Aria, hello!", self.alice)
        self.alice.location = self.room2
        self.tick()
        self.assertEqual(self.model.requests, [])
        self.model.held, self.model.answers = True, ["Hello, Bob."]
        self.say("Aria, hello!", self.bob)
        running = self.script.at_tick()
        pump_until(lambda: self.model.requests)
        self.bob.location = self.room2
        self.model.release()
        wait_for(running)
        self.assertEqual(self.spoken(), [])
        self.assertEqual(self.shown("Bob", "Hello, Bob."), [])


class TestGoneOn(TurnTest):
    """An answer that comes late, and what who asked did meanwhile."""

    def answer_late(self, meanwhile, *answers, wait_s=40):
        """What was said in the end: Alice asks, `meanwhile` is called, then the model answers."""
        self.model.held, self.model.answers = True, list(answers)
        self.say("Aria, where is the mill?", self.alice)
        self.script.runtime.last_turn_at = 0.0
        running = self.script.at_tick()
        pump_until(lambda: self.model.requests)
        later = self.script.now() + wait_s
        self.script.now = lambda: later
        meanwhile()
        self.model.release()
        wait_for(running)
        for _ in range(2):
            later += 2
            self.tick()
        return [line for line in self.seen["Bob"] if "Aria says" in str(line)]

    def test_nobody_is_left_to_hear_it(self):
        """Who asked has left, is gone from the game or forgotten, or Aria was moved."""
        self.another_assistant()
        for name, act in {
            "left": lambda: self.alice.move_to(self.room2),
            "gone from the game": lambda: setattr(self.alice, "location", None),
            "moved": lambda: self.aria.move_to(self.room2),
            "forgotten": lambda: enqueue(
                [stable_id(self.alice)], utc_iso(self.script.now()), "", [self.script]
            ),
            "asked another": lambda: self.say("Boris, where is the mill?", self.alice),
        }.items():
            with self.subTest(name):
                self.alice.location = self.aria.location = self.room1
                self.assertEqual(self.answer_late(act, "The mill burnt down."), [])
                self.assertEqual(self.spoken(), [])
                self.assertFalse(self.script.runtime.pending())

    def test_asked_anew(self):
        """One answer to both, and no further delay for whoever goes on asking."""
        lines = self.answer_late(
            lambda: self.say("Aria, and where is the smithy?", self.alice), "The mill.", "Both."
        )
        self.assertEqual([self.spoken(), len(lines)], [["Both."], 1])
        asked = str(self.asked()[-1])
        self.assertIn("where is the mill", asked)
        self.assertIn("where is the smithy", asked)

    def test_goes_on_asking(self):
        """Whoever asks again and again is answered all the same."""

        def ask():
            self.say("Aria, where is the smithy?", self.alice)
            self.script.runtime.overtaken.add((PUBLIC, stable_id(self.alice)))

        self.answer_late(ask, "By the river.", "Behind the inn.")
        self.assertEqual(self.spoken(), ["By the river.", "Behind the inn."])

    def test_in_time(self):
        """Two quick questions get an answer each."""
        self.answer_late(
            lambda: self.say("Aria, and the smithy?", self.alice), "There.", "Here.", wait_s=2
        )
        self.assertEqual(self.spoken(), ["There.", "Here."])

    def test_by_name(self):
        """Where others stand around, a late answer names whom it is for, once."""
        for answer in ("By the river.", "Alice, by the river."):
            lines = self.answer_late(lambda: None, answer)
            self.assertEqual(str(lines[-1]).count("Alice"), 1)


class TestBounds(TurnTest):
    """How much one line can make her do."""

    def use(self, *calls, text="Aria, go on"):
        self.model.answers = [*calls, ""]
        self.say(text, self.alice)
        self.tick()
        return [m.content for m in self.script.history.messages() if m.role == "tool"]

    def test_lines_of_a_turn(self):
        """Two, however many the model makes of one line."""
        many = [call("say", text=f"line {n}")[0] for n in range(8)]
        results = self.use(many)
        self.assertEqual(sum("spoken 2 times" in result for result in results), 6)
        self.assertNotIn("error", str(results))  # a bound is no failure
        self.assertEqual(len(self.shown("Alice", "Aria says")), 2)

    def test_words_beside_calls_are_stored_once(self):
        """Calls for several audiences are stored apart, with what stands beside the first."""
        whispers = [call("whisper", target=who, text="Hush.")[0] for who in ("Alice", "Bob")]
        reply = ModelReply(
            content="Let me see.", tool_calls=(*whispers, *call("look")), model="scripted/model"
        )
        self.assertEqual(len(self.use(reply)), 3)
        self.assertEqual(self.spoken(), ["Let me see.", ""])

    def test_words_beside_the_end_of_a_turn(self):
        """What stands beside a `noop` is said, unless the turn has spoken."""
        ending = ModelReply(
            content="Good evening.", tool_calls=tuple(call("noop")), model="scripted/model"
        )
        self.use(ending)
        self.assertEqual(len(self.shown("Alice", "Good evening.")), 1)
        self.use(call("say", text="Welcome back."), ending)
        self.assertEqual(len(self.shown("Alice", "Welcome back.")), 1)
        self.assertEqual(len(self.shown("Alice", "Good evening.")), 1)

    def test_repeated_lines(self):
        """A long line said again is not said, nor stored; a short one may be."""
        for answer in (LONG, LONG, "Aye.", "Aye."):
            self.model.answers = [answer]
            self.say("Aria, go on", self.alice)
            self.tick()
        self.assertEqual(self.spoken(), [LONG, "Aye.", "Aye."])
        self.assertEqual(len(self.shown("Alice", "ferry")), 1)
        self.assertIn("just said", self.use(call("say", text=LONG))[-1])

    def test_notes_of_an_hour(self):
        """What one player says causes so many notes an hour; another's cause their own."""
        notes = [
            call("add_journal_entry", content=f"Alice likes the number {n} best of all.")[0]
            for n in range(NOTES_PER_HOUR)
        ]
        self.model.answers = [notes[:12], notes[12:], call("noop")]
        self.say("Aria, listen, I like all numbers", self.alice)
        self.tick()
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR)
        herring = call("add_journal_entry", content="Alice is fond of herring, too.")
        refused = self.use(herring, text="Aria, I am fond of herring")
        self.assertIn("enough of what this person said", refused[-1])
        self.assertNotIn("error", refused[-1])
        again = self.use(herring, text="Aria, I am fond of herring")
        self.assertNotIn(BoundError.SAYS, again[-1])  # acknowledged as any other
        self.assertIn("you will remember this", again[-1])
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR)
        self.model.answers = [call("add_journal_entry", content="Bob owes a crown."), call("noop")]
        self.say("Aria, I owe you a crown", self.bob)
        self.tick()
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR + 1)
        runtime = Runtime()
        self.assertTrue(all(runtime.may_note("o1", n) for n in range(NOTES_PER_HOUR)))
        self.assertFalse(runtime.may_note("o1", 3599))
        self.assertTrue(runtime.may_note("o1", 3601))
        told = [
            runtime.was_told_enough(who, at) for who, at in (("o1", 0), ("o1", 3599), ("o2", 0))
        ]
        self.assertEqual([*told, runtime.was_told_enough("o1", 3601)], [False, True, False, False])

    def test_small_talk_is_not_kept(self):
        """Nor is what another assistant says; the tool says so."""
        for text in ("Hello Aria!", "Aria, how are you?"):
            greeted = call("add_journal_entry", content="Alice said hello to Aria.")
            self.assertIn("nothing was written", self.use(greeted, text=text)[-1])
        self.assertEqual(self.aria.journal.count(), 0)

    def test_acts_of_a_turn(self):
        """So many things others notice, besides words."""
        self.script.db.post = False
        way_back = [
            call("move", direction="out" if n % 2 == 0 else "back")[0] for n in range(MOST_ACTS + 2)
        ]
        create_object(
            "evennia.DefaultExit", key="back", location=self.room2, destination=self.room1
        )
        self.script.db.obeys = "all()"
        results = self.use(way_back, text="Aria, go out and back again")
        self.assertEqual(sum("in this turn" in result for result in results), 2)

    def test_a_flood_displaces_itself(self):
        """A full queue drops the newest line of whoever has most in it."""
        runtime = Runtime()
        flood, one = Speaker("Mob", "o5"), Speaker("Ann", "o6")
        for number in range(QUEUE_LIMIT):
            runtime.hear(Message("user", f"{number}", id=f"m{number}", speaker=flood), 0.0)
        runtime.hear(Message("user", "mine", id="mine", speaker=one), 0.0)
        self.assertEqual(runtime.queue[-1].content, "mine")
        self.assertEqual((len(runtime.queue), runtime.dropped), (QUEUE_LIMIT, 1))
        self.assertNotIn(f"{QUEUE_LIMIT - 1}", [event.content for event in runtime.queue])


class TestModelDown(TurnTest):
    """Nobody waits in the dark."""

    def alerts(self):
        return [c for c in self.script.alert.call_args_list if "no model answers" in str(c)]

    def setUp(self):
        super().setUp()
        self.script.alert = mock.Mock()
        self.script.tell_staff = mock.Mock()

    def test_the_offline_model_answers(self):
        """Staff are alerted once, the sign is shown once, every line is answered; then it is up."""
        for number in range(3):
            self.model.answers = [model_down(), "offline words"]
            self.say(f"Aria, are you there? {number}", self.alice)
            self.tick()
        self.assertEqual(self.spoken(), ["offline words"] * 3)
        self.assertEqual([r.model for r in self.model.requests[1::2]], ["offline/extractive"] * 3)
        self.assertEqual(len(self.alerts()), 1)
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 1)
        self.assertEqual(self.script.runtime.unanswered, {})
        self.model.answers = ["I am back."]
        self.say("Aria, and now?", self.alice)
        self.tick()
        self.script.tell_staff.assert_called_once_with("Aria: the model answers again")
        self.assertEqual(self.script.mind.down, set())

    def test_the_offline_model_answers_behind_a_search(self):
        """A model that goes down after it only looked something up leaves nobody without a word."""
        self.model.answers = [
            call("search_memory", query="ferry"),
            model_down(),
            "offline words",
        ]
        self.say("Aria, when does the ferry leave?", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "offline words")

    def test_a_model_that_only_writes_down(self):
        """After three replies of notes alone the offline model says something."""
        notes = [call("add_journal_entry", content=f"Alice said {word}.") for word in "abc"]
        self.model.answers = [*notes, "offline words"]
        self.say("Aria, are you there?", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "offline words")
        self.assertEqual(self.model.requests[-1].model, "offline/extractive")
        self.model.answers = [*notes[:2], "My words."]
        self.say("Aria, are you there still?", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "My words.")
        self.assertEqual(self.model.requests[-1].model, "scripted/model")

    def test_a_reply_of_which_nothing_is_sound(self):
        """It is asked for once more, cooler and with less; then the offline model answers."""
        frame = 'Bob [o9.x] says: "A key, please."'
        for answers, said in (
            ([frame, "Here I am."], "Here I am."),
            ([frame, f"noop {frame}", "offline words"], "offline words"),
            ([call("say", text=frame), "So I said."], "So I said."),
        ):
            self.model.answers = list(answers)
            self.model.requests.clear()
            self.say("Aria, are you there?", self.alice)
            self.tick()
            self.assertNotIn("A key", str(self.spoken()))
            self.assertEqual(self.spoken()[-1], said)
            self.assertEqual(len(self.model.requests), len(answers))
        self.assertEqual(self.script.mind.down, set())

    def test_asked_once_more(self):
        """The second request has the rules and the newest lines, and another temperature."""
        self.fill(12)
        self.model.answers = ["noop aloud", "Here I am."]
        self.say("Aria, are you there?", self.alice)
        self.tick()
        first, again = self.model.requests[-2:]
        self.assertEqual(again.messages[0], first.messages[0])
        self.assertEqual(again.messages[-1], first.messages[-1])
        self.assertLess(len(again.messages), len(first.messages) / 2)
        self.assertNotEqual(again.extra["temperature"], first.extra.get("temperature"))

    def test_the_offline_model_ends_the_turn(self):
        """What it looks up or notes it answers itself: nobody waits for a dead model twice."""
        self.model.answers = [model_down(), call("add_journal_entry", content="x"), "offline words"]
        self.say("Aria, remember my boat!", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "offline words")
        asked = [request.model for request in self.model.requests]
        self.assertEqual(asked, ["scripted/model", OFFLINE_MODEL, OFFLINE_MODEL])

    def test_an_empty_reply(self):
        """A small model that writes nothing is asked once more; a large one chose to be silent."""
        self.model.answers = ["", "Here I am."]
        self.model.carries = False
        self.configure(max_context_tokens=8000)
        self.say("Aria, are you there?", self.alice)
        self.tick()
        self.assertEqual(self.spoken(), ["Here I am."])
        recited = f"I am {self.aria.key} and speak to {self.alice.key}."
        self.model.answers = [recited, "As well as ever."]
        self.say("Aria, good evening!", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "As well as ever.")
        self.model.answers = ['You told me: "I don\'t eat fish."', "Then I have beans."]
        self.say("Aria, I don't eat fish.", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "Then I have beans.")
        for nothing in ("TOOL noop.", "TOOL trace_memories.", 'TOOL dance: a "jig"'):
            self.model.requests.clear()
            self.model.answers = [nothing, nothing, "offline words"]
            self.say(f"Aria, did you hear of {nothing[5:]}", self.alice)
            self.tick()
            self.assertEqual(self.spoken()[-1], "offline words")
            self.assertEqual(self.model.requests[-1].model, OFFLINE_MODEL)
        self.model.answers = ["TOOL say: Here I am again.", "That is all."]
        self.say("Aria, where were you?", self.alice)
        self.tick()
        self.assertEqual(self.spoken()[-1], "That is all.")
        spoken = self.spoken()
        self.model.answers = ["", "Too late."]
        self.model.carries = None
        self.say("Aria, are you still there?", self.alice)
        self.tick()
        self.assertEqual(self.spoken(), spoken)

    def test_a_model_of_few_parameters_only_speaks(self):
        """It gets no tools when it speaks; the offline model that answers instead has them."""
        self.configure(llm_model="scripted/tiny-0.5b")
        noted = call("add_journal_entry", content="Alice said hello.")
        self.model.answers = ["", noted, "offline words"]
        self.say("Aria, hello.", self.alice)
        self.tick()
        self.assertEqual(self.aria.journal.recent(1), ())
        asked = [(request.model, bool(request.tools)) for request in self.model.requests]
        self.assertEqual(asked[0], ("scripted/tiny-0.5b", False))
        self.assertEqual(asked[-1], (OFFLINE_MODEL, True))
        prompt = draft_prompt(self.script, self.aria, TurnRequest())
        self.assertEqual((bool(prompt.tools), prompt.budget.regions["Tools"]), (True, 0))
        ahead = model_request(self.script, self.aria, prompt, READ_AHEAD)
        self.assertEqual(ahead.tools, ())

    def test_what_a_model_of_few_parameters_must_not_miss(self):
        """Where what was told surely answers, a reply without a word of it is not said."""
        self.configure(llm_model="scripted/tiny-0.5b")
        for question, answer, is_said in (
            ("where do I come from?", "The Gilded Lantern is in Oregon.", False),
            ("where do I come from?", "From Oxmoor, you said.", True),
            ("wo ist die Mühle?", "Am Bach.", True),
        ):
            self.model.answers = ["Aye.", answer, "offline words"]
            self.say("Aria, I come from Oxmoor.", self.alice)
            self.tick()
            self.say(f"Aria, {question}", self.alice)
            self.tick()
            self.assertEqual(self.spoken()[-1], answer if is_said else "offline words")

    def test_what_is_no_line_of_a_small_model(self):
        """A bracket left of a call, and what it heard of the room."""
        self.configure(llm_model="scripted/tiny-0.5b")
        for reply in ("{", '["', "A bell tolls over the square."):
            self.script.notice("A bell tolls over the square.")
            self.model.answers = [reply, reply, "offline words"]
            self.say("Aria, good evening!", self.alice)
            self.tick()
            self.assertEqual(self.spoken()[-1], "offline words")
            self.model.answers = ["Aye."]
            self.say("Aria, do you hear me?", self.alice)
            self.tick()

    def test_what_a_small_model_is_given_again(self):
        """Who speaks to whom, and what of the talk far above is asked for."""
        self.configure(max_context_tokens=8000)
        prompts = {}
        for carries in (False, None):
            self.model.carries = carries
            self.say("Aria, my boat is called Heron.", self.alice)
            self.tick()
            for thing in ("rain", "barley", "the fair", "two geese"):
                self.model.answers = [f"Yes, {thing} there was."]
                self.say(f"Aria, did you see {thing}?", self.alice)
                self.tick()
            self.say("Aria, what is my boat called?", self.alice)
            self.tick()
            sent = self.model.requests[-1].messages
            prompts[carries] = "\n".join(message["content"] or "" for message in sent[-3:])
            described = [n for n, m in enumerate(sent) if "Description" in (m["content"] or "")]
            self.assertEqual(described, [0 if carries is False else len(sent) - 1])
        speaking = f"You are {self.aria.key} and speak to {self.alice.key}."
        self.model.carries = False
        self.say("Aria, wie heißt mein Boot?", self.alice)
        self.tick()
        last = self.model.requests[-1].messages[-1]["content"]
        self.assertTrue(last.endswith("Answer in German."), last)
        for prompt, is_given in ((prompts[False], True), (prompts[None], False)):
            self.assertEqual(speaking in prompt, is_given)
            self.assertEqual("boat is called Heron" in prompt, is_given)

    def test_not_asked_once_more_after_a_long_wait(self):
        """Where the first reply took long, the offline model answers at once."""
        slow = ModelReply(content="noop aloud", model="scripted/model", seconds=30.0)
        self.model.answers = [slow]
        self.say("Aria, are you there?", self.alice)
        self.tick()
        asked = [request.model for request in self.model.requests]
        self.assertEqual(asked, ["scripted/model", OFFLINE_MODEL])

    def test_what_guards_did(self):
        """Only the sound beginning is stored; the audit log and the trace name the guards."""
        self.model.answers = ["The ferry is late. noop"]
        self.say("Aria, where is the ferry?", self.alice)
        self.tick()
        reply = self.script.history.messages()[-1]
        self.assertEqual(reply.content, "The ferry is late.")
        self.assertEqual(ReplyTrace.of(reply).cuts, ("writes calls as text",))
        self.script.audit.assert_any_call(
            "guard", model="scripted/model", cut=("writes calls as text",), lost=False
        )

    def test_without_the_offline_model(self):
        """Each who waits sees the sign; the question is answered later, if they are still here."""
        self.configure(llm_offline_fallback=False)
        self.model.answers = [model_down(), model_down()]
        self.say("Aria, one?", self.alice)
        self.tick()
        self.say("Aria, two?", self.bob)
        self.tick()
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 2)
        self.assertEqual(len(self.alerts()), 1)
        self.bob.location = self.room2
        later = self.script.now() + 6
        self.script.now = lambda: later
        for _ in range(2):
            self.model.default = "Late, but here."
            self.tick()
        self.assertEqual(self.spoken(), ["Late, but here."])

    def test_a_sign_of_thinking(self):
        """Shown once to those who wait, and heard by no assistant."""
        self.configure(thinking_after_s=0.05)
        boris = self.another_assistant()
        self.model.held, self.model.answers = True, ["Here I am."]
        self.say("Aria, hello!", self.alice)
        running = self.script.at_tick()
        pump_until(lambda: self.shown("Alice", "thinks for a moment"))
        self.assertTrue(self.shown("Bob", "thinks for a moment"))
        self.model.release()
        wait_for(running)
        self.assertEqual(len(self.shown("Alice", "thinks for a moment")), 1)
        heard = [event.content for event in boris.assistant.runtime.queue]
        self.assertFalse([text for text in heard if "thinks" in text], heard)

    def test_a_sign_in_private(self):
        """Who whispers sees it alone."""
        self.script.game.show("thinks.", f"private:{stable_id(self.alice)}", "whisper", None)
        self.assertEqual(len(self.shown("Alice", "Aria thinks.")), 1)
        self.assertEqual(self.shown("Bob", "thinks"), [])


class TestCutShort(TurnTest):
    """A model that dies behind a line or an act of its turn."""

    def test_nothing_is_said_twice(self):
        """What was said stays the answer, with and without the offline model."""
        for fallback in (True, False):
            self.configure(llm_offline_fallback=fallback)
            said = call("say", text=f"The cellar is {fallback}.")
            self.model.answers = [[*said, *call("look")], model_down()]
            self.say("Aria, may I see the cellar?", self.alice)
            self.tick()
            self.assertEqual(len(self.shown("Alice", f"cellar is {fallback}")), 1)
            self.assertEqual(self.script.runtime.unanswered, {})
        self.assertEqual(len(self.model.requests), 4)

    def test_asked_again_while_it_is_down(self):
        """What one asked before and got no answer to is answered with what they say next."""
        self.configure(llm_offline_fallback=False)
        self.model.answers = [model_down(), "Both."]
        self.say("Aria, where is the key?", self.alice)
        self.tick()
        self.say("Aria, hello?", self.alice)
        self.tick()
        tail = self.asked()[-1]["content"]
        self.assertIn("where is the key", tail)
        self.assertIn("hello?", tail)
        self.assertEqual(self.script.runtime.unanswered, {})


class TestTyping(TurnTest):
    """The web client's sign that somebody types."""

    def test_while_it_thinks(self):
        """It is on while she thinks, also where the turn breaks off, for those who may know."""
        sent = {"Alice": [], "Bob": []}
        for person in (self.alice, self.bob):
            session = mock.Mock(protocol_flags={})
            session.msg = lambda is_typing, name=person.key: sent[name].append(is_typing)
            vars(person)["sessions"] = mock.Mock(all=lambda session=session: [session])
        on, off = ({"name": "Aria", "state": state} for state in (True, False))
        both = [{"type": "typing", "payload": state} for state in (on, off)]
        with override_settings(WEBCLIENT_TYPING_ENABLED=True):
            self.model.answers = ["Well met.", model_down(), "Hush."]
            self.say("Aria, hello!", self.alice)
            self.tick()
            self.assertEqual(sent, {"Alice": both, "Bob": both})
            self.say("Aria, are you there?", self.alice)
            self.tick()
            self.assertEqual(sent["Bob"], both * 2)
            self.alice.at_say("Psst!", receivers=[self.aria], whisper=True)
            self.tick()
        self.assertEqual((len(sent["Alice"]), len(sent["Bob"])), (6, 4))
        with override_settings(WEBCLIENT_TYPING_ENABLED=False):
            self.say("Aria, good day!", self.bob)
            self.tick()
        self.assertEqual(len(sent["Bob"]), 4)


class TestConcluded(TurnTest):
    """Turns that end without another call of the model."""

    def test_what_only_speaks_or_acts(self):
        """What was said, done or noted leaves nothing to tell the model; a look does."""
        for calls, asked in (
            (call("say", text="Well met, Alice."), 1),
            (call("emote", text="waves at Alice"), 1),
            (
                [
                    *call("say", text="I shall."),
                    *call("add_journal_entry", content="She likes tea."),
                ],
                1,
            ),
            (call("add_journal_entry", content="Alice likes jazz a lot."), 2),
            ([*call("say", text="Let me see, Alice."), *call("look")], 2),
            ([*call("say", text="Here, take it."), *call("give", thing="unicorn", to="Alice")], 2),
        ):
            with self.subTest(calls):
                self.model.requests.clear()
                self.model.answers = [calls, "I am done, thank you all."]
                self.say("Aria, I like jazz a lot and tea, do you?", self.alice)
                self.tick()
                self.assertEqual(len(self.model.requests), asked)

    def test_narration_is_a_pose(self):
        """What is done is seen, what is said is heard, by one call."""
        self.model.answers = ["*smiles at Alice* Well met."]
        self.say("Aria, hello!", self.alice)
        self.tick()
        self.assertTrue(self.shown("Bob", "Aria smiles at Alice"), self.seen)
        self.assertTrue(self.shown("Bob", 'Aria says, "Well met."'))
        self.assertEqual(len(self.model.requests), 1)

    def test_narration_in_private(self):
        """A pose would tell others of the whisper: only the words are whispered."""
        self.model.answers = ["*smiles at Alice* Well met."]
        self.alice.at_say("Hello!", receivers=[self.aria], whisper=True)
        self.tick()
        self.assertTrue(self.shown("Alice", "Well met."))
        self.assertEqual(self.shown("Bob", "smiles"), [])


class TestPrompt(TurnTest):
    """What a turn's requests look like."""

    def test_only_tools_that_can_serve(self):
        """Walking and diagnostics are offered to whom she obeys, hands only where things are."""

        def offered(speaker):
            self.model.answers = ["Well met."]
            self.say("Aria, hello!", speaker)
            self.tick()
            return {tool["function"]["name"] for tool in self.model.requests[-1].tools}

        staff = {"move", "context_snapshot", "list_contributors", "trace_summaries"}
        hands = {"get", "give"}
        for thing in self.room1.contents:
            if not thing.has_account and thing.key.startswith("Obj"):
                thing.location = self.room2
        self.assertFalse(offered(self.alice) & (staff | hands | {"request_compaction"}))
        create_object(key="lamp", location=self.room1)
        self.assertEqual(offered(self.bob) & (staff | hands), hands)
        self.alice.permissions.add("Builder")
        self.assertLessEqual(staff, offered(self.alice))

    def test_results_come_last(self):
        """The present moment stands before what the turn did; found text is stored in brief."""
        told = f"{LONG} Ask Jorun at the quay for the price of a crossing."
        self.script.history.append([Message("user", told, speaker=Speaker("Bob", "o9.b"))] * 3)
        self.model.answers = [call("search_memory", query="ferry dawn"), "At dawn."]
        self.say("Aria, when does the ferry leave?", self.alice)
        self.tick()
        roles = [message["role"] for message in self.asked()]
        self.assertEqual(roles[-3:], ["user", "assistant", "tool"])
        self.assertIn("[Present moment]", self.asked()[-3]["content"])
        whole = json.loads(self.asked()[-1]["content"])["results"]
        (stored,) = [m for m in self.script.history.messages() if m.role == "tool"]
        self.assertEqual(
            [hit["id"] for hit in json.loads(stored.content)["results"]],
            [hit["id"] for hit in whole[:3]],
        )
        self.assertLess(stored.tokens, 100)
