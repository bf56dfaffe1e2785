"""Searching memory, reading the text behind an id, asking for compaction, and its own state.

How full the context is, what fills it, and what the summaries stand for.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.errors import ToolError
from evennia_ai.history.archive import UNSUMMARISED, absorbed_by
from evennia_ai.history.messages import Message
from evennia_ai.history.stored import as_count
from evennia_ai.language.words import excerpt
from evennia_ai.life import Offered
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.regions import note_line
from evennia_ai.rag_memory.provenance import attributed
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit, Query
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.tools.base import Scale, Text, Tool, ToolContext

# Messages before and behind the one asked for.
NEIGHBOURS = 3
AROUND_CHARS = 400
# A text takes about a quarter of the context at most: four characters a token.
MOST_CHARS = 12_000
_SOURCES_SHOWN = 12
# Profiles, and messages, that are read before the reactor gets a turn.
PROFILES_AT_ONCE, SLICE = 10, 256
# Results by the size of the context: ten at 4,000 tokens, never more than twenty.
MOST_RESULTS, TOKENS_PER_RESULT = 20, 400
RESULT_CHARS = 400
MOST_CONTRIBUTORS, MOST_SUMMARIES = 8, 8

MOST_PIECES = 50  # pieces that are told at most


@dataclass(frozen=True)
class Contributor:
    """One piece of a prompt."""

    what: str  # a region, or ``message``, ``summary``, ``note``, ``tool``, ``persona``
    id: str  # its id or name; empty for a region
    tokens: int  # what it takes
    advice: str = ""  # what staff can do about it


_ADVICE = {
    "System": "shorten `persona`",
    "Tools": "switch off what it does not need: `tool_levels`",
    "Ledger": "withdraw notes (`aimemory/reject`), or lower `ledger_max_tokens`",
    "Examples": "shorten `examples`",
    "Summaries": "compact: older summaries are merged",
    "History": "compact; its words stay in the archive",
    "Retrieved": "lower `memory_inject_tokens`",
    "Tail": "fewer people and things in the room",
    "Reserve": "lower `reply_reserve_tokens`",
}


def newest_turn(seen: Seen) -> TokenBudget | None:
    """The logged budget of the newest turn that a viewer may know of; None if there is none."""
    requests = reversed(seen.requests())
    return next((event for event in requests if event.purpose == CONTEXT_AWAKE), None)


def contributors(script: Assistant, tools: Iterable[Offered], audience: str) -> list[Contributor]:
    """The regions of the newest turn's prompt and the pieces of the next one, largest first.

    Only pieces that the audience may know, and those of the `tools` that are offered.
    """
    seen, count = script.seen(audience), script.count
    event = newest_turn(seen)
    pieces = [Contributor("persona", "", count(script.config.persona), _ADVICE["System"])]
    for region, tokens in (event.regions if event else {}).items():
        if tokens:
            pieces.append(Contributor(f"region {region}", "", tokens, _ADVICE[region]))
    for message in seen.messages():
        what, region = ("summary", "Summaries") if message.is_summary else ("message", "History")
        name = str(message.metadata.get("summary_id") or message.id)
        pieces.append(Contributor(what, name, message.tokens, _ADVICE[region]))
    for entry in seen.pinned():
        line = note_line(entry.id, entry.at, entry.by, entry.text)
        pieces.append(Contributor("note", entry.id, count(line), _ADVICE["Ledger"]))
    for tool in tools if script.limits().calls_tools else ():
        size = count(json.dumps(tool.schema()))
        pieces.append(Contributor("tool", tool.name, size, _ADVICE["Tools"]))
    return sorted(pieces, key=lambda piece: -piece.tokens)[:MOST_PIECES]


class SearchMemory(Tool):
    """Search earlier talk, your journal and dreams."""

    name = "search_memory"
    recalls = tells_nothing_new = True
    parameters = {"query": Text(limit=400)}

    @inlineCallbacks
    def run(self, ctx: ToolContext, query: str) -> Steps[dict[str, Any]]:
        """Fires with what was found, best first, only what the turn's audience may know.

        Each hit is shown once in a turn: searches in other words mostly find the same.
        """
        limit = min(MOST_RESULTS, max(5, ctx.script.limits().tokens // TOKENS_PER_RESULT))
        own_name, answered = ctx.character.key, ctx.source_message_ids
        wanted = Query(
            query, limit, exclude=answered, own_name=own_name, observations=True, tools=True
        )
        hits: list[Hit] = yield ctx.seen.search(wanted)
        fresh = [hit for hit in hits if hit.turn_id not in ctx.found]
        ctx.found.update((hit.turn_id, hit.score) for hit in fresh)
        if fresh:
            journal, history = ctx.script.journal, ctx.script.history
            told = (attributed(journal, history, hit) for hit in fresh)
            shown = (replace(hit, text=excerpt(hit.text, query, RESULT_CHARS)) for hit in told)
            return {"results": [hit.to_dict() for hit in shown]}
        if ctx.found:
            return {"results": [], "note": "Nothing beyond what you have found already."}
        return {"results": [], "note": "Nothing in memory matches. Say that you do not know."}


class ExpandMemory(Tool):
    """Read the text behind an id, from an offset on, and what was said around it."""

    name = "expand_memory"
    serves = "older"
    recalls = tells_nothing_new = True
    parameters = {
        "id": Text(limit=120),
        "offset": Scale(required=False, low=0, high=10**9),
    }

    @inlineCallbacks
    def run(self, ctx: ToolContext, id: str, offset: int = 0) -> Steps[dict[str, Any]]:
        """Fires with a part of what the id means, if the turn's audience may know it."""
        wanted = id.strip().strip("()")
        look: tuple[Hit, list[Hit]] | None = yield _look_up(ctx, wanted)
        if look is None:
            raise ToolError(f"there is nothing you may see under `{wanted}`")
        ctx.opened.append(wanted)
        found, around = look
        text, end = found.text, offset + min(MOST_CHARS, ctx.script.limits().tokens)
        if found.kind == "summary":  # a line for each message it was made from
            text += "\n\nMade from:"
            for number, message in enumerate(ctx.seen.below(wanted), 1):
                if len(text) > end:
                    break
                for said in _said([message]):
                    text += f"\n{str(said.at)[:16]} {said.speaker}: {said.text}"
                if number % SLICE == 0:
                    yield pause()
        shown: dict[str, Any] = replace(found, text=text[offset:end]).to_dict()
        if around:
            shown["around"] = [hit.to_dict() for hit in around]
        if len(text) > end:
            shown["next_offset"] = end
        return shown


@inlineCallbacks
def _look_up(ctx: ToolContext, wanted: str) -> Steps[tuple[Hit, list[Hit]] | None]:
    """Fires with what an id means in history, journal, summaries, ledger or profiles.

    And with what was said around it, or what it rests on.
    """
    seen = ctx.seen
    messages = seen.around(wanted)
    for at, message in enumerate(messages):
        if message.id == wanted:
            before = _said(messages[:at])[-NEIGHBOURS:]
            return _hit(message), [*before, *_said(messages[at + 1 :])[:NEIGHBOURS]]
    entry, record = seen.entry(wanted), seen.summary(wanted)
    if entry is not None and not entry.withdrawn:
        sources = seen.by_ids(entry.source_message_ids[:_SOURCES_SHOWN])
        return Hit(wanted, 0.0, "", entry.content, entry.timestamp, "journal"), _said(sources)
    if record is not None and not record.rolled_back:
        return Hit(wanted, 0.0, "", record.text, record.created_at, "summary"), []
    for note in seen.pinned():
        if note.id == wanted:
            hit = Hit(wanted, 0.0, note.by.key, note.text, note.at, "ledger")
            return hit, _said(seen.by_ids([note.source]))
    observed: tuple[Hit, list[Hit]] | None = yield _look_up_observation(ctx, wanted)
    return observed


@inlineCallbacks
def _look_up_observation(ctx: ToolContext, wanted: str) -> Steps[tuple[Hit, list[Hit]] | None]:
    seen = ctx.seen
    for number, profile in enumerate(chain(seen.profiles(), seen.older_profiles()), 1):
        for item in profile.observations:
            if item.id == wanted:
                text = f"{profile.name}: {item.text}"
                sources = seen.by_ids(item.sources[:_SOURCES_SHOWN])
                return Hit(wanted, 0.0, "", text, item.at, "observation"), _said(sources)
        if number % PROFILES_AT_ONCE == 0:
            yield pause()
    return None


def _said(messages: Iterable[Message]) -> list[Hit]:
    """What was said among messages, shortened."""
    return [
        _hit(replace(message, content=message.content[:AROUND_CHARS]))
        for message in messages
        if message.role in ("user", "assistant") and message.content and not message.is_summary
    ]


def _hit(message: Message) -> Hit:
    speaker = message.speaker_name or message.name or message.role
    return Hit(message.id, 0.0, speaker, message.content, message.created_at)


class RequestCompaction(Tool):
    """Memory fills up: save what matters, then ask by this that older talk be folded now."""

    name = "request_compaction"
    serves = "full"
    lock = "tool:perm(Player)"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> str:
        """Grant it above the sleep threshold; the next tick carries it out."""
        config, state = ctx.script.config, ctx.script.state
        runtime, now = ctx.script.runtime, ctx.script.now()
        share, needed = ctx.script.usage(), config.compact_sleep_threshold
        for why, holds in {
            "compaction is switched off": not config.compact_enabled,
            "compaction is done only when staff start it": not config.compact_auto,
            "the last one failed; it is tried again in a while": now < runtime.summaries.waits[1],
            "staff took the last one back; it waits for them": state.hold,
            f"not needed: {share:.0%} of the context is used, under {needed:.0%}": share < needed,
        }.items():
            if holds:
                raise ToolError(why)
        runtime.summaries.is_requested = True
        return "Granted: it is done when this turn is over."


class ContextSnapshot(Tool):
    """See how full your memory (your context) is, and what it holds by kind."""

    name = "context_snapshot"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> str:
        """The budget of this turn's prompt, of what its audience may know: a line of sentences.

        A second line holds the regions.
        """
        script = ctx.script
        event, limit = newest_turn(ctx.seen), script.limits().tokens
        live = ctx.seen.messages()
        markers = [message for message in live if message.is_summary]
        said = sum(bool(m.content) and m.role in ("user", "assistant") for m in live)
        folded = sum(as_count(marker.metadata.get("compacted_count")) for marker in markers)
        used = event.total if event else script.prompts.fixed_tokens
        says = [
            f"Your memory is {used / limit:.0%} full: {used:,} of {limit:,} tokens are in use.",
            f"Lines of talk that you hold word for word: {said:,}.",
            f"Summaries: {len(markers):,}, of {folded:,} older messages; none is lost.",
        ]
        if event:
            says.append(f"Messages left out of this prompt for lack of room: {event.left_out:,}.")
        return " ".join(says) + (f"\nBy kind: {event}." if event else "")


class ListContributors(Tool):
    """See what takes the most room in your context: kinds, messages, notes and tools, by id."""

    name = "list_contributors"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> dict[str, Any]:
        """The largest pieces that the turn's audience may know of."""
        found = contributors(ctx.script, ctx.tools.offered(), ctx.audience)[:MOST_CONTRIBUTORS]
        pieces = [{"what": each.what, "id": each.id, "tokens": each.tokens} for each in found]
        return {"largest": [{k: v for k, v in piece.items() if v} for piece in pieces]}


class TraceSummaries(Tool):
    """See which summaries stand for older talk, and of how many messages; read one by its id."""

    name = "trace_summaries"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> dict[str, Any]:
        """The newest summaries that the turn's audience may know of, without their text."""
        records = ctx.seen.summaries()
        known = [r for r in records if not r.rolled_back and r.tier != UNSUMMARISED]
        above = absorbed_by(known)
        newest = [
            {
                "id": record.id,
                "tier": record.tier,
                "made": record.created_at[:16],
                "messages": len(record.source_ids),
                **({"summaries": list(record.child_ids)} if record.child_ids else {}),
                **({"part_of": above[record.id]} if record.id in above else {"in_prompt": True}),
            }
            for record in known[::-1][:MOST_SUMMARIES]
        ]
        return {"summaries": newest, "older": len(known) - len(newest)}
