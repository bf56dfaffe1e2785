"""Searching memory, reading the text behind an id, asking for compaction, and its own state.

How full the context is, what fills it, and what the summaries stand for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import Steps, pause
from evennia_ai.errors import ToolError
from evennia_ai.history.archive import UNSUMMARISED, absorbed_by
from evennia_ai.history.messages import Message
from evennia_ai.history.stored import as_count
from evennia_ai.language.words import excerpt
from evennia_ai.llm_interaction.contributors import contributors, newest_turn
from evennia_ai.rag_memory.profile import Observation, Profile, current
from evennia_ai.rag_memory.provenance import attributed
from evennia_ai.recall.values import Hit, Query
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.parameters import Scale, Text

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


class SearchMemory(Tool):
    """Search earlier talk, your journal and dreams."""

    name = "search_memory"
    recalls = tells_nothing_new = True
    parameters = {"query": Text(limit=400)}

    def run(self, ctx: ToolContext, query: str) -> "Deferred[dict[str, Any]]":
        """What was found, best first, only what the turn's audience may know."""
        limit = min(MOST_RESULTS, max(5, ctx.script.limits().tokens // TOKENS_PER_RESULT))
        own_name, answered = ctx.character.key, ctx.source_message_ids
        wanted = Query(
            query, limit, exclude=answered, own_name=own_name, observations=True, tools=True
        )
        return ctx.seen.search(wanted).addCallback(_as_result, ctx, query)


def _as_result(hits: list[Hit], ctx: ToolContext, query: str) -> dict[str, Any]:
    """The best hits, each shown once in a turn: searches in other words mostly find the same."""
    fresh = [hit for hit in hits if hit.turn_id not in ctx.found]
    ctx.found.update((hit.turn_id, hit.score) for hit in fresh)
    if fresh:
        told = (attributed(ctx.script, hit) for hit in fresh)
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
    def run(self, ctx: ToolContext, **asked: Any) -> Steps[dict[str, Any]]:
        """Fires with a part of what the id means, if the turn's audience may know it."""
        wanted = asked["id"].strip().strip("()")
        found = yield _look_up(ctx, wanted)
        if found is None:
            raise ToolError(f"there is nothing you may see under `{wanted}`")
        ctx.opened.append(wanted)
        offset, room = asked.get("offset") or 0, min(MOST_CHARS, ctx.script.limits().tokens)
        # `more` holds texts that follow the first one, read only as far as they are shown.
        more: Iterator[str] = iter(found.pop("more", ()))
        start, shown = len(found["text"]), found["text"][offset:]
        while len(shown) <= room and (texts := list(islice(more, SLICE))):
            text = "".join(texts)
            shown += text[max(0, offset - start) :]
            start += len(text)
            if len(texts) == SLICE:
                yield pause()
        rest = {"next_offset": offset + room} if len(shown) > room else {}
        return {**found, "text": shown[:room], **rest}


@inlineCallbacks
def _look_up(ctx: ToolContext, wanted: str) -> Steps[dict[str, Any] | None]:
    """Fires with what an id means in history, archive, journal, summaries, ledger or profiles."""
    for look in (_message, _entry, _summary, _note):
        if found := look(ctx, wanted):
            return found
    profiles = chain(ctx.seen.profiles(), ctx.seen.older_profiles())
    for number, profile in enumerate(profiles, 1):
        if found := _observed(ctx, profile, wanted):
            return found
        if number % PROFILES_AT_ONCE == 0:
            yield pause()
    return None


def _message(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    messages = ctx.seen.around(wanted)
    for position, message in enumerate(messages):
        if message.id == wanted:
            before = _said(messages[:position])[-NEIGHBOURS:]
            behind = _said(messages[position + 1 :])[:NEIGHBOURS]
            return {**_shown(message, message.content), "around": [*before, *behind]}
    return None


def _entry(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    entry = ctx.seen.entry(wanted)
    if entry is None or entry.withdrawn:
        return None
    found = Hit(wanted, 0.0, "", entry.content, entry.timestamp, "journal").to_dict()
    ids = list(entry.source_message_ids[:_SOURCES_SHOWN])
    return {**found, "around": _said(ctx.seen.by_ids(ids))}


def _summary(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    record = ctx.seen.summary(wanted)
    if record is None or record.rolled_back:
        return None
    text = f"{record.text}\n\nMade from:"
    found = Hit(wanted, 0.0, "", text, record.created_at, "summary").to_dict()
    # A line for each message the summary was made from.
    below = (_said([each]) for each in ctx.seen.below(wanted))
    more = (
        "".join(f"\n{m.get('at', '')[:16]} {m['speaker']}: {m['text']}" for m in said)
        for said in below
    )
    return {**found, "more": more}


def _note(ctx: ToolContext, wanted: str) -> dict[str, Any] | None:
    for note in ctx.seen.pinned():
        if note.id == wanted:
            found = Hit(wanted, 0.0, note.by.key, note.text, note.at, "ledger").to_dict()
            around = _said(ctx.seen.by_ids([note.source]))
            return {**found, "around": around}
    return None


def _observed(ctx: ToolContext, profile: Profile, wanted: str) -> dict[str, Any] | None:
    """An observation, what it rests on, what it took the place of and what took its place."""
    items = profile.observations
    item = next((each for each in items if each.id == wanted), None)
    if item is None:
        return None
    ids = list(item.sources[:_SOURCES_SHOWN])
    belief = next(
        each
        for each in current(items, ctx.audience)
        if item.statement in {o.statement for o in (each.observation, *each.former)}
    )
    is_former = item.statement != belief.observation.statement
    before = [] if is_former else [_dated(each) for each in belief.former]
    return {
        **_dated(item),
        "of": profile.name,
        "rests_on": ids,
        **({"superseded": before} if before else {}),
        **({"superseded_by": _dated(belief.observation)} if is_former else {}),
        "around": _said(ctx.seen.by_ids(ids)),
    }


def _dated(item: Observation) -> dict[str, str]:
    return Hit(item.id, 0.0, "", item.text, item.at, "observation").to_dict()


def _said(messages: Sequence[Message]) -> list[dict[str, str]]:
    """What was said among messages, shortened."""
    return [
        _shown(message, message.content[:AROUND_CHARS])
        for message in messages
        if message.role in ("user", "assistant") and message.content and not message.is_summary
    ]


def _shown(message: Message, text: str) -> dict[str, str]:
    speaker = message.speaker_name or message.name or message.role
    return Hit(message.id, 0.0, speaker, text, message.created_at).to_dict()


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
            "the last one failed; it is tried again in a while": now < runtime.compaction_waits[1],
            "staff took the last one back; it waits for them": state.hold,
            f"not needed: {share:.0%} of the context is used, under {needed:.0%}": share < needed,
        }.items():
            if holds:
                raise ToolError(why)
        runtime.compaction_requested = True
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
        event, limit = newest_turn(script, ctx.audience), script.limits().tokens
        live = ctx.seen.messages()
        markers = [message for message in live if message.is_summary]
        said = sum(bool(m.content) and m.role in ("user", "assistant") for m in live)
        used = event.total if event else script.runtime.fixed_tokens
        says = [
            f"Your memory is {used / limit:.0%} full: {used:,} of {limit:,} tokens are in use.",
            f"You hold {_counted(said, 'line')} of talk word for word.",
        ]
        if folded := sum(as_count(m.metadata.get("compacted_count")) for m in markers):
            says.append(
                f"{_counted(folded, 'older message')} are folded into "
                f"{_counted(len(markers), 'summary', 'summaries')}; none is lost."
            )
        if event and event.left_out:
            left_out = _counted(event.left_out, "message")
            says.append(f"For lack of room the {left_out} before them stayed out of this prompt.")
        return " ".join(says) + (f"\nBy kind: {event}." if event else "")


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


class ListContributors(Tool):
    """See what takes the most room in your context: kinds, messages, notes and tools, by id."""

    name = "list_contributors"
    serves = "obeyed"
    tells_nothing_new = True

    def run(self, ctx: ToolContext) -> dict[str, Any]:
        """The largest pieces that the turn's audience may know of."""
        found = contributors(ctx.script, ctx.audience)[:MOST_CONTRIBUTORS]
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
