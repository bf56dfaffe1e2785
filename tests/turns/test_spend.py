"""Caps on what model calls cost: parallel calls, restarts, and questions."""

from dataclasses import replace

from twisted.internet.defer import CancelledError, succeed
from twisted.trial.unittest import SynchronousTestCase

from evennia_ai.errors import SpendError
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.values import ModelFacts, ModelReply, ModelRequest, TurnRequest
from evennia_ai.testing import call
from evennia_ai.turns.spend_book import DEFAULT, GAME, TRIAL_AGAIN_S, Amount, SharedSpend
from tests.asked import model_down
from tests.fake import FakeAssistant, MemorySpend
from tests.models import ScriptedModel

ALICE = "o1.alice"


def paid(tokens=100, cost=None, **fields):
    """A reply that was billed."""
    fields = {"model": "m", **fields}
    return ModelReply(content="Well.", prompt_tokens=tokens, cost=cost, **fields)


def request(**fields):
    """A small request."""
    return ModelRequest(model="m", messages=({"role": "user", "content": "hello"},), **fields)


class SpendTest(SynchronousTestCase):
    """An assistant whose model is billed."""

    def setUp(self):
        self.model = ScriptedModel(default=lambda asked: paid())
        self.aria = FakeAssistant(self.model)
        self.asker = next(iter(self.aria.game.people.values()))

    def configure(self, **options):
        for name, value in options.items():
            self.aria.store.set(name, value)

    def ask(self, asker=None, **fields):
        return self.aria.spend.complete(request(**fields), asker)

    def spent(self, holder=None, aria=None):
        aria = aria or self.aria
        holder = aria.spend.holder if holder is None else holder
        return self.aria.shared_spend.spent(holder, "day", self.aria.now())

    def notes(self, kind="spend limit"):
        return [fields for each, fields in self.aria.audits if each == kind]


class TestCounting(SpendTest):
    """What counts, and for whom."""

    def test_a_call_counts_for_all_its_holders(self):
        """The assistant, the game and the account of who asked pay for the same call."""
        self.successResultOf(self.ask(self.asker))
        self.successResultOf(self.ask())
        account = self.aria.game.account_id(self.asker)
        holders = (None, GAME, ("account", account))
        self.assertEqual([self.spent(each).tokens for each in holders], [200, 200, 100])

    def test_who_is_forgotten_leaves_the_amounts(self):
        """What accounts and guests spent stays, for nobody by name."""
        shared, now = self.aria.shared_spend, self.aria.now()
        for account in ("a1.x", "guest 5f3a"):
            shared.count(Amount(1, 70, cost=0.5), now, account=account)
        shared.forget(["a1.x", "guest 5f3a", "nobody knows"])
        self.assertEqual(self.spent(GAME), Amount(2, 140, cost=1.0))
        self.assertNotRegex(str(shared.table.rows), "a1.x|5f3a")

    def test_a_call_that_goes_on_while_somebody_is_forgotten(self):
        """It is counted, and for nobody by name."""
        shared = SharedSpend(MemorySpend(), dict, hidden=lambda _: "forgotten 1")
        self.aria.shared_spend = shared
        self.model.held = True
        asked = self.ask(self.asker)
        account = self.aria.game.account_id(self.asker)
        shared.forget([account])
        self.model.release()
        self.successResultOf(asked)
        self.assertEqual(self.spent(("account", "forgotten 1")).tokens, 100)
        self.assertNotIn(account, str(shared.table.rows))

    def test_a_month_goes_on_behind_a_forgetting(self):
        """The cap of the month is as far used the next day, and whole in the next month."""
        caps = {"account": {"tokens_month": 100}}
        shared = SharedSpend(MemorySpend(), lambda: caps, hidden=lambda _: "forgotten 1")
        now = self.aria.now()
        shared.count(Amount(1, 70), now, account="a1.x")
        shared.forget(["a1.x"])
        self.assertEqual(shared.payer("a1.x", now + 86_400), "forgotten 1")
        self.assertEqual(shared.payer("a1.x", now + 31 * 86_400), "a1.x")

    def test_the_offline_model_is_free(self):
        """The offline model is asked whatever the caps are, and counts nothing."""
        self.configure(spend_caps={"tokens_day": 0})
        self.successResultOf(self.aria.spend.complete(ModelRequest(model=OFFLINE_MODEL)))
        self.model.default = ModelReply(content="", model=OFFLINE_MODEL, prompt_tokens=50)
        self.configure(spend_caps={"tokens_day": None})
        self.successResultOf(self.ask())
        self.assertEqual(self.spent().calls, 0)

    def test_a_call_that_fails(self):
        """What no model answered is not billed; a provider may finish what was cancelled."""
        self.model.default = model_down()
        self.failureResultOf(self.ask())
        self.assertEqual(self.spent().calls, 0)
        self.assertEqual(self.aria.shared_spend.calls, [])
        self.model.held = True
        asked = self.ask(prompt_tokens=40, max_tokens=60)
        asked.cancel()
        self.failureResultOf(asked, CancelledError)
        self.assertEqual(self.spent().tokens, 100)

    def test_junk_costs_nothing(self):
        """What a server reports of nonsense frees nothing and stops nothing."""
        self.model.answers = [paid(-500, cost=float("nan")), paid(10**400), paid()]
        for _ in range(3):
            self.successResultOf(self.ask())
        self.assertEqual((self.spent().calls, self.spent().tokens), (3, 100))


class TestCaps(SpendTest):
    """No more than one call goes beyond a cap, whoever asks and however many at once."""

    def refuse(self, asker=None, **fields):
        return str(self.failureResultOf(self.ask(asker, **fields), SpendError).value)

    def test_each_cap_holds(self):
        """Of each holder, window and unit: calls go on until the sum reaches the limit."""
        for options, caps, asker in (
            ({"tokens_day": 250}, {}, None),
            ({"tokens_month": 250}, {}, None),
            ({"cost_day": 2.5}, {}, None),
            ({"cost_month": 2.5}, {}, None),
            ({}, {"game": {"tokens_month": 250}}, None),
            ({}, {"game": {"cost_day": 2.5}}, None),
            ({}, {"account": {"tokens_day": 250}}, self.asker),
        ):
            with self.subTest(options=options, caps=caps):
                self.setUp()
                self.model.default = paid(cost=1.0)
                self.aria.spend_caps = caps
                self.configure(spend_caps=options)
                for _ in range(3):
                    self.successResultOf(self.ask(asker))
                self.assertIn("spend limit", self.refuse(asker))
                self.assertEqual(self.spent().calls, 3)
                self.assertEqual(len(self.model.requests), 3)
        self.successResultOf(self.ask())  # what nobody's account asks for goes on

    def test_parallel_calls_cross_a_cap_once(self):
        """Of many calls at once, those are refused that could cross the cap together."""
        self.model.price = (0.01, 0.01)
        for caps in ({"tokens_day": 250}, {"cost_day": 2.5}):
            with self.subTest(caps=caps):
                self.aria = FakeAssistant(self.model)
                self.model.default, self.model.held = paid(cost=1.0), True
                self.aria.spend_caps = {"game": caps}
                asked = [self.ask(prompt_tokens=50, max_tokens=50) for _ in range(10)]
                for each in asked[3:]:
                    self.failureResultOf(each, SpendError)
                self.model.release()
                list(map(self.successResultOf, asked[:3]))
                self.assertEqual(self.spent(GAME).calls, 3)

    def test_one_unknown_price_among_others(self):
        """The known ones bound a call: calls far from the cap do not wait for each other."""
        self.configure(spend_caps={"cost_day": 1000.0})
        prices = {"listed": (0.001, 0.001)}
        self.model.facts = lambda model: ModelFacts(price=prices.get(model))
        self.model.held = True
        for _ in range(2):
            self.aria.spend.complete(ModelRequest(model="listed", fallback_models=("unlisted",)))
        self.assertEqual(len(self.model.requests), 2)

    def test_two_assistants_share_the_game_s_cap(self):
        """What one assistant spends, the other does not have."""
        other = FakeAssistant(self.model)
        other.scope, other.shared_spend = "Borg", self.aria.shared_spend
        self.aria.spend_caps = {"game": {"tokens_day": 100}}
        self.successResultOf(self.ask())
        self.failureResultOf(other.spend.complete(request()), SpendError)
        self.assertEqual((self.spent(aria=other).calls, self.spent(GAME).calls), (0, 1))

    def test_a_model_without_a_price(self):
        """Staff see that it does not count under a cap of money."""
        self.configure(spend_caps={"cost_day": 1.0})
        self.aria.model_name = "m"
        for is_unpriced in (False, True):
            self.assertIs(self.aria.spend.is_unpriced, is_unpriced)
            self.successResultOf(self.ask())

    def test_a_call_is_cut_to_its_own_cap(self):
        """The cap of a call shortens its reply and its prompt, or refuses one that is too large."""
        self.configure(spend_caps={"tokens_call": 100})
        self.aria.spend_caps = {"call": {"tokens": 90}}
        self.successResultOf(self.ask(prompt_tokens=40, max_tokens=500))
        self.assertEqual(self.model.requests[-1].max_tokens, 50)
        for _ in range(2):
            self.assertIn("no room", self.refuse(prompt_tokens=80))
        self.assertEqual(len(self.notes()), 1)
        self.configure(spend_caps={})
        self.aria.history.append([Message("user", "word " * 400) for _ in range(20)])
        self.aria.spend_caps = {"call": {"tokens": 3000}}
        self.successResultOf(self.aria.run_turn(TurnRequest()))
        asked = self.model.requests[-1]
        self.assertLessEqual(asked.prompt_tokens + asked.max_tokens, 3000)

    def test_staff_hear_once_of_four_fifths_and_once_of_all(self):
        """Two notices a window, with audit lines; also if the cap is crossed in one step."""
        self.configure(spend_caps={"tokens_day": 500})
        for _ in range(5):
            self.successResultOf(self.ask())
        for _ in range(3):
            self.refuse()
        self.assertEqual([note["spent"] for note in self.notes()], [400, 500])
        self.aria.clock.advance(86_400)
        self.model.default = paid(900)
        self.successResultOf(self.ask())
        self.assertEqual([note["spent"] for note in self.notes()], [400, 500, 900])


class TestDefaultCap(SpendTest):
    """A game that has set no caps has one, which spares models on its own machine."""

    def setUp(self):
        super().setUp()
        self.aria.spend_caps = None
        self.aria.shared_spend.runs_here = {"own", OFFLINE_MODEL}.__contains__
        self.limit = int(DEFAULT.game["tokens_day"])

    def ask_own(self, **fields):
        """A call of a model on this machine."""
        return self.aria.spend.complete(ModelRequest(model="own", messages=(), **fields))

    def test_it_stops_what_is_billed(self):
        """At two million tokens of the day; the owner lifts it with one setting."""
        self.model.default = paid(self.limit)
        self.successResultOf(self.ask())
        self.assertIn("the game", str(self.failureResultOf(self.ask(), SpendError).value))
        self.assertEqual(len(self.notes()), 1)
        for caps in ({}, {"game": {}}, {"game": {"tokens_day": 10 * self.limit}}):
            self.aria.spend_caps = caps
            self.successResultOf(self.ask())

    def test_it_spares_what_is_not(self):
        """Calls of a model on this machine do not count towards it, and are not stopped by it."""
        self.model.default = paid(self.limit, model="own")
        for _ in range(3):
            self.successResultOf(self.ask_own())
        self.assertEqual(self.spent(GAME).tokens, 3 * self.limit)
        self.model.default = paid(self.limit)
        self.successResultOf(self.ask())
        self.failureResultOf(self.ask(), SpendError)
        self.assertIsNotNone(self.aria.spend.reached())
        self.successResultOf(self.ask_own())
        self.aria.model_name = "own"
        self.assertIsNone(self.aria.spend.reached())
        self.failureResultOf(self.ask_own(fallback_models=("m",)), SpendError)

    def test_caps_of_the_owner_count_all(self):
        """A cap that is set counts models on this machine, too."""
        self.aria.spend_caps = {"game": {"tokens_day": 100}}
        self.model.default = paid(model="own")
        self.successResultOf(self.ask_own())
        self.failureResultOf(self.ask_own(), SpendError)

    def test_a_probe_counts(self):
        """The doctor's question, also from a shell, counts for the game, refused at its cap."""
        shared, now = self.aria.shared_spend, self.aria.now()
        for model, tokens in (("m", 100), ("own", 200), (OFFLINE_MODEL, 200)):
            self.successResultOf(shared.probe(self.model, model, now))
            self.assertEqual(self.spent(GAME).tokens, tokens)
        self.assertEqual(self.spent(GAME).own, 100)
        shell = SharedSpend(shared.table, lambda: None)
        self.successResultOf(shell.probe(self.model, "m", now))
        self.successResultOf(self.ask())
        self.assertEqual(self.spent(GAME).tokens, 400)
        self.model.default = paid(self.limit)
        self.successResultOf(self.ask())
        self.failureResultOf(shared.probe(self.model, "m", now), SpendError)
        self.successResultOf(shared.probe(self.model, "own", now))

    def test_a_trial_counts(self):
        """Finding out how a model calls tools is paid by the game, once; a cap puts it off."""
        shared, now, tried = self.aria.shared_spend, self.aria.now(), []

        def trial(model):
            tried.append(model)
            return succeed(paid(900, model=model, attempts=3 if model == "m" else 0))

        self.model.trial, self.model.calls_tools = trial, None
        for after_s, times in ((0, 1), (1, 1), (TRIAL_AGAIN_S, 2)):
            shared.try_out(self.model, "m", now + after_s, lambda: succeed(None))
            self.assertEqual(tried, ["m"] * times)
        self.assertEqual((self.spent(GAME).tokens, self.spent().tokens), (1800, 0))
        shared.try_out(self.model, OFFLINE_MODEL, now, lambda: succeed(None))
        shared.try_out(
            self.model, "known", now, lambda: succeed(None)
        )  # by the mind, which had not said so yet
        self.assertEqual((tried[2:], self.spent(GAME).tokens), (["known"], 1800))
        self.aria.spend_caps = {"game": {"tokens_day": 100}}
        shared.try_out(self.model, "n", now, lambda: succeed(None))
        self.assertNotIn("n", tried)
        self.aria.spend_caps = None
        self.model.calls_tools = True
        shared.try_out(self.model, "o", now, lambda: succeed(None))
        self.assertNotIn("o", tried)

    def test_when_it_is_tried(self):
        """With the first call of a model that may call tools."""
        tried = []
        self.model.trial = lambda model: tried.append(model) or succeed(paid(0, attempts=0))
        self.model.calls_tools = None
        self.configure(llm_api="completion")
        self.successResultOf(self.ask())
        self.assertEqual(tried, [])
        self.configure(llm_api="chat")
        self.successResultOf(self.ask())
        self.assertEqual(tried, [self.aria.model_name])


class TestQuestions(SpendTest):
    """A question that a cap allows no answer to."""

    def hear(self, text, speaker=None):
        who = Speaker("Alice", speaker or self.asker)
        line = Message("user", text, id=new_id("m"), speaker=who, channel="say")
        self.aria.runtime.hear(line, self.aria.now())

    def tick(self):
        self.aria.runtime.last_turn_at = 0.0
        done = self.successResultOf(self.aria.tick())
        self.aria.save_queue()
        return done

    def shown(self):
        return [text for _, text in self.aria.game.shown if "enough for now" in text]

    def spoken(self):
        return [text for _, text in self.aria.game.said if text == "Well."]

    def test_it_is_shown_once_a_minute(self):
        """Who asks is shown it; nothing is answered later, and the next question is."""
        self.configure(spend_caps={"tokens_day": 0}, sleep_after_idle_s=None)
        for _ in range(2):
            self.hear("What is my boat called?")
            self.assertEqual(self.tick(), "over budget")
        self.assertEqual((self.model.requests, len(self.shown())), ([], 1))
        self.configure(spend_caps={"tokens_day": None})
        self.aria.clock.advance(61)
        self.assertEqual(self.tick(), "idle")
        self.hear("What is my boat called?")
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(len(self.spoken()), 1)
        self.assertEqual(len(self.aria.history.messages()), 4)

    def test_an_account_over_its_cap_holds_up_nobody_else(self):
        """Of two who ask, the one whose account has some left is answered."""
        _, other = list(self.aria.game.people.values())[:2]
        self.aria.spend_caps = {"account": {"tokens_day": 100}}
        self.successResultOf(self.ask(self.asker))
        self.hear("What is my boat called?")
        self.hear("And mine?", other)
        self.assertEqual(self.tick(), "turn")
        self.assertEqual((len(self.spoken()), len(self.shown())), (1, 1))

    def test_a_cap_reached_in_a_turn(self):
        """A turn that has not said anything yet is not given up in silence; one that has ends."""
        self.configure(spend_caps={"tokens_day": 150})
        looks, says = (
            replace(paid(90), content="", tool_calls=tuple(made))
            for made in (call("look"), call("say", text="Let me look."))
        )
        self.model.answers = [looks, looks]
        self.hear("What is here?")
        self.assertEqual(self.tick(), "turn")
        self.assertEqual((len(self.model.requests), len(self.shown())), (2, 1))
        self.assertEqual(self.spoken(), [])
        self.assertEqual(self.tick(), "idle")
        self.assertNotIn("model failures", self.aria.runtime.counts)
        self.configure(spend_caps={"tokens_day": 200})
        self.model.answers = [says]
        self.hear("And there?")
        self.tick()
        self.assertEqual(self.aria.runtime.unanswered, {})
        self.assertEqual(len(self.model.requests), 3)
