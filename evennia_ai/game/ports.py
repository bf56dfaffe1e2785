"""What the script offers to services: the ports of `evennia_ai.life`, wired to handlers."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, DataError, Error, IntegrityError
from evennia import AccountDB
from evennia.locks.lockhandler import get_all_lockfuncs
from evennia.utils import logger
from evennia.utils.utils import lazy_property

from evennia_ai import conf, services
from evennia_ai.errors import ModelError
from evennia_ai.feature import Feature, listed_features, usable_tools
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.seeing import manners_of, speaker_of, stable_id
from evennia_ai.game.world import GameHandler, hidden_holder, literal
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Speaker
from evennia_ai.kinds import Allowed
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import SPOKEN
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.models import Event, Spend
from evennia_ai.options import Layer
from evennia_ai.turns.agent_loop import Agent
from evennia_ai.turns.assistant import SCRIPT
from evennia_ai.turns.runtime import REPEATED_S, RUNTIMES, by_speaker, wants_answer
from evennia_ai.turns.spend_book import FORGOTTEN, SharedSpend
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.turn_taking import replied

if TYPE_CHECKING:
    from evennia import DefaultObject

_LONG = 300
# Events that wait while they cannot be stored.
MOST_WAITING = 2_000


class AssistantPorts(Agent):
    """Mixed into `AssistantScript`: what only a game has, and reports to staff."""

    now = staticmethod(time.time)
    breathe = staticmethod(services.breathe)
    cannot_store = DatabaseError
    # What `Assistant` says of each.
    runtime = property(lambda self: RUNTIMES[self.scope])
    game = property(lambda self: GameHandler(self.obj))
    model_name = property(lambda self: self.config.llm_model or conf.model_name())
    count = property(lambda self: TokenCounter(self.model_name))
    mind = property(lambda self: services.mind())
    moderator = property(lambda self: services.moderator())
    shared_spend = property(lambda self: shared_spend())

    @lazy_property
    def scope(self) -> str:
        """The assistant's own stable id, under which its memory is filed."""
        return stable_id(self)

    @lazy_property
    def store(self) -> AttributeStore:
        """The script's Attributes."""
        return AttributeStore(self, SCRIPT)

    @lazy_property
    def features(self) -> tuple[Feature, ...]:
        """The features that the game lists."""
        return listed_features(lambda error: self.trouble(str(error)))

    known_features = property(lambda self: listed_features(more=conf.SHIPPED))

    @lazy_property
    def tools(self) -> ToolRegistry:
        """What the assistant can do."""
        found = usable_tools(self.features, lambda error: self.trouble(str(error)))
        return ToolRegistry(found, lambda: self.config.tool_levels)

    @property
    def allowed(self) -> Allowed:
        """What options may name."""
        locks = set(get_all_lockfuncs())
        return Allowed(conf.allowed_models(), set(self.tools.tools), locks, fields=True)

    def shared_options(self) -> tuple[Layer, ...]:
        """The options of ``EVENNIA_AI_OPTIONS`` for its body's typeclasses, tags and prototype."""
        groups, body = conf.setting("OPTIONS"), self.obj
        if not groups or body is None:
            return ()
        names = {f"{each.__module__}.{each.__qualname__}" for each in type(body).mro()}
        names.update(body.tags.all())  # a prototype is one of them
        allowed = Allowed(lock_functions=set(get_all_lockfuncs()))
        return tuple(
            Layer(f'EVENNIA_AI_OPTIONS["{group}"]', values, allowed)
            for group, values in groups.items()
            if group in names or group.lower() in names
        )

    def who(self, person: Any) -> Speaker:
        """Name and stable id of a person, who may be given as an object of the game."""
        return person if isinstance(person, Speaker) else speaker_of(person, self.obj)

    def note_reply(self, to: str) -> None:
        """Note that somebody (stable id) was answered, so that the talk goes on."""
        if self.obj.location is not None:
            manners = manners_of(self.obj.location)
            manners.talk = replied(manners.talk, self.obj.stable_id, to, self.now())

    def log(self, text: str, warning: bool = False) -> None:
        """A line in the server log that names the assistant."""
        (logger.log_warn if warning else logger.log_info)(f"[ai] {self.key}: {text}")

    def tell_staff(self, text: str, logged: str | None = None) -> None:
        """Log a line, or `logged` in its place, and send it to admins online."""
        line = " ".join(text.splitlines())
        self.log(line if logged is None else logged)
        _tell(line, _is_admin)

    def may_change(self, person: "DefaultObject") -> bool:
        """Whether somebody may change this assistant, by its body's locks."""
        return bool(self.obj.access(person, "control") or self.obj.access(person, "edit"))

    def tell_controllers(self, text: str, known_to: str) -> None:
        """Send a line to admins online; if `known_to` is public, to all who may change it."""

        def may_know(account: AccountDB) -> bool:
            bodies = account.get_all_puppets() if known_to == PUBLIC else ()
            return _is_admin(account) or any(map(self.may_change, bodies))

        _tell(text, may_know)

    def alert(self, text: str) -> None:
        """As `trouble`, and send a line to the admins who are online."""
        self.trouble(text)
        _tell(f"{self.obj.key if self.obj else self.key}: {text}", _is_admin)

    def trouble(self, text: str) -> None:
        """Log something staff should know and show it in `aistatus`."""
        self.log(text, warning=True)
        self.runtime.note_trouble(text, self.now())
        self.runtime.counts["troubles"] += 1
        self.audit("trouble", text=text)

    def log_error(self, what: str, error: BaseException, trace: str = "") -> None:
        """Count, log and show in `aistatus` an error that was survived.

        The same error again is counted, but logged, with its trace, only after `REPEATED_S`: on a
        full disk every tick fails. What was under way for an assistant that is deleted meanwhile
        fails, too, and concerns nobody.
        """
        if self.pk is None:
            return
        runtime, now, text = self.runtime, self.now(), f"{what}: {error or type(error).__name__}"
        runtime.logged = {e: at for e, at in runtime.logged.items() if now - at < REPEATED_S}
        runtime.counts["errors"] += 1
        if text in runtime.logged:
            return
        runtime.logged[text] = now
        runtime.note_trouble(text, now, isinstance(error, ModelError))
        shown = f"{type(error).__name__}: {error}"
        logger.log_err(f"[ai] {self.key}: {what}: {shown}")
        if trace:
            self.log(trace, warning=True)
        self.audit("error", what=what, error=shown)

    def storing_failed(self, error: DatabaseError) -> None:
        """Nothing can be stored: show it to those who wait, and alert staff, once until it can."""
        if self.runtime.cannot_store:
            return
        self.runtime.cannot_store = True
        self.alert(
            f"the game's database cannot be written ({error}). What is said is kept in memory and "
            "answered when it can be; a restart before that loses it. Is the disk full?"
        )
        for group in by_speaker(filter(wants_answer, self.runtime.pending())):
            self.show_to(group, "trouble")

    def storing_works(self) -> None:
        """A tick went well; tell staff if nothing could be stored before."""
        if self.runtime.cannot_store:
            self.runtime.cannot_store = False
            self.tell_staff(f"{self.obj.key}: the game's database can be written again")

    def audit(self, kind: str, **fields: Any) -> None:
        """Note what happened; `write_events` stores it, so that nobody waits for that.

        Long texts are cut. There must be neither prompts nor keys in them.
        """
        short = {k: v[:_LONG] if isinstance(v, str) else v for k, v in fields.items()}
        text = json.dumps(short, default=str)
        waiting_events().append(Event(at=self.now(), assistant=self.key, kind=kind, text=text))

    def spent(self, reply: ModelReply, purpose: str, budget: TokenBudget | None = None) -> None:
        """Log one model call, with the budget of its prompt."""
        self.runtime.counts["calls"] += 1
        figures: dict[str, Any] = {
            "cost": reply.cost,
            "seconds": round(reply.seconds, 3),
            "attempts": reply.attempts,
            "cached": reply.cached_tokens,
        }
        if purpose in SPOKEN:
            figures["fell_back"] = reply.model == OFFLINE_MODEL != self.model_name
        if budget is not None:
            figures |= {"budget": str(budget), "left_out": budget.left_out}
            figures["trigger"] = budget.trigger
        self.audit("call", purpose=purpose, model=reply.model, tokens=reply.tokens, **figures)

    @property
    def extracts_memories(self) -> bool:
        """Whether a model turns journal entries into memories: switched on, able, under the cap."""
        able = self.model_name != OFFLINE_MODEL and self.config.llm_api == "chat"
        is_on = conf.setting("MEM0_CONFIG").get("infer") is True
        return is_on and able and not self.over_spend() and not self.limits().only_talks


def shared_spend() -> SharedSpend:
    """What all assistants have spent, and the calls that go on."""

    def make() -> SharedSpend:
        caps, hidden = partial(conf.setting, "SPEND_CAPS"), partial(hidden_holder, begins=FORGOTTEN)
        return SharedSpend(Spend.objects, caps, conf.runs_here, hidden)

    return services.kept("spend", make)


def _tell(text: str, is_meant: Callable[[AccountDB], bool]) -> None:
    """Send a line to those accounts online that are meant."""
    for account in filter(is_meant, AccountDB.objects.get_connected_accounts()):
        account.msg(literal(text))


def _is_admin(account: AccountDB) -> bool:
    """Whether an account is an admin now; a quelled superuser is one."""
    return bool(account.is_superuser or account.check_permstring("Admin"))


def waiting_events() -> list[Event]:
    """What happened and is not stored yet, oldest first."""
    return services.kept("events", list)


def write_events() -> None:
    """Store what happened since the last call; the Server calls it every few seconds.

    While the database cannot be reached or written, the newest `MOST_WAITING` wait.
    """
    events = waiting_events()
    if not events:
        return
    try:
        Event.objects.keep(events)
        events.clear()
    except Error as error:
        logger.log_err(f"[ai] cannot store what happened: {error}")
        del events[:-MOST_WAITING]
        if isinstance(error, DataError | IntegrityError):
            events.clear()  # the database would never take them
        for event in events:
            event.pk = None  # it may have one of a row that is not there
