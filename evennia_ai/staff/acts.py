"""What people do to an assistant, its talk and its memory, by commands and on pages.

A line that is taken back stays stored; no prompt, search or summary uses it until it is restored
(`rag_memory.seen`). What a reply has done in the game stays done. Each act notes in the audit log
who did it, returns a sentence, or a Deferred of one, and raises `Refusal` if it cannot be done.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from evennia import AccountDB
from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps, pause
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.seeing import STABLE_ID, find, player_ids, speaker_of, stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import ASKER, SAID_ONCE, Message, call_ids
from evennia_ai.language.words import storable
from evennia_ai.llm_interaction.budget import ReplyTrace
from evennia_ai.rag_memory.ledger import (
    APPROVED,
    PROPOSED,
    WITHDRAWN,
    Note,
)
from evennia_ai.rag_memory.seen import Quarantine, Seen
from evennia_ai.sleep.compaction.compact import (
    Compaction,
    Done,
    Failed,
    Outcome,
    Skipped,
    empty_unused,
    report_line,
)
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.staff.explanation import holds, is_reply, spoken
from evennia_ai.staff.show import counted, short
from evennia_ai.turns.runtime import by_speaker, wants_answer

# Key of a message's metadata: the id of the line that it is a correction of.
CORRECTS = "corrects"
# Characters of a line that an answer quotes.
QUOTED_CHARS = 80
# Lines that are listed where several hold the same words.
LISTED = 8
# The source of an entry that staff wrote in place of another.
CORRECTION = "correction"
# What becomes of a note.
DECISIONS = {"approve": APPROVED, "reject": WITHDRAWN}
_REASONS = {
    "compaction disabled": "compaction is off; compact/on switches it on",
    "no history": "it has no history yet",
    "history within preserve window": "all of its history lies within the kept lines",
}


def check_owner(script: AssistantScript, person: TypedObject) -> None:
    """Raise `Refusal` if somebody may not change an assistant."""
    if not script.may_change(person):
        raise Refusal(f"You may not change {script.own_name}: it belongs to somebody else.")


def line_state(message: Message, removed: Collection[str]) -> str:
    """What became of a line, in a word; empty for most. `removed` are the ids of those removed."""
    if message.id in removed:
        return "removed"
    if message.metadata.get(CORRECTS):
        return "corrected"
    return ""


def note_called(notes: Iterable[Note], text: str) -> Note:
    """The note with this id, or the only one whose id begins with it; otherwise `Refusal`."""
    wanted = text.strip().lower()
    found = [note for note in notes if note.id.startswith(wanted)]
    found = [note for note in found if note.id == wanted] or found
    shown = f"`{text.strip()}`."
    none, several = f"There is no such note: {shown}", f"More than one note begins with {shown}"
    return only_one(found, none, several)


def people_called(name: str) -> tuple[str, ...]:
    """The stable ids of the player that a name or id means; `Refusal` if it means none, or more."""
    if STABLE_ID.fullmatch(name):
        known = find(name)
        return player_ids(known) if known is not None else (name,)
    found = [
        account
        for account in AccountDB.objects.all()
        if name.lower() in {each.key.lower() for each in (account, *account.characters.all())}
    ]
    none = f"There is no player called `{name}`."
    several = f"More than one player is called `{name}`; give an id."
    return player_ids(only_one(found, none, several))


def outcome_line(name: str, outcome: Outcome) -> str:
    """The outcome of a compaction, in a sentence."""
    if isinstance(outcome, Done):
        return report_line(name, outcome.record)
    if isinstance(outcome, Failed):
        why = f"summary generation failed ({outcome.detail})"
        return f"{name} did not compact: {why}. Nothing was changed."
    return f"{name} did not compact: {_REASONS.get(outcome.reason, outcome.reason)}."


@dataclass(frozen=True)
class Acts:
    """What somebody may do to an assistant; `do` is all that a page's button does."""

    script: AssistantScript
    seen: Seen  # what whoever does it may see
    by: TypedObject  # who does it

    def do(self, act: str, wanted: str = "", text: str = "") -> "Deferred[str]":
        """Do what a switch or a button names.

        `wanted` is a line, the id of a note or an entry, or a player; `text` is put there.
        """
        if act in ("start", "stop"):
            return maybeDeferred(self.switch, act == "start")
        if act in ("sleep", "wake"):
            return maybeDeferred(self.put_to_sleep, act == "sleep")
        if act in DECISIONS:
            return maybeDeferred(self._decide, DECISIONS[act], wanted)
        if act == "correct" and self.seen.by_ids([wanted]):
            return self.correct_line(wanted, text)
        if act in ("forget", "correct"):  # they change the body: no tick may run then
            return self.script.run_exclusive(lambda: self._change_entry(wanted, text, act))
        return maybeDeferred(getattr(self, act), *filter(None, [wanted]))

    def switch(self, on: bool) -> str:
        """Switch it on, or off with the turn that it thinks about."""
        script, name = self.script, self.script.own_name
        script.store.set("enabled", on)
        if on:
            if not script.is_active:
                script.start()
            return f"{name} is switched on."
        says = f"{name} is switched off."
        if script.stop_thinking():
            says += " Its current turn is cancelled."
        script.runtime.give_up()
        script.save_queue()
        return f"{says} It still hears what is said."

    def put_to_sleep(self, sleeps: bool) -> str:
        """Send it to sleep, or wake it."""
        script, name = self.script, self.script.own_name
        if (script.state.mode == "sleep") == sleeps:
            raise Refusal(f"{name} is {'asleep' if sleeps else 'awake'} already.")
        act, says = (script.fall_asleep, "falls asleep.") if sleeps else (script.wake, "wakes up.")
        act()
        if not script.enabled:
            says += " (It is switched off and does not think.)"
        return f"{name} {says}"

    @inlineCallbacks
    def compacted(self, instructions: str | None = None) -> Steps[str]:
        """A manual compaction, whose models note facts, too.

        Over the spend limit there are no notes, and the summary is extractive. A pause after a
        rollback also ends if there is nothing to compact, but not if the compaction fails.
        """
        script, name = self.script, self.script.own_name
        job = Compaction(script, MANUAL, instructions=instructions, noted=True)
        outcome: Outcome = yield script.run_exclusive(job.run)
        line = outcome_line(name, outcome)
        if isinstance(outcome, Skipped) and script.config.compact_enabled and script.state.hold:
            script.state.hold = False
            return f"{line} The pause after the rollback is over."
        if job.notes and isinstance(outcome, Done):
            line += f" Saved into the journal: {counted(len(job.notes), 'entry')}."
        return line

    def compact(self) -> str:
        """Begin to compact, and tell staff what comes of it."""
        script = self.script
        script.survived(
            "a compaction", lambda: self.compacted().addCallback(script.tell_staff), None
        )
        begins = f"{script.own_name} begins to compact."
        return f"{begins} Its report will stand on the page Summaries."

    def newest_reply(self, askers: Collection[str] = (), used: bool = False) -> Message:
        """The newest line it spoke, to one of these people (stable ids) or, if empty, to anybody.

        With `used` the newest that is not taken back. Raises `Refusal` while a line of whoever asks
        waits for its answer, as that would be the newest.
        """
        self._check_answered(player_ids(self.by))
        speaks, unused = self.script.tools.traits.speaks, self._quarantine.sources
        for message in self.seen.newest():
            is_theirs = not askers or message.metadata.get(ASKER) in askers
            if is_theirs and is_reply(message, speaks) and not (used and message.id in unused):
                return message
        name, whom = self.script.own_name, "you" if askers else "anybody"
        raise Refusal(f"{name} has given {whom} no answer that is still at hand.")

    def undo(self, askers: Collection[str] = ()) -> str:
        """Take the newest reply to these people back, with all that its turn said."""
        reply = self.newest_reply(askers, used=True)
        self._take_back("taken_back", self._said_with(reply))
        return f"Taken back: {self.quoted(reply)}"

    def again(self, askers: Collection[str] = ()) -> str:
        """Take the newest reply back and have its line answered by a turn like any other."""
        script, reply = self.script, self.newest_reply(askers)
        groups = by_speaker(self.seen.by_ids(_answered(reply)))
        if not groups:
            raise Refusal("It answered nobody's line, so there is nothing to answer again.")
        group, name = groups[0], script.own_name
        is_paged = any(event.channel == "page" for event in group.events)
        if not script.enabled:
            raise Refusal(f"{name} is switched off.")
        if not is_paged and group.key[1] not in script.game.here():
            raise Refusal(f"{name} answers again only where both of you are.")
        self._check_answered([group.key[1]])
        with script.store.transaction():
            self._take_back("asked_again", self._said_with(reply))
            script.runtime.ask_again(group, script.now())
            script.save_queue()
        if script.state.mode == "sleep":
            script.wake()
        script.called()
        return f"{name} answers again: {self.quoted(group.events[-1])}"

    @inlineCallbacks
    def remove(self, words: str) -> Steps[str]:
        """Take one line back."""
        message: Message = yield self._found(words)
        if not self._take_back("removed", [message]):
            raise Refusal(f"It is removed already: {self.quoted(message)}")
        restored = f"aihistory/restore {self.script.own_name} = {message.id}"
        return f"Removed: {self._named(message)} To restore it: {restored}"

    @inlineCallbacks
    def restore(self, words: str) -> Steps[str]:
        """Use a line again, and no other version of it; its summaries are made again, in a lull."""
        message: Message = yield self._found(words, removed=True)
        state = self.script.state

        def put() -> None:
            ids = [line.id for line in self._with_results([message])]
            others = self._used_versions(message)
            with self.script.store.transaction():
                if not self._quarantine.release(ids):
                    raise Refusal(f"It is not removed: {self.quoted(message)}")
                stale = [
                    record.id
                    for record in self.script.history.summaries()
                    if not record.rolled_back and not set(ids).isdisjoint(record.without)
                ]
                if stale:
                    state.stale = list(dict.fromkeys((*state.stale, *stale)))
                self._audit("restored", lines=ids)
                if others:
                    self._take_back("removed", others)

        yield self.script.run_exclusive(put)  # no summary is made meanwhile
        return f"Restored: {self._named(message)}"

    @inlineCallbacks
    def correct_line(self, words: str, text: str) -> Steps[str]:
        """Put another text into the place of a line that is still live."""
        line, name = (yield self._found(words)), self.script.own_name
        text = storable(" ".join(text.split()))
        used = self._used_versions(line)
        if not used:
            raise Refusal(f"It is removed: aihistory/restore {name} = {line.id}")
        message = used[-1]
        if not text or text == message.content:
            raise Refusal("Write what the line should say.")
        metadata = {key: value for key, value in message.metadata.items() if key != SAID_ONCE}
        metadata.setdefault(CORRECTS, message.id)
        new = replace(message, id="", content=text, tokens=0, tool_calls=(), metadata=metadata)

        def put() -> None:
            with self.script.store.transaction():
                if not self.script.history.insert(new, behind=message.id):
                    raise Refusal(
                        f"The line has left the live history. Remove it instead: "
                        f"aihistory/remove {name} = {message.id}"
                    )
                self._take_back("corrected", used)

        yield self.script.run_exclusive(put)
        return f"{name} has it as: {self._named(new)}"

    def quoted(self, message: Message) -> str:
        """The beginning of a line, in quotation marks."""
        return f"“{short(spoken(message, self.script.tools.traits.speaks), QUOTED_CHARS)}”"

    def _named(self, message: Message) -> str:
        return f"{message.speaker_name or message.role}: {self.quoted(message)}"

    @inlineCallbacks
    def _found(self, words: str, removed: bool = False) -> Steps[Message]:
        """Fires with the line of this id, or the only one that holds these words; or `Refusal`.

        Looks in the live history, then in the archive, in each for those that are `removed` or not
        before others.
        """
        speaks, unused = self.script.tools.traits.speaks, self._quarantine.sources
        for message in self.seen.by_ids([words]):
            if not message.is_summary:
                return message
        for stretch in self.seen.stretches():
            lines = (message for message in stretch if not message.is_summary)
            alike = [message for message in lines if holds(spoken(message, speaks), words)]
            wanted = [message for message in alike if (message.id in unused) == removed]
            if len(wanted) > 1:
                listed = "\n".join(f"{m.id} {self._named(m)}" for m in wanted[:LISTED])
                raise Refusal(f"Several lines hold `{words}`; say the id of one.\n{listed}")
            if alike:
                return (wanted or alike)[0]
            yield pause()
        raise Refusal(f"`{words}` is in no line that {self.script.own_name} has heard or said.")

    def _check_answered(self, people: Collection[str]) -> None:
        """Raise `Refusal` while a line of one of these people waits for an answer."""
        script = self.script
        waiting = {each.speaker_id for each in filter(wants_answer, script.runtime.pending())}
        if script.enabled and not waiting.isdisjoint(people):
            raise Refusal(f"{script.own_name} is answering already. Wait for that answer.")

    def _used_versions(self, line: Message) -> list[Message]:
        """What is used of a line and its corrections."""
        first, unused = line.metadata.get(CORRECTS, line.id), self._quarantine.sources
        near = {m.id: m for m in (*self.seen.around(line.id), *self.seen.messages())}
        versions = (m for m in near.values() if first in (m.id, m.metadata.get(CORRECTS)))
        return [message for message in versions if message.id not in unused]

    def _said_with(self, reply: Message) -> list[Message]:
        """A reply, and what else was said in answer to the same lines, up to it."""
        speaks, answers = self.script.tools.traits.speaks, _answered(reply)
        said = [
            message
            for message in self.seen.around(reply.id)
            if message.id < reply.id and is_reply(message, speaks)
        ]
        return [reply, *(each for each in said if answers and _answered(each) == answers)]

    def _take_back(self, act: str, lines: Sequence[Message]) -> bool:
        """Use lines no more; returns whether one of them was used until now."""
        script, ids = self.script, [line.id for line in self._with_results(lines)]
        added = self._quarantine.add(dict.fromkeys(ids, ""))
        empty_unused(script.history, script.state, self._quarantine.lines)
        self._audit(act, lines=ids)
        return added > 0

    def _with_results(self, lines: Sequence[Message]) -> list[Message]:
        """Lines with the results of their calls."""
        calls = {call for line in lines for call in call_ids(line)}
        near = self.seen.around(lines[0].id)
        return [*lines, *(m for m in near if m.role == "tool" and m.tool_call_id in calls)]

    def note(self, text: str, kind: str, is_public: bool, is_staff: bool) -> Note:
        """Add a note, which is private to the two; a public one that is not staff's is proposed."""
        script, by = self.script, speaker_of(self.by, self.script.obj)
        about, audience, state = [by.id], private([by.id]), APPROVED
        if is_public:
            about, audience = script.game.people_named(text), PUBLIC
            if not is_staff:
                state = PROPOSED
        is_of_staff = is_public and is_staff
        note = script.ledger.add(
            text, by, state=state, kind=kind, staff=is_of_staff, about=about, audience=audience
        )
        if note.state == PROPOSED:
            script.history.store.on_commit(lambda: script.report_proposal(note))
        return note

    def _decide(self, state: str, wanted: str) -> str:
        note = note_called([*self.seen.notes(), *self.seen.closed_notes()], wanted)
        decided = self.script.ledger.change(note.id, state, speaker_of(self.by))
        self._audit("ledger", note=decided.id, state=state)
        return f"Note {decided.id} is {decided.state} by {self.by.key}: {decided.text}"

    @inlineCallbacks
    def _change_entry(self, wanted: str, text: str, act: str) -> Steps[str]:
        """Take a journal entry out of all searches, also a second time.

        To correct it another one is written in its place, which rests on the same.
        """
        old, text, body = self.seen.entry(wanted), text.strip(), self.script.obj
        if old is None:
            raise Refusal(f"There is no journal entry `{wanted}`.")
        if act == "forget":
            yield self.forget_entry(old.id)
            gone = f"{body.key} no longer finds journal entry {old.id}."
            return f"{gone} The journal keeps it, withdrawn."
        if old.withdrawn:
            raise Refusal("There is no such entry, or it is withdrawn.")
        if not text or text == old.content:
            raise Refusal("Write what the entry should say.")
        yield self.script.memory.forget_entry(old.id)
        new = body.journal.add(
            text,
            importance=old.importance,
            source_type=CORRECTION,
            tags=(*old.tags, f"corrects {old.id}"),
            entities=old.entities,
            source_message_ids=old.source_message_ids,
            audience=old.audience,
        )
        self._audit("corrected", entry=old.id, now=new.id)
        return f"Entry {new.id} takes the place of {old.id}."

    @inlineCallbacks
    def forget_entry(self, entry_id: str) -> Steps[None]:
        """Take a journal entry out of all searches."""
        yield self.script.memory.forget_entry(entry_id)
        self._audit("forget", entry=entry_id)

    def quarantine(self, player: str = "") -> str:
        """Use nothing any more of what a player said, with all their characters."""
        name, people = self.script.own_name, people_called(player)
        names = {each: str(getattr(find(each), "key", player)) for each in people}
        if not self._quarantine.add(names):
            raise Refusal(f"{player} is in quarantine already.")
        self._audit("quarantine", people=list(people))
        kept = f"All of it is kept: aimemory/release {name} = {player}"
        return f"{name} uses nothing any more of what {player} said. {kept}"

    def release(self, player: str = "") -> "str | Deferred[str]":
        """Use again what a player said, or a line that was removed."""
        held = self._quarantine
        if player in held.lines:
            return self.restore(player)
        people = (player,) if player in held.sources else people_called(player)
        if not held.release(people):
            raise Refusal(f"{player} is not in quarantine.")
        self._audit("released", people=list(people))
        return f"{self.script.own_name} uses again what {player} said."

    @property
    def _quarantine(self) -> Quarantine:
        return self.script.memory.quarantine

    def _audit(self, kind: str, **fields: object) -> None:
        self.script.audit(kind, **fields, by=stable_id(self.by))


def _answered(reply: Message) -> tuple[str, ...]:
    """The ids of the lines that a reply answers."""
    trace = ReplyTrace.of(reply)
    return trace.answers if trace else ()
