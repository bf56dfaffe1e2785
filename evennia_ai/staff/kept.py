"""What an assistant keeps about a player, for that player: seen, taken back, corrected by `ai/me`.

It is what the player may know of their notes, of what was observed of them, and of journal entries
that rest on their words. What rests on their words alone they take back; beside what others said
they put their own words.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.seeing import player_ids, speaker_of, stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, is_by
from evennia_ai.language.words import storable
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.ledger import WITHDRAWN, living_of
from evennia_ai.rag_memory.profile import current
from evennia_ai.staff.memory import MemoryActs
from evennia_ai.staff.show import audience_mark, moment

# Newest journal entries that are looked through, and characters of a correction.
ENTRIES, TEXT_CHARS = 200, 300
NOTE, OBSERVATION, ENTRY = "note", "observation", "journal"


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that is kept about a player."""

    kind: str  # `NOTE`, `OBSERVATION` or `ENTRY`
    id: str
    at: str
    text: str
    audience: str
    is_own: bool  # whether it rests on the player's own words alone
    profile: str = ""  # the id of the profile that an observation is in


def kept_line(kept: Kept) -> str:
    """One thing that is kept: its id, what it is, when, and its words."""
    others = "" if kept.is_own else ", from others' words, too"
    head = f"{kept.id} {kept.kind}, {moment(kept.at)}{others}"
    return f"{head}: {audience_mark(kept.audience)}{kept.text}"


class KeptOf:
    """What an assistant keeps about the player of a character."""

    def __init__(self, script: AssistantScript, caller: TypedObject):
        self.script, self.caller, self.people = script, caller, player_ids(caller)
        self.seen = script.seen(private([stable_id(caller)]))

    def all(self) -> list[Kept]:
        """All of it that the player may know, notes first, then the newest first."""
        notes = {n.id: n for each in self.people for n in living_of(self.seen.notes(), each)}
        things = [
            Kept(NOTE, n.id, n.at, n.text, n.audience, n.by.id in self.people)
            for n in notes.values()
        ]
        for profile in filter(None, map(self.seen.profile, self.people)):
            for belief in current(profile.observations, self.seen.audience):
                item = belief.observation
                is_own = self._are_own(item.sources)
                about = item.id, item.at, belief.line, item.audience, is_own, profile.id
                things.append(Kept(OBSERVATION, *about))
        for entry in self.seen.stretch(0, ENTRIES):
            sources = entry.source_message_ids
            said = any(is_by(message, self.people) for message in self._heard(sources))
            if entry.may_consolidate and said:
                is_own = self._are_own(sources)
                about = entry.id, entry.timestamp, entry.content, entry.audience, is_own
                things.append(Kept(ENTRY, *about))
        things.sort(key=lambda each: each.at, reverse=True)
        return sorted(things, key=lambda each: each.kind != NOTE)

    def called(self, wanted: str) -> Kept:
        """The thing whose id begins so; otherwise `Refusal`."""
        found = [each for each in self.all() if each.id.startswith(wanted.strip().lower())]
        hint = f"`{wanted}`. `ai/me {self.script.obj.key}` lists what it keeps about you."
        return only_one(found, f"There is nothing called {hint}", f"Several begin with {hint}")

    @inlineCallbacks
    def drop(self, kept: Kept) -> Steps[str]:
        """Take something back; fires with a sentence."""
        name = self.script.obj.key
        if not kept.is_own:
            raise Refusal(
                f"It rests on what others said, too. Put your own words beside it: ai/me {name} = "
                f"{kept.id}: <text>. Staff can do more: ai/report {name} = <what is wrong>"
            )
        if kept.kind == NOTE:
            by = speaker_of(self.caller, self.script.obj)
            self.script.ledger.change(kept.id, WITHDRAWN, by)
        else:
            sent = {"id": kept.id, "profile": kept.profile}
            acts = MemoryActs(self.script, self.seen, self.caller, sent)
            yield acts.do("drop" if kept.kind == OBSERVATION else "forget")
        return f"{name} no longer uses: {kept.text}"

    @inlineCallbacks
    def correct(self, kept: Kept, text: str) -> Steps[str]:
        """Put the player's words in place of something, or beside it; fires with a sentence.

        The words become a line of the player's, so that what rests on them is theirs to forget.
        """
        text = storable(" ".join(text.split()))[:TEXT_CHARS]
        if not text:
            raise Refusal("Write what it should say.")
        if kept.is_own:
            yield self.drop(kept)
        body, script = self.script.obj, self.script

        def put() -> None:
            said = Message(
                "user",
                text,
                speaker=speaker_of(self.caller, body),
                audience=kept.audience,
                channel="page",
            )
            with script.store.transaction():
                [line] = script.history.append([said])
                own = stable_id(self.caller)
                entities = body.entities
                profile = entities.get(kept.profile or own) or new_profile(
                    own, self.caller.key, script.now()
                )
                about = observe(profile, text, script.now(), line.id, kept.audience)
                entities.put({profile.id: about})

        yield script.run_exclusive(put)
        return f"{body.key} keeps of you now: {text}"

    def _heard(self, ids: Iterable[str]) -> list[Message]:
        """What was heard of these messages, and of those that these entries rest on."""
        entries = filter(None, map(self.seen.entry, ids))
        sources = {*ids, *(each for entry in entries for each in entry.source_message_ids)}
        return [message for message in self.seen.by_ids(sources) if message.role == "user"]

    def _are_own(self, ids: Collection[str]) -> bool:
        """Whether all that was heard of these is words of the player, and something is."""
        heard = self._heard(ids)
        return bool(heard) and all(is_by(message, self.people) for message in heard)
