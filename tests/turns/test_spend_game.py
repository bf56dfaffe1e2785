"""Spend in a real game: who pays, what outlives a restart, who may lift caps, what is shown."""

from pathlib import Path

from django.test import override_settings
from evennia import search_object

from evennia_ai import services
from evennia_ai.game.seeing import stable_id
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.models import Call
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.turns.spend_book import FORGOTTEN, GAME, GUEST, Amount
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

REPLY = ModelReply(
    content="Your boat is called Gull.",
    model="paid",
    prompt_tokens=900,
    completion_tokens=100,
    cost=0.25,
    cached_tokens=600,
)


class SpendGameTest(CommandLineTest):
    """Aria's model is billed; the account of `char1` asks."""

    def setUp(self):
        super().setUp()
        self.model.default = REPLY
        self.configure(reply_cooldown_s=0, sleep_after_idle_s=None, emotes={"thinking": None})
        self.payer = stable_id(self.account)

    def ask(self, text="Aria, what is my boat called?"):
        return self.talk(text)

    def spent(self, holder=None):
        holder = self.script.spend.holder if holder is None else holder
        return self.script.shared_spend.spent(holder, "month", self.script.now())

    def restart(self):
        """What is only in memory is gone."""
        recall = services.mind().recall
        services.reset()
        services.use(model=self.model, memories=self.semantic, recall=recall, ready=True)
        del self.script.__dict__["spend"]


class TestWhoPays(SpendGameTest):
    """A turn is paid by the assistant, the game and the account of the player who asked."""

    def test_a_turn_is_paid_and_outlives_a_restart(self):
        """All three have paid the turn, also after a restart."""
        self.assertEqual(self.ask(), "turn")
        self.assertEqual(self.logged("call")[0]["cached"], 600)
        self.restart()
        for holder in (None, GAME, ("account", self.payer)):
            self.assertEqual((self.spent(holder).tokens, self.spent(holder).cost), (1000, 0.25))
            self.assertEqual((self.spent(holder).cached, self.spent(holder).calls), (600, 1))

    @override_settings(EVENNIA_AI_SPEND_CAPS={"account": {"tokens_day": 1000}})
    def test_who_is_forgotten_stays_at_the_cap(self):
        """A cap that is reached stays so, also after a restart; no row names the account."""
        shared, asker = self.script.shared_spend, stable_id(self.char1)
        self.assertEqual(self.ask(), "turn")
        self.assertIsNotNone(self.script.spend.reached(asker))
        for _ in range(2):
            shared.forget([self.payer, asker])
            self.assertIsNotNone(self.script.spend.reached(asker))
            for name in (self.payer, self.account.key):
                self.assertNotIn(name, str([*Call.objects.values()]))
        self.restart()
        self.assertIsNotNone(self.script.spend.reached(asker))

    def test_old_rows(self):
        """Who stands for a guest or who is forgotten is nobody later; old rows are dropped."""
        for day, account in (
            ("2025-05-20", "a1.x"),
            ("2026-05-31", f"{FORGOTTEN}1"),
            ("2026-06-01", f"{FORGOTTEN}2"),
            ("2026-06-29", f"{GUEST}1"),
            ("2026-06-30", f"{GUEST}2"),
            ("2026-06-30", "a1.x"),
        ):
            of = {"day": day, "assistant": "s1", "purpose": "awake", "model": "m"}
            Call.objects.note(Amount(1, 70), **of, account=account)
        Call.objects.tidy("2026-06-30")
        by = {account: spent.calls for account, spent in Call.objects.sums("account", "").items()}
        self.assertEqual(by, {"": 2, "a1.x": 1, f"{FORGOTTEN}2": 1, f"{GUEST}2": 1})

    def test_a_row_for_each_kind_of_call(self):
        """What is alike is added up; sums by any column, of any day on."""
        for day, account, cost in (("2026-01-01", "a", 0.5), ("2026-01-02", "b", 2.0)) * 2:
            of = {"day": day, "assistant": "s1", "purpose": "awake", "model": "m"}
            Call.objects.note(Amount(1, 10, 3, 4, cost=cost), **of, account=account)
        self.assertEqual(Call.objects.count(), 2)
        sums = Call.objects.sums("account", "2026-01-01")
        self.assertEqual(
            sums, {"a": Amount(2, 20, 6, 8, cost=1.0), "b": Amount(2, 20, 6, 8, cost=4.0)}
        )
        self.assertEqual([*Call.objects.sums("day", "2026-01-02")], ["2026-01-02"])
        self.assertEqual([*Call.objects.sums("model", "", "2026-01-01", account="b")], [])

    def test_two_rows_of_one_kind(self):
        """As two processes make them, or an account that is forgotten twice: a call counts once."""
        of = {"day": "2026-01-01", "assistant": "s1", "purpose": "awake", "model": "m"}
        for account in ("a", "b"):
            Call.objects.note(Amount(1, 10), **of, account=account)
        Call.objects.rename("b", "a")
        Call.objects.note(Amount(1, 5), **of, account="a")
        self.assertEqual(Call.objects.sums("account", ""), {"a": Amount(3, 25)})

    def test_embeddings_are_paid(self):
        """Where a model is billed for embeddings, they count, and stop at a cap."""
        self.semantic.billed_embedder = "text-embedding-3-small"
        self.model.price = (1e-3, 0.0)

        def consolidated(limit, *facts):
            self.configure(spend_caps={"tokens_day": limit})
            for fact in facts:
                self.aria.journal.add(fact)
            done = wait_for(consolidate_memories_to_semantic(self.script, self.aria))
            return done["consolidated"]

        self.assertEqual(consolidated(10, "Alice owes Bob 12 crowns, said at dawn."), 1)
        self.assertEqual((self.spent().tokens, round(self.spent().cost, 6)), (13, 0.013))
        self.assertEqual(consolidated(10, "Bob paid Alice 5 crowns back."), 0)
        self.assertEqual(self.spent().tokens, 13)
        self.assertEqual(consolidated(None), 1)


class TestWhoLiftsCaps(SpendGameTest):
    """Builders lower caps; only admins raise or remove them."""

    def setUp(self):
        super().setUp()
        self.be("Builder")
        self.aria.locks.add(f"control:id({self.char1.id});edit:id({self.char1.id})")
        self.script.spend.add(Amount(1, 5))

    def cap(self, value, shown):
        self.assertTold(f"aiconfig Aria spend_caps.tokens_day = {value}", shown)

    def limit(self):
        return self.script.config.spend_caps["tokens_day"]

    def test_builders_lower(self):
        """A builder adds and lowers a cap, and cannot take that back."""
        for value in (1000, 500):
            self.cap(value, f"is now {value}")
        for value in (501, "none", "default"):
            self.cap(value, "Only admins raise or remove spend limits")
        self.assertEqual(self.limit(), 500)
        self.be("Admin")
        self.cap("none", "is now None")

    def test_building_commands(self):
        """Evennia's own commands lower a cap that was set, and change no more of spend."""
        self.script.state.configure({"spend_caps": {"tokens_day": 500}})
        before = self.script.spend.today()
        number = self.script.id
        for line in (
            f"set/script #{number}/spend_caps = {{'tokens_day': 9999}}",
            f"set/script #{number}/spend_caps =",
            f"set/script #{number}/spend =",
            f"set/script #{number}/spend_caps = 'none'",
            f"wipe #{self.aria.id}",
        ):
            with self.subTest(line):
                self.typed(line)
                self.assertEqual((self.limit(), self.script.spend.today()), (500, before))
        self.typed(f"set/script #{number}/spend_caps = {{'tokens_day': 400}}")
        self.assertEqual(self.limit(), 400)
        self.cap(9999, "Only admins")

    def test_a_copy(self):
        """A copy has the caps of the original and has spent nothing; its limits go with it."""
        self.script.state.configure({"spend_caps": {"tokens_day": 500}})
        self.typed("copy Aria = Clone")
        clone = search_object("Clone")[0].assistant
        self.typed(f"set/script #{clone.id}/spend_caps =")
        self.assertEqual(clone.config.spend_caps["tokens_day"], 500)
        self.assertEqual(clone.spend.today().tokens, 0)
        clone.obj.delete()
        self.assertEqual(Call.objects.limits(clone.scope), {})
        self.assertEqual(Call.objects.limits(self.script.scope), {"tokens_day": 500})


class TestShown(SpendGameTest):
    """What staff see of spend."""

    def test_status_and_doctor(self):
        """`aistatus` and the doctor: today and this month, with the limits."""
        self.configure(spend_caps={"tokens_day": 5000})
        self.ask()
        spent = ("1 call, 1,000 tokens, $0.2500", "month")
        self.assertTold("aistatus Aria", *spent, "limits: 5,000 tokens a day")
        with override_settings(EVENNIA_AI_SPEND_CAPS={"game": {"cost_month": 20.0}}):
            self.assertTold("ai/doctor", *spent, "limits: $20", until="model:")

    def test_limits_that_hold(self):
        """`aistatus` names the game's limits that an assistant's calls count towards, too."""
        for caps, here, words in (
            (None, False, "limits: none of its own; of the game: 2,000,000 tokens a day"),
            (None, True, "limits: none of its own; of the game: none"),
            ({"game": {"cost_day": 2}}, True, "limits: none of its own; of the game: $2 a day"),
        ):
            self.script.shared_spend.runs_here = lambda model, here=here: here
            with self.subTest(words), override_settings(EVENNIA_AI_SPEND_CAPS=caps):
                self.assertTold("aistatus Aria", words)

    def test_one_way_to_a_model(self):
        """No other module of the package asks a model."""
        root = Path(services.__file__).parent
        asking = [
            path for path in root.rglob("*.py") if "model.complete(" in path.read_text("utf-8")
        ]
        self.assertEqual(asking, [root / "turns" / "spend.py"])

    def test_the_doctor_is_paid_by_the_game(self):
        """The doctor's question counts, in the game and from a shell, and obeys the cap."""
        tokens = self.spent(GAME).tokens
        for number in (1, 2):
            self.typed("ai/doctor", until="model:")
            self.assertEqual(self.spent(GAME).tokens, tokens + 1_000 * number)
        with override_settings(EVENNIA_AI_SPEND_CAPS={"game": {"tokens_day": 5}}):
            self.assertTold("ai/doctor", "was not asked", "5 tokens a day", until="was not asked")
