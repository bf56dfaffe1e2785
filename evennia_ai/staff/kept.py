"""What an assistant keeps about a player, for that player: seen, taken back, corrected by `ai/me`.

It is what the player may know of their notes, of what was observed of them, and of journal entries
that rest on their words. What rests on their words alone they take back; beside what others said
they put their own words.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.seeing import player_ids, speaker_of
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import is_by
from evennia_ai.language.words import storable
from evennia_ai.rag_memory.entities import Observation, current
from evennia_ai.rag_memory.journal import PAGE_ENTRIES, JournalEntry
from evennia_ai.rag_memory.ledger import (
    FACT,
    TEXT_CHARS,
    WITHDRAWN,
    Note,
    living_of,
)
from evennia_ai.staff.acts import Acts
from evennia_ai.staff.explanation import newest_lines
from evennia_ai.staff.show import audience_mark, moment


@dataclass(slots=True)
class Kept:
    """One thing that is kept about a player."""

    kind: str  # as it is listed
    item: Note | Observation | JournalEntry
    at: str
    text: str
    sources: Collection[str]  # ids of the lines and entries it rests on
    is_own: bool = False  # whether it rests on the player's own words alone


def kept_line(kept: Kept) -> str:
    """One thing that is kept: its id, what it is, when, and its words."""
    head = f"{kept.item.id} {kept.kind}, {moment(kept.at)}"
    if not kept.is_own:
        head += ", from others' words, too"
    return f"{head}: {audience_mark(kept.item.audience)}{kept.text}"


class KeptOf:
    """What an assistant keeps about the player of a character."""

    def __init__(self, script: AssistantScript, caller: TypedObject):
        self.script, self.people = script, player_ids(caller)
        self.speaker = speaker_of(caller, script.obj)
        self.own = private([self.speaker.id])
        self.seen = script.seen(self.own)
        self.acts = Acts(script, self.seen, caller)

    @inlineCallbacks
    def all(self) -> Steps[list[Kept]]:
        """Fires with all of it that the player may know, notes first, then the newest first."""
        seen, entries, things = self.seen, dict[str, JournalEntry](), list[Kept]()
        for start in range(0, self.script.journal.count(), PAGE_ENTRIES):
            entries |= {entry.id: entry for entry in seen.stretch(start, start + PAGE_ENTRIES)}
            yield self.script.breathe()
        for note in {
            n.id: n for each in self.people for n in living_of(seen.notes(), each)
        }.values():
            is_own = note.by.id in self.people
            things.append(Kept("note", note, note.at, note.text, [note.source], is_own))
        for profile in filter(None, map(seen.profile, self.people)):
            for belief in current((*seen.older(profile), *profile.observations), seen.audience):
                item = belief.observation
                things.append(Kept("observation", item, item.at, belief.line, item.sources))
        for entry in filter(lambda each: each.may_consolidate, entries.values()):
            rests = entry.source_message_ids
            things.append(Kept("journal", entry, entry.timestamp, entry.content, rests))
        for kept in things:  # an entry stands for the lines that it rests on
            inner = (entries[each].source_message_ids for each in kept.sources if each in entries)
            kept.sources = set(kept.sources).union(*inner)
        wanted = set[str]().union(*(kept.sources for kept in things))
        most = sum(each.startswith("m") for each in wanted)
        lines = yield newest_lines(seen, lambda message: message.id in wanted, most)
        heard = {line.id: is_by(line, self.people) for line in lines if line.role == "user"}
        shown = list[Kept]()
        for kept in things:
            own = [heard[line] for line in kept.sources if line in heard]
            if kept.kind != "note":
                kept.is_own = bool(own) and all(own)
            if kept.kind != "journal" or any(own):
                shown.append(kept)
        return sorted(shown, key=lambda each: (each.kind == "note", each.at), reverse=True)

    @inlineCallbacks
    def called(self, wanted: str) -> Steps[Kept]:
        """Fires with the thing whose id begins so; otherwise `Refusal`."""
        things = yield self.all()
        found = [each for each in things if each.item.id.startswith(wanted.strip().lower())]
        hint = f"`{wanted}`. `ai/me {self.script.own_name}` lists what it keeps about you."
        return only_one(found, f"There is nothing called {hint}", f"Several begin with {hint}")

    @inlineCallbacks
    def drop(self, kept: Kept) -> Steps[str]:
        """Take something back; fires with a sentence."""
        name = self.script.own_name
        if not kept.is_own:
            raise Refusal(
                f"It rests on what others said, too. Put your own words beside it: ai/me {name} = "
                f"{kept.item.id}: <text>. Staff can do more: ai/report {name} = <what is wrong>"
            )
        yield self.script.run_exclusive(lambda: self._exchange(kept, lambda: None))
        stays = "What you said yourself stays in the talk; aiforget takes it out."
        return f"{name} no longer uses: {kept.text} {stays}"

    @inlineCallbacks
    def correct(self, kept: Kept, text: str) -> Steps[str]:
        """Put the player's words in place of something, or beside it; fires with a sentence.

        They pass moderation, and are a note that is known to the two alone. Where all know what
        they correct, they are proposed to staff as a note for all, too.
        """
        text, is_public = storable(" ".join(text.split())), kept.item.audience == PUBLIC
        if not text:
            raise Refusal("Write what it should say.")
        if len(text) > TEXT_CHARS:
            raise Refusal(f"Write at most {TEXT_CHARS} characters; these are {len(text)}.")
        script, kind, says = self.script, FACT, ""
        text = yield script.judge("heard", text, self.speaker, "page", not is_public)
        if not text:
            raise Refusal("The game's moderation refuses these words.")
        if isinstance(kept.item, Note):
            kind = kept.item.kind
        if is_public:
            says = " Staff decide whether it is for all to know."

        def put() -> None:
            self.acts.note(text, kind, is_public=False, is_staff=False)
            if is_public:
                self.acts.note(text, kind, is_public=True, is_staff=False)

        yield script.run_exclusive(lambda: self._exchange(kept, put))
        return f"{script.own_name} keeps of you now: {text}{says}"

    @inlineCallbacks
    def _exchange(self, kept: Kept, put: Callable[[], None]) -> Steps[None]:
        """Withdraw something that is the player's own and put another there, both or neither."""
        script, wanted = self.script, kept.item.id
        withdrawn = kept.kind if kept.is_own else ""
        with script.store.transaction():
            if withdrawn == "note":
                script.ledger.change(wanted, WITHDRAWN, self.speaker)
            put()
            if withdrawn == "observation":
                for _ in script.entities.forget(
                    lambda profile: profile.only(lambda item: item.id != wanted), self.people
                ):
                    pass
                script.audit("dropped", observation=wanted, by=self.speaker.id)
            elif withdrawn == "journal":
                script.memory.withdraw_entry(wanted)
        if withdrawn == "journal":
            yield self.acts.forget_entry(wanted)
