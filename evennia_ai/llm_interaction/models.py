"""What is known of each model: when it is left alone, what it cannot do, and its window.

A model that failed where another one can answer is left alone for a while: calls go to the next one
at once instead of waiting for another timeout.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from twisted.logger import Logger

from evennia_ai.llm_interaction.profiles import UNKNOWN, ModelProfile
from evennia_ai.llm_interaction.servers import (
    HALVED,
    NAMED,
    TABLE,
    USABLE_TOKENS,
    Window,
)

_log = Logger(namespace="evennia_ai.model")

# Longest pause of a model because its server asked for one.
REST_CAP_S = 300.0


@dataclass
class Model:
    """What is known of one model; times are monotonic seconds."""

    now: Callable[[], float]
    profile: ModelProfile = UNKNOWN
    served: Window | None = None  # the window that its server says
    refused: Window | None = None  # what an overflow told of it
    next_lookup: float = -math.inf
    rests_until: float = -math.inf

    def window(self, listed: int | None = None) -> Window | None:
        """What prompt and reply may hold by our count; None if nothing is known.

        `listed` is the window in LiteLLM's table.
        """
        known = [*filter(None, (self.refused, self.served))]
        if listed:
            known.append(Window(listed, TABLE))
        return min(known, key=lambda each: each.tokens, default=None)

    def serves(self, window: Window) -> None:
        """Note what the server says now; another figure than before replaces what was refused."""
        if self.served is not None and self.served.tokens != window.tokens:
            self.refused = None
        self.served = window

    def refuses(self, named: int | None, size: int) -> None:
        """Note the window that an overflow named: less than the size that was refused.

        The size is by our count, 0 for a request that nobody counted.
        """
        if named and (named < size or not size):
            self.refused = Window(named, NAMED)
        elif size:
            half = size // 2
            if half < USABLE_TOKENS < size:
                half = USABLE_TOKENS
            self.refused = Window(half, HALVED)

    @property
    def rest_s(self) -> float:
        """Seconds until a call may go out; 0 if it may now."""
        return max(0.0, self.rests_until - self.now())

    def rest(self, seconds: float) -> None:
        """Leave it alone for a while."""
        self.rests_until = max(self.rests_until, self.now() + min(seconds, REST_CAP_S))


class Models(defaultdict[str, Model]):
    """The models by LiteLLM's names of them.

    Args:
        clock: Monotonic seconds.
        path: Where their profiles are kept; None: only in memory. A file that cannot be read counts
            as none.
    """

    def __init__(self, clock: Callable[[], float], path: Path | None = None):
        super().__init__(lambda: Model(clock))
        self._path = path
        if path is not None and path.exists():
            try:
                for name, value in dict(json.loads(path.read_text(encoding="utf-8"))).items():
                    self[name].profile = ModelProfile.if_readable(value) or UNKNOWN
            except (OSError, ValueError, TypeError) as error:
                _log.warn("`{path}` cannot be read: {why}", path=path, why=error)

    def keep(self, name: str, profile: ModelProfile) -> None:
        """Keep a profile with which a model answered."""
        if profile == self[name].profile:
            return
        self[name].profile = profile
        if self._path is None:
            return
        shown = {
            name: model.profile.to_dict()
            for name, model in self.items()
            if "guessed" not in model.profile.flags
        }
        try:
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warn("`{path}` cannot be written: {why}", path=self._path, why=error)
