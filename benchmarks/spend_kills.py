"""Kill a game with SIGKILL in the middle of billed model calls and audit the bill. Prints JSON.

Each life is a forked process: Evennia on an SQLite file, and an assistant whose calls run three at
a time, for a player, under caps of the game, the account and the assistant. The model is a provider
with a bill of its own: it writes each call that reaches it to a file and syncs that file, before
anything else happens. A life is killed as a call reaches the provider, as its reply comes, after it
was counted, at a database statement of counting, or at a random moment by its parent.

After each kill the next start is checked against the bill:

- ``uncounted``: tokens on the bill that a row (assistant, game, account) does not have;
- ``unequal``: rows that do not agree;
- ``still_open``: calls that the start left open;
- ``beyond``: tokens on the bill beyond the cap and one call.

All must be 0. ``overcounted`` are tokens that were counted for calls that a kill cut off and that
cost less than reserved, or never reached the provider.

    python -m benchmarks.spend_kills --kills 50
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# Of a call: tokens of its prompt and most of its reply. The bill is for some of the latter.
PROMPT, REPLY = 60, 40
CAP = 2_000
PARALLEL, MOMENT_S, STATEMENTS = 3, 0.4, 60
STEPS = ("sent", "answered", "counted")
FAULTS = ("uncounted", "unequal", "still_open", "beyond")


def plan_of(number: int, rng: random.Random) -> dict[str, Any]:
    """What kills a life: steps of a call in turn, database statements, moments."""
    if number % 3 == 0:
        return {"step": STEPS[number // 3 % len(STEPS)], "nth": rng.randrange(1, 6)}
    if number % 3 == 1:
        return {"step": "statement", "nth": rng.randrange(1, STATEMENTS)}
    return {"step": "moment", "after_s": round(rng.uniform(0.02, MOMENT_S), 3)}


class Bill:
    """What the provider charges, one line a call: its number and tokens."""

    def __init__(self, folder: Path):
        self._path = folder / "bill.txt"

    def charge(self, tokens: int) -> None:
        """Write a call down for good."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{tokens}\n")
            file.flush()
            os.fsync(file.fileno())

    def calls(self) -> list[int]:
        """The tokens of all calls."""
        return list(map(int, self._path.read_text().split())) if self._path.exists() else []


class Life:
    """An assistant that makes calls until it is killed or its cap is reached."""

    def __init__(self, folder: Path, plan: dict[str, Any], seed: int):
        from django.db import connection

        from evennia_ai import services
        from evennia_ai.assistant_script import all_assistants
        from evennia_ai.game.identity import stable_id
        from evennia_ai.testing import MemorySemanticStore

        self.rng, self.plan, self.bill = random.Random(seed), plan, Bill(folder)
        self.counts: Counter[str] = Counter()
        services.use(model=self, memories=MemorySemanticStore())
        (self.script,) = all_assistants()
        alice = next(o for o in self.script.obj.location.contents if o.key == "Alice")
        self.asker = stable_id(alice)
        if not self.script.game.account_id(self.asker):
            raise RuntimeError("nobody's account pays")
        connection.ensure_connection()
        connection.execute_wrappers.append(self._count_statement)
        self.script.at_server_start()

    def at(self, step: str) -> None:
        """Die by SIGKILL if the plan says so."""
        self.counts[step] += 1
        if (step, self.counts[step]) == (self.plan.get("step"), self.plan.get("nth")):
            os.kill(os.getpid(), signal.SIGKILL)

    def _count_statement(self, execute: Any, sql: Any, *rest: Any) -> Any:
        self.at("statement")
        return execute(sql, *rest)

    def complete(self, request: Any) -> Any:
        """The provider: charges, then answers after a moment."""
        from twisted.internet import reactor
        from twisted.internet.defer import Deferred

        from evennia_ai.llm_interaction.values import ModelReply

        tokens = PROMPT + self.rng.randrange(1, REPLY)
        self.bill.charge(tokens)
        self.at("sent")
        answered: Deferred[ModelReply] = Deferred()
        reply = ModelReply(content="", model="m", prompt_tokens=tokens, cost=0.0)

        def answer() -> None:
            self.at("answered")
            answered.callback(reply)

        reactor.callLater(self.rng.uniform(0, 0.02), answer)
        return answered

    def window(self, model: str) -> None:
        """Unknown."""

    def price(self, model: str) -> tuple[float, float]:
        """Free, so that caps of tokens alone decide."""
        return 0.0, 0.0

    def run(self) -> None:
        """Call until the cap is reached by all."""
        from twisted.internet.defer import inlineCallbacks

        from evennia_ai.errors import SpendError
        from evennia_ai.llm_interaction.values import ModelRequest
        from tests.waiting import pump_until

        asked = ModelRequest(
            model="m",
            messages=({"role": "user", "content": "hello"},),
            max_tokens=REPLY,
            prompt_tokens=PROMPT,
        )

        @inlineCallbacks
        def call_on() -> Any:
            with contextlib.suppress(SpendError):
                while True:
                    yield self.script.complete(asked, self.asker)
                    self.at("counted")

        running = [call_on() for _ in range(PARALLEL)]
        pump_until(lambda: all(each.called for each in running), 50.0)


def live(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Live until killed."""
    Life(folder, plan, seed).run()


def look(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Start again and write down what is counted."""
    life = Life(folder, {}, seed)
    spend = life.script.spend
    account = life.script.game.account_id(life.asker)
    rows = {holder: spend.row(holder) for holder in ("", "game", account)}
    found = {
        "counted": [row.day.spent.tokens for row in rows.values()],
        "still_open": len(rows[""].open),
    }
    (folder / "look.json").write_text(json.dumps(found))


def _add_account(folder: Path, plan: dict[str, Any], seed: int) -> None:
    from evennia import ObjectDB, create_account

    alice = ObjectDB.objects.get(db_key="Alice")
    typeclass = "evennia.accounts.accounts.DefaultAccount"
    details = ("alice", "alice@example.com", "only-for-a-benchmark")
    alice.account = create_account(*details, typeclass=typeclass)
    alice.save()


def measure(kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a game a number of times; returns the figures of the module's docstring."""
    from benchmarks import kill, kill_life

    caps = {"game": {"tokens_day": CAP}, "account": {"tokens_month": CAP}}
    os.environ["EVENNIA_AI_SPEND_CAPS"] = json.dumps(caps)
    rng, began = random.Random(seed), time.monotonic()
    figures: Counter[str] = Counter()
    by_step: Counter[str] = Counter()
    notes: list[str] = []
    kill_life.prepare(folder)
    kill_life.begin_anew(folder)
    if kill._live(_add_account, folder, {}, 0) != 0:
        raise RuntimeError("the account could not be made")
    shutil.copy(folder / "game.db3", folder / "pristine.db3")
    number = 0
    while by_step.total() < kills and number < 3 * kills:
        plan = plan_of(number, rng)
        outcome = kill._live(live, folder, plan, seed * 100_000 + number)
        number += 1
        bill, name = Bill(folder).calls(), str(plan["step"])
        if outcome == -signal.SIGKILL:
            by_step[name] += 1
        elif outcome != 0:
            notes.append(f"life {number} ({plan}) ended with {outcome}")
        if kill._live(look, folder, {}, 0) != 0:
            notes.append(f"after {plan}: the look failed")
            continue
        found = json.loads((folder / "look.json").read_text())
        counted, billed = found["counted"], sum(bill)
        figures["uncounted"] += max(0, billed - min(counted))
        figures["unequal"] += len({*counted}) - 1
        figures["still_open"] += found["still_open"]
        figures["beyond"] += max(0, billed - CAP - (PROMPT + REPLY))
        if any(figures[fault] for fault in FAULTS) and len(notes) < 20:
            notes.append(f"after {plan}: counted {counted}, billed {billed}")
        if min(counted) >= CAP:  # a cap was reached and held: begin with an empty bill
            figures["caps reached"] += 1
            figures["calls"] += len(bill)
            figures["overcounted"] += max(counted) - billed
            bill, counted = [], [0]
            (folder / "bill.txt").unlink()
            kill_life.begin_anew(folder)
    figures["calls"] += len(bill)
    figures["overcounted"] += max(counted) - sum(bill)
    return {
        "kills": by_step.total(),
        "by_step": dict(sorted(by_step.items())),
        **{name: figures[name] for name in (*FAULTS, "overcounted", "caps reached", "calls")},
        "lives": number,
        "notes": notes,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Print the figures. The exit code says whether a cap did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="evennia-ai-spend-", dir=memory))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Evennia prints while it loads
            figures = measure(options.kills, options.seed, folder)
    finally:
        if (errors := folder / "errors.log").exists():
            print(errors.read_text()[-4000:], file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    bad = any(figures[name] for name in FAULTS) or figures["notes"]
    sys.exit(bool(bad) or figures["kills"] < options.kills)


if __name__ == "__main__":
    main()
