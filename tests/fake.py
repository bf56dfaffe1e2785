"""An assistant without a game: the package's own handlers and services on dicts.

The model is scripted, work is done at once, and the clock stands still until it is advanced.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from evennia_ai.errors import StoreError, ToolError
from evennia_ai.feature import Feature
from evennia_ai.history.audience import PUBLIC, members, private
from evennia_ai.history.messages import Speaker
from evennia_ai.kinds import Allowed
from evennia_ai.language.times import spoken_time
from evennia_ai.life import Named, Told
from evennia_ai.mind.mind import Mind
from evennia_ai.options import OPTIONS, Layer
from evennia_ai.rag_memory.entities import Profile
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.finder import Verdict
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.memory import LifeMemory, RecallJobs
from evennia_ai.testing import InlineWorker
from evennia_ai.turns.moderation import Moderator
from evennia_ai.turns.runtime import Runtime
from evennia_ai.turns.spend_book import Amount, SharedSpend
from evennia_ai.turns.tick import Living
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from tests.memories import MemoryIndex, MemorySemanticStore
from tests.models import ScriptedModel

# Stands for a stored None, which must differ from nothing stored.
_STORED_NONE = object()


class MemoryStore:
    """Values by key and category in a dict, with the promises of `AttributeStore`."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str | None], Any] = {}
        self._waiting: list[Callable[[], Any]] | None = None

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """All values are in memory already."""

    def get(self, key: str, category: str | None = None, default: object = None) -> Any:
        return copy.deepcopy(self.values.get((key, category), default))

    def get_own(self, key: str, category: str | None = None) -> list[Any]:
        items = self.get(key, category)
        return items if isinstance(items, list) else []

    def stamp(self, key: str, category: str | None = None) -> object:
        at = (key, category)
        value = self.values.get(at)
        return _STORED_NONE if value is None and at in self.values else value

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        return tuple(self.stamp(key, category) for key in keys)

    def set(self, key: str, value: object, category: str | None = None) -> None:
        self.values[(key, category)] = copy.deepcopy(value)

    def delete(self, key: str, category: str | None = None) -> None:
        self.values.pop((key, category), None)

    def delete_all(self, keys: Iterable[str], category: str | None = None) -> None:
        for key in keys:
            self.delete(key, category)

    def move(self, keys: Iterable[str], category: str, to: str) -> None:
        keys = [*keys]
        if lost := [key for key in keys if (key, category) not in self.values]:
            raise StoreError(f"`{lost[0]}` is not in `{category}`.")
        for key in keys:
            self.values[key, to] = self.values.pop((key, category))

    def keys(self, category: str) -> tuple[str, ...]:
        return tuple(sorted(key for key, where in list(self.values) if where == category))

    def categories(self, beginning: str) -> tuple[str, ...]:
        found = {each for _, each in self.values if each and each.startswith(beginning)}
        return tuple(sorted(found))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before, outer = dict(self.values), self._waiting
        mine: list[Callable[[], Any]] = []
        self._waiting = mine
        try:
            yield
        except BaseException:
            self.values = before
            mine.clear()
            raise
        finally:
            self._waiting = outer
        for callback in mine:
            self.on_commit(callback)

    def on_commit(self, callback: Callable[[], Any]) -> None:
        if self._waiting is None:
            callback()
        else:
            self._waiting.append(callback)


class MemorySpend:
    """What was spent, in a list, as a `turns.spend_book.SpendTable`; nothing becomes too old."""

    def __init__(self) -> None:
        self.rows: list[tuple[dict[str, str], Amount]] = []
        self.caps: dict[str, dict[str, float]] = {}

    def note(self, amount: Amount, **of: str) -> None:
        self.rows.append((of, amount))

    def sums(self, by: str, since: str, until: str = "9", **of: str) -> dict[str, Amount]:
        found: dict[str, Amount] = {}
        for row, amount in self.rows:
            if since <= row["day"] <= until and of.items() <= row.items():
                found[row[by]] = found.get(row[by], Amount()) + amount
        return found

    def rename(self, account: str, heir: str) -> None:
        for row, _ in self.rows:
            row["account"] = heir if row["account"] == account else row["account"]

    def tidy(self, day: str) -> None:
        """All of it is kept."""

    def limits(self, assistant: str) -> dict[str, float]:
        return self.caps.get(assistant, {})

    def set_limits(self, assistant: str, limits: Mapping[str, float]) -> None:
        self.caps[assistant] = dict(limits)


class FakeGame:
    """A tavern with Alice, Bob and Cora in it.

    `said` keeps what was said and `shown` what was posed, with its audience. What has no method
    here is answered by `answers`, whoever asks.
    """

    people = {"Alice": "o1.a", "Bob": "o2.b", "Cora": "o3.c"}
    active: tuple[str, ...] = tuple(people.values())
    steps: tuple[str, ...] = ()
    answers: Mapping[str, object] = {
        "look": "A tavern. " + "Barrels stand along the wall. " * 60,
        "place": {"id": "r1", "key": "Tavern", "description": "", "exits": []},
        "here": dict.fromkeys(people.values(), True),
        "present": tuple(
            {"id": each, "key": key, "assistant": False} for key, each in people.items()
        ),
        "things": {"t1.lamp": "a lamp"},
        "has_things": True,
        "carried": (),
        "audience": PUBLIC,
        "payer": "",
        "allowed": True,
        "needs_rank": False,
        "obeys": True,
        "show_typing": None,
        "people_named": (),
        **dict.fromkeys(
            ("move", "get", "drop", "give"), ToolError("there is nothing like it here")
        ),
    }

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.shown: list[tuple[str, str]] = []
        self.manners = SimpleNamespace(cued_at=float("-inf"))

    def asked_by(self, asker: str | None) -> "FakeGame":
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.answers:
            raise AttributeError(name)

        def answer(*asked: object, **options: object) -> Any:
            if isinstance(value := self.answers[name], Exception):
                raise value
            return copy.deepcopy(value)

        return answer

    def speak(
        self, text: str, audience: str, channel: str, asker: str | None, to: str | None = None
    ) -> Told:
        self.said.append((audience, text))
        return ()

    def show(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        self.shown.append((audience, text))

    def say(self, text: str) -> Told:
        self.said.append((PUBLIC, text))
        return ()

    emote = say

    def whisper(self, target: str, text: str, audience: str = PUBLIC) -> Told:
        if self.identify(target) is None:
            raise ToolError(f"there is no `{target}` here")
        self.said.append((audience, text))
        return ()

    def step_towards(self, place: str) -> str:
        step, self.steps = (self.steps or ("there",))[0], self.steps[1:]
        return step

    def company(self, idle_s: float) -> tuple[str, ...]:
        return self.active

    def identify(self, name: str) -> Profile | None:
        for key, each in self.people.items():
            if name in (key, each):
                return Profile(each, key, "person")
        return None

    def named(self, name: str, place: str) -> Named:
        if person := self.identify(name):
            return Named(person.id, (person.name,), "person")
        if place == "people":
            raise ToolError(f"there is no `{name}` here")
        return Named(name, (name,))

    def named_here(self) -> list[Named]:
        return [Named(each, (key,), "person") for key, each in self.people.items()]

    def clock(self, is_game: bool, now: float) -> datetime:
        return datetime.fromtimestamp(now, UTC)

    def reaches(self, person: str, anywhere: bool) -> bool:
        return person in self.active

    def tell(self, person: str, text: str) -> None:
        self.said.append((private([person]), text))

    def player_called(self, name: str) -> Speaker:
        if (person := self.identify(name)) is None:
            raise ToolError(f"no players are called `{name}`")
        return Speaker(person.name, person.id)

    def time(self, now: float) -> str:
        return spoken_time(self.clock(False, now), with_date=False)

    def account_id(self, asker: str) -> str:
        return f"a{asker}" if asker in self.people.values() else ""

    def account_name(self, account: str) -> str:
        return account

    def lore(self, text: str, line: str, audience: str) -> Deferred[list[Verdict]]:
        return succeed([])

    def only_present(self, audience: str) -> bool:
        return set(self.people.values()) <= members(audience)


class FakeBody:
    """The body of a `FakeAssistant`."""

    key, stable_id = "Aria", "o9.aria"

    def __init__(self, store: Any, now: Callable[[], float], memory: LifeMemory):
        self.journal = JournalHandler(store, now, memory.remember_entry)
        self.entities = EntityHandler(store)


class FakeAssistant(Living):
    """An assistant without a game: the package's own handlers and services on dicts.

    Everything between a heard line and a stored value is real; the database is a dict, the model
    is scripted, work is done at once, and the clock stands still until it is advanced::

        aria = FakeAssistant(ScriptedModel(["Good evening."]), compact_preserve_window=4)
        aria.history.append([Message("user", "Hello, Aria!")])
        report = yield aria.run_turn(TurnRequest())
        assert aria.game.said == [("public", "Good evening.")]

    By default the model says nothing. `store` keeps the script's values, `body_store` the body's.
    Other keyword arguments are options, or attributes of `Assistant`, as `features`; by default it
    has none. `audits` holds what was logged, by kind (``log`` or an audit's kind), and `errors` the
    errors that were survived, each with what was being done.
    """

    key = scope = "Aria"
    pk = 1
    model_name = "scripted/model"
    allowed = Allowed()
    enabled = ready = True
    features: Sequence[Feature] = ()
    known_features: Sequence[Feature] = ()
    extracts_memories = False
    moderator: Moderator | None = None

    def __init__(
        self,
        model: Any = None,
        memories: Any = None,
        index: Any = None,
        store: Any = None,
        body_store: Any = None,
        clock: Clock | None = None,
        **config: object,
    ):
        self.store = store if store is not None else cast(Any, MemoryStore())
        self.clock = clock or Clock()
        if clock is None:
            self.clock.advance(1_800_000_000.0)
        for name, value in config.items():
            if name in OPTIONS:
                self.store.set(name, value)
            else:
                setattr(self, name, value)
        model, memories = model or ScriptedModel(), memories or MemorySemanticStore()
        index, worker = index or MemoryIndex(), InlineWorker()
        self.mind = Mind(model, memories, RecallJobs(worker, lambda: index), worker)
        self.spend_caps: Mapping[str, Mapping[str, float]] = {}
        self.shared_spend = SharedSpend(MemorySpend(), lambda: self.spend_caps)
        self.runtime = Runtime(last_heard_at=self.now(), last_spoke_at=self.now())
        self.game = cast(Any, FakeGame())
        self.known_features = self.known_features or self.features
        brought = (tool for feature in self.features for tool in feature.tools)
        self.tools = ToolRegistry((*BUILTIN_TOOLS, *brought))
        self.obj = FakeBody(body_store or MemoryStore(), self.now, self.memory)
        self.errors: list[tuple[str, BaseException]] = []
        self.audits: list[tuple[str, Any]] = []

    def _nothing(self, *about: object) -> None:
        """Nothing: there is no timer, and nobody is told."""

    called = pose = note_reply = spent = _nothing

    def shared_options(self) -> tuple[Layer, ...]:
        return ()

    def now(self) -> float:
        return self.clock.seconds()

    def breathe(self) -> "Deferred[None]":
        return succeed(None)

    @staticmethod
    def count(text: str) -> int:
        return (len(text) + 3) // 4

    def audit(self, kind: str, **fields: object) -> None:
        self.audits.append((kind, fields))

    def log(self, text: str, warning: object = False) -> None:
        self.audits.append(("log", text))

    def tell_staff(self, text: str, logged: str | None = None) -> None:
        self.log(text)

    trouble = alert = tell_controllers = log

    def log_error(self, what: str, error: BaseException) -> None:
        self.errors.append((what, error))

    def at_server_start(self) -> None:
        self.repair_at_start()
        self.repair_when_ready()
