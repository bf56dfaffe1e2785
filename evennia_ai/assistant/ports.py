"""What the script offers to services: the ports of `evennia_ai.protocol`, wired to handlers."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evennia import AccountDB
from evennia.utils import logger
from evennia.utils.utils import lazy_property

from evennia_ai import conf, services
from evennia_ai.assistant.evennia_internals import AttributeStore
from evennia_ai.assistant.game import GameHandler, literal
from evennia_ai.assistant.identity import stable_id
from evennia_ai.assistant.parts import AssistantParts
from evennia_ai.assistant.runtime import Runtime, runtime_for
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.tokens import counter_for, counter_name
from evennia_ai.protocol import Mind
from evennia_ai.tools.execution import ToolRegistry

_LONG = 300


class AssistantPorts(AssistantParts):
    """Mixed into `AssistantScript`: what only a game has, and reports to staff."""

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
    def store(self) -> AttributeStore:
        """The script's Attributes."""
        return AttributeStore(self)

    @lazy_property
    def tools(self) -> ToolRegistry:
        """What the assistant can do."""
        found = conf.usable_tools(lambda error: self.trouble(str(error)))
        return ToolRegistry(found, lambda: self.config.tool_levels)

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

    @property
    def counter_name(self) -> str:
        """The name of that counter."""
        return counter_name(self.model_name)

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

        def not_written(failure: Any) -> None:
            failure.trap(OSError)
            logger.log_err(f"[ai] cannot write {path}: {failure.value}")

        written.addErrback(not_written)

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


def _is_admin(account: Any) -> bool:
    """Whether an account has the rank now; a superuser who is quelled keeps it."""
    return bool(account.is_superuser or account.check_permstring("Admin"))


def write_audit(path: Path, kind: str, fields: Mapping[str, Any], at: float | None = None) -> None:
    """Append one line to an existing folder's log file, at `at` (seconds since the epoch) or now.

    Long texts in `fields` are cut. They must hold neither prompt text nor keys.
    """
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    line = {"at": stamp, "kind": kind, **{key: _short(value) for key, value in fields.items()}}
    with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
        log.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")


def _short(value: Any) -> Any:
    return value[:_LONG] if isinstance(value, str) else value
