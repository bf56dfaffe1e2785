"""Old talk: assistants with the option `keep_days` forget what was said longer ago.

Each does so once a day, in a lull, and goes on at the next look where that was more than `MOST`
messages. What goes is what goes with a player's words (`privacy.closure`), under the same proof.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from evennia.comms.models import Msg
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.history.messages import utc_iso
from evennia_ai.models import Event
from evennia_ai.privacy.forget import forget_old
from evennia_ai.privacy.requests import (
    ForgettingJob,
    Remains,
    Request,
    clear_pages,
    forget_queued,
    is_running,
    is_to_assistants,
    name_of,
    run_alone,
)

DAY_S = 86_400.0
# How often it is looked whether an assistant is due, and how long no player has spoken to it then.
EVERY_S, LULL_S = 600.0, 300.0
# Behind by so much an assistant does not wait for a lull.
LATE_S = 2 * DAY_S
# Messages that go at once: no tick runs meanwhile.
MOST = 2_000
# What `StateHandler.nights` has of this: when all that was due had gone.
_DONE = "old_talk"


@inlineCallbacks
def forget_old_talk(scripts: Callable[[], list[AssistantScript]]) -> Steps[None]:
    """Let those of some assistants forget that are due; fires when each has, or has failed.

    While players are being forgotten, nothing is done; those who ask meanwhile come next.
    """
    if is_running():
        return
    yield run_alone(OldTalkJob(scripts()).run)
    yield forget_queued(scripts)


def is_due(script: AssistantScript) -> bool:
    """Whether an assistant is to forget old talk now."""
    if script.config.keep_days is None:
        return False
    now, late_s = script.now(), script.now() - script.state.nights.get(_DONE, 0.0)
    if 0 <= late_s < DAY_S:
        return False
    return not 0 <= late_s < LATE_S or now - script.runtime.player_spoke_at >= LULL_S


class OldTalkJob(ForgettingJob):
    """Carries it out for the assistants that are due; what fails is tried again later."""

    def __init__(self, scripts: list[AssistantScript]):
        due = [s for s in scripts if s.survived("old talk", partial(is_due, s), False)]
        today = utc_iso(time.time() // DAY_S * DAY_S)  # a run that was cut short is found again
        super().__init__(Request((), today, "", ""), due)

    @inlineCallbacks
    def run(self) -> Steps[None]:
        """Do everything, and tell staff what failed.

        An assistant is done for the day once the files are clear of what it has forgotten.
        """
        if not self.scripts:
            return
        counts = dict[AssistantScript, int]()
        for script in self.scripts:
            counts[script] = yield self._tried(name_of(script), self._forget, script)
        left = len(self._failures)
        yield self.clear_files(iter(()))
        is_clear = len(self._failures) == left
        for script, count in counts.items():
            if script.pk is None:  # deleted meanwhile
                continue
            if count is None or not is_clear:
                script.trouble(f"old talk is left in: {', '.join(self._failures)}")
                continue
            if not (yield self._tried(name_of(script), self._is_proven, script)):
                script.trouble("old talk is forgotten, but the history is damaged: compact/verify")
            if count < MOST:
                script.state.nights = {**script.state.nights, _DONE: script.now()}

    @inlineCallbacks
    def _forget(self, script: AssistantScript) -> Steps[int]:
        """Fires with how many messages went."""
        days, body = script.config.keep_days, script.obj
        before = script.now() - days * DAY_S
        iso, oldest = utc_iso(before), datetime.fromtimestamp(before, UTC)

        def goes(page: Msg) -> bool:
            """Whether it is old, from an assistant's body or to assistants alone."""
            is_old = page.db_date_created < oldest
            return is_old and (body in page.senders or is_to_assistants(page))

        def begin() -> Deferred[dict[str, int]]:
            runtime = script.runtime
            # Lines wait for as long as an assistant is switched off.
            runtime.queue = [line for line in runtime.queue if not "" < line.created_at < iso]
            self._drop_waiting(script)
            pages = clear_pages(body, goes)
            at = self.request.at
            return forget_old(script, Remains(script), iso, at, MOST, lambda takes: pages)

        counts: dict[str, int] = yield script.run_exclusive(begin)
        yield cooperate(Event.objects.forget_talk(script.key, before)).whenDone()
        script.audit("forgotten", days=days, **counts)
        return counts["messages"]
