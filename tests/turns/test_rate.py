"""How many model calls one player causes in a minute, and what is shown instead of more."""

import time
import unittest
from collections import Counter
from unittest.mock import patch

from django.test import override_settings
from evennia import SESSION_HANDLER, create_account, create_object
from evennia.server.serversession import ServerSession
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.game.seeing import stable_id
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.testing import call
from evennia_ai.turns.spend_book import (
    CALLS_A_MINUTE,
    OFFLINE_A_MINUTE,
    RATE_S,
    SharedSpend,
)
from tests.asked import model_down
from tests.base import CHARACTER, PLAYED
from tests.command_line import CommandLineTest
from tests.fake import MemorySpend
from tests.waiting import pump_until, wait_for

NAMES = ("Boris", "Cleo", "Dora", "Egon")
# The limit of these tests, lines of a flood, and seconds between them. A small limit is met by few
# lines, each of which all assistants hear.
MOST, FLOOD, PACE_S = 6, 12, 1.5


class TestCallRate(unittest.TestCase):
    """The sliding minute of each player."""

    @given(
        st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 30)), max_size=120),
        st.integers(1, 20),
    )
    def test_no_minute_holds_more(self, asked, most):
        """However calls are asked for, no minute of a player holds more; later ones stop nobody."""
        rate = SharedSpend(MemorySpend(), lambda: {"player": {"calls_minute": most}})
        now, made = 1000.0, []
        for payer, wait_s in asked:
            now += wait_s
            if rate.may_call(payer, now):
                rate.note_call(payer, now)
                made.append((payer, now))
            inside = [at for who, at in made if who == payer and now - at < RATE_S]
            self.assertLessEqual(len(inside), most)
            if (payer, now) not in made:
                self.assertEqual(len(inside), most)
        self.assertTrue(rate.may_call("a", 100.0))  # the clock is set back

    def test_unless_set(self):
        """A game that sets no limit has the default one."""
        rate = SharedSpend(MemorySpend(), lambda: None)
        for _ in range(CALLS_A_MINUTE):
            self.assertTrue(rate.may_call("a", 1000.0))
            rate.note_call("a", 1000.0)
        self.assertFalse(rate.may_call("a", 1000.0))


class RateTest(CommandLineTest):
    """Five assistants, and one ordinary player who talks without a pause."""

    assistants = 5

    def setUp(self):
        super().setUp()
        limits = {"player": {"calls_minute": MOST}}
        self.enterContext(override_settings(EVENNIA_AI_SPEND_CAPS=limits))
        self.be("Player")
        self.model.default = self.answer
        others = (create_object(CHARACTER, key=n, location=self.room1) for n in NAMES)
        self.bodies = [self.aria, *others]
        self.scripts = [body.assistant for body in self.bodies]
        self.now = self.script.now()
        for script in self.scripts:
            script.stop()
            script.now = lambda: self.now
            script.attributes.add("emotes", {"thinking": None})
            script.attributes.add("sleep_after_idle_s", None)

    def answer(self, request):
        """Every other reply of a turn looks around first."""
        text = f"That is answer {len(self.model.requests)}."
        said = ModelReply(content=text, model=request.model)
        looks = request.purpose == "awake" and len(self.model.requests) % 2
        return call("look") if looks else said

    def flood(self, line, count=FLOOD, speakers=(None,)):
        """Say so many lines; what each is about is its number."""
        for number in range(count):
            for speaker in speakers:
                self.say(line(number), speaker)
            self.now += PACE_S
            self.tick_all()

    def tick_all(self):
        for script in self.scripts:
            wait_for(script.at_tick())

    def purposes(self):
        """What was asked of models other than the offline one."""
        return Counter(each.purpose for each in self.model.requests if each.model != OFFLINE_MODEL)

    def signs(self):
        return self.shown().count("raises a hand")


class TestOnePlayer(RateTest):
    """The bound holds for all assistants together, whatever is said how."""

    def test_a_minute_of_talk(self):
        """Twice as many lines as calls: none lost, a sign of each assistant, no burst later."""
        for name, line in {
            "to one": lambda n: f"Aria, what is thing {n}?",
            "to each in turn": lambda n: f"{self.bodies[n % 5].key}, what is thing {n}?",
            "to everyone": lambda n: f"everyone, what is thing {n}?",
        }.items():
            with self.subTest(name):
                self.now += 2 * RATE_S
                self.told.clear()
                self.model.requests.clear()
                before = len(self.script.history.messages())
                self.flood(line)
                asked = len(self.model.requests)
                self.assertTrue(MOST // 2 < asked <= MOST, asked)
                self.assertTrue(1 <= self.signs() <= 5, self.signs())
                new = self.script.history.messages()[before:]
                self.assertEqual(len([m for m in new if "thing" in m.content]), FLOOD)
                self.now += 2 * RATE_S
                self.tick_all()
                self.assertEqual(len(self.model.requests), asked)

    def test_long_lines_start_no_work_on_memory(self):
        """No model is asked for summaries while the flood goes on; they follow later."""
        self.flood(lambda n: f"Aria, what is thing {n}?", MOST)
        for script in self.scripts:
            script.attributes.add("max_context_tokens", 12_000)
        line = "{}, what is thing {}? " + "It is long and told at length. " * 150
        self.flood(lambda n: line.format(self.bodies[n % 5].key, n), 17)
        self.assertEqual(self.purposes(), {"awake": MOST})
        self.now += 2 * RATE_S
        self.tick_all()
        pump_until(lambda: set(self.purposes()) > {"awake"})

    def test_whispers_and_pages(self):
        """What is said privately counts with what is said aloud."""
        for number in range(5):
            self.say(f"Aria, what is thing {number}?")
            self.char1.at_say("and now?", msg_self=True, receivers=[self.bodies[1]], whisper=True)
            self.bodies[2].hear_page(self.account, f"and {number}?", self.char1)
            self.now += 1.0
            self.tick_all()
        self.assertEqual(len(self.model.requests), MOST)

    def offline_ways(self):
        """The offline model as its own, and for one that is down."""
        for default, model in ((self.answer, OFFLINE_MODEL), (model_down(), "scripted/model")):
            with self.subTest(model):
                self.now += 2 * RATE_S
                self.model.requests.clear()
                self.told.clear()
                self.model.default = default
                for script in self.scripts:
                    script.attributes.add("llm_model", model)
                yield

    def offline_answers(self):
        """Lines that the offline model answered; it may look something up for one."""
        newest = [request.messages[-1] for request in self.model.requests]
        return sum(
            request.model == OFFLINE_MODEL and message["role"] == "user"
            for request, message in zip(self.model.requests, newest, strict=True)
        )

    def test_the_offline_model_is_spared(self):
        """Whoever talks every second is answered, however many lines that are."""
        for _ in self.offline_ways():
            for number in range(2 * MOST):
                self.say(f"Aria, what is thing {number}?")
                self.now += 1.1
                wait_for(self.script.at_tick())
            self.assertEqual((self.offline_answers(), self.signs()), (2 * MOST, 0))

    def test_a_flood_of_the_offline_model(self):
        """A flood is bounded all the same, of all assistants together, and so are the tries."""
        left = 10  # so many answers of the minute; all before came already
        payer = self.script.game.payer(stable_id(self.char1))
        for _ in self.offline_ways():
            for _ in range(OFFLINE_A_MINUTE - left):
                self.script.spend.shared.note_call(payer, self.now, is_offline=True)
            self.flood(lambda n: f"everyone, what is thing {n}?", 8)
            self.assertEqual(self.offline_answers(), left)
            self.assertLessEqual(len(self.model.requests), 2 * left + 5)
            self.assertTrue(1 <= self.signs() <= 5, self.signs())

    def test_the_offline_model_uses_up_nothing(self):
        """Its answers leave a player all calls of a model that costs something."""
        for script in self.scripts:
            script.attributes.add("llm_model", OFFLINE_MODEL)
        self.flood(lambda n: f"Aria, what is thing {n}?", MOST + 2)
        self.model.requests.clear()
        self.script.attributes.add("llm_model", "scripted/model")
        self.flood(lambda n: f"Aria, what is thing {n}?", 5)
        self.assertEqual(len(self.model.requests), MOST)

    def test_what_one_line_begins_counts(self):
        """Assistants that ask each other, and a turn that is cut short in the middle."""
        self.model.default = lambda request: ModelReply(
            content=f"Boris, Cleo, what is {len(self.model.requests)}?", model="m"
        )
        self.flood(lambda n: f"Aria, and thing {n}?", 5)
        self.assertLessEqual(len(self.model.requests), MOST)
        self.now += 2 * RATE_S
        self.tick_all()
        self.told.clear()
        self.model.requests.clear()
        self.model.default = call("look")
        self.configure(max_react_iterations=100)
        self.say("Aria, look around!")
        self.tick_all()
        self.assertEqual((len(self.model.requests), self.signs()), (MOST, 1))
        self.assertEqual(self.script.runtime.unanswered, {})


class TestWhoPays(RateTest):
    """Whose calls are counted together."""

    def player(self, name, number, address, kind="evennia.accounts.accounts.DefaultAccount"):
        """Another player's character, with a session from an address."""
        account = create_account(name, None, "a-long-passphrase", typeclass=kind)
        body = create_object(PLAYED, key=name, location=self.room1)
        body.account, account.db._last_puppet = account, body
        session = ServerSession()
        session.init_session("telnet", address, SESSION_HANDLER)
        session.sessid = number
        SESSION_HANDLER.portal_connect(session.get_sync_data())
        SESSION_HANDLER.login(SESSION_HANDLER[number], account, testmode=True)
        return body

    def test_staff_have_no_bound(self):
        """Builders, and who controls the assistant."""
        for rank, lock in (("Builder", ""), ("Player", f"control:id({self.char1.id})")):
            with self.subTest(rank):
                self.model.requests.clear()
                self.be(rank)
                self.aria.locks.add(lock)
                self.flood(lambda n: f"Aria, what is thing {n}?", MOST + 2)
                self.assertGreater(len(self.model.requests), MOST)

    def test_guests_share_an_address(self):
        """A guest who logs in again, or is gone, is the same player; one from elsewhere is not."""
        guest = "evennia.accounts.accounts.DefaultGuest"
        first, again, other = (
            self.player(f"Guest{n}", 10 + n, address, guest)
            for n, address in enumerate(("10.0.0.1", "10.0.0.1", "10.0.0.2"))
        )
        for who, lines in ((first, MOST + 2), (again, 2)):
            self.flood(lambda n: f"Boris, what is thing {n}?", lines, [who])
            self.assertEqual(len(self.model.requests), MOST)
        first.account.sessions.all = list
        game, ids = self.script.game, [stable_id(guest) for guest in (first, again, other)]
        self.assertEqual(game.account_id(ids[0]), game.account_id(ids[1]))
        self.assertNotEqual(game.account_id(ids[0]), game.account_id(ids[2]))
        today = game.account_id(ids[0])
        self.assertNotIn("10.0", today)
        with patch("time.time", return_value=time.time() + 86_400):
            self.assertNotEqual(game.account_id(ids[0]), today)
        self.flood(lambda n: f"Boris, what is gold {n}?", 2, [other])
        self.assertGreater(len(self.model.requests), MOST)
