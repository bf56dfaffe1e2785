"""A prompt from its sections: what fits is shown, what does not is cut by its section's rule.

Each section of text has a cap, and gives way in its turn where the newest turn needs more room; the
history then takes what is left, newest first. What leaves a prompt stays stored, and the budget's
notes name it.
"""

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.history.frames import (
    LEDGER_LABEL,
    MEMORIES_LABEL,
    MOMENT_LABEL,
    SUMMARY_TITLE,
    row,
    speaker_label,
    summary_label,
)
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    Counter,
    Message,
    Speaker,
    rendered,
    total_tokens,
)
from evennia_ai.history.pairs import mended, newest_turn
from evennia_ai.llm_interaction.budget import REGIONS, TokenBudget, newest_that_fit, shortened

# Volatile regions and the reply's reserve together take at most this share of the limit; a
# summary and the ledger at most the others, or a few words.
VOLATILE_SHARE, SUMMARY_SHARE, LEDGER_SHARE, LEAST_CAP = 0.25, 0.1, 0.1, 40
_TOOL_FRAME_TOKENS = 1  # what parts a schema from the next
# Room that the tools leave to everything else: the last of those that leave less are not offered.
_LEAST_BESIDE_TOOLS = 100
_LEAST_TAIL = 60
# Of the ledger's notes, by their kind.
HEADINGS = {"rule": "Rules:", "task": "Tasks:", "preference": "Preferences:", "fact": "Facts:"}
_UNBOUNDED = 10**9

Row = tuple[str, str]
Schema = dict[str, Any]


@dataclass(frozen=True)
class Caps:
    """Most tokens of each region."""

    retrieved: int
    tail: int
    reserve: int
    summary: int
    ledger: int = 0

    @property
    def volatile(self) -> int:
        """What is set aside before the history: retrieved memories, tail and reply."""
        return self.retrieved + self.tail + self.reserve

    def under(self, limit: int) -> "Caps":
        """These caps, scaled down where they leave too little of a limit for a history."""
        share = min(1.0, int(limit * VOLATILE_SHARE) / max(1, self.volatile))
        return Caps(
            int(self.retrieved * share),
            int(self.tail * share),
            self.reserve if share == 1 else max(16, int(self.reserve * share)),
            min(self.summary, max(LEAST_CAP, int(limit * SUMMARY_SHARE))),
            min(self.ledger, max(LEAST_CAP, int(limit * LEDGER_SHARE))),
        )


@dataclass(frozen=True)
class Regions:
    """What a prompt is made of, before it is fitted."""

    system: str  # text of the system message
    tools: tuple[Schema, ...]  # tool schemas in the API's form
    # Live messages the audience may see, markers among them, oldest first.
    history: tuple[Message, ...] = ()
    retrieved: tuple[str, ...] = ()  # lines of retrieved memories, most relevant first
    tail: tuple[str, ...] = ()  # lines of the present moment, most important first
    # Approved notes the audience may see under their headings, most important first.
    ledger: tuple[Row, ...] = ()
    archived: int = 0  # how many messages of the archive could not fit
    # Id of the message behind which memories and tail stand; None: behind all.
    since: str | None = None


@dataclass(frozen=True)
class Prompt:
    """What is sent, and the record of how it was made."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[Schema, ...]
    budget: TokenBudget
    left_out: tuple[str, ...] = ()  # ids of live messages that did not fit, oldest first
    tools_left: int = 0  # how many tools did not fit

    @property
    def fits(self) -> bool:
        """Whether everything lies within the limit."""
        return self.budget.total <= self.budget.limit


@dataclass(frozen=True)
class _Section:
    """A part of a prompt that is text."""

    name: str  # its region
    what: str  # what notes call it
    cap: int  # most tokens of its message
    # In which turns it gives way to what is newer, and down to how many tokens.
    gives: tuple[tuple[int, int], ...]
    shown: Callable[[int], str]  # what of it fits into so many tokens; empty for nothing
    is_behind: bool = False  # whether it stands behind the history


def _sections(regions: Regions, caps: Caps, count: Counter) -> list[_Section]:
    """The sections of a prompt, in order, and when each gives way."""

    def block(label: str, rows: Sequence[Row]) -> Callable[[int], str]:
        return lambda room: _block(label, rows, room, count)

    def labelled(label: str, text: str) -> Callable[[int], str]:
        frame = text_tokens(f"{label}\n", count) if label else OVERHEAD_TOKENS
        return lambda room: (
            f"{label}\n{body}".lstrip("\n") if (body := _cut(text, room - frame, count)) else ""
        )

    # The cap of a summary is that of its own text, without title and label.
    title = text_tokens(SUMMARY_TITLE, count)
    summaries = [
        _Section(
            "Summaries",
            f"summary {name or marker.id}",
            caps.summary + title + text_tokens(f"{label}\n", count),
            ((3, 0),),
            labelled(label, marker.content),
        )
        for marker in regions.history
        if marker.is_summary
        for of in [marker.metadata]
        for name in [str(of.get("summary_id") or "")]
        for label in [
            summary_label(of.get("compacted_count", "some"), of.get("tier") == "long", name)
        ]
    ]
    system, ledger = labelled("", regions.system), block(LEDGER_LABEL, regions.ledger)
    memories = block(MEMORIES_LABEL, [("", line) for line in regions.retrieved])
    moment = block(MOMENT_LABEL, [("", line) for line in regions.tail])
    return [
        _Section("System", "rules and persona", _UNBOUNDED, ((6, 0),), system),
        _Section("Ledger", "ledger", caps.ledger, ((5, 0),), ledger),
        *summaries,
        _Section("Retrieved", "memories", caps.retrieved, ((1, 0),), memories, True),
        _Section("Tail", "present moment", caps.tail, ((2, _LEAST_TAIL), (4, 0)), moment, True),
    ]


def note_line(name: str, at: str, by: Speaker, text: str) -> str:
    """A note as quoted data: its id, its day, its author, its words."""
    return row(name, at[:10], speaker_label(by.key, by.id), text)


def _block(label: str, rows: Sequence[Row], room: int, count: Counter) -> str:
    """As many rows as fit below a label, those of a heading together; empty if none does."""
    used, shown = text_tokens(label, count), dict[str, list[str]]()
    for heading, line in rows:
        tokens = count(line) + 1
        if heading and heading not in shown:
            tokens += count(heading) + 1
        if used + tokens <= room:
            used += tokens
            shown.setdefault(heading, []).append(line)
    lines = [line for heading, of in shown.items() for line in (heading, *of) if line]
    return "\n".join([label, *lines]) if lines else ""


def _cut(text: str, room: int, count: Counter) -> str:
    """A text shortened until it holds at most so many tokens."""
    chars = len(text)
    while text and count(text) > max(room, 0):
        chars = min(int(chars * 0.8), room * 6)
        if chars < 8:
            return ""
        text = shortened(text, chars) if chars > 120 else text[:chars]
    return text


def tools_tokens(tools: Sequence[Schema], count: Counter) -> int:
    """Tokens of tool schemas in a request."""
    return sum(count(json.dumps(tool)) + _TOOL_FRAME_TOKENS for tool in tools)


def text_tokens(text: str, count: Counter) -> int:
    """Tokens of one message that holds just a text; 0 for none."""
    return count(text) + OVERHEAD_TOKENS if text else 0


def fit_prompt(
    regions: Regions,
    caps: Caps,
    limit: int,
    count: Counter,
    tools_cost: Callable[[Sequence[Schema], Counter], int] = tools_tokens,
) -> Prompt:
    """Make a prompt that, with its reply, lies within the limit.

    `tools_cost` counts the tokens of tools as they are sent. If not even an empty prompt fits, the
    prompt says so by `fits`.
    """
    notes: list[str] = []
    offered = regions.tools
    while offered and tools_cost(offered, count) > limit - caps.reserve - _LEAST_BESIDE_TOOLS:
        offered = offered[:-1]
    if missing := len(regions.tools) - len(offered):
        notes.append(f"{missing} of {len(regions.tools)} tools do not fit and are not offered")
    tools = tools_cost(offered, count)
    count = functools.cache(count)
    room = limit - tools - caps.reserve
    said = mended([m for m in regions.history if not m.is_summary])
    raw = [m if m.tokens else m.counted(count) for m in said]
    # The newest turn is what is to be answered: up to a quarter of the room is its own.
    least = min(max(0, room // 4), total_tokens(raw[newest_turn(raw) :]))
    sections = _sections(regions, caps, count)
    texts = _fitted(sections, room - least, count, notes)
    used = sum(text_tokens(text, count) for text in texts)
    left_out, history, cuts = fit_history(raw, room - used, count)
    ids = [message.id for message in regions.history]
    newer = set(ids[ids.index(regions.since) + 1 :]) if regions.since in ids else set[str]()
    begins = next((place for place, m in enumerate(history) if m.id in newer), len(history))
    earlier, turn = joined(history[:begins], count), joined(history[begins:], count)
    if regions.archived:
        notes.append(f"{regions.archived:,} older messages of the archive do not fit")

    sizes = dict.fromkeys(REGIONS, 0)
    before, behind = list[dict[str, Any]](), list[dict[str, Any]]()
    for section, text in zip(sections, texts, strict=True):
        sizes[section.name] += text_tokens(text, count)
        role = "system" if section.name == "System" else "user"
        if text:  # cut to nothing it is not sent: providers refuse an empty message
            part = behind if section.is_behind else before
            part.append({"role": role, "content": text})
    sizes |= {"Tools": tools, "Reserve": caps.reserve}
    sizes["History"] = sum(m.tokens for m in history) - earlier[1] - turn[1]
    messages = (*before, *earlier[0], *behind, *turn[0])
    gone = tuple(message.id for message in left_out if message.id)
    facts = {"left_out": len(gone), "left_until": gone[-1] if gone else ""}
    budget = TokenBudget.of(sizes, limit, notes=(*cuts, *notes), **facts)
    return Prompt(messages, offered, budget, gone, missing)


def _fitted(sections: Sequence[_Section], room: int, count: Counter, notes: list[str]) -> list[str]:
    """The text of each section, cut until all fit into a room; `notes` says what was cut."""
    whole = [section.shown(_UNBOUNDED) for section in sections]
    capped = [section.shown(section.cap) for section in sections]
    texts = list(capped)
    turns = ((at, place, least) for place, of in enumerate(sections) for at, least in of.gives)
    for _, place, least in sorted(turns):
        over = sum(text_tokens(text, count) for text in texts) - room
        if over > 0:
            own = text_tokens(texts[place], count)
            texts[place] = sections[place].shown(min(own, max(least, own - over)))
    for section, all_of_it, under_cap, text in zip(sections, whole, capped, texts, strict=True):
        done = "shortened" if text else "left out"
        if text != under_cap:
            notes.append(f"{section.what} {done}: other regions leave no room")
        elif text != all_of_it:
            notes.append(f"{section.what} {done}: more than its {section.cap:,} tokens")
    return texts


def fit_history(
    whole: Sequence[Message], room: int, count: Counter
) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[str, ...]]:
    """The newest of messages that fit, each shortened where it takes more than half of the room.

    Calls and results of the newest turn that do not fit together are shortened to equal shares.
    Returns what is left out, what is shown, and notes on what was shortened.
    """
    newest, cap = newest_turn(whole), max(_LEAST_TAIL, room // 2)
    turn, share = whole[newest:], cap
    if sum(min(message.tokens, cap) for message in turn) > room:
        # One share more than there are messages: room for the words that led to the calls.
        share = max(1, room // (len(turn) + 1))
    caps = [cap] * newest + [share] * len(turn)
    fitted = [
        shorten_message(message, most, count) if message.tokens > most else message
        for message, most in zip(whole, caps, strict=True)
    ]
    notes = tuple(
        f"message {message.id or '?'} is shown shortened ({message.tokens:,} tokens)"
        for message, shown in zip(whole, fitted, strict=True)
        if shown is not message
    )
    return *newest_that_fit(fitted, max(0, room)), notes


def shorten_message(message: Message, cap_tokens: int, count: Counter) -> Message:
    """A message cut in its middle to about `cap_tokens`; what is stored stays whole."""
    short = message
    for share in (1.0, 0.5, 0.2, 0.05):
        chars = int(cap_tokens * 2 * share)
        calls = tuple(_short_call(call, chars) for call in message.tool_calls)
        text = shortened(message.content, chars)
        short = replace(message, content=text, tool_calls=calls).counted(count)
        if short.tokens <= cap_tokens:
            break
    return short


def _short_call(call: dict[str, Any], chars: int) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = str(function.get("arguments") or "{}")
    if len(arguments) <= chars:
        return call
    note = json.dumps({"shortened": shortened(arguments, chars)}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": note}}


def joined(messages: Sequence[Message], count: Counter) -> tuple[list[dict[str, Any]], int]:
    """Rendered messages, and how many tokens it saves that lines heard in a row share a message.

    A line that joins another saves its frame and costs its line break, which is often part of the
    token before it. A message without words or calls is left out.
    """
    shown: list[dict[str, Any]] = []
    items = [
        item
        for item in map(rendered, messages)
        if item["content"] or item.get("tool_calls") or item["role"] == "tool"
    ]
    saved = OVERHEAD_TOKENS * (len(messages) - len(items))
    for role, run in itertools.groupby(items, lambda item: item["role"]):
        if role != "user":
            shown += run
            continue
        lines = [item["content"] for item in run]
        ends = [line[-1] for line in lines[:-1]]
        saved += sum(OVERHEAD_TOKENS - count(f"{end}\n") + count(end) for end in ends)
        shown.append({"role": role, "content": "\n".join(lines)})
    return shown, saved
