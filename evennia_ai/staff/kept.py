"""What an assistant keeps about a player, for that player: seen, taken back, corrected by `ai/me`.

It is what the player may know of their notes, of what was observed of them, and of journal entries
that rest on their words. What rests on their words alone they take back; beside what others said
they put their own words.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.seeing import player_ids, speaker_of, stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, is_by
from evennia_ai.language.words import storable
from evennia_ai.rag_memory.entities import observe
from evennia_ai.rag_memory.journal import PAGE_ENTRIES, JournalEntry
from evennia_ai.rag_memory.ledger import (
    APPROVED,
    FACT,
    PROPOSED,
    TEXT_CHARS,
    WITHDRAWN,
    Note,
    living_of,
    people_named,
)
from evennia_ai.rag_memory.profile import Observation, current
from evennia_ai.staff.acts import Acts
from evennia_ai.staff.show import audience_mark, moment
from evennia_ai.turns.moderation import judge
from evennia_ai.turns.tools.journal import report_proposal


@dataclass(slots=True)
class Kept:
    """One thing that is kept about a player."""

    kind: str  # as it is listed
    item: Note | Observation | JournalEntry
    at: str
    text: str
    sources: Collection[str]  # ids of the lines and entries it rests on
    is_own: bool = False  # whether it rests on the player's own words alone
    is_said: bool = False  # whether it rests on lines of the talk
    profile: str = ""  # the id of the profile that an observation is in


def kept_line(kept: Kept) -> str:
    """One thing that is kept: its id, what it is, when, and its words."""
    others = "" if kept.is_own else ", from others' words, too"
    head = f"{kept.item.id} {kept.kind}, {moment(kept.at)}{others}"
    return f"{head}: {audience_mark(kept.item.audience)}{kept.text}"


class KeptOf:
    """What an assistant keeps about the player of a character."""

    def __init__(self, script: AssistantScript, caller: TypedObject):
        self.script, self.caller, self.people = script, caller, player_ids(caller)
        self.own = private([stable_id(caller)])
        self.seen = script.seen(self.own)

    @inlineCallbacks
    def all(self) -> Steps[list[Kept]]:
        """Fires with all of it that the player may know, notes first, then the newest first."""
        seen, entries, things = self.seen, dict[str, JournalEntry](), list[Kept]()
        for start in range(0, self.script.journal.count(), PAGE_ENTRIES):
            entries |= {entry.id: entry for entry in seen.stretch(start, start + PAGE_ENTRIES)}
            yield self.script.breathe()
        notes = {n.id: n for each in self.people for n in living_of(seen.notes(), each)}
        for note in notes.values():
            is_own = note.by.id in self.people
            things.append(Kept("note", note, note.at, note.text, [note.source], is_own))
        for profile in filter(None, map(seen.profile, self.people)):
            observed = (*seen.older(profile), *profile.observations)
            for belief in current(observed, seen.audience):
                item = belief.observation
                kept = Kept("observation", item, item.at, belief.line, item.sources)
                kept.profile = profile.id
                things.append(kept)
        for entry in filter(lambda each: each.may_consolidate, entries.values()):
            rests = entry.source_message_ids
            things.append(Kept("journal", entry, entry.timestamp, entry.content, rests))

        def lines(ids: Iterable[str]) -> set[str]:
            """The lines that these are, or that the entries among these rest on."""
            inner = (entries[each].source_message_ids for each in ids if each in entries)
            return set(ids).union(*inner)

        heard = yield self._heard(set().union(*(lines(kept.sources) for kept in things)))
        shown = list[Kept]()
        for kept in things:
            own = [heard[line] for line in lines(kept.sources) if line in heard]
            kept.is_said = bool(own)
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
        hint = f"`{wanted}`. `ai/me {self.script.obj.key}` lists what it keeps about you."
        return only_one(found, f"There is nothing called {hint}", f"Several begin with {hint}")

    @inlineCallbacks
    def drop(self, kept: Kept) -> Steps[str]:
        """Take something back; fires with a sentence."""
        name = self.script.obj.key
        if not kept.is_own:
            raise Refusal(
                f"It rests on what others said, too. Put your own words beside it: ai/me {name} = "
                f"{kept.item.id}: <text>. Staff can do more: ai/report {name} = <what is wrong>"
            )
        yield self.script.run_exclusive(lambda: self._exchange(kept, lambda: None))
        said = " What you said yourself stays in the talk; aiforget takes it out."
        return f"{name} no longer uses: {kept.text}{said if kept.is_said else ''}"

    @inlineCallbacks
    def correct(self, kept: Kept, text: str) -> Steps[str]:
        """Put the player's words in place of something, or beside it; fires with a sentence.

        They pass moderation, and are known to the two alone: a note, or an observation that rests
        on a line of the player's, so that it is theirs to forget. Where all know what they correct,
        they are proposed to staff as a note for all, too.
        """
        text, is_public = storable(" ".join(text.split())), kept.item.audience == PUBLIC
        if not text:
            raise Refusal("Write what it should say.")
        if len(text) > TEXT_CHARS:
            raise Refusal(f"Write at most {TEXT_CHARS} characters; these are {len(text)}.")
        script, by = self.script, speaker_of(self.caller, self.script.obj)
        text = yield judge(script, "heard", text, by, "page", not is_public)
        if not text:
            raise Refusal("The game's moderation refuses these words.")
        proposed: list[Note] = []

        def put() -> None:
            if kept.kind != "note":
                self._observe(text)
            if kept.kind == "note" or is_public:
                named = people_named(text, script.game.people_in(text))
                note = script.ledger.add(
                    text,
                    by,
                    state=PROPOSED if is_public else APPROVED,
                    kind=kept.item.kind if isinstance(kept.item, Note) else FACT,
                    about=named if is_public else [by.id],
                    audience=PUBLIC if is_public else self.own,
                )
                proposed.extend([note] if note.state == PROPOSED else ())

        yield script.run_exclusive(lambda: self._exchange(kept, put))
        for note in proposed:
            report_proposal(script, note)
        name, waits = script.obj.key, " Staff decide whether it is for all to know."
        if kept.kind == "note" and proposed:
            return f"Proposed: {text}{waits}"
        return f"{name} keeps of you now: {text}{waits if proposed else ''}"

    @inlineCallbacks
    def _exchange(self, kept: Kept, put: Callable[[], None]) -> Steps[None]:
        """Withdraw something that is the player's own and put another there, both or neither."""
        script, wanted = self.script, kept.item.id
        with script.store.transaction():
            if kept.is_own and kept.kind == "note":
                script.ledger.change(wanted, WITHDRAWN, speaker_of(self.caller, script.obj))
            put()
            if kept.is_own and kept.kind == "observation":
                entities = script.obj.entities
                for _ in entities.forget(
                    lambda p: p.only(lambda o: o.id != wanted), [kept.profile]
                ):
                    pass
                by = stable_id(self.caller)
                script.audit("dropped", profile=kept.profile, observation=wanted, by=by)
            elif kept.is_own and kept.kind == "journal":
                script.memory.withdraw_entry(wanted)
        if kept.is_own and kept.kind == "journal":
            yield Acts(script, self.seen, self.caller).forget_entry(wanted)

    def _observe(self, text: str) -> None:
        """Store a line of the player's, and what it says as an observation of them."""
        script, own, now = self.script, stable_id(self.caller), self.script.now()
        speaker, entities = speaker_of(self.caller, script.obj), script.obj.entities
        said = Message("user", text, speaker=speaker, audience=self.own, channel="page")
        [line] = script.history.append([said])
        me = {"id": own, "key": self.caller.key, "kind": "person"}
        profile = entities.met(me, own, now, [line.id], self.own)
        entities.put({own: observe(profile, text, now, line.id, self.own)})

    @inlineCallbacks
    def _heard(self, wanted: set[str]) -> Steps[dict[str, bool]]:
        """Fires with whether each of these lines of people is the player's; reads each once."""
        heard: dict[str, bool] = {}
        for stretch in self.seen.stretches():
            here = [message for message in stretch if message.id in wanted]
            heard |= {m.id: is_by(m, self.people) for m in here if m.role == "user"}
            wanted = wanted.difference(message.id for message in here)
            if not any(each.startswith("m") for each in wanted):
                break
            yield self.script.breathe()
        return heard
