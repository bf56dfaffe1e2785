"""One life of the assistant of `kill.py`, and the check of what it left.

Both run in forked processes. The parent has imported everything, so that a life begins at once, but
has never touched an object of the game.
"""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import kill_steps
from benchmarks.kill_steps import CHRONICLE, CONFIG, Killer, Log

CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"
DEEDS = (
    "talk",
    "talk",
    "journal",
    "compact",
    "extract",
    "roll_back",
    "dream",
    "rest",
    "mask",
    "emergency",
)


def prepare(folder: Path) -> None:
    """Import everything and make a game with an assistant, once, in the parent."""
    os.environ["EVENNIA_AI_KILL_FOLDER"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.kill_settings"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import django

    django.setup()
    import evennia

    evennia._init()
    from evennia_ai.rag_memory.mem0 import import_mem0

    import_mem0(folder / "ai_memory" / "mem0")
    _load_what_is_slow()
    from django.db import connections

    # A fork must not share the parent's connection.
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
    """Load vocabularies, vectors and modules, so that no life spends time on them."""
    import evennia_ai.llm_interaction.offline.brain
    import evennia_ai.recall.index
    import evennia_ai.sleep.compaction.rollback  # noqa: F401
    from evennia_ai.llm_interaction.tokens import counter_for
    from evennia_ai.recall.embedding import default_embedder
    from tests import loopback, waiting  # noqa: F401

    counter_for("scripted/model")("some words")
    default_embedder().embed(["some words"])


def begin_anew(folder: Path) -> None:
    """Create a new assistant, because an old one's archive slows down each check."""
    for path in folder.glob("game.db3*"):
        path.unlink()
    shutil.copy(folder / "pristine.db3", folder / "game.db3")
    shutil.rmtree(folder / "ai_memory", ignore_errors=True)
    (folder / "log.jsonl").unlink(missing_ok=True)


def _make_game(folder: Path) -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from evennia import create_object

    room = create_object("evennia.objects.objects.DefaultRoom", key="Tavern", nohome=True)
    create_object("evennia.DefaultCharacter", key="Alice", location=room, home=room)
    aria = create_object(CHARACTER, key="Aria", location=room, home=room)
    chronicle = create_object("evennia.DefaultObject", key="chronicle", location=room, home=room)
    chronicle.db.desc = CHRONICLE
    for name, value in CONFIG.items():
        aria.assistant.attributes.add(name, value)


class Life:
    """An assistant that lives until it is killed.

    Args:
        folder: The game's folder.
        plan: What kills it, see `kill_steps.plan_of`; None for nothing.
        seed: Seed of its actions.
    """

    def __init__(self, folder: Path, plan: dict[str, Any] | None, seed: int):
        self.rng = random.Random(seed)
        self.number = self.reading = 0
        self.is_behind = bool(plan and plan.get("behind"))
        self.log = Log(folder / "log.jsonl")
        self.wait = _services(folder, self._answer)
        from evennia_ai.assistant_script import all_assistants

        (self.script,) = all_assistants()
        self.body = self.script.obj
        type(self.script).reply_cooldown_s = 0
        kill_steps.restore(self.script)
        Killer(self.log, plan).arm()
        self.script.at_server_start()

    def run(self, deeds: int = 60) -> None:
        """Live for a number of actions, unless killed before."""
        self.talk()
        for _ in range(deeds):
            getattr(self, self.rng.choice(("behind", "better") if self.is_behind else DEEDS))()

    def talk(self) -> None:
        """Let somebody speak, and the assistant answer."""
        self._hear(self.rng.randrange(2, 9))
        self.tick()

    def tick(self) -> None:
        """Run a tick at once; lines and a late tick may arrive in the middle of it."""
        self.script.runtime.last_turn_at = 0.0
        running = self.script.at_tick()
        self._hear(self.rng.randrange(3))
        late = self.script.at_tick()
        self.wait(running)
        self.wait(late)

    def _hear(self, lines: int) -> None:
        from evennia_ai.assistant_character import new_event
        from evennia_ai.game.identity import stable_id
        from evennia_ai.history.audience import PUBLIC, private

        alice = next(obj for obj in self.body.location.contents if obj.key == "Alice")
        for _ in range(lines):
            self.number += 1
            text = f"Line {self.number} of {os.getpid()}: {self.rng.randrange(999)} crowns. "
            public = self.rng.random() < 0.8
            audience = PUBLIC if public else private([stable_id(alice)])
            channel = "say" if public else "whisper"
            self.script.hear(new_event(alice, channel, text * 3, audience))

    def journal(self) -> None:
        """Write many entries, so that the journal turns pages."""
        for _ in range(self.rng.randrange(5, 30)):
            self.number += 1
            self.body.journal.add(f"Entry {self.number} of {os.getpid()}: Bob owes Alice.")

    def compact(self) -> None:
        """Compact manually."""
        from evennia_ai.sleep.compaction.compact import compact_conversation_history

        self.wait(compact_conversation_history(self.script, self.body, force=True))

    def extract(self) -> None:
        """Run an extraction and a compaction."""
        from evennia_ai.sleep.compaction import run_pre_compaction_extraction

        self.wait(run_pre_compaction_extraction(self.script, self.body, 3))
        self.compact()

    def roll_back(self) -> None:
        """Roll back the latest compaction; make one first."""
        from evennia_ai.errors import AssistantError
        from evennia_ai.sleep.compaction.rollback import rollback_compaction

        self.talk()
        self.extract()
        try:
            self.wait(rollback_compaction(self.script, self.body))
        except AssistantError:
            return

    def mask(self) -> None:
        """Produce large tool outputs and a trigger at night that masking them satisfies."""
        self.reading = 2
        self.talk()
        self.talk()
        self._triggered("compact_sleep_threshold", self.dream)

    def emergency(self) -> None:
        """Fill the context before a tick begins."""
        self.talk()
        self._triggered("compact_emergency_threshold", self.talk)

    def behind(self) -> None:
        """Let a compaction run in the background, and talk meanwhile."""
        self.talk()
        self._triggered("compact_sleep_threshold", self.tick)
        self.talk()
        self._settle()

    def better(self) -> None:
        """An emergency, and the better summary behind it."""
        self.emergency()
        self.tick()
        self._settle()

    def _settle(self) -> None:
        """Wait until no tick runs, and nothing in the background."""
        from tests.waiting import pump_until

        runtime = self.script.runtime
        pump_until(lambda: runtime.lock.running is None and runtime.behind is None, 50.0)

    def _triggered(self, option: str, deed: Callable[[], None]) -> None:
        """Do something while usage is just above a trigger and nothing holds it up."""
        if self.script.state.hold:
            self.compact()
            self.talk()
        kill_steps.lower(self.script, option)
        deed()
        kill_steps.restore(self.script)

    def dream(self) -> None:
        """Run all steps of the sleep cycle."""
        from evennia_ai.sleep import run_sleep_tick

        self.wait(run_sleep_tick(self.script, self.body))

    def rest(self) -> None:
        """Save what a reload saves."""
        self.script.at_server_reload()

    def _answer(self, request: Any) -> Any:
        from evennia_ai.testing import call
        from tests.asked import source_of

        if request.purpose == "summary":
            named = re.findall(r"\d+ crowns", source_of(request.messages)) or ["crowns"]
            return f"They talked of {self.rng.choice(named)}."
        if request.purpose == "pre_compaction":
            fact = f"Fact {self.rng.randrange(10**6)}: Alice has crowns."
            observed = call("update_entity_observation", entity="Alice", observation=fact)
            journal = call("add_journal_entry", content=fact)
            return self.rng.choice((journal, observed, call("noop")))
        if self.reading:
            self.reading -= 1
            return call("look", target="chronicle")
        look = call("look")
        return self.rng.choice(("Indeed.", look, look + call("search_memory", query="crowns")))


def _services(folder: Path, answer: Any) -> Any:
    """Install the services; return a function that waits for a Deferred."""
    from evennia_ai import services
    from evennia_ai.rag_memory import Mem0Backend
    from evennia_ai.testing import ScriptedModel
    from tests.waiting import wait_for

    services.use(
        model=ScriptedModel(default=answer),
        semantic=Mem0Backend(folder / "ai_memory" / "mem0"),
        ready=True,
        data_dir=folder / "ai_memory",
    )
    return lambda deferred: wait_for(deferred, 50.0)


def live(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Live until killed."""
    Life(folder, plan, seed).run()


def look(folder: Path, plan: dict[str, Any], seed: int) -> None:
    """Start again undisturbed and write the results of the check to ``look.json``."""
    from benchmarks import kill_look

    life = Life(folder, None, seed)
    found = life.wait(kill_look.look(life.script, life.log))
    (folder / "look.json").write_text(json.dumps(kill_look.verdict(found)))
