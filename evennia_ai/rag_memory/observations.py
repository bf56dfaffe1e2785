"""Observations read off journal entries, without a model, while dreaming.

A sentence that begins with the name of somebody known is an observation of them. Where it tells
one of a few properties of which there is one at a time (where somebody lives, works, was born,
whom they are married to, how old they are), predicate and value are read as well, so that a later
value supersedes an earlier one (`rag_memory.entities`). A model that observes says so itself, by
`update_entity_observation`.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from evennia_ai.history.messages import new_id
from evennia_ai.language.sentences import asks, sentences
from evennia_ai.rag_memory.entities import (
    LONGEST_MENTION,
    NamesIndex,
    new_observation,
    tidy,
    with_observation,
)
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.profile import Profile

# Sentences of an entry that are read.
SENTENCES = 6
# Observations above which a profile takes no more that tell no property: the journal has them
# all, and a profile is read and written whole.
MOST_OBSERVATIONS = 100
# `Alice moved: Alice lives in the mill now.` is two.
_CLAUSE = re.compile(r"[:;]\s+")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
# What stands behind the name of its owner: up to three words, before the verb.
_OWNED = re.compile(
    r"^['’]s?\s+(?:[\w-]+\s){0,2}?[\w-]+\s+(?=(?:is|was|has|lives?|works?|moved)\b)"
)
# A colon behind a name tells who speaks, not whom it is about.
_ABOUT = re.compile(r"(?:['’]s?)?\s+\w")
_ADVERB = r"(?:(?:now|still|also|currently|recently|really|just)\s+)?"
_PROPERTIES: tuple[tuple[str, str], ...] = (
    ("lives in", r"(?:lives?|dwells?|resides?|(?:has )?settled) (?:over |just )?(?:in|at|on|near)"),
    ("lives in", r"(?:has )?moved (?:house )?to"),
    ("works as", r"works? as"),
    ("works at", r"works? (?:at|for|in)"),
    ("was born in", r"(?:was|is) born in"),
    ("is married to", r"(?:is |was |got )?(?:married to|married|wed)"),
    ("is called", r"is called"),
    ("age", r"is(?= (?:\d+|[\w-]+) years old)"),
)
_FACTS = tuple(
    (name, re.compile(rf"^{_ADVERB}{verb}\s+{_ADVERB}(?P<value>[^.,;:!?]+)", re.IGNORECASE))
    for name, verb in _PROPERTIES
)
_TAIL = re.compile(
    r"\s+(?:now|these days|nowadays|any ?more|today|again|by trade|years old|with .*|since .*|"
    r"because .*|and .*|but .*|where .*|who .*)$",
    re.IGNORECASE,
)


def observed(
    entity_id: str,
    profile: Profile,
    entries: Iterable[JournalEntry],
    names: NamesIndex,
    make_id: Callable[[str], str] = new_id,
) -> Profile:
    """A profile with what journal entries say of the entity; the same where they say nothing.

    Args:
        entity_id: Whose profile it is.
        profile: The profile before.
        entries: Journal entries.
        names: The `names_index` of all profiles; a name of two entities tells of neither.
        make_id: Makes an observation's id from a prefix.

    Returns:
        A new profile, tidied once. An entry that was read before adds nothing.
    """
    known = {source for item in profile.observations for source in item.source_ids}
    result, full = profile, False
    for entry in entries:
        if entry.id in known:
            continue
        if not full and _is_full(result):  # what says the same is merged before it counts
            result = tidy(result)
            full = _is_full(result)
        known.add(entry.id)
        at, source, audience = entry.timestamp, entry.id, entry.audience
        for text, subject, predicate, value in _facts_in(entity_id, entry.content, names):
            if predicate or not full:  # a full profile takes only properties
                new = new_observation(
                    text, at, source, audience, subject, predicate, value, make_id
                )
                result = with_observation(result, new)
    same = len(result.observations) == len(profile.observations)
    return result if same else tidy(result)


def _is_full(profile: Profile) -> bool:
    return len(profile.observations) >= MOST_OBSERVATIONS


def _facts_in(
    entity_id: str, content: str, names: NamesIndex
) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    """The sentences about an entity, each with subject, predicate and value where it has them."""
    for sentence in sentences(content)[:SENTENCES]:
        rest = _after_name(sentence, entity_id, names)
        if rest is None or asks(sentence):
            continue
        owned = _OWNED.match(rest)
        if owned is None:
            yield (sentence, None, *_own_property(sentence, entity_id, names))
        else:
            subject = sentence[: len(sentence) - len(rest)] + owned.group(0).rstrip()
            yield (sentence, subject, *_property(rest[owned.end() :]))


def _after_name(sentence: str, entity_id: str, names: NamesIndex) -> str | None:
    """What follows the entity's name at the beginning of a sentence; None where it is not there."""
    bare = _ARTICLE.sub("", sentence)
    found = list(re.finditer(r"\w+", bare))[:LONGEST_MENTION]
    for count in range(len(found), 0, -1):
        name = " ".join(word.group() for word in found[:count]).casefold()
        if names.get(name) == (entity_id,):
            rest = bare[found[count - 1].end() :]
            return rest if _ABOUT.match(rest) else None
    return None


def _own_property(
    sentence: str, entity_id: str, names: NamesIndex
) -> tuple[str | None, str | None]:
    """A property of an entity from the first clause about it that tells one."""
    for clause in _CLAUSE.split(sentence):
        rest = _after_name(clause, entity_id, names)
        predicate, value = _property((rest or "").strip())
        if predicate:
            return predicate, value
    return None, None


def _property(clause: str) -> tuple[str | None, str | None]:
    for predicate, pattern in _FACTS:
        if matched := pattern.match(clause):
            value = _TAIL.sub("", matched["value"].strip())
            return predicate, _ARTICLE.sub("", value) or None
    return None, None
