"""A prompt from its sections: what fits is shown, what does not is cut by its section's rule.

Each section of text has a cap, and gives way in its turn where the newest turn needs more room; the
history then takes what is left, newest first. What leaves a prompt stays stored, and the budget's
notes name it.
"""

import functools
import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from evennia_ai.history.frames import SUMMARY_TITLE, flat, row, speaker_label
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    Counter,
    Message,
    Speaker,
    cut_points,
    mended,
    newest_turn,
    rendered,
    total_tokens,
)
from evennia_ai.llm_interaction.budget import (
    REGIONS,
    Caps,
    TokenBudget,
    newest_that_fit,
    shortened,
)
from evennia_ai.llm_interaction.conversation import (
    LEDGER,
    Exchange,
    alternating,
    gap_row,
    summary_text,
)
from evennia_ai.recall.values import seconds

_TOOL_FRAME_TOKENS = 1  # what parts a schema from the next
# Room that the tools leave to everything else: the last of those that leave less are not offered.
_LEAST_BESIDE_TOOLS = 100
_LEAST_TAIL = 60
# So many joined lines are counted as messages of their own.
_UNCOUNTED = 3
# Tokens around the text of a summary; and the most of the lines to answer, as a share of the room.
SUMMARY_FRAME_TOKENS, ANSWERED_SHARE = 16, 0.5
# The window of the history moves in steps of this share of the limit, so that the beginning of a
# prompt stays the same for many turns; never by more than the other share of its own room.
STEP_SHARE, STEP_OF_ROOM = 0.125, 0.25
# Most that the results of tools take of the history's room, so that the talk stays: those of the
# turn that runs together, and one of an earlier turn.
OWN_RESULTS_SHARE, RESULT_SHARE = 0.5, 0.0625
# Of the ledger's notes, by their kind.
HEADINGS = {"rule": "Rules:", "task": "Tasks:", "preference": "Preferences:", "fact": "Facts:"}
_UNBOUNDED = 10**9

Row = tuple[str, str]
Schema = dict[str, Any]


@dataclass(frozen=True)
class Regions:
    """What a prompt is made of, before it is fitted."""

    system: str  # rules, persona and place
    tools: tuple[Schema, ...]  # tool schemas in the API's form
    examples: tuple[Exchange, ...] = ()  # exchanges that show how the assistant talks
    # Live messages the audience may see, markers among them, oldest first.
    history: tuple[Message, ...] = ()
    retrieved: tuple[str, ...] = ()  # notes of retrieved memories, most relevant first
    tail: tuple[str, ...] = ()  # notes of what holds now, most important first
    answered: tuple[Message, ...] = ()  # the lines to answer, oldest first; not in `history`
    # Approved notes the audience may see under their headings, most important first.
    ledger: tuple[Row, ...] = ()
    archived: int = 0  # how many messages of the archive could not fit
    # Ids of messages that came since the turn began: they stand behind the lines to answer.
    newer: frozenset[str] = frozenset()
    # Notes that earlier prompts showed before a message of the history, by its id: they stay there.
    kept: Mapping[str, str] = field(default_factory=dict)
    has_ids: bool = False  # whether summaries show an id, as a tool can open them


@dataclass(frozen=True)
class Prompt:
    """What is sent, and the record of how it was made."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[Schema, ...]
    budget: TokenBudget
    left_out: tuple[str, ...] = ()  # ids of live messages that did not fit, oldest first
    moment: str = ""  # the notes of what holds now, as shown
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
    cap: int  # most tokens of its text
    # In which turns it gives way to what is newer, and down to how many tokens.
    gives: tuple[tuple[int, int], ...]
    shown: Callable[[int], str]  # what of it fits into so many tokens; empty for nothing


def _sections(regions: Regions, caps: Caps, count: Counter) -> list[_Section]:
    """The sections of a prompt, in order, and when each gives way."""

    def rows(label: str, entries: Sequence[Row]) -> Callable[[int], str]:
        return lambda room: _block(label, entries, room, count)

    def text(whole: str) -> Callable[[int], str]:
        return lambda room: _cut(whole, room - OVERHEAD_TOKENS, count)

    def all_or_none(whole: str) -> Callable[[int], str]:
        return lambda room: whole if text_tokens(whole, count) <= room else ""

    summaries = [
        _Section(
            "Summaries",
            f"summary {name or marker.id}",
            caps.summary + SUMMARY_FRAME_TOKENS,
            ((3, 0),),
            _summary(text, name if regions.has_ids else "", count),
        )
        for marker in regions.history
        if marker.is_summary
        for name in [str(marker.metadata.get("summary_id") or "")]
        for text in [marker.content.removeprefix(SUMMARY_TITLE).lstrip()]
    ]
    examples = "\n".join(line for exchange in regions.examples for line in exchange)
    ledger = rows(f"{LEDGER}:", regions.ledger)
    moment = rows("", [("", line) for line in regions.tail])
    memories = rows("", [("", line) for line in regions.retrieved])
    return [
        _Section("System", "rules and persona", _UNBOUNDED, ((6, 0),), text(regions.system)),
        _Section("Ledger", "ledger", caps.ledger, ((5, 0),), ledger),
        _Section("Examples", "examples of talk", _UNBOUNDED, ((2, 0),), all_or_none(examples)),
        *summaries,
        _Section("Tail", "present moment", caps.tail, ((2, _LEAST_TAIL), (4, 0)), moment),
        _Section("Retrieved", "memories", caps.retrieved, ((1, 0),), memories),
    ]


def _summary(text: str, name: str, count: Counter) -> Callable[[int], str]:
    def shown(room: int) -> str:
        body = _cut(text, room - SUMMARY_FRAME_TOKENS, count)
        return summary_text(body, name, bool(name))

    return shown


def note_line(name: str, at: str, by: Speaker, text: str) -> str:
    """A note as quoted data: its id, its day, its author, its words."""
    return row(name, at[:10], speaker_label(flat(by.key), by.id), flat(text))


def _block(label: str, rows: Sequence[Row], room: int, count: Counter) -> str:
    """As many rows as fit below a label, those of a heading together; empty if none does."""
    used, shown = (text_tokens(label, count) or OVERHEAD_TOKENS), dict[str, list[str]]()
    for heading, line in rows:
        tokens = count(line) + 1
        if heading and heading not in shown:
            tokens += count(heading) + 1
        if used + tokens <= room:
            used += tokens
            shown.setdefault(heading, []).append(line)
    lines = [line for heading, of in shown.items() for line in (heading, *of) if line]
    return "\n".join([*filter(None, [label]), *lines]) if lines else ""


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


def fit_prompt(regions: Regions, caps: Caps, limit: int, count: Counter) -> Prompt:
    """Make a prompt that, with its reply, lies within the limit.

    If not even an empty prompt fits, the prompt says so by `fits`.
    """
    notes: list[str] = []
    offered = regions.tools
    while offered and tools_tokens(offered, count) > limit - caps.reserve - _LEAST_BESIDE_TOOLS:
        offered = offered[:-1]
    if missing := len(regions.tools) - len(offered):
        notes.append(f"{missing} of {len(regions.tools)} tools do not fit and are not offered")
    tools = tools_tokens(offered, count)
    count = functools.cache(count)
    # Examples are several messages; a message's frame costs more than what joins two lines.
    turns = 2 * len(regions.examples)
    frames = max(0, turns - 1) * (OVERHEAD_TOKENS - 1)
    room = limit - tools - caps.reserve - frames
    answered = _answered(regions.answered, int(room * ANSWERED_SHARE), count)
    said = mended([m for m in regions.history if not m.is_summary])
    raw = [m if m.tokens else m.counted(count) for m in said]
    raw = _with_rows(raw, regions.kept, count)
    # What the turn itself brought is needed: up to a quarter of the room is its own.
    least = total_tokens(answered)
    least += min(max(0, room // 4), total_tokens(raw[newest_turn(raw) :]))
    sections = _sections(regions, caps, count)
    texts = _fitted(sections, room - least, count, notes)
    used = sum(text_tokens(text, count) for text in texts) + total_tokens(answered)
    # What differs from turn to turn counts with its cap, so that the next prompt begins alike.
    steady = room - total_tokens(answered) - _steady_tokens(sections, texts, count)
    raw, cuts = _shortened(raw, regions.newer, steady, max(0, room - used), count)
    raw, skipped = _in_steps(raw, steady, limit)
    left_out, history = newest_that_fit(raw, max(0, room - used))
    if regions.archived:
        notes.append(f"{regions.archived:,} older messages of the archive do not fit")

    sizes = dict.fromkeys(REGIONS, 0)
    parts: dict[str, list[str]] = {name: [] for name in REGIONS}
    for section, text in zip(sections, texts, strict=True):
        sizes[section.name] += text_tokens(text, count)
        parts[section.name] += [text] if text else []
    newest = [*parts["Tail"], *parts["Retrieved"], *(rendered(m)["content"] for m in answered)]
    places = (place for place, message in enumerate(history) if message.id in regions.newer)
    begins = next(places, len(history))
    messages = [
        {"role": "system", "content": "\n\n".join((*parts["System"], *parts["Ledger"]))},
        *(_example_turns(regions.examples) if parts["Examples"] else ()),
        *({"role": "user", "content": text} for text in parts["Summaries"]),
        *told(history[:begins], regions.kept),
        *([{"role": "user", "content": "\n".join(newest)}] if newest else ()),
        *told(history[begins:]),
    ]
    # Providers refuse an empty message, and a call without a result.
    kept = (m for m in messages if m["content"] or m.get("tool_calls") or m["role"] == "tool")
    shown = alternating(kept)
    sizes |= {"Tools": tools, "Reserve": caps.reserve}
    units = sum(map(bool, texts)) + len(history) + len(answered)
    if parts["Examples"]:
        sizes["Examples"] += frames
        units += turns - 1
    # A few stay: what begins a reply is counted nowhere, and too small a count shrinks the window.
    saved = max(0, units - len(shown) - _UNCOUNTED) * (OVERHEAD_TOKENS - 1)
    sizes["History"] = max(0, total_tokens(history) + total_tokens(answered) - saved)
    gone = tuple(message.id for message in (*skipped, *left_out) if message.id)
    facts = {"left_out": len(gone), "left_until": gone[-1] if gone else ""}
    budget = TokenBudget.of(sizes, limit, notes=(*cuts, *notes), **facts)
    return Prompt(tuple(shown), offered, budget, gone, "\n".join(parts["Tail"]), missing)


def _answered(lines: Sequence[Message], room: int, count: Counter) -> list[Message]:
    """The lines to answer, the newest first to get room; each at most an equal share."""
    share = max(_LEAST_TAIL, room // max(1, len(lines)))
    counted = [line if line.tokens else line.counted(count) for line in lines]
    return [
        shorten_message(line, share, count) if line.tokens > share else line for line in counted
    ]


def _steady_tokens(sections: Sequence[_Section], texts: Sequence[str], count: Counter) -> int:
    """Tokens of the sections, those that differ from turn to turn with their caps."""
    return sum(
        section.cap if section.name in ("Tail", "Retrieved") else text_tokens(text, count)
        for section, text in zip(sections, texts, strict=True)
    )


def _shortened(
    raw: Sequence[Message], own: Collection[str], steady: int, room: int, count: Counter
) -> tuple[list[Message], list[str]]:
    """Messages of which none takes too much of the history's room, and notes on those cut for it.

    The results of tools leave the room to the talk, any other message leaves half of it. What the
    newest turn called and got is shortened to equal shares where it does not fit together.

    Args:
        raw: The messages, oldest first.
        own: Ids of what the running turn brought.
        steady: The room that the history has in every turn.
        room: The room that it has in this one.
        count: Counts tokens.
    """
    sizes = [message.tokens for message in raw if message.role == "tool" and message.id in own]
    own_most = _equal_share(sizes, int(steady * OWN_RESULTS_SHARE))
    caps = list[int]()
    for message in raw:
        most = room // 2
        if message.role == "tool":
            most = own_most if message.id in own else int(steady * RESULT_SHARE)
        caps.append(min(message.tokens, max(_LEAST_TAIL, most)))
    newest = newest_turn(raw)
    if sum(caps[newest:]) > room:
        # One share more than there are messages: room for the words that led to the calls.
        share = max(1, room // (len(raw) - newest + 1))
        caps[newest:] = [min(cap, share) for cap in caps[newest:]]
    shown, notes = list[Message](), list[str]()
    for message, cap in zip(raw, caps, strict=True):
        if message.tokens > cap:
            shown.append(shorten_message(message, cap, count))
            name = message.id or "?"
            notes.append(f"message {name} is shown shortened ({message.tokens:,} tokens)")
        else:
            shown.append(message)
    return shown, notes


def _equal_share(sizes: Sequence[int], room: int) -> int:
    """The most that each of some sizes may be for all of them to fit into a room."""
    left = room
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            return share
        left -= size
    return room


def _in_steps(raw: Sequence[Message], room: int, limit: int) -> tuple[list[Message], list[Message]]:
    """Messages without the oldest, where not all fit, and those; what goes, goes in large steps."""
    over = total_tokens(raw) - max(0, room)
    if over <= 0:
        return list(raw), []
    step = max(1, int(min(limit * STEP_SHARE, room * STEP_OF_ROOM)))
    surplus, newest = -(-over // step) * step, newest_turn(raw)
    sums = [0, *itertools.accumulate(message.tokens for message in raw)]
    points = [at for at in cut_points(raw) if at <= newest]
    place = next((at for at in points if sums[at] >= surplus), points[-1])
    return list(raw[place:]), list(raw[:place])


def _example_turns(examples: Sequence[Exchange]) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": text}
        for exchange in examples
        for role, text in zip(("user", "assistant"), exchange, strict=True)
    ]


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


def told(
    messages: Sequence[Message], kept: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Messages as a prompt shows them.

    A long quiet time before one is a line of its own; so are the notes that are `kept` before it.
    """
    shown: list[dict[str, Any]] = []
    for message, above in zip(messages, _rows_above(messages, kept), strict=True):
        item = rendered(message)
        shown.append({**item, "content": f"{above}\n{item['content']}"} if above else item)
    return shown


def _rows_above(messages: Sequence[Message], kept: Mapping[str, str]) -> list[str]:
    """What stands above each message; nothing for most."""
    rows, before = list[str](), 0.0
    for message in messages:
        at = seconds(message.created_at)
        is_long = before and at and message.role in ("user", "system") and message.content
        gap = gap_row(at - before) if is_long else ""
        rows.append("\n".join(filter(None, (gap, kept.get(message.id, "")))))
        before = at or before
    return rows


def _with_rows(
    messages: Sequence[Message], kept: Mapping[str, str], count: Counter
) -> list[Message]:
    """Messages whose tokens count what stands above them, too."""
    return [
        replace(message, tokens=message.tokens + count(above) + 1) if above else message
        for message, above in zip(messages, _rows_above(messages, kept), strict=True)
    ]
