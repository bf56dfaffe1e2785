"""A prompt from its regions: what fits is shown, what does not is cut by a stated rule.

The rule, in this order, until the prompt fits under the limit: the oldest messages of the
history leave it (they stay stored), retrieved memories go, the present moment is shortened,
summaries are shortened, the least of the ledger's notes go, the persona is shortened. A single
message larger than half of the history's room is shown shortened in its middle, as are calls and
results that make up the newest turn and do not fit together. The newest turn is what is to be
answered: a quarter of the room is its own, however large the other regions are. Where the tools
would leave hardly any room to all else, the last of them are not offered.
"""

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.history.frames import (
    MEMORIES_LABEL,
    MOMENT_LABEL,
    SUMMARY_TITLE,
    summary_label,
)
from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    Message,
    rendered,
    total_tokens,
)
from evennia_ai.history.pairs import mended, newest_turn
from evennia_ai.llm_interaction.budget import TokenBudget, newest_that_fit, shortened
from evennia_ai.llm_interaction.pinned_notes import Pinned, PinnedNote, pinned
from evennia_ai.llm_interaction.tool_calls import as_text, main_arguments

Counter = Callable[[str], int]
# Volatile regions and the reply's reserve together take at most this share of the limit.
VOLATILE_SHARE = 0.25
SUMMARY_SHARE = 0.1
LEDGER_SHARE = 0.1
_TOOL_FRAME_TOKENS = 1  # what parts a schema from the next
# Room that the tools leave to everything else.
_LEAST_BESIDE_TOOLS = 100
_LEAST_TAIL = 60


@dataclass(frozen=True)
class Caps:
    """Most tokens of each region, after shrinking to the limit."""

    retrieved: int
    tail: int
    reserve: int
    summary: int
    shrunk: bool = False
    ledger: int = 0

    @property
    def volatile(self) -> int:
        """What is set aside before the history: retrieved memories, tail and reply."""
        return self.retrieved + self.tail + self.reserve


def effective_caps(
    retrieved: int, tail: int, reserve: int, summary: int, limit: int, ledger: int = 0
) -> Caps:
    """Caps that leave room for a history.

    The configured caps hold where they take at most a quarter of the limit together; larger
    ones are scaled down in proportion. A summary takes at most a tenth of the limit, and so does
    the ledger.
    """
    summary_cap = min(summary, max(40, int(limit * SUMMARY_SHARE)))
    ledger_cap = min(ledger, max(40, int(limit * LEDGER_SHARE)))
    shrunk = summary_cap < summary or ledger_cap < ledger
    wanted = retrieved + tail + reserve
    allowed = int(limit * VOLATILE_SHARE)
    if wanted <= allowed:
        return Caps(retrieved, tail, reserve, summary_cap, shrunk, ledger_cap)
    share = allowed / wanted
    parts = (int(retrieved * share), int(tail * share), max(16, int(reserve * share)))
    return Caps(*parts, summary_cap, True, ledger_cap)


@dataclass(frozen=True)
class Regions:
    """What a prompt is made of, before it is fitted.

    Args:
        system: Text of the system message.
        tools: Tool schemas in the API's form.
        history: Live messages the audience may see, markers among them, oldest first.
        retrieved: Lines of retrieved memories, most relevant first.
        tail: Lines of the present moment, most important first.
        ledger: Approved notes the audience may see, as `rag_memory.ledger.shown_to` orders them.
        archived: How many messages of the archive could not fit.
        since: Id of the message behind which memories and tail stand; None: behind all.
    """

    system: str
    tools: tuple[dict[str, Any], ...]
    history: tuple[Message, ...]
    retrieved: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    ledger: tuple[PinnedNote, ...] = ()
    archived: int = 0
    since: str | None = None


@dataclass(frozen=True)
class Prompt:
    """What is sent, and the record of how it was made."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]
    budget: TokenBudget

    @property
    def fits(self) -> bool:
        """Whether everything lies within the limit."""
        return self.budget.total <= self.budget.limit


def tools_tokens(tools: Sequence[dict[str, Any]], count: Counter) -> int:
    """Tokens of tool schemas in a request."""
    return sum(_schema_tokens(json.dumps(tool), count) + _TOOL_FRAME_TOKENS for tool in tools)


@functools.lru_cache(maxsize=1024)
def _schema_tokens(schema: str, count: Counter) -> int:
    """Tokens of one schema; they hardly ever change, and every prompt holds them."""
    return count(schema)


def text_tokens(text: str, count: Counter) -> int:
    """Tokens of one message that holds just a text; 0 for none."""
    return count(text) + OVERHEAD_TOKENS if text else 0


def fit_prompt(
    regions: Regions,
    caps: Caps,
    limit: int,
    count: Counter,
    tools_cost: Callable[[Sequence[dict[str, Any]], Counter], int] = tools_tokens,
) -> Prompt:
    """Make a prompt that, with its reply, lies within the limit, by the rule of this module.

    `tools_cost` counts the tokens of tools as they are sent. If not even an empty prompt fits, the
    prompt says so by `fits`.
    """
    markers = [m for m in regions.history if m.is_summary]
    raw = [m for m in regions.history if not m.is_summary]
    offered = regions.tools
    while offered and tools_cost(offered, count) > limit - caps.reserve - _LEAST_BESIDE_TOOLS:
        offered = offered[:-1]
    tools = tools_cost(offered, count)
    count = functools.cache(count)
    summaries = tuple(_summary_text(marker, caps.summary, count) for marker in markers)
    memories, cut_memories = _lines(MEMORIES_LABEL, regions.retrieved, caps.retrieved, count)
    moment, cut_moment = _lines(MOMENT_LABEL, regions.tail, caps.tail, count)
    ledger = pinned(regions.ledger, caps.ledger, count)
    capped = _Texts(regions.system, ledger, summaries, memories, moment)
    room = limit - tools - caps.reserve
    texts = _squeezed(capped, regions.ledger, room - _least_history(raw, room, count), count)
    left_out, kept, notes = fit_history(raw, room - texts.tokens(count), count)
    ids = [message.id for message in regions.history]
    newer = set(ids[ids.index(regions.since) + 1 :]) if regions.since in ids else set[str]()
    begins = next((place for place, m in enumerate(kept) if m.id in newer), len(kept))
    earlier, turn = _joined(kept[:begins], count), _joined(kept[begins:], count)
    sizes = {
        "System": text_tokens(texts.system, count),
        "Tools": tools,
        "Ledger": text_tokens(texts.ledger.text, count),
        "Summaries": sum(text_tokens(text, count) for text in texts.summaries),
        "History": sum(m.tokens for m in kept) - earlier[1] - turn[1],
        "Retrieved": text_tokens(texts.retrieved, count),
        "Tail": text_tokens(texts.tail, count),
        "Reserve": caps.reserve,
    }
    if texts.ledger.left_out:
        notes += (f"notes of the ledger did not fit: {', '.join(texts.ledger.left_out)}",)
    if cut_memories:
        notes += (f"{cut_memories} of {len(regions.retrieved)} lines of memory do not fit",)
    if cut_moment:
        notes += (f"{cut_moment} of {len(regions.tail)} lines on the present do not fit",)
    for what, before, after in (
        ("lines of memory", capped.retrieved, texts.retrieved),
        ("lines on the present", capped.tail, texts.tail),
        ("rules and persona", capped.system, texts.system),
    ):
        if before != after:
            done = "shortened" if after else "left out"
            notes += (f"the {what} are {done}: other regions leave no room",)
    if len(offered) < len(regions.tools):
        unoffered = len(regions.tools) - len(offered)
        notes += (f"{unoffered} of {len(regions.tools)} tools do not fit and are not offered",)
    whole = sum(any(text.endswith(m.content) for text in texts.summaries) for m in markers)
    if whole < len(markers):
        cut = len(markers) - whole
        notes += (f"{cut} of {len(markers)} summaries were shortened or left out",)
    if regions.archived:
        notes += (f"{regions.archived:,} older messages of the archive do not fit",)
    budget = TokenBudget(sizes, limit, tuple(m.id for m in left_out if m.id), notes)
    return Prompt(_assembled(texts, earlier[0], turn[0]), offered, budget)


@dataclass(frozen=True)
class _Texts:
    """The regions that are texts, as they stand in the prompt."""

    system: str
    ledger: Pinned
    summaries: tuple[str, ...]
    retrieved: str
    tail: str

    def tokens(self, count: Counter) -> int:
        before = (self.system, self.ledger.text, *self.summaries)
        texts = (*before, self.retrieved, self.tail)
        return sum(text_tokens(text, count) for text in texts)


def fit_history(
    raw: Sequence[Message], room: int, count: Counter
) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[str, ...]]:
    """The newest messages that fit, in the form a provider takes them.

    Returns what is left out, what is kept (mended, with tokens), and notes on what was shortened.
    """
    whole = _counted(mended(raw), count)
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
    left_out, kept = newest_that_fit(fitted, max(0, room))
    return left_out, kept, notes


def _least_history(raw: Sequence[Message], room: int, count: Counter) -> int:
    """Tokens the other regions leave to the newest turn: what it holds, up to its quarter."""
    whole = mended(raw)
    turn = _counted(whole[newest_turn(whole) :], count)
    return min(max(0, room // 4), total_tokens(turn))


def _counted(messages: Sequence[Message], count: Counter) -> list[Message]:
    return [m if m.tokens else m.counted(count) for m in messages]


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


def _summary_text(marker: Message, cap: int, count: Counter) -> str:
    """A summary as it is rendered. The cap is that of its own text, without title and label."""
    body = _cut(marker.content, cap + text_tokens(SUMMARY_TITLE, count), count)
    folded = marker.metadata.get("compacted_count", "some")
    is_long, name = marker.metadata.get("tier") == "long", marker.metadata.get("summary_id")
    label = summary_label(folded, is_long, str(name or ""))
    return f"{label}\n{body}"


def _lines(label: str, lines: Sequence[str], cap: int, count: Counter) -> tuple[str, int]:
    """A labelled block of as many lines as fit, empty if none does, and how many do not."""
    used, kept = text_tokens(label, count), []
    for line in lines:
        tokens = count(line) + 1
        if used + tokens > cap:
            continue
        used += tokens
        kept.append(line)
    return "\n".join([label, *kept]) if kept else "", len(lines) - len(kept)


def _cut(text: str, cap: int, count: Counter) -> str:
    """A text shortened until it holds at most `cap` tokens."""
    chars = len(text)
    while text and count(text) > max(cap, 1):
        chars = min(int(chars * 0.8), cap * 6)
        if chars < 8:
            return ""
        text = shortened(text, chars) if chars > 120 else text[:chars]
    return text


def _squeezed(texts: _Texts, notes: Sequence[PinnedNote], room: int, count: Counter) -> _Texts:
    """Give up regions in the stated order until those before the history fit in `room`."""

    def over() -> int:
        return texts.tokens(count) - room

    def less(text: str, least: int = 0) -> str:
        return _cut(text, max(least, count(text) - over()), count)

    if over() > 0:
        texts = replace(texts, retrieved="")
    if over() > 0:
        texts = replace(texts, tail=less(texts.tail, _LEAST_TAIL))
    if over() > 0:
        shorter = tuple(map(less, texts.summaries))
        texts = replace(texts, summaries=tuple(text for text in shorter if text))
    if over() > 0:
        texts = replace(texts, tail="")
    if over() > 0 and notes:
        cap = text_tokens(texts.ledger.text, count) - over()
        texts = replace(texts, ledger=pinned(notes, cap, count))
    if over() > 0:
        texts = replace(texts, system=less(texts.system, 1))
    return texts


def _assembled(
    texts: _Texts, earlier: Sequence[dict[str, Any]], turn: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The messages of a prompt; what the running turn did stands last."""
    # Cut to nothing it is not sent: providers refuse an empty system message.
    system = texts.system
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    before = (texts.ledger.text, *texts.summaries)
    messages += [{"role": "user", "content": text} for text in before if text]
    messages += earlier
    behind = (texts.retrieved, texts.tail)
    messages += [{"role": "user", "content": text} for text in behind if text]
    return (*messages, *turn)


def joined_lines(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Rendered messages; heard lines that follow one another share one user message."""
    return _joined(messages, len)[0]


def _joined(messages: Sequence[Message], count: Counter) -> tuple[list[dict[str, Any]], int]:
    """Rendered messages as of `joined_lines`, and how many tokens that saves.

    A line that joins another saves its frame and costs its line break, which is often part of the
    token before it.
    """
    shown: list[dict[str, Any]] = []
    lines: list[str] = []  # those of the user message that is last in `shown`
    saved = 0
    for message in messages:
        item = rendered(message)
        role, text = item["role"], item["content"]
        if role in ("user", "assistant") and not (text or item.get("tool_calls")):
            saved += OVERHEAD_TOKENS
            continue
        if role != "user":
            _join(shown, lines)
        elif lines:
            last = lines[-1][-1]
            saved += OVERHEAD_TOKENS - count(f"{last}\n") + count(last)
        if not lines:
            shown.append(item)
        if role == "user":
            lines.append(text)
    _join(shown, lines)
    return shown, saved


def _join(shown: list[dict[str, Any]], lines: list[str]) -> None:
    """Let the last message hold all of the lines, which are then forgotten."""
    if len(lines) > 1:
        shown[-1] = {"role": "user", "content": "\n".join(lines)}
    lines.clear()


def as_text_protocol(prompt: Prompt, instructions: str) -> Prompt:
    """The prompt for a model without tool calling: tools and their results as plain text.

    `instructions` say how tools are called; they follow the system text.
    """
    messages = as_text(prompt.messages, instructions, main_arguments(prompt.tools))
    return replace(prompt, messages=tuple(messages), tools=())
