"""Moderation: a function of the game decides what is heard and what is said.

The setting `EVENNIA_AI_MODERATE` names it. Without it nothing here runs.
"""

import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Worker, in_time
from evennia_ai.errors import ConfigError

# A function that takes longer counts as failed.
TIMEOUT_S = 5.0
# How many texts are looked at in the same moment, of those heard and of those to be said.
THREADS = 4
# Further threads, for as many calls that never return.
SPARE_THREADS = 16
# Staff are told again of a function that fails after this time.
ALERT_EVERY_S = 3600.0

About = dict[str, Any]
Function = Callable[[str, About], str | None]
Submit = Callable[[Function, str, About], "Deferred[str | None]"]


class Moderator:
    """Asks the function of the game, on daemon threads.

    Args:
        load: Imports the function, at the first question.
        submit: Runs it. By default threads do, other ones for what is about to be said than for
            what was heard: it must not wait for a flood of lines.
        clock: Measures the timeout.
    """

    def __init__(
        self,
        load: Callable[[], Function],
        submit: Submit | None = None,
        clock: IReactorTime | None = None,
    ):
        self._load, self._clock = cache(load), clock
        self._submit: dict[str, Submit] = {
            kind: submit or Worker(f"evennia-ai-{kind}", THREADS + SPARE_THREADS).submit
            for kind in ("heard", "said")
        }
        self._lines = {kind: DeferredSemaphore(THREADS) for kind in self._submit}
        self.told_at = float("-inf")  # when staff were told last that it fails

    def ask(self, text: str, about: About) -> Deferred[str | None]:
        """Fires with what the function returns; fails with what it raised, or `TimeoutError`."""

        def asked() -> Deferred[str | None]:  # the time in line does not count
            answer = self._submit[about["kind"]](self._call, text, about)
            return in_time(answer, TIMEOUT_S, self._clock)

        return self._lines[about["kind"]].run(asked)

    def warm_up(self) -> None:
        """Import the function, so that the first line need not wait for it."""
        self._submit["said"](lambda *_: str(self._load()), "", {}).addErrback(lambda _: None)

    def _call(self, text: str, about: About) -> str | None:
        answer = self._load()(text, about)
        if answer is None or isinstance(answer, str):
            return answer
        raise ConfigError(
            f"`EVENNIA_AI_MODERATE` must return a text or None, not `{type(answer).__name__}`."
        )


def where(error: BaseException) -> str:
    """An error's type and place. Its text may quote what was said in private."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
