"""What was learned of each model, kept in a file; see `profiles`."""

import json
from dataclasses import replace
from pathlib import Path

from twisted.logger import Logger

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile, learned, plainest
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest

_log = Logger(namespace="evennia_ai.model")

# Failures whose text may be about the shape of the request.
_OF_SHAPE = ("bad_request", "server", "bad_response", "not_found")


class Profiles:
    """The profiles of models by their names.

    Args:
        path: Where they are kept; None: only in memory. A file that cannot be read counts as none.
    """

    def __init__(self, path: Path | None = None):
        self._path = path
        self._profiles: dict[str, Profile] = {}
        # Models that refused the plainest shape, too.
        self._stubborn: set[str] = set()
        if path is not None and path.exists():
            try:
                kept = json.loads(path.read_text(encoding="utf-8"))
                self._profiles = {str(k): Profile.of_json(v) for k, v in dict(kept).items()}
            except (OSError, ValueError, TypeError) as error:
                _log.warn("`{path}` cannot be read: {why}", path=path, why=error)

    def of(self, model: str) -> Profile:
        """What is known of a model."""
        return self._profiles.get(model, UNKNOWN)

    def taught(
        self, model: str, profile: Profile, request: ModelRequest, outcome: ModelReply | Failure
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
        if new == profile and outcome.kind == "bad_request" and model not in self._stubborn:
            self._stubborn.add(model)
            new = plainest(profile)
        return new

    def keep(self, model: str, profile: Profile) -> None:
        """Keep a profile with which a model answered."""
        if profile == self.of(model):
            return
        self._profiles[model] = profile
        self._stubborn.discard(model)
        self._write()

    def forget(self, model: str) -> None:
        """Begin anew with a model."""
        self._stubborn.discard(model)
        if self._profiles.pop(model, None):
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        lasting = ((k, v) for k, v in sorted(self._profiles.items()) if not v.guessed)
        shown = {name: each.as_json() for name, each in lasting}
        try:
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warn("`{path}` cannot be written: {why}", path=self._path, why=error)
