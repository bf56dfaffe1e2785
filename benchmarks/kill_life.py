"""One life of the assistant of `kill.py`, and the look at what it left.

Both run in forked processes of their own. The parent has imported everything, so that a life
begins at once, but has never touched an object of the game.
"""

import hashlib
import json
import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"
FIGURES = (
    "told",
    "stored",
    "lost",
    "doubled",
    "changed",
    "violations",
    "timer_stopped",
    "memory_doubled",
    "ghosts",
    "recovered",
)
CONFIG = {
    "compact_preserve_window": 6,
    "max_context_tokens": 9000,
    "pre_compact_max_iterations": 3,
    "max_react_iterations": 3,
    "reply_cooldown_s": 0,
    "sleep_after_idle_s": None,
}


def prepare(folder: Path) -> None:
    """Import everything and make a game with an assistant in it, once, in the parent."""
    os.environ["EVENNIA_AI_KILL_FOLDER"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.kill_settings"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import django

    django.setup()
    import evennia

    evennia._init()
    from evennia_ai.rag_memory.setup import import_mem0

    import_mem0(folder / "ai_memory" / "mem0")
    _load_what_is_slow()
    from django.db import connections

    # A connection must not live on in a fork.
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        _make_game(folder)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError("the game could not be made")
    shutil.copy(folder / "game.db3", folder / "pristine.db3")


def _load_what_is_slow() -> None:
    """Vocabularies, vectors and modules, so that no life spends its time on them."""
    import evennia_ai.offline.brain
    import evennia_ai.recall.index
    import evennia_ai.sleep.reversal  # noqa: F401
    from evennia_ai.embedding import default_embedder
    from evennia_ai.utils.token_counter import counter_for
    from tests import loopback, waiting  # noqa: F401

    counter_for("scripted/model")("some words")
    default_embedder().embed(["some words"])


def begin_anew(folder: Path) -> None:
    """A new assistant, as an old one's archive makes each look at it slower."""
    for path in folder.glob("game.db3*"):
        path.unlink()
    shutil.copy(folder / "pristine.db3", folder / "game.db3")
    shutil.rmtree(folder / "ai_memory", ignore_errors=True)
    (folder / "told.jsonl").unlink(missing_ok=True)


def _make_game(folder: Path) -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from evennia import create_object

    room = create_object("evennia.objects.objects.DefaultRoom", key="Tavern", nohome=True)
    create_object("evennia.DefaultCharacter", key="Alice", location=room, home=room)
    aria = create_object(CHARACTER, key="Aria", location=room, home=room)
    for name, value in CONFIG.items():
        aria.assistant.attributes.add(name, value)


class Life:
    """An assistant that lives until it is killed.

    Args:
        folder: The game's folder.
        plan: What kills it, see `kill.plan_of`; None for nothing.
        seed: Of its deeds.
    """

    def __init__(self, folder: Path, plan: dict[str, Any] | None, seed: int):
        self.folder, self.plan = folder, plan or {"kind": "none"}
        self.rng = random.Random(seed)
        self.number = self.written = 0
        self.log = open(folder / "told.jsonl", "a", encoding="utf-8")  # noqa: SIM115 - lives as long
        self._wait_for = _services(folder, self._answer)
        from evennia_ai.startstop import assistants

        (self.script,) = assistants()
        self.body = self.script.obj
        self._watch()
        self._arm()
        self.script.at_server_start()

    # -- dying -------------------------------------------------------------------------------

    def die(self) -> None:
        """As a pulled plug: no handler, no flush, no cleanup."""
        os.kill(os.getpid(), signal.SIGKILL)

    def at(self, step: str) -> None:
        """Die if the plan says so."""
        if self.plan.get("step") == step:
            self.die()

    def _arm(self) -> None:
        from django.db import connection

        self.doing = "commit"
        self.script.at_commit_step = lambda name: self.at(f"{self.doing} {name}")
        semantic = self.script.semantic
        inner = semantic.add

        def add(scope: str, items: Any) -> Any:
            if items and items[0]["metadata"].get("type") == "journal":
                self.at("consolidation: before store")
                return inner(scope, items).addCallback(self._stored_memories)
            self.at("commit, then publish")
            return inner(scope, items)

        semantic.add = add
        inner_delete = semantic.delete

        def delete(scope: str, ids: Any) -> Any:
            self.at("rollback, then withdraw")
            return inner_delete(scope, ids)

        semantic.delete = delete
        self._arm_journal()
        if self.plan["kind"] == "statement":
            connection.ensure_connection()
            connection.execute_wrappers.append(self._count_statement)

    def _stored_memories(self, ids: Any) -> Any:
        self.at("consolidation: between store and mark")
        return ids

    def _arm_journal(self) -> None:
        store = self.body.journal.store
        inner = store.set

        def put(key: str, value: Any, category: str | None = None) -> None:
            turning = category == "ai_journal" and len(value.get("entries", ())) >= 50
            if turning:
                self.at("journal: page turn, first write")
            inner(key, value, category)
            if turning:
                self.at("journal: page turn, second write")

        store.set = put

    def _count_statement(self, execute: Any, sql: str, *rest: Any) -> Any:
        writes = not sql.lstrip().upper().startswith("SELECT")
        self.written += writes
        if writes and self.written == self.plan["nth"]:
            if self.plan["nth"] % 2:
                execute(sql, *rest)
            self.die()
        return execute(sql, *rest)

    # -- the log -----------------------------------------------------------------------------

    def note(self, kind: str, *entries: dict[str, Any]) -> None:
        """Write to the log and wait until it is on the disk."""
        for entry in entries:
            self.log.write(json.dumps({"kind": kind, **entry}) + "\n")
        self.log.flush()
        os.fsync(self.log.fileno())

    def _watch(self) -> None:
        history, journal = self.script.history, self.body.journal
        append, add = history.append, journal.add

        def noted_append(messages: Any) -> Any:
            stored = append(messages)
            self.note("stored", *({"id": m["id"], "sha": sha(m)} for m in stored))
            if any(m.get("tool_calls") for m in stored) and self.doing == "extraction":
                self.at("extraction: between call and result")
            return stored

        def noted_add(content: str, **fields: Any) -> Any:
            entry = add(content, **fields)
            from evennia_ai.handlers.store import on_commit

            on_commit(lambda: self.note("entry", {"id": entry["id"]}))
            return entry

        history.append, journal.add = noted_append, noted_add

    # -- living ------------------------------------------------------------------------------

    def run(self, deeds: int = 60) -> None:
        """Live: so many deeds, unless killed before."""
        self.talk()
        for _ in range(deeds):
            deed = self.rng.choice(
                ("talk", "talk", "journal", "compact", "extract", "roll_back", "dream", "rest")
            )
            getattr(self, deed)()

    def talk(self) -> None:
        """Somebody speaks, she answers."""
        from evennia_ai.assistant_character import new_event
        from evennia_ai.core.audience import PUBLIC, private
        from evennia_ai.handlers.identity import stable_id

        alice = next(obj for obj in self.body.location.contents if obj.key == "Alice")
        for _ in range(self.rng.randrange(2, 9)):
            self.number += 1
            text = f"Line {self.number} of {os.getpid()}: {self.rng.randrange(999)} crowns. "
            public = self.rng.random() < 0.8
            audience = PUBLIC if public else private([stable_id(alice)])
            event = new_event(alice, "say" if public else "whisper", text * 3, audience)
            self.note("told", {"id": event["id"]})
            self.script.hear(event)
        self.script.runtime.last_turn_at = 0.0
        self._wait_for(self.script.at_tick())

    def journal(self) -> None:
        """Many entries, so that pages turn."""
        for _ in range(self.rng.randrange(5, 30)):
            self.number += 1
            self.body.journal.add(f"Entry {self.number} of {os.getpid()}: Bob owes Alice.")

    def compact(self) -> None:
        """A manual compaction."""
        from evennia_ai.sleep.compaction import compact_conversation_history

        self.doing = "commit"
        self._wait_for(compact_conversation_history(self.script, self.body, force=True))

    def extract(self) -> None:
        """An extraction and a compaction."""
        from evennia_ai.sleep.compaction import run_pre_compaction_extraction

        self.doing = "extraction"
        self._wait_for(run_pre_compaction_extraction(self.script, self.body, 3))
        self.compact()

    def roll_back(self) -> None:
        """Take the latest compaction back; one is made before."""
        from evennia_ai.errors import AssistantError
        from evennia_ai.sleep.reversal import rollback_compaction

        self.talk()
        self.extract()
        self.doing = "rollback"
        try:
            self._wait_for(rollback_compaction(self.script, self.body))
        except AssistantError:
            return
        finally:
            self.doing = "commit"

    def dream(self) -> None:
        """All steps of the sleep cycle."""
        from evennia_ai.sleep import run_sleep_tick

        self._wait_for(run_sleep_tick(self.script, self.body))

    def rest(self) -> None:
        """What a reload saves."""
        self.script.at_server_reload()

    def _answer(self, request: Any) -> Any:
        from evennia_ai.testing import call

        if request.purpose == "summary":
            return f"They talked of crowns, summary {self.rng.randrange(10**6)}."
        if request.purpose == "pre_compaction":
            fact = f"Fact {self.rng.randrange(10**6)}: Alice has crowns."
            observed = call("update_entity_observation", entity="Alice", observation=fact)
            journal = call("add_journal_entry", content=fact)
            return self.rng.choice((journal, observed, call("noop")))
        look = call("look")
        return self.rng.choice(("Indeed.", look, look + call("search_memory", query="crowns")))


def _services(folder: Path, answer: Any) -> Any:
    """Put the services in place; returns what waits for a Deferred."""
    from evennia_ai import services
    from evennia_ai.rag_memory import Mem0Store
    from evennia_ai.testing import ScriptedModel
    from tests.waiting import wait_for

    services.use(
        model=ScriptedModel(default=answer),
        semantic=Mem0Store(folder / "ai_memory" / "mem0"),
        ready=True,
        data_dir=folder / "ai_memory",
    )
    return lambda deferred: wait_for(deferred, 50.0)


def sha(message: dict[str, Any]) -> str:
    """A digest of what must never change of a message."""
    names = ("id", "role", "content", "speaker", "tool_calls", "tool_call_id", "name", "audience")
    kept = {name: message.get(name) for name in (*names, "created_at")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def live(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Live until killed."""
    Life(folder, plan, seed).run()


def look(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Start again, undisturbed, and write what is found to ``look.json``."""
    life = Life(folder, None, seed)
    notes: list[str] = []
    _settle(life)
    found = {
        **_messages(life, notes),
        **_proof(life, notes),
        **_memories(life, notes),
        "timer_stopped": int(not (life.script.ndb._task and life.script.ndb._task.running)),
    }
    bad = [name for name, value in found.items() if value and name not in ("told", "stored")]
    found["recovered"] = int(not bad)
    (folder / "look.json").write_text(json.dumps({**found, "notes": notes}))
    (folder / "told.jsonl").write_text(_shorter(folder))


def _settle(life: Life) -> None:
    """Wait while the start completes what a commit left to be done; not for ever."""
    from tests.waiting import pump_until

    try:
        pump_until(lambda: not life.script.state.intent, 20)
    except TimeoutError:
        return  # `_proof` reports the intent


def _log(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "told.jsonl").read_text().splitlines()
    entries = []
    for line in lines:
        try:
            entries.append(json.loads(line))
        except ValueError:  # the last line, cut by the kill: nothing was acknowledged by it
            continue
    return entries


def _shorter(folder: Path) -> str:
    """The log without what has been counted as told and stored: those are kept under ``was``."""
    kinds = {"told": "was told", "stored": "was stored", "entry": "entry"}
    entries = ({**e, "kind": kinds.get(e["kind"], e["kind"])} for e in _log(folder))
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def _messages(life: Life, notes: list[str]) -> dict[str, int]:
    """Each logged message is there once, unchanged; each entry of the journal, too."""
    from evennia_ai.core.messages import is_summary

    history, log = life.script.history, _log(life.folder)
    restored = history.restored_segments()
    everything = [m for m in history.messages() if not is_summary(m)]
    for segment in history.segments():
        everything += segment["messages"] if segment["id"] not in restored else []
    times = Counter(m["id"] for m in everything)
    digests = {m["id"]: sha(m) for m in everything}
    stored = [e for e in log if e["kind"] in ("stored", "was stored")]
    lost = [e["id"] for e in stored if e["id"] not in times]
    doubled = [each for each, count in times.items() if count > 1]
    doubled += [e["id"] for e in life.script.runtime.queue if e["id"] in times]
    changed = [e["id"] for e in stored if e["id"] in digests and digests[e["id"]] != e["sha"]]
    entries = Counter(e["id"] for e in life.body.journal.recent(10**6))
    lost += [e["id"] for e in log if e["kind"] == "entry" and e["id"] not in entries]
    doubled += [each for each, count in entries.items() if count > 1]
    for name, ids in (("lost", lost), ("doubled", doubled), ("changed", changed)):
        notes += [f"{name}: {ids[:5]}"] if ids else []
    kinds = Counter(e["kind"] for e in log)
    counts = {"lost": len(lost), "doubled": len(doubled), "changed": len(changed)}
    return {"told": kinds["told"], "stored": kinds["stored"], **counts}


def _proof(life: Life, notes: list[str]) -> dict[str, int]:
    """The proof, legal prompts, and nothing that was left half done."""
    from evennia_ai.handlers.verify import verify_history
    from evennia_ai.llm_interaction.prompt import build_prompt
    from tests.loopback import check_pairs

    wrong = [str(violation) for violation in verify_history(life.script)]
    prompt = build_prompt(life.script, life.body)
    try:
        check_pairs({"messages": prompt.messages})
    except AssertionError as error:
        wrong.append(str(error))
    if not prompt.fits:
        wrong.append(f"the prompt does not fit: {prompt.budget}")
    if life.script.state.signals() or life.script.state.intent:
        wrong.append(f"left: {life.script.state.signals()}, {life.script.state.intent}")
    notes += wrong[:5]
    return {"violations": len(wrong)}


def _memories(life: Life, notes: list[str]) -> dict[str, int]:
    """After another night there is one memory a source, and none of what was withdrawn."""
    from tests.waiting import pump_until

    pump_until(lambda: not life.script.runtime.in_flight, 20)
    life.dream()
    script, scope = life.script, life.script.scope
    ids, sources = (
        life._wait_for(script.semantic.ids(scope)),
        life._wait_for(script.semantic.sources(scope)),
    )
    journal = {e["id"]: e for e in life.body.journal.recent(10**6)}
    records = {r["id"]: r for r in script.history.summaries()}
    ghosts = []
    for each in sources:
        item = journal.get(each) or records.get(each) or {"withdrawn": True}
        if item.get("withdrawn") or item.get("status") == "rolled back":
            ghosts.append(each)
    withdrawn = [each for each, entry in journal.items() if entry.get("withdrawn")]
    indexed = life._wait_for(script.memory._run(lambda index: index.get(scope, withdrawn)))
    ghosts += [turn.id for turn in indexed]
    notes += [f"ghosts: {ghosts[:5]}"] if ghosts else []
    return {"memory_doubled": len(ids) - len(sources), "ghosts": len(ghosts)}
