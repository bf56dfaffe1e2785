"""Turns in a room of several: for whom, how much, when not, and with which model."""

import json
from dataclasses import replace
from unittest import mock

from django.test import override_settings
from evennia import create_object

from evennia_ai.errors import BoundError, ModelError, NotObeyedError
from evennia_ai.game.seeing import SAME_LINE_S, is_to_answer, stable_id
from evennia_ai.game.world import GameHandler
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import NOTICED, Message, Note, Speaker, utc_iso
from evennia_ai.llm_interaction.budget import ReplyTrace
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.conversation import NOW, read_prompt
from evennia_ai.llm_interaction.reply import ECHO, SPEAKS_FOR_OTHERS
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelReply
from evennia_ai.privacy.requests import enqueue
from evennia_ai.staff.explanation import explanation
from evennia_ai.testing import call
from evennia_ai.turns.runtime import QUEUE_LIMIT, Runtime
from evennia_ai.turns.tools.base import MOST_ACTS, NOTES_PER_HOUR
from tests.asked import heard_in, model_down, offline
from tests.base import CHARACTER, PLAYED, AssistantTest
from tests.waiting import pump_until, wait_for

LONG = "The ferry leaves at dawn, whatever the weather may be."
OFFLINE = "offline words"


class TurnTest(AssistantTest):
    """Aria in a room with Alice, who speaks, and Bob, who see what is shown to them."""

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

    def say(self, text, speaker=None):
        super().say(text, speaker or self.alice)

    def parrot(self):
        """A character whom nobody plays."""
        return create_object("evennia.DefaultCharacter", key="Parrot", location=self.room1)

    def another_assistant(self):
        boris = create_object(CHARACTER, key="Boris", location=self.room1)
        boris.assistant.stop()
        self.addCleanup(boris.assistant.delete)
        return boris

    def later(self, seconds):
        now = self.script.now() + seconds
        self.script.now = lambda: now

    def shown(self, name, words):
        return [line for line in self.seen[name] if words in line]

    def spoken(self):
        return [m.content for m in self.script.history.messages() if m.role == "assistant"]

    def asked(self, number=-1):
        """The messages of a request."""
        return self.model.requests[number].messages

    def models(self):
        """Of whom an answer was asked, since the list was cleared."""
        return [request.model for request in self.model.requests]


class TestForWhom(TurnTest):
    """One player a turn."""

    def test_two_at_once(self):
        """Each gets a turn, whose prompt names whom and what it answers."""
        self.say("Aria, an ale!")
        self.talk("Aria, a bed!", "To Alice.", "To Bob.", speaker=self.bob)
        self.assertEqual(self.spoken(), ["To Alice.", "To Bob."])
        for request, who, other in ((0, "Alice", "Bob"), (1, "Bob", "Alice")):
            answered = heard_in(self.asked(request))[-1]
            self.assertEqual(answered.who, who)
            self.assertIn(f"{other}: Aria, a", str(self.asked(1)))

    def test_a_page_before_others_speak(self):
        """The page is the last line of its prompt, also behind what was said aloud since."""
        self.aria.hear_page(self.account, "What is your secret?", self.char1)
        for text in ("Aria, an ale!", "I walk home now."):
            self.say(text)
        self.tick()
        lines = heard_in(self.asked(0))
        self.assertEqual([line.text for line in lines[-1:]], ["What is your secret?"])
        self.assertIn("I walk home now.", [line.text for line in lines])

    def test_a_whisper_to_two(self):
        """The same words whispered to one after the other are for each of them."""
        boris = self.another_assistant()
        for body in (self.aria, boris):
            self.alice.at_say("Are you there?", receivers=[body], whisper=True)
        self.tick()
        wait_for(boris.assistant.at_tick())
        self.assertEqual(len(self.model.requests), 2)


class TestKeptNotes(TurnTest):
    """A prompt begins with the one before it, as a model's server has read that already."""

    def setUp(self):
        super().setUp()
        self.hour("noon")

    def hour(self, words):
        """Let it be this time."""
        self.enterContext(mock.patch.object(GameHandler, "time", lambda self, now: words))

    def notes(self, number=-1):
        """The notes of a request, in order."""
        turns = read_prompt(self.asked(number)).turns
        return [str(line) for _, line in turns if isinstance(line, Note) and line.label != NOTICED]

    def assert_goes_on(self):
        """The newest prompt begins with the whole of the one before."""
        before, after = (tuple(self.asked(number)) for number in (-2, -1))
        self.assertEqual(after[: len(before)], before)

    def test_a_talk(self):
        """What holds is told once; what changes is told before the line at which it did."""
        here = "Char2, Alice, Bob" if self.char2.location == self.room1 else "Alice, Bob"
        for number in range(4):
            speaker = (self.alice, self.bob)[number % 2]
            self.talk(f"Aria, this is number {number}.", f"So it is {number}.", speaker=speaker)
            if number:
                self.assert_goes_on()
        told = self.notes()
        self.assertEqual(told, [str(Note(NOW, "noon")), told[1]])
        for name in here.split(", "):
            self.assertIn(name, told[1])
        self.hour("one o'clock")
        self.talk("Aria, is it late?", "Not very.", speaker=self.alice)
        self.assert_goes_on()
        self.assertEqual(self.notes(), [*told, str(Note(NOW, "one o'clock"))])
        self.player("Cleo")
        self.talk("Aria, who came?", "Cleo did.", speaker=self.alice)
        self.assertIn("Cleo", self.notes()[-1])
        self.talk("Aria, is that so?", "It is.", speaker=self.bob)
        self.assert_goes_on()

    def test_somebody_whom_not_all_see(self):
        """Who is hidden from somebody stands in no prompt of theirs, also when they are gone."""
        ghost = self.player("Ghost")
        ghost.locks.add(f"view:id({self.aria.id}) or id({self.alice.id})")
        self.talk("Aria, who is here?", "The three of us.", speaker=self.alice)
        self.assertIn("Ghost", self.notes()[-1])
        self.talk("Aria, and now?", "You two.", speaker=self.bob)
        self.assertNotIn("Ghost", str(self.notes()))
        ghost.location = self.room2
        self.talk("Aria, and now?", "Still you two.", speaker=self.bob)
        self.assertNotIn("Ghost", str(self.notes()))

    def test_somebody_whom_a_newcomer_could_not_see(self):
        """Who hides from anybody is kept in no prompt, whoever comes later."""
        self.bob.location = self.room2
        ghost = self.player("Ghost")
        ghost.locks.add(f"view:id({self.aria.id}) or id({self.alice.id})")
        self.talk("Aria, who is here?", "The two of you.", speaker=self.alice)
        self.assertIn("Ghost", self.notes()[-1])
        ghost.location, self.bob.location = self.room2, self.room1
        self.talk("Aria, who was here?", "Alice was.", speaker=self.bob)
        self.assertNotIn("Ghost", str(self.notes()))

    def test_another_language(self):
        """What was told to a German line holds no longer for an English one, and is said once."""
        for line, told in (
            ("Aria, wie heißt mein Boot und wo ist es?", "German"),
            ("Aria, and where is the mill of my brother?", "English"),
            ("Aria, and what is the name of the river?", ""),
            ("Aria, wie heißt mein Boot und wo ist es?", "German"),
        ):
            self.talk(line, "Ja.", speaker=self.alice)
            newest = str(self.asked()[-1]["content"])
            self.assertEqual("(Answer in:" in newest, bool(told), newest)
            self.assertIn(told, newest)

    def test_forgotten(self):
        """Nothing is kept of somebody who asks to be forgotten."""
        self.talk("Aria, who is here?", "Some.", speaker=self.alice)
        self.assertTrue(self.script.prompts.shown_notes)
        self.script.runtime.forget({stable_id(self.bob)}, "~")
        self.assertEqual(self.script.prompts.shown_notes, {})

    def test_out_of_sight(self):
        """What stood before lines that the prompt leaves out is told anew."""
        self.configure(max_context_tokens=4_096)
        for number in range(30):
            words = f"number {number} " + "of many words " * 20
            self.talk(f"Aria, {words}", f"I heard {words}", speaker=self.alice)
            places = range(-1, -len(self.model.requests) - 1, -1)
            newest = next(n for n in places if self.model.requests[n].purpose == CONTEXT_AWAKE)
            self.assertIn(str(Note(NOW, "noon")), self.notes(newest))
        self.assertTrue(self.script.prompts.left_out or self.script.history.summaries())


class TestSaidOnce(TurnTest):
    """A sentence that a model has fallen into is heard each time, and shown to it once."""

    def test_a_tail(self):
        """What stands in each reply stays in the first one alone of what it reads of itself."""
        tail = "What can I do for you, friend?"
        for number in range(4):
            self.talk(f"Aria, here is line {number}.", f"Line {number}, Alice. {tail}")
        self.assertEqual(len(self.shown("Alice", tail)), 4)
        self.assertEqual([tail in line for line in self.spoken()], [True] * 4)
        self.talk("Aria, are you well?", "Quite.")
        replies = [line for role, line in read_prompt(self.asked()).turns if role == "assistant"]
        self.assertEqual(sum(tail in str(line) for line in replies), 1)
        self.assertIn("Line 3, Alice.", replies)

    def test_a_refrain(self):
        """A reply that is all of it stays whole, and so do short sentences."""
        for answer in ("The boats come home at dawn.", "Aye, friend. The boats come home at dawn."):
            self.talk("Aria, sing!", answer)
            self.later(5)
        self.talk("Aria, again!", "The boats come home at dawn.", speaker=self.bob)
        self.talk("Aria, are you well?", "Quite.")
        replies = [line for role, line in read_prompt(self.asked()).turns if role == "assistant"]
        self.assertEqual(
            replies[-3:],
            ["The boats come home at dawn.", "Aye, friend.", "The boats come home at dawn."],
        )


class TestOneDecision(TurnTest):
    """What a room decides for all its assistants, and remembers."""

    def is_asked(self, speaker, text, channel="say", at=100.0, of=None):
        """Whether an assistant, Aria if nobody else, is to answer."""
        line = Message("user", text, speaker=Speaker(speaker.key, stable_id(speaker)))
        return is_to_answer(of or self.aria, replace(line, channel=channel), at)

    def test_a_line_counts_once(self):
        """Two assistants whom a scripted character calls both answer; said again, neither."""
        parrot, both = self.parrot(), (self.aria, self.another_assistant())
        for at, answer in ((100.0, True), (100.0 + SAME_LINE_S, False)):
            for body in both:
                self.assertIs(self.is_asked(parrot, "Hello everyone!", at=at, of=body), answer)

    def test_the_same_words_later(self):
        """They are decided on anew, for who is in the room by then; of a page it keeps nothing."""
        self.assertTrue(self.is_asked(self.alice, "hello", "page"))
        self.assertIsNone(self.room1.ndb.ai_manners)
        self.assertTrue(self.is_asked(self.alice, "Hello everyone!"))
        boris = self.another_assistant()
        self.assertTrue(self.is_asked(self.alice, "Hello everyone!", at=200.0, of=boris))

    def test_names_of_the_speaker(self):
        """Before a pose they call nobody; words that begin as such a name are heard whole."""
        swift, ari = self.player("Aria Swift"), self.player("Ari")
        self.assertFalse(self.is_asked(swift, "Aria Swift sits.", "pose"))
        self.assertTrue(self.is_asked(swift, "Aria Swift nods to Aria.", "pose", at=101.0))
        self.assertTrue(self.is_asked(ari, "Aria, an ale!", at=102.0))


class TestGoneOn(TurnTest):
    """What comes too late, and what who asked did meanwhile."""

    def answer_late(self, meanwhile, *answers, wait_s=40):
        """What was said in the end: Alice asks, `meanwhile` is called, then the model answers."""
        running = self.asked_slowly("Aria, where is the mill?", *answers)
        self.later(wait_s)
        meanwhile()
        self.model.release()
        wait_for(running)
        for _ in range(2):
            self.later(2)
            self.tick()
        return [line for line in self.seen["Bob"] if "Aria says" in str(line)]

    def test_a_line_that_waited_too_long(self):
        """It is not answered; while something held the turn lock it did not wait."""
        for worked_s, turns in ((0, 0), (60, 1)):
            self.say(f"Aria, hello for {worked_s}!")
            self.script.runtime.lock._worked_s += worked_s
            self.later(91)
            self.tick()
            self.assertEqual(len(self.model.requests), turns)
            self.assertEqual(self.script.runtime.pending(), [])
        self.assertEqual([role for role, _ in self.contents()].count("user"), 2)

    def test_nobody_is_left_to_hear_it(self):
        """Who asked has left, is gone from the game or forgotten, or Aria was moved."""
        self.say("Aria, hello!")
        self.alice.location = self.room2
        self.tick()
        self.assertEqual(self.model.requests, [])
        alice, now = stable_id(self.alice), utc_iso(self.script.now())
        for name, act, wait_s in (
            ("left", lambda: self.alice.move_to(self.room2), 2),
            ("left long ago", lambda: self.alice.move_to(self.room2), 40),
            ("gone from the game", lambda: setattr(self.alice, "location", None), 40),
            ("moved", lambda: self.aria.move_to(self.room2), 40),
            ("forgotten", lambda: enqueue([alice], now, "", [self.script]), 40),
        ):
            with self.subTest(name):
                self.alice.location = self.aria.location = self.room1
                self.assertEqual(self.answer_late(act, "The mill burnt down.", wait_s=wait_s), [])
                self.assertEqual(self.spoken(), [])
                self.assertFalse(self.script.runtime.pending())

    def test_in_time(self):
        """Two questions get an answer each, however long the first one takes."""
        for wait_s in (2, 40):
            ask = lambda: self.say("Aria, and the smithy?")  # noqa: E731
            self.answer_late(ask, f"There, {wait_s}.", f"Here, {wait_s}.", wait_s=wait_s)
            self.assertEqual(self.spoken()[-2:], [f"There, {wait_s}.", f"Here, {wait_s}."])

    def test_by_name(self):
        """An answer says whom it is for where somebody else has spoken meanwhile, else not."""
        for meanwhile, shown in (
            (lambda: None, "Aria says,"),
            (lambda: self.say("Where is it?", self.alice), "Aria says,"),
            (lambda: self.say("A fine day.", self.bob), "Aria says to Alice,"),
        ):
            lines = self.answer_late(meanwhile, "By the river.", wait_s=2)
            self.assertEqual(lines[-1], f'{shown} "By the river."')


class TestBounds(TurnTest):
    """How much one line can make her do."""

    def use(self, *calls, text="Aria, go on"):
        self.talk(text, *calls)
        messages = self.script.history.messages()
        return [m.content for m in messages if m.role == "tool" and m.name != "noop"]

    def test_lines_of_a_turn(self):
        """Two, however many the model makes of one line."""
        many = [call("say", text=f"line {n}")[0] for n in range(8)]
        results = self.use(many)
        self.assertEqual(sum("spoken 2 times" in result for result in results), 6)
        self.assertNotIn("error", str(results))  # a bound is no failure
        self.assertEqual(len(self.shown("Alice", "Aria says")), 2)

    def test_words_beside_calls(self):
        """Of calls for several audiences only the first has them; with a `noop` they are said."""

        def beside(words, *calls):
            made = [each for one in calls for each in one]
            return ModelReply(content=words, tool_calls=tuple(made), model="scripted/model")

        whispers = [call("whisper", target=who, text="Hush.") for who in ("Alice", "Bob")]
        self.assertEqual(len(self.use(beside("Let me see.", *whispers, call("look")))), 3)
        self.assertEqual(self.spoken(), ["Let me see.", ""])
        ending = beside("Good evening.", call("noop"))
        self.use(ending)
        self.assertEqual(len(self.shown("Alice", "Good evening.")), 1)
        self.use(call("say", text="Welcome back."), ending)  # a turn that has spoken says no more
        self.assertEqual(len(self.shown("Alice", "Welcome back.")), 1)
        self.assertEqual(len(self.shown("Alice", "Good evening.")), 1)

    def test_repeated_lines(self):
        """A long line said again is not said, nor stored; a short one may be."""
        self.talk("Aria, go on", LONG)
        self.assertIn(ECHO, self.use(call("say", text=LONG))[-1])
        for answers in ((LONG, "So it does."), ("Aye.",), ("Aye.",)):
            self.talk("Aria, go on", *answers)
        self.assertEqual([*filter(None, self.spoken())], [LONG, "So it does.", "Aye.", "Aye."])
        self.assertEqual(len(self.shown("Alice", "ferry")), 1)

    def test_echoes(self):
        """Neither the line without the name that calls her is said, nor why a call was refused."""
        self.talk(f"Aria, {LONG}", LONG, "So it does.")
        why = str(NotObeyedError("Alice"))
        self.talk("Aria, go out!", call("move", direction="out"), why, "No.")
        self.assertEqual(len(self.model.requests), 5)
        self.assertEqual([*filter(None, self.spoken())], ["So it does.", "No."])

    def test_notes_of_an_hour(self):
        """What one player says causes so many notes an hour; another's cause their own."""
        notes = [
            call("add_journal_entry", content=f"Alice likes the number {n} best of all.")[0]
            for n in range(NOTES_PER_HOUR)
        ]
        self.talk("Aria, listen, I like all numbers", notes[:12], notes[12:], call("noop"))
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR)
        herring = call("add_journal_entry", content="Alice is fond of herring, too.")
        refused = self.use(herring, text="Aria, I am fond of herring")[-1]
        self.assertNotIn(BoundError.SAYS, refused)  # acknowledged as any other
        self.assertNotIn("error", refused)
        self.assertIn("you will remember this", refused)
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR)
        owed = call("add_journal_entry", content="Bob owes a crown.")
        self.talk("Aria, I owe you a crown", owed, call("noop"), speaker=self.bob)
        self.assertEqual(self.aria.journal.count(), NOTES_PER_HOUR + 1)
        self.script.runtime.notes[stable_id(self.alice)][0] -= 3600
        again = self.use(herring, text="Aria, I am fond of herring")
        self.assertIn("written", again[-1])

    def test_acts_of_a_turn(self):
        """So many things others notice, besides words."""
        self.script.db.post = False
        names = ["red gate", "oak door", "low arch", "steep path", "old bridge", "dark tunnel"]
        names += ["white fence", "long stair", "narrow lane", "iron hatch"]
        rooms, ways = (self.room1, self.room2), names[: MOST_ACTS + 2]
        for n, name in enumerate(ways):
            places = {"location": rooms[n % 2], "destination": rooms[1 - n % 2]}
            create_object("evennia.DefaultExit", key=name, **places)
        way_back = [call("move", direction=name)[0] for name in ways]
        self.script.db.obeys = "all()"
        results = self.use(way_back, text=f"Aria, go by the {', the '.join(ways)}")
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

    def setUp(self):
        super().setUp()
        many = {"player": {"calls_minute": 99}}
        self.enterContext(override_settings(EVENNIA_AI_SPEND_CAPS=many))
        self.script.alert = mock.Mock()
        self.script.tell_staff = mock.Mock()

    def alerts(self):
        return [c for c in self.script.alert.call_args_list if "no model answers" in str(c)]

    def assert_said(self, said, *answers, text="Aria, are you there?"):
        """These replies to a line end in this one, and no other is asked for."""
        self.model.requests.clear()
        with self.subTest(answers=answers):
            self.talk(text, *answers)
            self.assertEqual((self.spoken()[-1], len(self.models())), (said, len(answers)))
            self.assertEqual(self.models()[-1] == OFFLINE_MODEL, said == OFFLINE)
            is_down = any(isinstance(answer, ModelError) for answer in answers)
            self.assertEqual(bool(self.script.mind.down), is_down)

    def test_the_offline_model_answers(self):
        """Staff are alerted once, the sign is shown once, every line is answered; then it is up."""
        for number in range(3):
            self.assert_said(OFFLINE, model_down(), OFFLINE, text=f"Aria, is there a {number}?")
        self.assertEqual(len(self.alerts()), 1)
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 1)
        self.assertEqual(self.script.runtime.unanswered, {})
        self.assert_said("I am back.", "I am back.")
        self.script.tell_staff.assert_called_once_with("Aria: the model answers again")

    def test_who_has_the_last_word(self):
        """Nobody is left without words by a model that dies, or says nothing sound."""
        search = call("search_memory", query="ferry")
        notes = [call("add_journal_entry", content=f"Alice said {word}.") for word in "abc"]
        slow = ModelReply(content="(Here: nobody)", model="scripted/model", seconds=30.0)
        frame = "Bob: A key, please."
        for said, *answers in (
            (OFFLINE, slow, OFFLINE),
            (OFFLINE, search, model_down(), OFFLINE),
            # What the offline model looks up or notes it answers itself.
            (OFFLINE, model_down(), notes[0], OFFLINE),
            ("My words.", *notes, "My words."),
            # What is no answer is asked for once more, if there is time.
            ("Here I am.", frame, "Here I am."),
            (OFFLINE, frame, f"Aye.\n{frame}", OFFLINE),
            ("So I said.", call("say", text=frame), "So I said."),
        ):
            self.assert_said(said, *answers)
        self.assertNotIn("A key", str(self.spoken()))

    def test_asked_once_more(self):
        """The second request is the first with the fault named in front of the line to answer."""
        self.fill(12)
        self.talk("Aria, are you there?", "Bob: I am!", "Here I am.")
        first, again = self.model.requests[-2:]
        self.assertEqual(again.messages[:-1], first.messages[:-1])
        *_, line = rows = first.messages[-1]["content"].split("\n")
        fault = f"(Once more: {SPEAKS_FOR_OTHERS})"
        self.assertEqual(again.messages[-1]["content"].split("\n"), [*rows[:-1], fault, line])
        self.assertEqual((again.tools, again.extra), (first.tools, first.extra))

    def test_an_empty_reply(self):
        """A model that writes nothing is asked once more; it may choose to be silent by `noop`."""
        self.assert_said("Here I am.", "", "Here I am.")
        self.assert_said(OFFLINE, "...", "", OFFLINE, text="Aria, and now?")
        spoken = self.spoken()
        self.talk("Aria, are you still there?", call("noop"), "Too late.")
        self.assertEqual(self.spoken(), [*spoken, ""])

    def test_faults(self):
        """The audit log and the trace of what is said in the end name why a reply was none."""
        self.talk("Aria, where is the ferry?", "Bob: It is late.", "It is late, Alice.")
        reply = self.script.history.messages()[-1]
        self.assertEqual(reply.content, "It is late, Alice.")
        self.assertEqual(ReplyTrace.of(reply).faults, (SPEAKS_FOR_OTHERS,))
        lines = explanation(reply, self.script.seen(PUBLIC), self.script.tools.traits.speaks)
        self.assertTrue(any(line.endswith(SPEAKS_FOR_OTHERS) for line in lines), lines)
        self.script.audit.assert_any_call("fault", model="scripted/model", why=SPEAKS_FOR_OTHERS)
        self.assertNotIn("Bob: It is late.", str(self.contents()))

    def test_no_answer_at_all(self):
        """Without the offline model who waits sees the sign, once; nothing of it is said."""
        self.configure(llm_offline_fallback=False)
        self.talk("Aria, one?", "Bob: No.", "Bob: No!")
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 1)
        self.assertEqual(self.spoken(), [])

    def test_without_the_offline_model(self):
        """Each who waits sees the sign; the question is answered later, if they are still here."""
        self.configure(llm_offline_fallback=False)
        self.talk("Aria, one?", model_down(), model_down())
        self.talk("Aria, two?", speaker=self.bob)
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 2)
        self.assertEqual(len(self.alerts()), 1)
        self.bob.location = self.room2
        self.later(6)
        self.model.default = "Late, but here."
        for _ in range(2):
            self.tick()
        self.assertEqual(self.spoken(), ["Late, but here."])

    def test_no_model_at_all(self):
        """Where the offline model fails, too, each question gets a sign, and a retry none again."""
        self.model.default = model_down()
        for number in (1, 2):
            self.talk(f"Aria, what is boat {number} called?")
            self.assertEqual(len(self.shown("Alice", "shakes their head")), number)
        before = len(self.model.requests)
        self.later(6)
        self.tick()
        self.assertGreater(len(self.model.requests), before)
        self.assertEqual(len(self.shown("Alice", "shakes their head")), 2)

    def test_signs_before_anything_was_heard(self):
        """They are in the game's language, then in that of the talk."""
        for code, sign in (("ru-ru", "задумывается"), ("ja", "考え"), ("en-us", "thinks")):
            with self.subTest(code), override_settings(LANGUAGE_CODE=code):
                self.assertIn(sign, self.script.emote("thinking"))
        self.script.runtime.languages.last = "de"
        with override_settings(LANGUAGE_CODE="ru"):
            self.assertIn("überlegt", self.script.emote("thinking"))

    def test_a_sign_of_thinking(self):
        """Shown once to those who wait, and heard by no assistant; to who whispers alone."""
        self.configure(thinking_after_s=0.05)
        boris = self.another_assistant()
        running = self.asked_slowly("Aria, hello!", "Here I am.")
        pump_until(lambda: self.shown("Alice", "thinks for a moment"))
        self.assertTrue(self.shown("Bob", "thinks for a moment"))
        self.model.release()
        wait_for(running)
        self.assertEqual(len(self.shown("Alice", "thinks for a moment")), 1)
        heard = [event.content for event in boris.assistant.runtime.queue]
        self.assertFalse([text for text in heard if "thinks" in text], heard)
        self.script.game.show("thinks hard.", f"private:{stable_id(self.alice)}", "whisper", None)
        self.assertEqual(len(self.shown("Alice", "Aria thinks hard.")), 1)
        self.assertEqual(self.shown("Bob", "thinks hard"), [])


class TestWithoutTools(TurnTest):
    """A model that is offered no tools: what it is asked to do is read from the asker's line."""

    def setUp(self):
        super().setUp()
        self.model.calls_tools = False
        self.model.default = lambda request: (
            offline(request) if request.model == OFFLINE_MODEL else "So be it, friend."
        )

    def test_an_order(self):
        """It is done before the model speaks, which is told what came of it."""
        lamp = create_object(key="lamp", location=self.aria)
        lamp.locks.add("get:all();give:all()")
        self.talk("Aria, give me the lamp.")
        self.assertEqual(lamp.location, self.alice)
        self.assertEqual(self.models(), [OFFLINE_MODEL, "scripted/model"])
        spoken = self.model.requests[-1]
        self.assertEqual(spoken.tools, ())
        rows = spoken.messages[-1]["content"].split("\n")
        [done] = [row for row in rows if row.startswith("(You have just done: ")]
        self.assertIn("lamp", done)
        self.assertEqual(rows[-1], "Alice: Aria, give me the lamp.")
        self.assertTrue(self.shown("Bob", "So be it, friend."))

    def test_what_is_refused(self):
        """The model is told why an order is not followed, also where nothing may be given."""
        create_object(key="crown", location=self.room1)
        for line, why in (
            ("Aria, give me the crown.", f"{NotObeyedError.SAYS} Alice"),
            ("Aria, go out!", f"{NotObeyedError.SAYS} Alice"),
            ("Aria, bring me the moon.", "there is no `moon` here"),
            ("Aria, tell Zoltan that the boat is ready.", "no players are called `Zoltan`"),
        ):
            with self.subTest(line):
                self.talk(line)
                rows = self.asked()[-1]["content"].split("\n")
                self.assertNotIn("You have just done", rows[-2])
                self.assertTrue(rows[-2].startswith("(You must refuse, because: "), rows)
                self.assertIn(why, rows[-2])

    def test_what_waits(self):
        """What staff must approve is not done yet."""
        lamp = create_object(key="lamp", location=self.aria)
        lamp.locks.add("get:all();give:all()")
        self.configure(tool_levels={"give": "confirm"})
        self.talk("Aria, give me the lamp.")
        rows = self.asked()[-1]["content"].split("\n")
        self.assertIn("(You must refuse, because: Not done yet", rows[-2])

    def test_small_talk(self):
        """It does nothing; what the model says does nothing, either."""
        lamp = create_object(key="lamp", location=self.aria)
        lamp.locks.add("get:all();give:all()")
        self.model.default = lambda request: (
            offline(request) if request.model == OFFLINE_MODEL else "I give the lamp to Alice."
        )
        self.talk("Aria, what a fine lamp that is!")
        self.assertEqual(lamp.location, self.aria)
        self.assertNotIn("You have just done", str(self.asked()))

    def test_no_calls_are_shown(self):
        """Nor what tools gave: what was said by a tool is said."""
        self.model.calls_tools = True
        self.talk("Aria, look!", [*call("say", text="I look."), *call("look")], "A fine room.")
        self.model.calls_tools = False
        self.talk("Aria, and now?")
        self.assertFalse([m for m in self.asked() if m["role"] == "tool" or m.get("tool_calls")])
        self.assertIn("I look.\nA fine room.", [m["content"] for m in self.asked()])

    def test_the_language(self):
        """One that is not English is named in front of the line."""
        for line, is_named in (
            ("Aria, wie heißt mein Boot und wo ist es?", True),
            ("Aria, and the mill?", False),
        ):
            self.script.runtime.languages.last = ""
            self.talk(line)
            self.assertEqual("(Answer in: German)" in self.asked()[-1]["content"], is_named)


class TestEnds(TurnTest):
    """How turns end: cut short, with a sign of typing taken back, or without another call."""

    def test_nothing_is_said_twice(self):
        """What was said stays the answer, with and without the offline model."""
        for fallback in (True, False):
            self.configure(llm_offline_fallback=fallback)
            said = call("say", text=f"The cellar is {fallback}.")
            self.talk("Aria, may I see the cellar?", [*said, *call("look")], model_down())
            self.assertEqual(len(self.shown("Alice", f"cellar is {fallback}")), 1)
            self.assertEqual(self.script.runtime.unanswered, {})
        self.assertEqual(len(self.model.requests), 4)

    def test_asked_again_while_it_is_down(self):
        """What one asked before and got no answer to is answered with what they say next."""
        self.configure(llm_offline_fallback=False)
        self.talk("Aria, where is the key?", model_down(), "Both.")
        self.talk("Aria, hello?")
        tail = self.asked()[-1]["content"]
        self.assertIn("where is the key", tail)
        self.assertIn("hello?", tail)
        self.assertEqual(self.script.runtime.unanswered, {})

    def test_typing(self):
        """Its sign is on while she thinks, also where the turn breaks off, for who may know."""
        sent = {"Alice": [], "Bob": []}
        for person in (self.alice, self.bob):
            session = mock.Mock(protocol_flags={})
            session.msg = lambda is_typing, name=person.key: sent[name].append(is_typing)
            vars(person)["sessions"] = mock.Mock(all=lambda session=session: [session])
        on, off = ({"name": "Aria", "state": state} for state in (True, False))
        both = [{"type": "typing", "payload": state} for state in (on, off)]
        with override_settings(WEBCLIENT_TYPING_ENABLED=True):
            self.talk("Aria, hello!", "Well met.", model_down(), "Hush.")
            self.assertEqual(sent, {"Alice": both, "Bob": both})
            self.talk("Aria, are you there?")
            self.assertEqual(sent["Bob"], both * 2)
            self.alice.at_say("Psst!", receivers=[self.aria], whisper=True)
            self.tick()
        self.assertEqual((len(sent["Alice"]), len(sent["Bob"])), (6, 4))
        with override_settings(WEBCLIENT_TYPING_ENABLED=False):
            self.talk("Aria, good day!", speaker=self.bob)
        self.assertEqual(len(sent["Bob"]), 4)

    def test_what_only_speaks_or_acts(self):
        """What was said, done or noted leaves nothing to tell the model; a look does."""
        tea = call("add_journal_entry", content="She likes tea.")
        unicorn = call("give", thing="unicorn", to="Alice")
        for calls, asked in (
            (call("say", text="Well met, Alice."), 1),
            (call("emote", text="waves at Alice"), 1),
            ([*call("say", text="I shall."), *tea], 1),
            (call("add_journal_entry", content="Alice likes jazz a lot."), 2),
            ([*call("say", text="Let me see, Alice."), *call("look")], 2),
            ([*call("say", text="Here, take it."), *unicorn], 2),
        ):
            with self.subTest(calls):
                self.model.requests.clear()
                self.talk("Aria, I like jazz a lot and tea, do you?", calls, "I thank you all.")
                self.assertEqual(len(self.model.requests), asked)

    def test_narration(self):
        """What is done is seen, what is said is heard; where somebody whispers, only the latter."""
        self.talk("Aria, hello!", "*smiles at Alice* Well met.")
        self.assertTrue(self.shown("Bob", "Aria smiles at Alice"), self.seen)
        self.assertTrue(self.shown("Bob", 'Aria says, "Well met."'))
        self.assertEqual(len(self.model.requests), 1)
        self.model.answers = ["*frowns at Alice* Hush now."]
        self.alice.at_say("Hello!", receivers=[self.aria], whisper=True)
        self.tick()
        self.assertTrue(self.shown("Alice", "Hush now."))
        self.assertEqual(self.shown("Bob", "frowns"), [])

    def test_a_pose_is_answered_aloud(self):
        """What it says to somebody who poses is speech, as heard and as stored."""
        boris = self.another_assistant()
        nod = ("Alice nods to Aria.", {"type": "pose"})
        self.room1.msg_contents(text=nod, from_obj=self.alice)
        self.model.answers = ["*smiles* Well met."]
        self.tick()
        stored = [(m.role, m.channel) for m in self.script.history.messages()]
        self.assertEqual(stored, [("user", "pose"), ("assistant", "say")])
        heard = [(m.channel, m.content) for m in boris.assistant.runtime.queue[-2:]]
        self.assertEqual(heard, [("pose", "Aria smiles"), ("say", "Well met.")])


class TestPrompt(TurnTest):
    """What a turn's requests look like."""

    def test_only_tools_that_can_serve(self):
        """Diagnostics are offered to whom she obeys, hands for what may be given, and so on."""

        def offered(speaker, line="Aria, hello!"):
            self.talk(line, "Well met.", speaker=speaker)
            return {tool["function"]["name"] for tool in self.model.requests[-1].tools}

        staff = {"move", "context_snapshot", "list_contributors", "trace_summaries"}
        hands = {"get", "give"}
        for thing in self.room1.contents:
            if not thing.has_account and thing.key.startswith("Obj"):
                thing.location = self.room2
        self.assertFalse(offered(self.alice) & (staff | hands | {"request_compaction"}))
        lamp = create_object(key="lamp", location=self.room1)
        for locks in ("get:false()", "give:false()"):
            lamp.locks.add(f"get:all();give:all();{locks}")
            self.assertFalse(offered(self.bob) & (staff | hands), locks)
        lamp.locks.add("get:all();give:all()")
        self.assertEqual(offered(self.bob) & (staff | hands), hands)
        chest = create_object(key="chest", location=self.room1)
        chest.locks.add("get:false();get_from:all()")
        lamp.location = chest
        self.assertEqual(offered(self.bob) & (staff | hands), hands)
        for line in ("Aria, don't forget that I like jazz", "Aria, merk dir, dass ich Jazz mag"):
            self.assertIn("propose_ledger_entry", offered(self.bob, line), line)
        self.alice.permissions.add("Builder")
        self.assertLessEqual(staff, offered(self.alice))

    def test_results_come_last(self):
        """The present moment stands before what the turn did; found text is stored in brief."""
        told = f"{LONG} Ask Jorun at the quay for the price of a crossing."
        self.script.history.append([Message("user", told, speaker=Speaker("Bob", "o9.b"))] * 3)
        self.talk(
            "Aria, when does the ferry leave?",
            call("search_memory", query="ferry dawn"),
            "At dawn.",
        )
        roles = [message["role"] for message in self.asked()]
        self.assertEqual(roles[-3:], ["user", "assistant", "tool"])
        self.assertIn("(Now: ", self.asked()[-3]["content"])
        self.assertTrue(
            self.asked()[-3]["content"].endswith("Alice: Aria, when does the ferry leave?")
        )
        whole = json.loads(self.asked()[-1]["content"])["results"]
        (stored,) = [m for m in self.script.history.messages() if m.role == "tool"]
        self.assertEqual(
            [hit["id"] for hit in json.loads(stored.content)["results"]],
            [hit["id"] for hit in whole[:3]],
        )
        self.assertLess(stored.tokens, 100)
