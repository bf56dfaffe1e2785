"""What rests on what: all that goes with the messages of somebody who is to be forgotten.

A reply rests on the lines it answers and on the memories that a tool opened for it, a tool's result
on what it names, a note on the lines it cites, a summary on what it was made from. So one closure
over ids finds everything, however far away. What a model repeats from its prompt cites nothing:
there, five words in a row that only these people said show that it rests on them. Nothing is
decided by names.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evennia_ai.history.archive import resting_on
from evennia_ai.history.audience import members
from evennia_ai.history.messages import ASKER, FOR, MEMORIES, Message, is_by, pairing, tool_calls
from evennia_ai.history.stored import as_dict, as_dicts, as_texts
from evennia_ai.history.verification import Evidence
from evennia_ai.language.script import runs
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.budget import TRACE, ReplyTrace
from evennia_ai.llm_interaction.reply import clean_reply, speakable
from evennia_ai.llm_interaction.tool_calls import loaded
from evennia_ai.rag_memory.journal import synthesis_id


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
    gone: frozenset[str]  # the ids of all this, of whose texts no copy stays
    own: frozenset[str]  # words in a row that only they said (`language.script.runs`)
    said: frozenset[str]  # what only the replies that go said, word for word

    def takes(self, text: str) -> bool:
        """Whether a copy of a reply that is stored elsewhere goes, too."""
        return " ".join(words(text)) in self.said or self.holds_own(text)

    def holds_own(self, text: str) -> bool:
        """Whether a text holds words in a row that only those who are forgotten said."""
        return not self.own.isdisjoint(runs(text))


def plan_forgetting(
    evidence: Evidence,
    things: Sequence[Made],
    people: Collection[str],
    until: str = "",
    begun: Collection[str] = (),
    known: str = "",
) -> Forgetting:
    """What goes of all that an assistant has stored.

    Args:
        evidence: Its history, archive and summaries.
        things: Its journal entries, observations and notes, but for syntheses of summaries.
        people: Stable ids of those who are forgotten.
        until: The newest id of a message that is to be forgotten; empty for all.
        begun: Ids of the messages that an earlier run for the same request removed.
        known: A text whose words are nobody's own.
    """
    raw = {m.id: m for part in evidence.segments for m in part.messages}
    raw |= {m.id: m for m in evidence.live if not m.is_summary}
    messages = [raw[each] for each in sorted(raw)]  # as they came
    theirs = frozenset(m.id for m in messages if is_by(m, people, until))
    own = own_runs(messages, theirs, people, known)
    replies = [_reply(m, until) for m in messages if not _is_person(m)]
    sources = {each: {*r.source_ids, *r.child_ids} for each, r in evidence.summaries.items()}
    sources |= {synthesis_id(each): {each} for each in evidence.summaries}
    seeds = {*theirs, *begun}
    for made in (*things, *replies):
        sources[made.id] = set(made.sources)
        if not own.isdisjoint(runs(made.text)) or not set(people).isdisjoint(made.of):
            seeds.add(made.id)
    for result, call in pairing(messages).items():
        sources[messages[result].id].add(messages[call].id)
        sources[messages[call].id].add(messages[result].id)
    gone = resting_on(seeds, sources)
    emptied = gone & evidence.summaries.keys()
    gone |= {synthesis_id(each) for each in emptied}
    touched = gone.union(m.id for m in messages if without_copies(m, gone) is not m)
    parts = {part.id: touched.intersection(part.message_ids) for part in evidence.segments}
    return Forgetting(
        theirs,
        gone.intersection(made.id for made in replies) - theirs,
        gone.intersection(made.id for made in things),
        emptied,
        {key: ids for key, ids in parts.items() if ids},
        gone,
        own,
        _spoken(messages, gone),
    )


def only_one(audience: str) -> Collection[str]:
    """The stable id of the only person of an audience; empty for every other audience."""
    circle = members(audience)
    if len(circle) == 1:
        return circle
    return ()


def own_runs(
    messages: Iterable[Message], theirs: Collection[str], people: Collection[str], known: str
) -> frozenset[str]:
    """Words in a row that only some people said: no other person, no assistant before them.

    `messages` are the whole talk, oldest first, `theirs` those to be forgotten, and `known` is a
    text whose words are nobody's own.
    """
    own, others = set[str](), runs(known)
    for message in messages:
        said = runs(_text(message))
        if message.id in theirs:
            own |= said - others
        elif not _is_person(message):
            others |= said - own
        elif not is_by(message, people):
            others |= said
    return frozenset(own - others)


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


def _spoken(messages: Iterable[Message], gone: Collection[str]) -> frozenset[str]:
    """The words of what was said in replies that go, and in none that stays."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for message in messages:
        if message.role == "assistant":
            for text in (message.content, *_arguments(message)):
                pieces, _ = speakable(clean_reply(text, [message.speaker_name]))
                said[message.id in gone].add(" ".join(words(" ".join(pieces))))
    return frozenset(said[True] - said[False] - {""})


def _arguments(message: Message) -> Iterator[str]:
    """The texts that a message's calls are made with."""
    for call in tool_calls(message):
        arguments = as_dict(loaded(call["function"]["arguments"]))
        yield from as_texts([*arguments.values()])


def _reply(message: Message, until: str = "") -> Made:
    """A message of an assistant or a tool, with the ids that it says it rests on.

    A reply loses its copies of memories that its prompt held; it does not rest on them.
    """
    if trace := ReplyTrace.of(message):
        sources = {*trace.answers, *trace.opened}
    else:  # what cannot be read may rest on all that it names
        sources = set(re.findall(r"\w+", str(message.metadata.get(TRACE, ""))))
    if message.role == "tool":
        sources.update(re.findall(r"\w+", message.content))
    meta = message.metadata
    of = {*as_texts([meta.get(ASKER), meta.get(FOR)]), *only_one(message.audience)}
    of = set() if until and message.id > until else of
    return Made(message.id, sources, _text(message), of)
