"""A prompt from its sections: what fits is shown, what does not is cut by its section's rule.

Each section of text has a cap, and gives way in its turn where the newest turn needs more room; the
history then takes what is left, newest first. What leaves a prompt stays stored, and the budget's
notes name it.
"""

import functools
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    SUMMARY_TITLE,
    Counter,
    Message,
    Speaker,
    cut_points,
    flat,
    mended,
    newest_turn,
    rendered,
    row,
    seconds,
    speaker_label,
    total_tokens,
)
from evennia_ai.llm_interaction.budget import (
    REGIONS,
    Caps,
    TokenBudget,
    shortened,
)
from evennia_ai.llm_interaction.conversation import (
    LEDGER,
    Exchange,
    alternating,
    gap_row,
    summary_text,
)
from evennia_ai.llm_interaction.values import ShownNotes

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
# In which order regions give way to what is newer, and down to how many tokens.
_GIVES_WAY = (
    ("Retrieved", 0),
    ("Examples", 0),
    ("Tail", _LEAST_TAIL),
    ("Summaries", 0),
    ("Tail", 0),
    ("Ledger", 0),
    ("System", 0),
)

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
    tools_left: int = 0  # how many tools did not fit
    # Notes of what mostly holds from turn to turn that it tells.
    told: ShownNotes = ShownNotes({})

    @property
    def fits(self) -> bool:
        """Whether everything lies within the limit."""
        return self.budget.total <= self.budget.limit


@dataclass
class _Section:
    """A part of a prompt that is text."""

    region: str
    name: str  # what notes call it
    cap: int  # most tokens of its text
    render: Callable[[int], str]  # what of it fits into so many tokens; empty for nothing
    text: str = ""  # as the prompt shows it


def _sections(regions: Regions, caps: Caps, count: Counter) -> list[_Section]:
    """The sections of a prompt, in order."""
    examples = "\n".join(line for exchange in regions.examples for line in exchange)
    summaries = (message for message in regions.history if message.is_summary)

    def block(region: str, name: str, cap: int, label: str, rows: Iterable[Row]) -> _Section:
        return _Section(region, name, cap, lambda room: _block(count, label, rows, room))

    def summary(marker: Message) -> _Section:
        name = str(marker.metadata.get("summary_id") or "")
        text = marker.content.removeprefix(SUMMARY_TITLE).lstrip()

        def shown(room: int) -> str:
            body = _cut(count, text, room - SUMMARY_FRAME_TOKENS)
            return summary_text(body, name * regions.has_ids)

        cap = caps.summary + SUMMARY_FRAME_TOKENS
        return _Section("Summaries", f"summary {name or marker.id}", cap, shown)

    return [
        _Section(
            "System",
            "rules and persona",
            _UNBOUNDED,
            lambda room: _cut(count, regions.system, room - OVERHEAD_TOKENS),
        ),
        block("Ledger", "ledger", caps.ledger, f"{LEDGER}:", regions.ledger),
        _Section(
            "Examples",
            "examples of talk",
            _UNBOUNDED,
            lambda room: examples * (text_tokens(examples, count) <= room),
        ),
        *map(summary, summaries),
        block("Tail", "present moment", caps.tail, "", [("", line) for line in regions.tail]),
        block(
            "Retrieved", "memories", caps.retrieved, "", [("", line) for line in regions.retrieved]
        ),
    ]


def note_line(name: str, at: str, by: Speaker, text: str) -> str:
    """A note as quoted data: its id, its day, its author, its words."""
    return row(name, at[:10], speaker_label(flat(by.key), by.id), flat(text))


def _block(count: Counter, label: str, rows: Iterable[Row], room: int) -> str:
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
    if lines and label:
        lines.insert(0, label)
    return "\n".join(lines)


def _cut(count: Counter, text: str, room: int) -> str:
    """A text shortened until it holds at most so many tokens."""
    chars = len(text)
    while text and count(text) > max(room, 0):
        chars = min(int(chars * 0.8), room * 6)
        if chars < 8:
            return ""
        head = text[:chars]
        if chars > 120:
            head = shortened(text, chars)
        text = head
    return text


def tools_tokens(tools: Sequence[Schema], count: Counter) -> int:
    """Tokens of tool schemas in a request."""
    return sum(count(json.dumps(tool)) + _TOOL_FRAME_TOKENS for tool in tools)


def text_tokens(text: str, count: Counter) -> int:
    """Tokens of one message that holds just a text; 0 for none."""
    if not text:
        return 0
    return count(text) + OVERHEAD_TOKENS


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
    sizes = dict.fromkeys(REGIONS, 0)
    sizes |= {"Tools": tools_tokens(offered, count), "Reserve": caps.reserve}
    count = functools.cache(count)
    # Examples are several messages; a message's frame costs more than what joins two lines.
    frames = max(0, 2 * len(regions.examples) - 1) * (OVERHEAD_TOKENS - 1)
    room = limit - sizes["Tools"] - caps.reserve - frames
    answered = _answered(regions.answered, int(room * ANSWERED_SHARE), count)
    room -= total_tokens(answered)
    raw = _sized(mended([m for m in regions.history if not m.is_summary]), count)
    # Those of the lines above them included.
    for at, above in enumerate(_rows_above(raw, regions.kept)):
        if above:
            raw[at] = replace(raw[at], tokens=raw[at].tokens + count(above) + 1)
    # What the turn itself brought is needed: up to a quarter of the room is its own.
    own = min(max(0, (room + total_tokens(answered)) // 4), total_tokens(raw[newest_turn(raw) :]))
    sections = _sections(regions, caps, count)
    _fit(sections, room - own, count, notes)
    # What differs from turn to turn counts with its cap, so that the next prompt begins alike.
    steady = room
    parts: dict[str, list[str]] = {name: [] for name in REGIONS}
    for section in sections:
        tokens = text_tokens(section.text, count)
        sizes[section.region] += tokens
        room -= tokens
        if section.region in ("Tail", "Retrieved"):
            tokens = section.cap
        steady -= tokens
        if section.text:
            parts[section.region].append(section.text)
    room = max(0, room)
    raw, cuts = _shortened(raw, regions.newer, steady, room, count)
    left_out, history = _newest(raw, steady, room, limit)
    if regions.archived:
        notes.append(f"{regions.archived:,} older messages of the archive do not fit")
    # Of what is counted as a message by itself, lines of one turn share one. A few stay: what
    # begins a reply is counted nowhere, and too small a count shrinks the window.
    units = sum(map(len, parts.values())) + len(history) + len(answered) - _UNCOUNTED
    if parts["Examples"]:
        sizes["Examples"] += frames
        units += 2 * len(regions.examples) - 1
    else:
        regions = replace(regions, examples=())
    shown = _messages(parts, history, answered, regions)
    saved = max(0, units - len(shown)) * (OVERHEAD_TOKENS - 1)
    sizes["History"] = max(0, total_tokens([*history, *answered]) - saved)
    gone = tuple(message.id for message in left_out if message.id)
    until = "".join(gone[-1:])
    cut = (*cuts, *notes)
    budget = TokenBudget(
        regions=sizes, limit=limit, notes=cut, left_out=len(gone), left_until=until
    )
    return Prompt(tuple(shown), offered, budget, gone, missing)


def _messages(
    parts: Mapping[str, Sequence[str]],
    history: Sequence[Message],
    answered: Sequence[Message],
    regions: Regions,
) -> list[dict[str, Any]]:
    """The chat messages of a prompt, in order: the lines to answer before what is newer."""
    messages = [{"role": "system", "content": "\n\n".join((*parts["System"], *parts["Ledger"]))}]
    for asked, said in regions.examples:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    messages += [{"role": "user", "content": text} for text in parts["Summaries"]]
    places = (place for place, message in enumerate(history) if message.id in regions.newer)
    begins = next(places, len(history))
    messages += told(history[:begins], regions.kept)
    newest = [*parts["Tail"], *parts["Retrieved"], *(rendered(m)["content"] for m in answered)]
    messages.append({"role": "user", "content": "\n".join(newest)})
    messages += told(history[begins:])
    # Providers refuse an empty message, and a call without a result.
    kept = (m for m in messages if m["content"] or m.get("tool_calls") or m["role"] == "tool")
    return alternating(kept)


def _fit(sections: Sequence[_Section], room: int, count: Counter, notes: list[str]) -> None:
    """Cut the text of sections until all fit into a room; `notes` says what was cut."""
    for section in sections:
        section.text = section.render(section.cap)
    capped = [section.text for section in sections]
    for region, least in _GIVES_WAY:
        for section in sections:
            over = sum(text_tokens(each.text, count) for each in sections) - room
            if section.region == region and over > 0:
                own = text_tokens(section.text, count)
                section.text = section.render(min(own, max(least, own - over)))
    for section, under_cap in zip(sections, capped, strict=True):
        done = "left out"
        if section.text:
            done = "shortened"
        if section.text != under_cap:
            notes.append(f"{section.name} {done}: other regions leave no room")
        elif section.text != section.render(_UNBOUNDED):
            notes.append(f"{section.name} {done}: more than its {section.cap:,} tokens")


def _answered(lines: Sequence[Message], room: int, count: Counter) -> list[Message]:
    """The lines to answer; each takes at most an equal share of the room."""
    share = max(_LEAST_TAIL, room // max(1, len(lines)))
    return [shorten_message(line, share, count) for line in _sized(lines, count)]


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
    results = sum(message.role == "tool" and message.id in own for message in raw)
    own_share = int(steady * OWN_RESULTS_SHARE) // max(1, results)
    caps = list[int]()
    for message in raw:
        most = room // 2
        if message.role == "tool":
            most = own_share if message.id in own else int(steady * RESULT_SHARE)
        caps.append(min(message.tokens, max(_LEAST_TAIL, most)))
    newest = newest_turn(raw)
    if sum(caps[newest:]) > room:
        # One share more than there are messages: room for the words that led to the calls.
        share = max(1, room // (len(raw) - newest + 1))
        caps[newest:] = [min(cap, share) for cap in caps[newest:]]
    notes = [
        f"message {message.id or '?'} is shown shortened ({message.tokens:,} tokens)"
        for message, cap in zip(raw, caps, strict=True)
        if message.tokens > cap
    ]
    return list(map(shorten_message, raw, caps, itertools.repeat(count))), notes


def _newest(
    raw: Sequence[Message], steady: int, room: int, limit: int
) -> tuple[Sequence[Message], Sequence[Message]]:
    """The oldest of some messages, which are left out, and the newest, which fit into a room.

    What leaves as the talk outgrows its `steady` room leaves in large steps. The cut is where no
    call loses its result; the newest exchange leaves only where it does not fit.
    """
    sums = [0, *itertools.accumulate(message.tokens for message in raw)]
    step = max(1, int(min(limit * STEP_SHARE, steady * STEP_OF_ROOM)))
    steps = -(-max(0, sums[-1] - max(0, steady)) // step)
    surplus = max(min(steps * step, sums[newest_turn(raw)]), sums[-1] - room)
    place = next((at for at in cut_points(raw) if sums[at] >= surplus), len(raw))
    return raw[:place], raw[place:]


def shorten_message(message: Message, cap_tokens: int, count: Counter) -> Message:
    """A counted message cut in its middle to about `cap_tokens`; what is stored stays whole."""
    short = message
    for share in (1.0, 0.5, 0.2, 0.05):
        if short.tokens <= cap_tokens:
            break
        text = shortened(message.content, int(cap_tokens * 2 * share))
        short = replace(message, content=text).counted(count)
    return short


def told(
    messages: Sequence[Message], kept: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """Messages as a prompt shows them, with what stands above them."""
    shown: list[dict[str, Any]] = []
    for message, above in zip(messages, _rows_above(messages, kept), strict=True):
        item = rendered(message)
        if above:
            item["content"] = f"{above}\n{item['content']}"
        shown.append(item)
    return shown


def _rows_above(messages: Sequence[Message], kept: Mapping[str, str]) -> list[str]:
    """The lines on a long quiet time and the notes that stand above each message, if any."""
    rows, before = list[str](), 0.0
    for message in messages:
        at, above = seconds(message.created_at), kept.get(message.id, "")
        if before and at and message.role in ("user", "system") and message.content:
            above = "\n".join(filter(None, (gap_row(at - before), above)))
        rows.append(above)
        before = at or before
    return rows


def _sized(messages: Iterable[Message], count: Counter) -> list[Message]:
    """Messages with their tokens."""
    return [message if message.tokens else message.counted(count) for message in messages]
