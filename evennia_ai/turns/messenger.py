"""Taking errands and delivering them: word for word, by code, once, and without a model."""

from collections.abc import Collection

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import Refusal, ToolError
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.pairs import ASKER, FOR
from evennia_ai.language.tables import AUTO, language_of, line_in
from evennia_ai.language.times import EXAMPLES, due, is_coming
from evennia_ai.protocol import Assistant
from evennia_ai.turns.errands import DAY_S, MOST_DAYS, TEXT_CHARS, Errand
from evennia_ai.turns.moderation import judge_said


class Messenger:
    """The errands of one assistant."""

    def __init__(self, assistant: Assistant):
        self._assistant = assistant

    def open(self) -> tuple[Errand, ...]:
        """All that wait to be delivered, oldest first."""
        return self._assistant.state.errands.errands

    def take(self, by: Speaker, to: Speaker, text: str, when: str = "") -> Errand:
        """Keep words of one person for another, or for themselves.

        Args:
            by: Who leaves them.
            to: Who gets them.
            text: The words.
            when: A time as `language.times` reads it, on the game's clock behind the word ``game``;
                empty for when the person comes.

        Returns:
            The errand. Raises `Refusal` for words, a time or a number that cannot be.
        """
        words, when, script = " ".join(text.split()), when.strip(), self._assistant
        if not words or len(words) > TEXT_CHARS:
            raise Refusal(f"Words to deliver have 1 to {TEXT_CHARS} characters.")
        seconds, is_game = 0.0, when.lower().startswith("game ")
        if when and not is_coming(when):
            now = script.game.clock(is_game, script.now())
            at = due(when[5:] if is_game else when, now)
            if at is None:
                raise Refusal(f"`{when[:40]}` is no time. Times: {EXAMPLES}, game 21:00.")
            seconds = at.timestamp()
            if not 0 < seconds - now.timestamp() <= MOST_DAYS * DAY_S:
                raise Refusal(f"That time must lie within the next {MOST_DAYS} days.")
        elif by.id == to.id:
            raise Refusal(f"Say when you want to be reminded: {EXAMPLES}.")
        errands = script.state.errands.with_errand(
            Errand("new", by, to, words, script.now(), seconds, is_game and seconds > 0)
        )
        script.state.errands = errands
        script.audit("errand", act="taken", errand=errands.errands[-1].id, by=by.id)
        return errands.errands[-1]

    def drop(self, ids: Collection[str]) -> None:
        """Forget errands by their ids."""
        self._assistant.state.errands = self._assistant.state.errands.without(ids)

    def forget(self, people: Collection[str]) -> None:
        """Forget the errands by and for these people (stable ids)."""
        gone = [e.id for e in self.open() if e.by.id in people or e.to.id in people]
        if gone:
            self.drop(gone)

    @inlineCallbacks
    def deliver(self) -> Steps[None]:
        """Deliver what is due to those who can be reached now; wakes the assistant for it."""
        script = self._assistant
        for errand in self.open():
            if not self._is_due(errand):
                if errand.is_over(script.now()):
                    self.drop([errand.id])
                    script.audit("errand", act="expired", errand=errand.id, by=errand.by.id)
                continue
            text = yield judge_said(script, errand.text, "whisper", True)
            if errand not in self.open() or not self._is_due(errand):
                continue  # withdrawn, or they have left meanwhile
            if text and script.state.mode == "sleep":
                script.wake()
            self._hand_over(errand, text)

    def _is_due(self, errand: Errand) -> bool:
        """Whether an errand's time has come, and who it is for can be reached."""
        game = self._assistant.game
        if errand.due > game.clock(errand.game, self._assistant.now()).timestamp():
            return False
        return game.reaches(errand.to.id, anywhere=errand.due > 0)

    def _hand_over(self, errand: Errand, text: str) -> None:
        """Say it, and note that it was said; or neither."""
        script, by, to = self._assistant, errand.by, errand.to
        language = script.config.language
        spoken = language_of(text) or script.runtime.language if language == AUTO else language
        kind = "reminder" if by.id == to.id else "errand"
        words = line_in(spoken, kind, name=by.key, text=text)
        said = Message(
            "assistant",
            words,
            speaker=Speaker(script.obj.key, script.obj.stable_id),
            audience=private([by.id, to.id]),
            channel="whisper",
            metadata={ASKER: by.id, FOR: to.id},  # so that it goes when one of them is forgotten
        )
        try:
            with script.store.transaction():
                self.drop([errand.id])
                if text:  # else moderation refused it, which is logged
                    script.history.append([said])
                    try:
                        script.game.tell(to.id, words)
                    except ToolError:  # nothing was said
                        raise
                    except Exception as error:  # noqa: BLE001 - of a hook: it was said
                        script.log_error(f"delivering errand {errand.id}", error)
        except ToolError as error:
            script.log(f"errand {errand.id} is kept: {error}", warning=True)
            return
        script.audit("errand", act="delivered" if text else "refused", errand=errand.id, by=by.id)
