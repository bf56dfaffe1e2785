"""What a service may use: the assistant, its body, its stores, and the mind that works for it.

Services take an `Assistant` and never import Evennia; `evennia_ai.testing.FakeAssistant` is one
without a game. Everything here is called on the reactor thread. What returns a Deferred does its
work elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Unpack

if TYPE_CHECKING:  # values only
    from pathlib import Path

    from twisted.internet.defer import Deferred

    from evennia_ai.assistant.config import AssistantConfig
    from evennia_ai.assistant.turn import TurnReport, TurnRequest
    from evennia_ai.background import Worker
    from evennia_ai.history.messages import Message, Speaker
    from evennia_ai.history.records import Segment
    from evennia_ai.history.tool_traits import ToolTraits
    from evennia_ai.history.verification import Evidence, Violation
    from evennia_ai.llm_interaction.budget import TokenBudget
    from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, ProbeReport
    from evennia_ai.rag_memory.journal_entry import JournalEntry
    from evennia_ai.rag_memory.note import Note, NoteFields
    from evennia_ai.rag_memory.profile import Observation, Profile
    from evennia_ai.rag_memory.provenance import Grounds
    from evennia_ai.recall.values import Hit, Query, Turn
    from evennia_ai.sleep.compaction.retention import Item

# The `type` of memories that are summaries.
MEMORY_SUMMARY = "memory_summary"


class Store(Protocol):
    """Values by key and category, copied in and out."""

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A copy of a value as plain data, or the default."""

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Prepare for reading these keys."""

    def stamp(self, key: str, category: str | None = None) -> object:
        """An object that is another one as soon as the value is replaced or changed."""

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""

    def set(self, key: str, value: Any, category: str | None = None) -> None:
        """Store a value."""

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value, if it exists."""

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted."""

    def transaction(self) -> AbstractContextManager[None]:
        """A context manager: all writes inside it take effect, or none."""

    def on_commit(self, callback: Callable[[], Any]) -> None:
        """Call once the writes so far are certain: now, or after the transaction."""


class HistoryPort(Protocol):
    """The live conversation history and its archive (`history.live.HistoryHandler`)."""

    @property
    def store(self) -> Store:
        """Where it is kept."""

    def messages(self) -> tuple[Message, ...]:
        """All live messages, oldest first. Treat them as immutable."""

    def append(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Store new messages in one write; returns them as stored, with their ids."""

    def replace(self, messages: Sequence[Message]) -> None:
        """Store another live history in the place of this one."""

    def heal(self) -> int:
        """Give every tool call that lacks a result one; constant time if none does."""

    def recount(self) -> bool:
        """Count all tokens again if the model's counter has changed."""

    def warm(self) -> Iterator[None]:
        """Load what the first turn needs, a piece at each step."""

    def checkpoint(self) -> None:
        """Save what is only in memory."""

    def archive(self, segment_id: str, summary_id: str, messages: Sequence[Message]) -> None:
        """Store messages that leave the live history as a segment."""

    def segment(self, segment_id: str) -> Segment | None:
        """One archived segment, or None."""

    def segments(self) -> Iterable[Segment]:
        """All archived segments, oldest first, loaded one at a time."""

    def around(self, message_id: str) -> Sequence[Message]:
        """The live history or the segment that holds a message; empty if none does."""

    def by_ids(self, message_ids: Iterable[str]) -> Sequence[Message]:
        """Messages by their ids, wherever they are; unknown ids are left out."""

    def each_below(self, summary_id: str) -> Iterator[Message]:
        """The raw messages a summary rests on, oldest first, loaded a segment at a time."""

    def raw_back(
        self, audience: str, room_tokens: int, live: Sequence[Message] = ()
    ) -> tuple[list[Message], int]:
        """Archived raw messages before these live ones, and how many older ones are left out."""

    def summary(self, summary_id: str) -> dict[str, Any] | None:
        """One summary's record, or None."""

    def summaries(self, is_wanted: Callable[[dict[str, Any]], bool] = bool) -> list[dict[str, Any]]:
        """The records of the summaries that are wanted, oldest first."""

    def save_summary(self, record: Mapping[str, Any]) -> None:
        """Store a summary's record."""

    def records_below(self, summary_id: str) -> list[dict[str, Any]]:
        """The records of the summaries a summary rests on."""

    def compactions(self) -> list[dict[str, Any]]:
        """The records of compactions, oldest first."""

    def save_compaction(self, record: Mapping[str, Any]) -> None:
        """Store a compaction's record."""

    def restored_segments(self) -> set[str]:
        """Ids of the segments whose messages a rollback made live again."""

    @property
    def is_answered(self) -> bool:
        """Whether every tool call has its result, so that other messages may follow."""

    def audiences(self, least_tokens: int = 0) -> tuple[str, ...]:
        """The audiences of the live messages, each with at least so many tokens."""

    def tokens(self, audience: str | None = None) -> int:
        """Tokens of all messages, or of those `audience` may see. Constant time."""

    def widest_tokens(self) -> int:
        """Tokens of the largest view any one audience has; usage is measured by it."""


class JournalPort(Protocol):
    """What the assistant wrote down, in pages; appending always costs the same.

    `source_type` of an entry is ``assistant``, ``recalled`` (it only repeats a memory),
    ``compaction`` (a synthesis, never consolidated) or ``import``.
    """

    def add(
        self,
        content: str,
        *,
        importance: int | None = None,
        source_type: str = ...,
        tags: Iterable[str] = (),
        entities: Iterable[str] = (),
        source_message_ids: Iterable[str] = (),
        audience: str | None = None,
        timestamp: str | None = None,
        id: str | None = None,
    ) -> JournalEntry:
        """Append an entry; the fields are those of `JournalEntry`."""

    def recent(self, limit: int = 50) -> tuple[JournalEntry, ...]:
        """The newest entries, oldest first."""

    def oldest(self) -> tuple[JournalEntry, ...]:
        """The entries of the first page."""

    def get(self, entry_id: str, most_read: int | None = None) -> JournalEntry | None:
        """One entry by its id; an id that holds no time is looked for in so many pages."""

    def unconsolidated(self, limit: int = 200) -> tuple[JournalEntry, ...]:
        """Oldest entries not yet marked consolidated, without syntheses."""

    def mark_consolidated(self, entry_ids: Iterable[str]) -> int:
        """Record that entries are in long-term memory; returns how many were newly marked."""

    def consolidated(self) -> Iterator[JournalEntry]:
        """Every entry that is marked as being in long-term memory, newest page first."""

    def all(self) -> Iterator[JournalEntry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""

    def withdraw(self, entry_ids: Iterable[str]) -> int:
        """Mark entries as withdrawn: kept, but no longer found or consolidated."""

    def importance_of(self, entry_ids: Collection[str]) -> dict[str, int]:
        """Importance of those of these entries that are old enough to be forgotten, by id."""

    def count(self) -> int:
        """How many entries there are."""


class EntityPort(Protocol):
    """What is known of each person, place and thing met (`rag_memory.profiles`)."""

    def profiles(self) -> dict[str, Profile]:
        """All profiles by entity id."""

    def get(self, entity_id: str) -> Profile | None:
        """One profile, or None."""

    def archived(self, profile: Profile) -> list[Observation]:
        """The observations of a profile that were moved to its pages."""

    def archived_pages(self) -> Iterator[Profile]:
        """Every archived page, a profile with older observations, in the order of searches."""

    def profiles_for(self, query: str) -> dict[str, Profile]:
        """All profiles; those a query names have their newest archived observations."""

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Remove the observations that rest on these sources alone."""

    def put(self, profiles: Mapping[str, Profile], gone: Iterable[str] = ()) -> None:
        """Store these profiles and remove those that are gone, in one write."""

    def remove(self, entity_ids: Iterable[str]) -> None:
        """Remove profiles with their pages."""


class LedgerPort(Protocol):
    """Notes people approved, pinned into every prompt (`rag_memory.ledger_store`)."""

    def entries(self) -> tuple[Note, ...]:
        """The notes that are open, oldest first."""

    def shown(self, audience: str) -> tuple[Note, ...]:
        """The approved notes that a turn for an audience may see."""

    def add(self, text: str, by: Speaker, *, state: str, **fields: Unpack[NoteFields]) -> Note:
        """Add a note, ``proposed`` or ``approved``."""

    def page_closed(self) -> None:
        """Move notes that were closed long ago to a page of their own."""


class MemoryPort(Protocol):
    """Finding again what was heard, said or written (`rag_memory.search.Memory`)."""

    def search(self, query: Query) -> Deferred[list[Hit]]:
        """Fires with hits, best first."""

    def forget(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Remove turns from the index; fires with their number, None if that failed."""


class IndexPort(MemoryPort, Protocol):
    """Keeping the search index complete (`rag_memory.indexing`)."""

    @property
    def replaced(self) -> int:
        """How often another index has taken the place of the one used before."""

    @property
    def restoring(self) -> bool:
        """Whether the index is being filled."""

    def restore(self) -> AbstractContextManager[None]:
        """The time in which the index is filled."""

    def begin_reading(self) -> None:
        """Begin to read, inside `restore`, what the index is filled from."""

    def still_valid(self, turns: Iterable[Turn]) -> list[Turn]:
        """Those of these turns that were not forgotten or changed since `begin_reading`."""

    def catch_up(
        self, turns: Callable[[], Iterable[Turn]], gone: Iterable[str] = ()
    ) -> Deferred[int | None]:
        """Index missing or changed turns; fires with their number, None if that failed."""

    def clear(self) -> Deferred[int | None]:
        """Remove all turns from the index; fires with their number, None if that failed."""

    def set_filling(self, filling: bool) -> Deferred[bool | None]:
        """Note in the index whether it is being filled; fires with None if that failed."""

    def missing(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Fires with how many of these turns are not indexed; None if that is unknown."""


class MemoryBackend(Protocol):
    """Long-term memory, found by meaning; Mem0 by default, another by `EVENNIA_AI_MEMORY_BACKEND`.

    Everything but `from_settings` returns a Deferred and works off the reactor thread; what fails
    fails with a `StoreError` of one sentence. A memory: ``{"id", "text", "metadata", "score"}``;
    metadata holds at least ``source_id`` (the journal entry or summary it was made from),
    ``audience`` and ``type``. A back end may have ``near``, the score from which on a memory
    counts that shares no word with a query (0.3 without it).
    """

    @classmethod
    def from_settings(
        cls, directory: Path, setting: Callable[[str], Any], worker: Worker | None = None
    ) -> MemoryBackend:
        """Make one; nothing slow happens before the first call.

        Args:
            directory: The folder for derived data; files belong into a folder of their own in it.
            setting: Reads a setting of the game by its name without ``EVENNIA_AI_``.
            worker: A daemon thread to work on; without one it starts its own when needed.
        """

    def add(self, scope: str, items: Sequence[Mapping[str, Any]]) -> Deferred[list[str]]:
        """Store items ``{"source_id", "text", "metadata"}``; fires with their memory ids.

        Idempotent: an item whose `source_id` is stored already for `scope` gets its old id.
        """

    def extraction_prompt(
        self, scope: str, item: Mapping[str, Any]
    ) -> Deferred[list[dict[str, str]] | None]:
        """Fires with what to ask a model so that it extracts memories; None if it is stored."""

    def add_extracted(self, scope: str, item: Mapping[str, Any], answer: str) -> Deferred[str]:
        """Store what a model extracted, or the text itself; fires with the first memory's id."""

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> Deferred[list[dict[str, Any]]]:
        """Fires with memories, best first, only those `audience` may see."""

    def ids(self, scope: str) -> Deferred[set[str]]:
        """Fires with the ids of all memories of a scope."""

    def sources(self, scope: str) -> Deferred[dict[str, str]]:
        """Fires with memory ids by the id of their source."""

    def source_of(self, scope: str, memory_id: str) -> Deferred[str | None]:
        """Fires with the id of the source of one memory; None if there is no such memory."""

    def delete(self, scope: str, memory_ids: Iterable[str]) -> Deferred[int]:
        """Delete memories with their history rows; fires with how many there were."""

    def status(self) -> Deferred[dict[str, Any]]:
        """Fires with ``{"ok", "detail", "count", "path"}``."""

    def close(self) -> Deferred[None]:
        """Release files and locks."""


class ModelBackend(Protocol):
    """What asks models (`llm_interaction.client.ModelClient`)."""

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model; fails with `ModelError`. Cancelling the Deferred cancels the call."""

    def probe(
        self, model: str, api: str = "chat", timeout_s: float = 20.0
    ) -> Deferred[ProbeReport]:
        """Fires with whether a model can be reached."""

    def window(self, model: str) -> int | None:
        """A model's context window in tokens as far as it is known. Answers at once."""

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""

    def warm_up(self) -> Deferred[None]:
        """Load what is slow; fires when it is loaded."""


class RecallPort(Protocol):
    """The recall index, by scope (`rag_memory.recall_jobs.RecallJobs`)."""

    @property
    def replaced(self) -> int:
        """How often another index has taken the place of the one used before."""

    def add(self, scope: str, turns: Sequence[Turn]) -> Deferred[int]:
        """Index turns; fires with their number."""

    def catch_up(
        self, scope: str, turns: Sequence[Turn], gone: Collection[str] = ()
    ) -> Deferred[tuple[int, list[str]]]:
        """Index turns that are missing or differ, remove others; fires with a count and ids."""

    def remove(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Remove turns; fires with how many there were."""

    def clear(self, scope: str, at_most: int) -> Deferred[int]:
        """Remove so many turns; fires with how many there were."""

    def set_filling(self, scope: str, filling: bool) -> Deferred[bool]:
        """Note in the index whether it is being filled; fires with True."""

    def missing(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Fires with how many of these turns are not indexed; at least 1 during a filling."""

    def count(self, scope: str) -> Deferred[int]:
        """Fires with how many turns are indexed."""

    def search(self, scope: str, query: Query) -> Deferred[list[Hit]]:
        """Fires with hits, shortlisted."""

    def observations(self, profiles: Mapping[str, Profile], query: Query) -> Deferred[list[Hit]]:
        """Fires with what profiles hold on those a query is about."""


class Mind(Protocol):
    """All that computes or waits: models, long-term memory, long work on texts.

    Plain values in and out, so that it may run in another process. Deferreds fire on the reactor
    thread. `services.mind()` is the game's; `services.use` replaces it or a part of it.
    """

    @property
    def memories(self) -> MemoryBackend:
        """Long-term memory of all assistants."""

    @property
    def recall(self) -> RecallPort:
        """The recall index of all assistants."""

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model; fails with `ModelError`. Cancelling the Deferred cancels the call."""

    def probe(
        self, model: str, api: str = "chat", timeout_s: float = 20.0
    ) -> Deferred[ProbeReport]:
        """Fires with whether a model can be reached."""

    def window(self, model: str) -> int | None:
        """A model's context window in tokens as far as it is known. Answers at once."""

    def cancel_calls(self) -> int:
        """Cancel all model calls in flight; returns how many there were."""

    def count_tokens(self, text: str, model: str) -> Deferred[int]:
        """Fires with the tokens of a text for a model."""

    def packed_lines(
        self, lines: Sequence[str], room_tokens: int, model: str
    ) -> Deferred[tuple[tuple[str, ...], ...]]:
        """Fires with the lines in runs that fit a request; see `llm_interaction.summary.packed`."""

    def finished_summary(
        self,
        reply: ModelReply,
        source_tokens: int,
        cap_tokens: int,
        model: str,
        extract: bool = False,
    ) -> Deferred[str]:
        """Fires with the summary in a reply, cut to its cap; fails with `ModelError` if none is."""

    def items_to_keep(
        self,
        messages: Sequence[Message],
        earlier: str,
        names: Sequence[str],
        own_name: str,
        traits: ToolTraits,
    ) -> Deferred[tuple[Item, ...]]:
        """Fires with the names, numbers and quoted words that a summary must keep."""

    def missing_items(
        self, items: Sequence[Item], texts: Sequence[str]
    ) -> Deferred[tuple[Item, ...]]:
        """Fires with the items that stand in none of the texts."""

    def with_appendix(
        self,
        items: Sequence[Item],
        text: str,
        lost: tuple[Item, ...],
        elsewhere: Sequence[str],
        cap_tokens: int,
        model: str,
    ) -> Deferred[tuple[str, tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]]:
        """Fires as `sleep.compaction.retention_gate.with_appendix` returns."""

    def drift(self, older: Sequence[str], newer: str) -> Deferred[float]:
        """Fires with the share of older texts' items that a newer one lacks."""

    def is_recalled(
        self, text: str, memories: Sequence[str], heard: Sequence[str] | None
    ) -> Deferred[bool]:
        """Fires with whether a text only repeats memories."""

    def grounds_of_turn(
        self,
        note: str,
        messages: Sequence[Message],
        answered: Collection[str],
        retrieved: Sequence[str],
        traits: ToolTraits,
    ) -> Deferred[Grounds]:
        """Fires with what a note rests on, of the messages a turn answers."""

    def grounds_of_history(
        self,
        note: str,
        messages: Sequence[Message],
        audience: str,
        retrieved: Sequence[str],
        traits: ToolTraits,
    ) -> Deferred[Grounds]:
        """Fires with what a note rests on, of all that an audience may see."""

    def verify(self, evidence: Evidence) -> Deferred[tuple[Violation, ...]]:
        """Fires with the violations of a history's invariant."""

    def warm_up(self, model: str) -> Deferred[None]:
        """Load what is slow; fires when it is loaded."""

    def close(self) -> Deferred[None]:
        """Cancel calls and release files; fires when that is done."""


class GamePort(Protocol):
    """Acting in the game. The game side escapes text; errors are `ToolError`."""

    def speak(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Answer a turn's audience the way it spoke."""

    def say(self, text: str) -> None:
        """Speak aloud."""

    def emote(self, text: str) -> None:
        """Pose."""

    def whisper(self, target: str, text: str, audience: str = "public") -> None:
        """Whisper to somebody present, by name or stable id."""

    def page(self, target_id: str, text: str) -> None:
        """Answer a page, by stable id."""

    def look(self, target: str | None = None) -> str:
        """What the assistant sees: the room, or one thing in it."""

    def move(self, direction: str) -> str:
        """Walk through an exit; returns what it sees there."""

    def present(self) -> tuple[dict[str, Any], ...]:
        """Those here: ``{"id", "key", "player": bool, "assistant": bool}``."""

    def things(self) -> tuple[str, ...]:
        """Stable ids of what is here besides people."""

    def identify(self, name: str) -> dict[str, str] | None:
        """Somebody or something here by name or id: ``{"id", "key", "kind"}``, or None."""

    def addressee(self, name: str) -> dict[str, str] | None:
        """Whom `whisper` would reach: ``{"id", "key"}``, or None."""

    def people_in(self, text: str) -> dict[str, Profile]:
        """Everybody a text may mean by name: ``{stable id: {"id", "name", ...}}``."""

    def place(self) -> dict[str, Any]:
        """``{"id", "key", "description", "exits": [...], "private": bool}``."""

    def allowed(self, lock: str, asker: str | None) -> bool:
        """Whether a lock string lets pass the assistant and the one who asks."""

    def only_present(self, audience: str) -> bool:
        """Whether nobody outside an audience is here."""


class SpendPort(Protocol):
    """What today's model calls cost."""

    def today(self) -> dict[str, Any]:
        """``{"day", "calls", "tokens", "cost"}``."""


class ToolPort(Protocol):
    """A tool as a prompt shows it (`tools.base.Tool`)."""

    @property
    def name(self) -> str:
        """As the model calls it."""

    def schema(self) -> dict[str, Any]:
        """Its description in the chat API's form."""


class ToolsPort(Protocol):
    """The tools an assistant can use (`tools.execution.ToolRegistry`)."""

    @property
    def traits(self) -> ToolTraits:
        """Which of them have which trait."""

    def offered(self, extracting: bool = False) -> Sequence[ToolPort]:
        """The tools a prompt offers, or those that may be used in extraction."""


class StatePort(Protocol):
    """The assistant's mode, and what compactions leave for later ticks and restarts."""

    @property
    def mode(self) -> str:
        """``awake`` or ``sleep``."""

    @property
    def hold(self) -> bool:
        """Whether automatic compaction waits for a manual one, after a rollback."""

    @property
    def stalls(self) -> int:
        """How many compactions in a row were of no use, not counting those by count."""

    @property
    def stalls_by_count(self) -> int:
        """How many compactions in a row that a count trigger started were of no use."""

    @property
    def stalled_out(self) -> bool:
        """Whether automatic compaction has stopped because it frees nothing."""

    @property
    def stalled_by_count(self) -> bool:
        """Whether count triggers have stopped for the same reason."""

    @property
    def extraction(self) -> dict[str, Any]:
        """What extractions since the last compaction left; empty if there were none."""

    @property
    def intent(self) -> dict[str, Any]:
        """What a compaction is about to do; empty if none runs."""

    @property
    def last_compaction(self) -> dict[str, Any]:
        """When and what the last compaction was; empty if there was none."""

    @property
    def last_sleep(self) -> dict[str, Any]:
        """When and how the last night went; empty if there was none."""

    def signals(self) -> dict[str, Any]:
        """The context signals that are set."""

    def signal(self, name: str, value: Any) -> None:
        """Set a context signal, or clear it with None."""

    def set_hold(self, on: bool) -> None:
        """Make automatic compaction wait, or go on."""

    def count_stalls(self, stalls: int, by_count: bool = False) -> None:
        """Store how many compactions in a row were of no use."""

    def note_extraction(self, noted: Mapping[str, Any] | None) -> None:
        """Store what an extraction left, or None once a compaction has taken it over."""

    def intend(self, intent: Mapping[str, Any] | None) -> None:
        """Store what a compaction is about to do, or None when it is done."""


class RuntimePort(Protocol):
    """What lower folders use of an assistant's live state (`assistant.runtime.Runtime`)."""

    fixed_tokens: int
    compaction_requested: bool
    conversations: dict[str, dict[str, Any]]
    feasible_for: AssistantConfig | None
    count_cut: tuple[tuple[Message, ...], tuple[int, int], int] | None

    def queued_tokens(self) -> int:
        """An upper bound on the tokens of what was heard and is not in the history yet."""

    def record_budget(self, budget: TokenBudget) -> None:
        """Keep the budget of the last prompts."""


class Assistant(Protocol):
    """What a service may use of an assistant."""

    @property
    def key(self) -> str:
        """Its name."""

    @property
    def pk(self) -> int | None:
        """Its database id; None once it is deleted."""

    @property
    def scope(self) -> str:
        """The stable id under which its memory is filed."""

    @property
    def obj(self) -> Character:
        """Its body."""

    @property
    def enabled(self) -> bool:
        """Whether it thinks: switched on, in a body, and nobody puppets that body."""

    @property
    def ready(self) -> bool:
        """Whether everything slow is loaded, so that ticks may think."""

    @property
    def config(self) -> AssistantConfig:
        """Its configuration now."""

    @property
    def runtime(self) -> RuntimePort:
        """What it holds in memory while the server runs."""

    @property
    def state(self) -> StatePort:
        """Its mode, and what compactions leave for later."""

    @property
    def history(self) -> HistoryPort:
        """Its conversation."""

    @property
    def journal(self) -> JournalPort:
        """What it wrote down."""

    @property
    def entities(self) -> EntityPort:
        """What it knows of people, places and things."""

    @property
    def ledger(self) -> LedgerPort:
        """Its pinned notes."""

    @property
    def memory(self) -> IndexPort:
        """Its memory, to search and to keep complete."""

    @property
    def mind(self) -> Mind:
        """What computes or waits for it."""

    @property
    def game(self) -> GamePort:
        """The game around it."""

    @property
    def tools(self) -> ToolsPort:
        """What it can do."""

    @property
    def spend(self) -> SpendPort:
        """What its calls cost today."""

    @property
    def model_name(self) -> str:
        """The model it thinks with."""

    @property
    def extracts_memories(self) -> bool:
        """Whether a model turns its journal entries into memories."""

    def now(self) -> float:
        """The time, seconds since the epoch."""

    def clock_time(self, game: bool) -> tuple[int, int]:
        """Hour and minute of the day (UTC), in game time if `game`."""

    @property
    def counter(self) -> Callable[[str], int]:
        """The token counter of its model, for short texts."""

    def count(self, text: str) -> int:
        """Tokens of a short text for its model; count long ones with `mind.count_tokens`."""

    def run_turn(self, request: TurnRequest) -> Deferred[TurnReport]:
        """Think and act until done; see `assistant.react_loop.run_turn`."""

    def is_called(self) -> bool:
        """Whether somebody has spoken to it since its last tick."""

    def at_commit_step(self, name: str) -> None:
        """Called before each step of a commit or rollback; an exception undoes all of it."""

    def compacted(self) -> None:
        """Show players present that a compaction was made, if that is wanted."""

    def over_spend(self) -> bool:
        """Whether today's cap is reached."""

    def spent(self, reply: ModelReply, purpose: str) -> None:
        """Count and log one model call."""

    def log(self, text: str, warning: bool = False) -> None:
        """A line in the server log that names the assistant."""

    def log_error(self, what: str, error: BaseException) -> None:
        """Count, log and show in `aistatus` an error that was survived."""

    def trouble(self, text: str) -> None:
        """Log something staff should know and show it in `aistatus`."""

    def alert(self, text: str) -> None:
        """As `trouble`, and send a line to followers and to the admins who are online."""

    def tell_staff(self, text: str) -> None:
        """Log a line and send it to staff who follow the assistant."""

    def audit(self, kind: str, **fields: Any) -> None:
        """A line in the audit log."""


class Character(Protocol):
    """What a service may use of the assistant's body."""

    @property
    def key(self) -> str:
        """Its name."""

    @property
    def stable_id(self) -> str:
        """Its id, which survives a rename."""

    @property
    def journal(self) -> JournalPort:
        """What the assistant wrote down."""

    @property
    def entities(self) -> EntityPort:
        """What it knows of people, places and things."""
