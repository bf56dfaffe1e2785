"""What the script offers to services: the ports of `evennia_ai.protocol`, wired to handlers."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from evennia import AccountDB
from evennia.utils import logger
from evennia.utils.utils import lazy_property
from twisted.internet.defer import Deferred

from evennia_ai import conf, services
from evennia_ai.assistant.audit import write_audit
from evennia_ai.assistant.evennia_internals import AttributeStore
from evennia_ai.assistant.game import GameHandler
from evennia_ai.assistant.identity import stable_id
from evennia_ai.assistant.markup import literal
from evennia_ai.assistant.react_loop import run_turn
from evennia_ai.assistant.runtime import Runtime, runtime_for
from evennia_ai.assistant.spend import SpendHandler
from evennia_ai.assistant.state import StateHandler
from evennia_ai.assistant.tick import is_called
from evennia_ai.assistant.turn import TurnReport, TurnRequest
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.tokens import counter_for, counter_name
from evennia_ai.protocol import Mind
from evennia_ai.rag_memory.indexing import memory_of
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.ledger_store import LedgerHandler
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.rag_memory.search import Memory
from evennia_ai.tools.execution import ToolRegistry


class AssistantPorts:
    """Mixed into `AssistantScript`: handlers as lazy properties, reports as methods."""

    now = staticmethod(time.time)

    @lazy_property
    def scope(self) -> str:
        """The assistant's own stable id, under which its memory is filed."""
        return stable_id(self)

    @property
    def runtime(self) -> Runtime:
        """What is held in memory while the server runs."""
        return runtime_for(self.scope)

    @lazy_property
    def state(self) -> StateHandler:
        """Mode, signals, configuration."""
        return StateHandler(AttributeStore(self), lambda problem: self.trouble(str(problem)))

    @lazy_property
    def history(self) -> HistoryHandler:
        """The conversation and its archive."""
        return HistoryHandler(
            AttributeStore(self), self._counter, self._now, self._stored, self._changed
        )

    @lazy_property
    def ledger(self) -> LedgerHandler:
        """Notes people approved, pinned into every prompt."""
        return LedgerHandler(AttributeStore(self), self._now)

    @property
    def journal(self) -> JournalHandler:
        """What the body wrote down."""
        return self.obj.journal

    @property
    def entities(self) -> EntityHandler:
        """What the body knows of people, places and things."""
        return self.obj.entities

    @lazy_property
    def spend(self) -> SpendHandler:
        """What today's calls cost."""
        return SpendHandler(AttributeStore(self), self._now)

    @lazy_property
    def memory(self) -> Memory:
        """Everything heard, said or written, to be found again."""
        return memory_of(self)

    @lazy_property
    def tools(self) -> ToolRegistry:
        """What the assistant can do."""
        found = conf.usable_tools(lambda error: self.trouble(str(error)))
        return ToolRegistry(found, lambda: self.config.tool_levels)

    @property
    def config(self) -> Any:
        """The configuration now."""
        return self.state.config()

    @property
    def mind(self) -> Mind:
        """What computes or waits for it."""
        return services.mind()

    @property
    def ready(self) -> bool:
        """Whether ticks may think."""
        return services.ready()

    @property
    def model_name(self) -> str:
        """The assistant's model, or the game's."""
        return self.config.llm_model or conf.model_name()

    @property
    def game(self) -> GameHandler:
        """The game, to act in."""
        return GameHandler(self.obj)

    @property
    def counter(self) -> Callable[[str], int]:
        """The token counter of its model, for short texts."""
        return counter_for(self.model_name)

    def count(self, text: str) -> int:
        """Tokens of a short text for its model; count long ones with `mind.count_tokens`."""
        return self.counter(text)

    def run_turn(self, request: TurnRequest) -> "Deferred[TurnReport]":
        """Think and act until done; see `assistant.react_loop.run_turn`."""
        return run_turn(self, self.obj, request)

    def is_called(self) -> bool:
        """Whether somebody has spoken to it since its last tick."""
        return is_called(self)

    def run_exclusive(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something while no tick runs, after the one in flight; fires with its result."""
        return self.runtime.run_exclusive(function)

    def at_commit_step(self, name: str) -> None:
        """Called before each step of a commit; what it raises takes the commit back."""

    def log(self, text: str, warning: bool = False) -> None:
        """A line in the server log that names the assistant."""
        (logger.log_warn if warning else logger.log_info)(f"[ai] {self.key}: {text}")

    def tell_staff(self, text: str) -> None:
        """A line for the log and for staff who follow it; who is staff no more follows no more."""
        line = " ".join(text.splitlines())
        self.log(line)
        for account in AccountDB.objects.filter(pk__in=self.state.followers()):
            if _is_admin(account):
                account.msg(literal(line))
            else:
                self.state.follow(account.pk)

    def alert(self, text: str) -> None:
        """Something staff must see to: as `trouble`, and a line for followers and admins there."""
        self.trouble(text)
        line = f"{self.obj.key if self.obj else self.key}: {text}"
        self.tell_staff(line)
        followers = self.state.followers()
        for account in AccountDB.objects.get_connected_accounts():
            if account.pk not in followers and _is_admin(account):
                account.msg(literal(line))

    def trouble(self, text: str) -> None:
        """Something staff should know: logged, and shown in `aistatus`."""
        self.runtime.last_error = text
        self.runtime.counts["troubles"] += 1
        self.log(text, warning=True)
        self.audit("trouble", text=text)

    def log_error(self, what: str, error: BaseException) -> None:
        """An error that was survived: counted, logged with its type, shown in `aistatus`."""
        self.runtime.counts["errors"] += 1
        self.runtime.last_error = f"{what}: {error or type(error).__name__}"
        logger.log_err(f"[ai] {self.key}: {what}: {type(error).__name__}: {error}")
        self.audit("error", what=what, error=f"{type(error).__name__}: {error}")

    def audit(self, kind: str, **fields: Any) -> None:
        """A line in the audit log, soon; a full disk is reported, and the tick goes on.

        Written on a thread, in order: opening and closing a file may take the reactor long.
        """
        path = conf.log_path()
        line = {"assistant": self.key, **fields}
        written = services.on_disk(write_audit, path, kind, line, self.now())
        written.addErrback(lambda failure: _not_written(path, failure))

    def spent(self, reply: Any, purpose: str) -> None:
        """Count and log one model call."""
        tokens = reply.prompt_tokens + reply.completion_tokens
        self.runtime.counts["calls"] += 1
        if reply.model != OFFLINE_MODEL:
            self.spend.add(tokens, reply.cost)
        self.audit(
            "call",
            purpose=purpose,
            model=reply.model,
            tokens=tokens,
            cost=reply.cost,
            seconds=round(reply.seconds, 3),
            attempts=reply.attempts,
        )

    @property
    def extracts_memories(self) -> bool:
        """Whether a model turns journal entries into memories: the owner wants it and can pay."""
        able = self.model_name != OFFLINE_MODEL and self.config.llm_api == "chat"
        return conf.setting("MEM0_INFER") is True and able and not self.over_spend()

    def over_spend(self) -> bool:
        """Whether today's cap is reached."""
        return self.spend.over(self.config.spend_max_tokens_day)

    def _now(self) -> float:
        return self.now()

    def _counter(self) -> tuple[str, Any]:
        return counter_name(self.model_name), counter_for(self.model_name)

    def _stored(self, messages: Sequence[Message]) -> None:
        self.memory.remember_messages(messages)

    def _changed(self, messages: Sequence[Message], gone: Collection[str]) -> None:
        self.memory.correct_messages(messages, gone)


def _is_admin(account: Any) -> bool:
    """Whether an account has the rank now; a superuser who is quelled keeps it."""
    return bool(account.is_superuser or account.check_permstring("Admin"))


def _not_written(path: Any, failure: Any) -> None:
    """Tell of an audit line that could not be written."""
    failure.trap(OSError)
    logger.log_err(f"[ai] cannot write {path}: {failure.value}")
