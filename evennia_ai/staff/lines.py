"""Lines taken back, corrected and answered anew, for `ai/undo`, `ai/again`, `aihistory` and a page.

What is taken back stays stored; no prompt, search or summary uses it until it is restored
(`rag_memory.seen`). What a reply has done in the game stays done.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps, pause
from evennia_ai.errors import Refusal
from evennia_ai.game.seeing import player_ids, stable_id
from evennia_ai.history.messages import ASKER, SAID_ONCE, Message, call_ids
from evennia_ai.language.words import storable
from evennia_ai.llm_interaction.budget import ReplyTrace
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.sleep.compaction.compact import empty_unused
from evennia_ai.staff.explanation import holds, is_reply, spoken
from evennia_ai.staff.show import short
from evennia_ai.turns.runtime import by_speaker, wants_answer

# Key of a message's metadata: the id of the line that it is a correction of.
CORRECTS = "corrects"
# Characters of a line that an answer quotes.
QUOTED_CHARS = 80
# Lines that are listed where several hold the same words.
LISTED = 8


def line_state(message: Message, removed: Collection[str]) -> str:
    """What became of a line, in a word; empty for most. `removed` are the ids of those removed."""
    if message.id in removed:
        return "removed"
    return "corrected" if message.metadata.get(CORRECTS) else ""


@dataclass(frozen=True)
class LineActs:
    """What can be done to single lines of an assistant; each act returns a sentence."""

    script: AssistantScript
    seen: Seen  # what whoever does it may see
    by: TypedObject  # who does it

    def newest_reply(self, askers: Collection[str] = (), used: bool = False) -> Message | None:
        """The newest line it spoke, to one of these people (stable ids) or, if empty, to anybody.

        With `used` the newest that is not taken back. Raises `Refusal` while a line of whoever asks
        waits for its answer, as that would be the newest.
        """
        self._check_answered(player_ids(self.by))
        speaks, unused = self.script.tools.traits.speaks, self.script.memory.quarantine.sources
        for message in self.seen.newest():
            is_theirs = not askers or message.metadata.get(ASKER) in askers
            if is_theirs and is_reply(message, speaks) and not (used and message.id in unused):
                return message
        return None

    def undo(self, reply: Message) -> str:
        """Take a reply back, with all that its turn said."""
        self._quarantine("taken_back", self._said_with(reply))
        return f"Taken back: {self.quoted(reply)}"

    def again(self, reply: Message) -> str:
        """Take a reply back and have its line answered once more, by a turn like any other."""
        script, trace = self.script, ReplyTrace.of(reply)
        groups = by_speaker(self.seen.by_ids(trace.answers) if trace else ())
        if not groups:
            raise Refusal("It answered nobody's line, so there is nothing to answer again.")
        group, name = groups[0], script.obj.key
        is_paged = any(event.channel == "page" for event in group.events)
        if not script.enabled:
            raise Refusal(f"{name} is switched off.")
        if not is_paged and group.key[1] not in script.game.here():
            raise Refusal(f"{name} answers again only where both of you are.")
        self._check_answered([group.key[1]])
        with script.store.transaction():
            self._quarantine("asked_again", self._said_with(reply))
            script.runtime.ask_again(group, script.now())
            script.save_queue()
        if script.state.mode == "sleep":
            script.wake()
        script.called()
        return f"{name} answers again: {self.quoted(group.events[-1])}"

    @inlineCallbacks
    def remove(self, words: str) -> Steps[str]:
        """Take one line back; fires with a sentence."""
        message: Message = yield self._found(words)
        if not self._quarantine("removed", [message]):
            raise Refusal(f"It is removed already: {self.quoted(message)}")
        restored = f"aihistory/restore {self.script.obj.key} = {message.id}"
        return f"Removed: {self._named(message)} To restore it: {restored}"

    @inlineCallbacks
    def restore(self, words: str) -> Steps[str]:
        """Use a line again, and no other version of it; fires with a sentence."""
        message: Message = yield self._found(words, removed=True)

        def put() -> None:
            lines = self._with_results([message])
            others = self._used_versions(message)
            with self.script.store.transaction():
                if not self.script.memory.quarantine.release([line.id for line in lines]):
                    raise Refusal(f"It is not removed: {self.quoted(message)}")
                self._make_again(lines)
                self._audit("restored", lines)
                if others:
                    self._quarantine("removed", others)

        yield self.script.run_exclusive(put)  # no summary is made meanwhile
        return f"Restored: {self._named(message)}"

    @inlineCallbacks
    def correct(self, words: str, text: str) -> Steps[str]:
        """Put another text into the place of a line that is still live; fires with a sentence."""
        line, name = (yield self._found(words)), self.script.obj.key
        text = storable(" ".join(text.split()))
        used = self._used_versions(line)
        if not used:
            raise Refusal(f"It is removed: aihistory/restore {name} = {line.id}")
        message = used[-1]
        if not text or text == message.content:
            raise Refusal("Write what the line should say.")
        metadata = {key: value for key, value in message.metadata.items() if key != SAID_ONCE}
        new = replace(
            message,
            id="",
            content=text,
            tokens=0,
            tool_calls=(),
            metadata={CORRECTS: message.id, **metadata},
        )

        def put() -> None:
            with self.script.store.transaction():
                if not self.script.history.insert(new, behind=message.id):
                    raise Refusal(
                        f"The line has left the live history. Remove it instead: "
                        f"aihistory/remove {name} = {message.id}"
                    )
                self._quarantine("corrected", used)

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
        speaks, unused = self.script.tools.traits.speaks, self.script.memory.quarantine.sources
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
        raise Refusal(f"`{words}` is in no line that {self.script.obj.key} has heard or said.")

    def _check_answered(self, people: Collection[str]) -> None:
        """Raise `Refusal` while a line of one of these people waits for an answer."""
        script = self.script
        waiting = {each.speaker_id for each in filter(wants_answer, script.runtime.pending())}
        if script.enabled and not waiting.isdisjoint(people):
            raise Refusal(f"{script.obj.key} is answering already. Wait for that answer.")

    def _used_versions(self, line: Message) -> list[Message]:
        """What is used of a line and its corrections."""
        first, unused = line.metadata.get(CORRECTS, line.id), self.script.memory.quarantine.sources
        near = {m.id: m for m in (*self.seen.around(line.id), *self.seen.messages())}
        versions = (m for m in near.values() if first in (m.id, m.metadata.get(CORRECTS)))
        return [message for message in versions if message.id not in unused]

    def _said_with(self, reply: Message) -> list[Message]:
        """A reply, and what else was said in answer to the same lines, up to it."""
        trace, speaks = ReplyTrace.of(reply), self.script.tools.traits.speaks
        answers = trace.answers if trace else ()
        said = [reply]
        for message in self.seen.around(reply.id) if answers else ():
            other = ReplyTrace.of(message) if is_reply(message, speaks) else None
            if other and other.answers == answers and message.id < reply.id:
                said.append(message)
        return said

    def _quarantine(self, act: str, lines: Sequence[Message]) -> bool:
        """Use lines no more; returns whether one of them was used until now."""
        lines = self._with_results(lines)
        added = self.script.memory.quarantine.add({line.id: "" for line in lines})
        empty_unused(self.script.history, self.script.state, self.script.memory.quarantine.lines)
        self._audit(act, lines)
        return added > 0

    def _with_results(self, lines: Sequence[Message]) -> list[Message]:
        """Lines with the results of their calls."""
        calls = {call for line in lines for call in call_ids(line)}
        near = self.seen.around(lines[0].id) if calls else ()
        return [*lines, *(m for m in near if m.role == "tool" and m.tool_call_id in calls)]

    def _make_again(self, lines: Iterable[Message]) -> None:
        """Have the summaries that were made without these lines made again, in a lull."""
        ids, state = {line.id for line in lines}, self.script.state
        records = (record for record in self.script.history.summaries() if not record.rolled_back)
        stale = [record.id for record in records if not ids.isdisjoint(record.without)]
        if stale:
            state.stale = list(dict.fromkeys((*state.stale, *stale)))

    def _audit(self, kind: str, lines: Iterable[Message]) -> None:
        self.script.audit(kind, lines=[line.id for line in lines], by=stable_id(self.by))
