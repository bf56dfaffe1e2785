"""The people of a room, and one decision on who answers a line for all assistants there."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from evennia_ai.game.seeing import find, is_assistant, is_person, names_of, seen, stable_id
from evennia_ai.history.messages import Message
from evennia_ai.language.words import telling_words
from evennia_ai.turns.runtime import TO
from evennia_ai.turns.turn_taking import DIRECT, Line, Person, Talk, answerers

if TYPE_CHECKING:
    from evennia import DefaultCharacter, DefaultObject, DefaultRoom


@dataclass
class RoomMemory:
    """What is remembered of a room while the server runs.

    Attributes:
        talk: Who talked with whom.
        line: The newest line.
        chosen: Who answers it.
        heard_by: The assistants that have asked so far.
        cued_at: When one of its assistants spoke unasked last, seconds since the epoch.
    """

    talk: Talk = field(default_factory=Talk)
    line: Line | None = field(default=None, repr=False)  # `examine` shows what a room remembers
    chosen: tuple[str, ...] = ()
    heard_by: set[str] = field(default_factory=set)
    cued_at: float = float("-inf")


_telling = lru_cache(maxsize=1_024)(telling_words)
# A room's line reaches its listeners within this time, one after the other.
SAME_LINE_S = 0.5


def manners_of(room: "DefaultRoom") -> RoomMemory:
    """What is remembered of a room; it goes with the room's object."""
    known = room.ndb.ai_manners
    if known is None:
        known = room.ndb.ai_manners = RoomMemory()
    return known


def is_to_answer(listener: "DefaultCharacter", event: Message, at: float) -> bool:
    """Whether a listener is the one, or among those, who answer what was just heard.

    Evennia hands a line to its listeners one after the other, in one go. The first one's question
    decides for all of them.

    Args:
        listener: An assistant's body.
        event: A line it heard: said, posed, whispered or paged.
        at: Now, in seconds since the epoch.
    """
    room = listener.location
    if room is None or event.channel == "page":
        return True
    own, known, words = listener.stable_id, manners_of(room), event.content
    if event.channel == "pose" and event.speaker is not None:  # what stands behind the name
        name = event.speaker.key
        words = words[len(name) :] if words.lower().startswith(name.lower()) else words
    to = event.metadata.get(TO)
    receivers = (to,) if to else (own,) if event.channel in DIRECT else ()
    line = Line(event.speaker_id, words.strip(), event.channel or "say", at, receivers)
    before = known.line
    is_same = (
        before is not None
        and own not in known.heard_by
        and at - before.at < SAME_LINE_S
        and before == replace(line, at=before.at)
    )
    if not is_same:
        speaker = find(event.speaker_id)
        # Whether an assistant answers must not tell the speaker that somebody hidden is there.
        visible = [speaker, *seen(room, speaker)] if speaker is not None else room.contents
        around = [obj for obj in room.contents if is_assistant(obj) or obj in visible]
        people = [_person(obj, speaker) for obj in filter(is_person, around)]
        bodies = {stable_id(obj): obj for obj in room.contents if is_assistant(obj)}
        known.chosen, known.talk = answerers(
            line, people, known.talk, lambda id: _concern(bodies[id], line.text)
        )
        known.line, known.heard_by = line, set()
    known.heard_by.add(own)
    return own in known.chosen


def _person(obj: "DefaultObject", speaker: "DefaultObject | None") -> Person:
    names = names_of(obj, obj)
    if speaker is not None:  # who may know it by another name, or somebody by that name
        theirs = names_of(obj, speaker)
        names = tuple(dict.fromkeys((*theirs, *names))) if is_assistant(obj) else theirs
    script = obj.assistant if is_assistant(obj) else None
    scripted = Person(stable_id(obj), names, "player" if obj.has_account else "scripted")
    if script is None or not script.enabled:
        return scripted

    def assistant() -> Person:
        attention, awake = script.config.attention, script.state.mode == "awake"
        return replace(scripted, kind="assistant", attention=attention, awake=awake)

    return script.survived("taking part in a talk", assistant, scripted)


def _concern(body: "DefaultCharacter", text: str) -> float:
    """How much words concern an assistant: by its persona and by whom and what it knows."""

    def known_words() -> set[str]:
        names = [profile.name for profile in body.entities.called(text)]
        return set().union(*map(_telling, (body.assistant.config.persona, *names)))

    known = body.assistant.survived("weighing what was said", known_words, set())
    said = _telling(text)
    return len(said & known) / len(said) if said else 0.0
