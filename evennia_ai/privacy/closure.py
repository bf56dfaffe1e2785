"""What rests on what: all that goes with the messages of somebody who is to be forgotten.

A reply rests on the lines it answers and the memories it drew on, a tool's result on what it
names, a note on the lines it cites, a summary on what it was made from. So one closure over ids
finds everything, however far away. What a model repeats from the talk before its eyes cites
nothing: there, a name or number that only these people used tells that it rests on them. What it
said unasked answers nobody: it goes where it names them.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evennia_ai.history.audience import members
from evennia_ai.history.frames import UNSEEN
from evennia_ai.history.messages import Message, is_by, tool_calls
from evennia_ai.history.pairs import ASKER, FOR, MEMORIES, pairing
from evennia_ai.history.records import as_dicts
from evennia_ai.history.verification import Evidence
from evennia_ai.language.words import STARTERS, capitals, mentions, words
from evennia_ai.llm_interaction.budget import TRACE, ReplyTrace
from evennia_ai.rag_memory.journal_entry import synthesis_id
from evennia_ai.rag_memory.quarantine import resting_on


@dataclass(frozen=True, slots=True)
class Made:
    """A reply, result, journal entry, observation or note: what it rests on, and what it says."""

    id: str
    sources: Collection[str]
    text: str
    of: Collection[str] = ()  # stable ids of whom it is, or was made for, alone


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What is to be forgotten, as ids."""

    theirs: frozenset[str]  # the messages of those who are forgotten
    replies: frozenset[str]  # the messages of assistants and tools that rest on them
    things: frozenset[str]  # the journal entries, observations and notes that rest on them
    emptied: frozenset[str]  # the summaries that rest on what goes; they are made again
    # The messages that go or change, by the archive segments that hold them.
    parts: Mapping[str, frozenset[str]]
    names: frozenset[str]  # the names of those who are forgotten


def plan_forgetting(
    evidence: Evidence,
    things: Sequence[Made],
    people: Collection[str],
    until: str = "",
    begun: Collection[str] = (),
    known: str = "",
    names: Collection[str] = (),
) -> Forgetting:
    """What goes of all that an assistant has stored.

    Args:
        evidence: Its history, archive and summaries.
        things: Its journal entries, observations and notes, but for syntheses of summaries.
        people: Stable ids of those who are forgotten.
        until: The newest id of a message that is to be forgotten; empty for all.
        begun: Ids of the messages that an earlier run for the same request removed.
        known: Names that are nobody's own.
        names: Names of theirs, besides those under which they spoke.
    """
    raw = {m.id: m for part in evidence.segments for m in part.messages}
    raw |= {m.id: m for m in evidence.live if not m.is_summary}
    messages = [raw[each] for each in sorted(raw)]  # as they came
    theirs = frozenset(m.id for m in messages if is_by(m, people, until))
    own = own_names(messages, theirs, people, known)
    sources = {each: {*r.source_ids, *r.child_ids} for each, r in evidence.summaries.items()}
    sources |= {synthesis_id(each): {each} for each in evidence.summaries}
    replies = [_reply(m, sources, until) for m in messages if not _is_person(m)]
    names = frozenset((*names, *(raw[each].speaker_name for each in theirs))) - {"", UNSEEN}
    unasked = (m for m in messages if m.role == "assistant" and not m.metadata.get(ASKER))
    seeds = {*theirs, *begun}
    others = {m.speaker_name for m in messages if not is_by(m, people)}
    seeds |= {
        m.id for m in unasked if not (until and m.id > until) and mentions(m.content, names, others)
    }
    for made in (*things, *replies):
        sources[made.id] = set(made.sources)
        if not own.isdisjoint(words(made.text)) or not set(people).isdisjoint(made.of):
            seeds.add(made.id)
    for result, call in pairing(messages).items():
        sources[messages[result].id].add(messages[call].id)
        sources[messages[call].id].add(messages[result].id)
    gone = resting_on(seeds, sources)
    emptied = gone & evidence.summaries.keys()
    lost = {synthesis_id(each) for each in emptied}
    touched = gone.union(m.id for m in messages if without_copies(m, lost) is not m)
    parts = {part.id: touched.intersection(part.message_ids) for part in evidence.segments}
    return Forgetting(
        theirs,
        gone.intersection(made.id for made in replies),
        gone.intersection(made.id for made in things),
        emptied,
        {key: ids for key, ids in parts.items() if ids},
        names,
    )


def own_names(
    messages: Iterable[Message], theirs: Collection[str], people: Collection[str], known: str
) -> frozenset[str]:
    """Names and numbers that only some people used: no other person, no assistant before them.

    A word is a name if it has a capital amid a sentence anywhere in the talk, or if its script has
    no capitals. `messages` are the whole talk, oldest first, `theirs` those to be forgotten, and
    `known` words that are nobody's own.
    """
    own, others, names = set[str](), set(words(known)), set[str]()
    for message in messages:
        said = set(words(_text(message)))
        names.update(words(" ".join(capitals(_text(message)))))
        if message.id in theirs:
            own |= said - others
        elif not _is_person(message):
            others |= said - own
        elif not is_by(message, people):
            others |= said

    def is_name(word: str) -> bool:
        if any(char.isdigit() for char in word):
            return len(word) > 2
        return word in names or (word.upper() == word and len(word) > 1)

    return frozenset(filter(is_name, own - others - STARTERS))


def without_copies(message: Message, ids: Collection[str]) -> Message:
    """A reply without its copies of memories of these ids; the same if it has none."""
    hits = as_dicts(message.metadata.get(MEMORIES))
    kept = [hit for hit in hits if hit.get("id") not in ids]
    if len(kept) == len(hits):
        return message
    return replace(message, metadata={**message.metadata, MEMORIES: kept})


def _is_person(message: Message) -> bool:
    return message.role == "user" and not message.metadata.get("assistant")


def _text(message: Message) -> str:
    """What a message holds of words: its text, and the arguments of its calls."""
    calls = (str(call["function"]["arguments"]) for call in tool_calls(message))
    return " ".join([message.content, *calls])


def _reply(message: Message, summaries: Collection[str], until: str) -> Made:
    """A message of an assistant or a tool, with the ids that it says it rests on.

    A reply may rest on a summary of which others told the most: it only loses its copy of that.
    """
    if trace := ReplyTrace.of(message):
        sources = {*trace.answers, *trace.opened}
    else:  # what cannot be read may rest on all that it names
        sources = set(re.findall(r"\w+", str(message.metadata.get(TRACE, ""))))
    sources |= {str(hit.get("id")) for hit in as_dicts(message.metadata.get(MEMORIES))}
    if message.role == "tool":
        sources.update(re.findall(r"\w+", message.content))
    else:
        sources.difference_update(summaries)
    circle, meta = members(message.audience), message.metadata
    of = {meta.get(ASKER), meta.get(FOR), *(circle if len(circle) == 1 else ())}
    of = set() if until and message.id > until else of
    return Made(message.id, sources, _text(message), of)
