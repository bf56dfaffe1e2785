"""What services ask of the game: small protocols that the script and the character supply.

Services never import Evennia. They get a `Script` and a `Character` and use nothing but what
stands here; `evennia_ai.testing` has stand-ins with the same ports for tests without a game.
All methods run on the reactor thread. Those that return a Deferred do their work elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.assistant.runtime import Runtime
from evennia_ai.history.messages import Message
from evennia_ai.recall.values import Hit, Query

Entry = dict[str, Any]


class HistoryPort(Protocol):
    """The live conversation history and what has left it."""

    def messages(self) -> tuple[Message, ...]:
        """All live messages, oldest first, complete (adopted). Treat them as immutable."""

    def append(self, messages: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
        """Store new messages in one write; returns them as stored, ids stamped."""

    def heal(self) -> int:
        """Give tool calls without a result the one they lack; constant time without any."""

    def around(self, message_id: str) -> Sequence[Message]:
        """The live history or the archive segment a message stands in; empty if nowhere."""

    def by_ids(self, message_ids: Iterable[str]) -> Sequence[Message]:
        """Messages by their ids, wherever they are; those that are nowhere are left out."""

    def each_below(self, summary_id: str) -> Iterator[Message]:
        """The raw messages a summary rests on, oldest first; loads a segment at a time."""

    def raw_back(
        self, audience: str, room_tokens: int, live: Sequence[Message] = ()
    ) -> tuple[list[Message], int]:
        """Archived raw messages with these live ones, and how many older ones were left out."""

    def summary(self, summary_id: str) -> dict[str, Any] | None:
        """One summary's record, or None."""

    def summaries(self, is_wanted: Callable[[dict[str, Any]], bool] = bool) -> list[dict[str, Any]]:
        """The records of summaries that are wanted, oldest first."""

    def compactions(self) -> list[dict[str, Any]]:
        """The records of compactions, oldest first."""

    @property
    def is_answered(self) -> bool:
        """Whether every tool call has its result, so that others may follow."""

    def audiences(self) -> tuple[str, ...]:
        """The audiences of the live messages."""

    def tokens(self, audience: str | None = None) -> int:
        """Summed tokens of all messages, or of those `audience` may see. Constant time."""

    def widest_tokens(self) -> int:
        """Tokens of the largest view any one audience has. What usage is measured by."""


class JournalPort(Protocol):
    """What the assistant found worth keeping, in pages; appending costs the same for ever.

    An entry: ``id, timestamp, content, importance (1-10), source_type, tags, entities,
    source_message_ids, audience``; `source_type` is ``assistant`` (it chose to), ``compaction``
    (a synthesis, never consolidated) or ``import``.
    """

    def add(self, content: str, **fields: Any) -> Entry:
        """Append an entry; `importance`, `source_type`, `tags`, `entities`, `audience`, ..."""

    def recent(self, limit: int = 50) -> tuple[Entry, ...]:
        """The newest entries, oldest first."""

    def get(self, entry_id: str, most_read: int | None = None) -> Entry | None:
        """One entry by its id; of ids that tell no time in so many pages at most."""

    def unconsolidated(self, limit: int = 200) -> tuple[Entry, ...]:
        """Oldest entries not yet marked consolidated (synthesis entries left out)."""

    def mark_consolidated(self, entry_ids: Iterable[str]) -> int:
        """Record that entries are in semantic memory; returns how many were newly marked."""

    def consolidated(self) -> Iterable[Entry]:
        """Every entry that is marked as being in semantic memory, newest page first."""

    def all(self) -> Iterator[Entry]:
        """Every entry, newest page first, each page oldest first; loads a page at a time."""

    def withdraw(self, entry_ids: Iterable[str]) -> int:
        """Mark entries as withdrawn: kept, but neither found nor consolidated any more."""

    def count(self) -> int:
        """How many entries there are in all pages."""


class EntityPort(Protocol):
    """What is known of each person, place and thing met.

    A profile: ``{"version", "id", "name", "kind", "first_seen", "last_seen", "relationship",
    "observations": [{"id", "text", "subject", "predicate", "value", "at", "source", "audience",
    "status": "current"|"superseded", "superseded_by"}], "memory_links": [memory ids]}``.
    """

    def profiles(self) -> dict[str, dict[str, Any]]:
        """All profiles by entity id, as plain copies."""

    def get(self, entity_id: str) -> dict[str, Any] | None:
        """One profile as a plain copy."""

    def archived_pages(self) -> Iterator[dict[str, Any]]:
        """Every archived page, ``{"id", "name", "observations"}``, what searches read first."""

    def profiles_for(self, query: str) -> dict[str, dict[str, Any]]:
        """All profiles, those named in a query with the newest of what was archived of them."""

    def forget_sources(self, sources: Iterable[str]) -> None:
        """Take out the observations that rest on these sources alone."""

    def put(self, profiles: Mapping[str, dict[str, Any]], gone: Iterable[str] = ()) -> None:
        """Store these profiles and drop those that are gone (others stay), in one write."""


class LedgerPort(Protocol):
    """Notes people approved, pinned into every prompt (`rag_memory.ledger`)."""

    def entries(self) -> tuple[Entry, ...]:
        """The living notes, oldest first."""

    def shown(self, audience: str) -> tuple[Entry, ...]:
        """The approved notes a turn for an audience may see, as they are to be shown."""

    def add(self, text: str, by: Mapping[str, str], *, state: str, **fields: Any) -> Entry:
        """Take a note, ``proposed`` or ``approved``."""


# The `type` of memories that are summaries.
MEMORY_SUMMARY = "memory_summary"


class SemanticStore(Protocol):
    """Long-term semantic memory (Mem0). Every method answers by a Deferred, off the reactor.

    A memory: ``{"id", "text", "metadata": {...}, "score"?}``; metadata holds at least
    ``source_id`` (the journal entry or summary it was made from), ``audience``, ``type``. A store
    may have ``near``, the score from which on a memory counts that shares no word with a query.
    """

    def add(self, scope: str, items: Sequence[Mapping[str, Any]]) -> "Deferred[list[str]]":
        """Store items ``{"source_id", "text", "metadata"}``; fires with their memory ids.

        Idempotent: an item whose `source_id` is stored already for `scope` gets its old id.
        """

    def extraction_prompt(
        self, scope: str, item: Mapping[str, Any]
    ) -> "Deferred[list[dict[str, str]] | None]":
        """Fires with what to ask a model so that it extracts memories; None if it is stored."""

    def add_extracted(self, scope: str, item: Mapping[str, Any], answer: str) -> "Deferred[str]":
        """Store what a model extracted, or the text itself; fires with the first memory's id."""

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> "Deferred[list[dict[str, Any]]]":
        """Fires with memories, best first, only those `audience` may see."""

    def ids(self, scope: str) -> "Deferred[set[str]]":
        """Fires with the ids of all memories of a scope."""

    def sources(self, scope: str) -> "Deferred[dict[str, str]]":
        """Fires with memory ids by the id of their source."""

    def source_of(self, scope: str, memory_id: str) -> "Deferred[str | None]":
        """Fires with the id of the source of one memory; None if there is no such memory."""

    def delete(self, scope: str, memory_ids: Iterable[str]) -> "Deferred[int]":
        """Delete memories with their history rows; fires with how many there were."""

    def status(self) -> "Deferred[dict[str, Any]]":
        """Fires with ``{"ok", "detail", "count", "path"}``."""

    def close(self) -> "Deferred[None]":
        """Release files and locks."""


class GamePort(Protocol):
    """Acting in the game. Text is escaped by the game side; errors are `ToolError`."""

    def speak(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Answer a turn's audience the way it spoke."""

    def say(self, text: str) -> None:
        """Speak aloud."""

    def emote(self, text: str) -> None:
        """Pose."""

    def whisper(self, target: str, text: str) -> None:
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

    def addressee(self, name: str) -> dict[str, str] | None:
        """Whom `whisper` would reach: ``{"id", "key"}``, or None."""

    def people_in(self, text: str) -> dict[str, Mapping[str, Any]]:
        """Everybody a text may mean by name: ``{stable id: {"id", "name", ...}}``."""

    def place(self) -> dict[str, Any]:
        """``{"id", "key", "description", "exits": [...], "private": bool}``."""


class MemoryPort(Protocol):
    """Finding again what was heard, said or written (`rag_memory.search.Memory`)."""

    def search(self, query: Query) -> "Deferred[list[Hit]]":
        """Fires with hits, best first."""

    def forget(self, ids: Iterable[str]) -> "Deferred[Any]":
        """Take turns out of the index; fires with how many there were, None if that failed."""


class StatePort(Protocol):
    """Mode and what is kept of compactions from tick to tick and over restarts."""

    mode: str
    dreamt: bool
    hold: bool
    stalls: int
    stalled_out: bool
    stalls_by_count: int
    stalled_by_count: bool
    extraction: dict[str, Any]
    intent: dict[str, Any]
    last_compaction: dict[str, Any]

    def set_mode(self, mode: str, phase: str | None = None) -> None:
        """Enter a mode, ``awake`` or ``sleep``, and its phase."""

    def set_dreamt(self, done: bool) -> None:
        """Note whether this sleep's dreams were dreamt."""

    def signal(self, name: str, value: Any) -> None:
        """Set a context signal, or clear it with None."""

    def count_stalls(self, stalls: int, by_count: bool = False) -> None:
        """Note how many compactions in a row, by count or otherwise, were of no use."""

    def note_extraction(self, noted: Mapping[str, Any] | None) -> None:
        """Keep what an extraction left behind, or None once a compaction took it in."""

    def intend(self, intent: Mapping[str, Any] | None) -> None:
        """Note what a compaction is about to do, or None when it is done."""


class Assistant(Protocol):
    """What a service may use of the assistant's script."""

    key: str
    pk: int | None
    scope: str
    obj: "Character"
    enabled: bool
    ready: bool
    config: Any
    runtime: Runtime
    state: StatePort
    history: HistoryPort
    ledger: LedgerPort
    memory: MemoryPort
    semantic: SemanticStore
    game: GamePort
    tools: Any
    spend: Any
    rollback: Any
    model: Any
    model_name: str
    extracts_memories: bool
    now: Callable[[], float]
    counter: Callable[[str], int]
    count: Callable[[str], int]

    def offload(self, function: Callable[..., Any], *args: Any) -> "Deferred[Any]":
        """Do something long on a daemon thread; plain values in and out."""

    def commit_compaction(self, plan: Any, folds: Sequence[Any], record: Any) -> None:
        """Carry out a compaction in one transaction."""

    def commit_masks(self, history: Sequence[Message], record: Mapping[str, Any]) -> None:
        """Mask tool outputs in one transaction."""

    def clock_time(self, game: bool) -> tuple[int, int]:
        """Hour and minute of the day now (UTC), of game time if `game`."""

    def save_queue(self) -> None:
        """Save what was heard but not stored or not answered yet, if that changed."""

    def fall_asleep(self) -> None:
        """Go to sleep; the next tick dreams."""

    def wake(self) -> None:
        """Wake up."""

    def dreamt(self, report: dict[str, Any]) -> None:
        """Keep the report of a sleep cycle."""

    def compacted(self) -> None:
        """Show a compaction to players present, if that is wanted."""

    def over_spend(self) -> bool:
        """Whether today's cap is reached."""

    def spent(self, reply: Any, purpose: str) -> None:
        """Count and log one model call."""

    def log(self, text: str, warning: bool = False) -> None:
        """A line in the server log that names the assistant."""

    def log_error(self, what: str, error: BaseException) -> None:
        """An error that was survived: counted, logged, shown in `aistatus`."""

    def trouble(self, text: str) -> None:
        """Something staff should know: logged, and shown in `aistatus`."""

    def alert(self, text: str) -> None:
        """As `trouble`, and a line for followers and for the admins who are there."""

    def tell_staff(self, text: str) -> None:
        """A line for the log and for staff who follow the assistant."""

    def audit(self, kind: str, **fields: Any) -> None:
        """A line in the audit log."""


class Character(Protocol):
    """What a service may use of the assistant's body."""

    key: str
    stable_id: str
    journal: JournalPort
    entities: EntityPort


class Store(Protocol):
    """Values by key and category, copied in and out."""

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A copy of a value as plain data, or the default."""

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Make ready for reading these keys."""

    def stamp(self, key: str, category: str | None = None) -> object:
        """Something that is another object once the value was replaced or changed."""

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""

    def set(self, key: str, value: Any, category: str | None = None) -> None:
        """Store a value."""

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value; nothing happens if there is none."""

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted."""

    def transaction(self) -> Any:
        """A context manager: all of what is written inside, or nothing."""

    def on_commit(self, callback: Callable[[], Any]) -> None:
        """Call once what was written so far is certain: now, or when the transaction is over."""
