"""Moderation: a function of the game decides what is heard and what is said.

The setting `EVENNIA_AI_MODERATE` names it. Without it nothing here runs.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore, inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, Worker, in_time
from evennia_ai.errors import ConfigError
from evennia_ai.history.audience import is_private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.language.words import storable
from evennia_ai.turns.tools.base import NOT_SAID, ToolCall

if TYPE_CHECKING:
    from evennia_ai.turns.assistant import Assistant

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


@inlineCallbacks
def moderate(script: Assistant, event: Message) -> Steps[None]:
    """Have a queued event judged; it stays in its place in the queue, or leaves it."""
    speaker, is_secret = Speaker(event.speaker_name, event.speaker_id), is_private(event.audience)
    text = yield judge(script, "heard", event.content, speaker, event.channel, is_secret)
    script.runtime.judged(event.id, text)
    if script.pk and script.runtime.is_called():
        script.called()


def judge_said(script: Assistant, text: str, channel: str, private: bool) -> Deferred[str]:
    """Fires with what may be said instead of a text: the same, another, or an empty one."""
    speaker = Speaker(script.obj.key, script.obj.stable_id)
    return judge(script, "said", text, speaker, channel, private)


@inlineCallbacks
def judge_call(script: Assistant, call: ToolCall, private: bool) -> Steps[ToolCall]:
    """Fires with a tool call as it may be stored and run.

    If what it says is refused, its text is `NOT_SAID`, which no tool says.
    """
    text = call.arguments.get("text")
    if not call.tool.speaks or call.fault or not isinstance(text, str):
        return call  # what cannot be read is not run either
    passed = yield judge_said(script, text, call.name, private or call.tool.to_one)
    if passed == text:
        return call
    arguments = {**call.arguments, "text": passed or NOT_SAID}
    function = {**call.raw["function"], "arguments": json.dumps(arguments, ensure_ascii=False)}
    return replace(call, arguments=arguments, raw={**call.raw, "function": function})


@inlineCallbacks
def judge(
    script: Assistant, kind: str, text: str, speaker: Speaker, channel: str, private: bool
) -> Steps[str]:
    """Fires with the text to go on with, empty if it is refused; fails only if cancelled.

    Where the function fails, what was heard passes, as everybody there heard it too, and nothing
    is said. The audit log never gets the text: `aiforget` would not find it there.
    """
    moderator = script.moderator
    if moderator is None:  # the setting was removed while the event waited in the saved queue
        return text
    facts = {"speaker_id": speaker.id, "channel": channel, "private": private}
    about = {"kind": kind, "assistant": script.key, "speaker": speaker.key, **facts}
    try:
        answer = yield moderator.ask(text, about)
    except (GeneratorExit, CancelledError):
        raise  # the server stops; the next start asks again
    except BaseException as error:  # noqa: BLE001 - a game's own function may raise anything
        why = where(error)
        script.audit("moderation", verdict="failed", of=kind, **facts, why=why)
        if script.now() - moderator.told_at > ALERT_EVERY_S:
            moderator.told_at = script.now()
            told = (
                f"moderation failed ({why}): while it does, what is heard passes and nothing is "
                "said. Later failures are in the audit log."
            )
            script.survived("telling staff", lambda: script.alert(told), None)
        return text if kind == "heard" else ""
    passed = storable(answer) if answer and answer.strip() else ""
    if passed != text:
        verdict = "replaced" if passed else "refused"
        script.audit("moderation", verdict=verdict, of=kind, **facts)
    return passed


def where(error: BaseException) -> str:
    """An error's type and place. Its text may quote what was said in private."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
