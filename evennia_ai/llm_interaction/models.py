"""What is known of each model since the start, and what of it is kept in a file."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from twisted.logger import Logger

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile, learned, plainest
from evennia_ai.llm_interaction.retry import Breaker
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest
from evennia_ai.llm_interaction.windows import KnownWindow

_log = Logger(namespace="evennia_ai.model")

# Failures whose text may be about the shape of the request.
_OF_SHAPE = ("bad_request", "server", "bad_response", "not_found")


@dataclass
class Model:
    """What is known of one model; times are monotonic seconds."""

    breaker: Breaker
    profile: Profile = UNKNOWN
    window: KnownWindow = KnownWindow()  # noqa: RUF009 - frozen
    answered_at: float = -math.inf
    carries_tools: bool | None = None
    next_trial: float = -math.inf
    next_lookup: float = -math.inf
    # The window before an unknown refusal was taken for an overflow.
    doubted: KnownWindow | None = None
    is_stubborn: bool = False  # whether it refused the plainest shape, too

    def taught(
        self, profile: Profile, request: ModelRequest, outcome: ModelReply | Failure
    ) -> Profile:
        """A profile with what an outcome teaches; the same one if it teaches nothing.

        An unknown refusal teaches the plainest shape, once.
        """
        if isinstance(outcome, ModelReply):
            if not outcome.is_empty:
                return profile
            more = replace(profile, thinks=True)
            return replace(more, thinks_less=True) if profile.thinks else more
        if outcome.kind not in _OF_SHAPE:
            return profile
        sent = {profile.limit_field, *request.extra, *(["stop"] if request.stop else ())}
        if request.thinking != "default":
            sent |= {"reasoning_effort", "chat_template_kwargs"}
        new = learned(profile, outcome.said, sent)
        if new == profile and outcome.kind == "bad_request" and not self.is_stubborn:
            self.is_stubborn = True
            new = plainest(profile)
        return new


class Models:
    """The models by LiteLLM's names of them.

    Args:
        breaker: Makes the breaker of a model.
        path: Where their profiles are kept; None: only in memory. A file that cannot be read counts
            as none.
    """

    def __init__(self, breaker: Callable[[], Breaker], path: Path | None = None):
        self._path = path
        self._models: defaultdict[str, Model] = defaultdict(lambda: Model(breaker()))
        if path is not None and path.exists():
            try:
                for name, value in dict(json.loads(path.read_text(encoding="utf-8"))).items():
                    self.of(name).profile = Profile.of_json(value)
            except (OSError, ValueError, TypeError) as error:
                _log.warn("`{path}` cannot be read: {why}", path=path, why=error)

    def of(self, name: str) -> Model:
        """What is known of a model."""
        return self._models[name]

    def keep(self, name: str, profile: Profile) -> None:
        """Keep a profile with which a model answered."""
        model = self.of(name)
        if profile != model.profile:
            model.profile, model.is_stubborn = profile, False
            self._write()

    def forget(self, name: str) -> None:
        """Begin anew with a model."""
        self._models.pop(name, None)
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        profiles = ((name, model.profile) for name, model in sorted(self._models.items()))
        shown = {k: v.as_json() for k, v in profiles if v != UNKNOWN and not v.guessed}
        try:
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warn("`{path}` cannot be written: {why}", path=self._path, why=error)
