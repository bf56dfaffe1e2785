"""`aierrand`: words that an assistant tells somebody later."""

import re
from datetime import datetime

from django.utils.timezone import get_default_timezone

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal
from evennia_ai.features.errands import Errand, drop, open_errands, take
from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.messages import Speaker
from evennia_ai.staff.show import escaped

# A person or a time, a colon that is no part of a time, and words.
_ERRAND = re.compile(r"(?P<head>.+?)(?::\s+|：|:(?!\d))(?P<text>.+)", re.DOTALL)


class CmdAIErrand(AssistantCommand):
    """
    have an assistant tell somebody something later

    Usage:
      aierrand <assistant>
      aierrand <assistant> = <person>[, <when>]: <text>
      aierrand/remind <assistant> = <when>: <text>
      aierrand/forget <assistant> = <id>

    Switches:
      remind - have it remind you of something
      forget - withdraw one of your errands

    It tells somebody these words in private: when they come to it, or at a
    time, wherever they are. Without a text, the command lists what it has
    still to tell for you.

    Times: in 2h, 21:00, tomorrow 9:00, 2026-12-01 09:00 (the server's clock),
    game 21:00 (the game's own). Words are delivered as you typed them, with
    your name, once; who is not in the game then gets them when they are back.
    You may have five errands open, for 30 days.

    See also: airemember
    """

    key = "aierrand"
    locks = "cmd:all();admin:perm(Admin)"

    def do(self) -> None:
        script = self.assistant()
        if self.rhs:
            head, text = self._head_and_text()
            name, _, when = head.partition(",")
            return self._take(script.game.player_called(name), text, when)
        errands, name = self._errands(), script.obj.key
        head = f"What {name} has still to tell for you ({len(errands)}):"
        self.listing(errands, _errand_text, head, f"{name} has nothing to tell for you.")

    def do_remind(self) -> None:
        when, text = self._head_and_text()
        self._take(speaker_of(self.caller, self.assistant().obj), text, when)

    def do_forget(self) -> None:
        wanted, script = self.words().lower(), self.assistant()
        if all(each.id != wanted for each in self._errands()):
            raise Refusal(f"There is no errand `{wanted}`. See: aierrand {script.obj.key}")
        drop(script, [wanted])
        self.tell(f"{script.obj.key} will not deliver {wanted}.")

    def _errands(self) -> list[Errand]:
        """The caller's own."""
        own, errands = stable_id(self.caller), open_errands(self.assistant()).errands
        return [errand for errand in errands if errand.by.id == own]

    def _head_and_text(self) -> tuple[str, str]:
        """What stands before the colon, which is no part of a time, and behind it."""
        found = _ERRAND.match(self.words())
        if found is None:
            raise Refusal(self.usage)
        return found["head"].strip(), found["text"].strip()

    def _take(self, to: Speaker, text: str, when: str) -> None:
        script = self.assistant()
        by = speaker_of(self.caller, script.obj)
        errand = take(script, by, to, text, when, is_exact=True)
        self.tell(f"{script.obj.key} will deliver {_errand_text(errand)}")


def _errand_text(errand: Errand) -> str:
    """One errand: id, for whom, when, and its words."""
    when = "when they come"
    if errand.due:
        at = datetime.fromtimestamp(errand.due, get_default_timezone())
        when = f"{'game time ' if errand.game else ''}{at:%Y-%m-%d %H:%M}"
    return escaped(f"{errand.id}, to {errand.to.key}, {when}: {errand.text}")
