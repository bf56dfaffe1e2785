"""Moderation: a function of the game decides what is heard and what is said.

The setting `EVENNIA_AI_MODERATE` names it. Without it nothing here runs.
"""

import json
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred, fail, inlineCallbacks
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from evennia_ai.background import Worker, in_time
from evennia_ai.errors import ConfigError, ToolError
from evennia_ai.history.audience import is_private
from evennia_ai.history.messages import SPEECH, Message, Speaker
from evennia_ai.language.words import storable
from evennia_ai.turns.events import UNJUDGED, wants_answer
from evennia_ai.turns.tools.base import NOT_SAID
from evennia_ai.turns.tools.parameters import read_arguments

if TYPE_CHECKING:
    from evennia_ai.protocol import Assistant
    from evennia_ai.turns.runtime import LiveAssistant

# A function that takes longer counts as failed.
TIMEOUT_S = 5.0
# How many texts are looked at in the same moment, of those heard and of those to be said.
THREADS = 4
# Threads that calls without end may hold, and texts that may wait, before a text fails at once.
MOST_LOST, MOST_WAITING = 16, 200
# Staff are told again of a function that fails after this time.
ALERT_EVERY_S = 3600.0

About = dict[str, Any]
Function = Callable[[str, About], str | None]
Submit = Callable[[Function, str, About], "Deferred[str | None]"]


class _Line:
    """Calls of the function for texts of one kind, some at a time; the others wait in line.

    A call that hangs gives its place to the next after `TIMEOUT_S`, though its thread is lost until
    it returns. Once `MOST_LOST` threads are, or `MOST_WAITING` texts wait, a text fails at once.
    """

    def __init__(self, submit: Submit, clock: IReactorTime | None):
        self._submit, self._clock = submit, clock
        self._waiting: deque[tuple[Deferred[str | None], Function, str, About]] = deque()
        self._running = 0
        self._lost: list[threading.Event] = []  # set once the call returns after all

    def ask(self, call: Function, text: str, about: About) -> "Deferred[str | None]":
        """Fires with what the function returns, once it is this text's turn."""
        self._lost = [each for each in self._lost if not each.is_set()]
        if len(self._lost) >= MOST_LOST or len(self._waiting) >= MOST_WAITING:
            return fail(TimeoutError("too many texts wait for moderation"))
        answer: Deferred[str | None] = Deferred()
        self._waiting.append((answer, call, text, about))
        self._go_on()
        return answer

    def _go_on(self) -> None:
        while self._waiting and self._running < THREADS:
            answer, call, text, about = self._waiting.popleft()
            if not answer.called:  # else who asked has gone
                self._running += 1
                self._run(answer, call, text, about)

    def _run(self, answer: "Deferred[str | None]", call: Function, text: str, about: About) -> None:
        began, returned = threading.Event(), threading.Event()

        def watched(text: str, about: About) -> str | None:
            began.set()
            try:
                return call(text, about)
            finally:
                returned.set()

        def ended(result: object) -> None:
            self._running -= 1
            if isinstance(result, Failure) and began.is_set() and not returned.is_set():
                self._lost.append(returned)
            if not answer.called:
                answer.callback(result)  # type: ignore[arg-type]
            self._go_on()

        in_time(self._submit(watched, text, about), TIMEOUT_S, self._clock).addBoth(ended)


class Moderator:
    """Asks the function of the game, on daemon threads.

    The same words of the same speaker, heard by several assistants, are asked about once.

    Args:
        load: Imports the function, at the first question.
        heard: Runs it for what was heard.
        said: Runs it for what is about to be said, which must not wait for a flood of lines.
        clock: Measures the timeout.
    """

    def __init__(
        self,
        load: Callable[[], Function],
        heard: Submit | None = None,
        said: Submit | None = None,
        clock: IReactorTime | None = None,
    ):
        self._load = load
        self._heard = _Line(heard or Worker("evennia-ai-heard", THREADS + MOST_LOST).submit, clock)
        self._said = _Line(said or Worker("evennia-ai-said", THREADS + MOST_LOST).submit, clock)
        self._function: Function | None = None
        self._shared: dict[tuple[object, ...], list[Deferred[str | None]]] = {}
        self.told_at = float("-inf")  # when staff were told last that it fails

    def ask(self, text: str, about: About) -> "Deferred[str | None]":
        """Fires with what the function returns; fails with what it raised, or `TimeoutError`."""
        if about["kind"] != "heard":
            return self._said.ask(self._call, text, about)
        mine: Deferred[str | None] = Deferred()
        what = (text, *(value for key, value in about.items() if key != "assistant"))
        if what in self._shared:
            self._shared[what].append(mine)
            return mine
        self._shared[what] = [mine]

        def share(result: object) -> None:
            for each in self._shared.pop(what):
                if not each.called:
                    each.callback(result)  # type: ignore[arg-type]

        self._heard.ask(self._call, text, about).addBoth(share)
        return mine

    def warm_up(self) -> None:
        """Import the function, so that the first line need not wait for it."""
        self._said.ask(self._prepared, "", {}).addErrback(lambda _: None)

    def _prepared(self, *_: object) -> None:
        if self._function is None:
            self._function = self._load()

    def _call(self, text: str, about: About) -> str | None:
        self._prepared()
        assert self._function is not None
        answer = self._function(text, about)
        if answer is None or isinstance(answer, str):
            return answer
        raise ConfigError(
            f"`EVENNIA_AI_MODERATE` must return a text or None, not `{type(answer).__name__}`."
        )


def unjudged(event: Message) -> Message:
    """An event that waits in the queue until `moderate` has let it pass."""
    if event.channel not in SPEECH:
        return event
    return replace(event, metadata={**event.metadata, UNJUDGED: True})


@inlineCallbacks
def moderate(script: "LiveAssistant", event: Message) -> Generator["Deferred[Any]", Any, None]:
    """Have a queued event judged; it stays in its place in the queue, or leaves it."""
    runtime = script.runtime
    speaker = Speaker(event.speaker_name, event.speaker_id)
    about = _about("heard", script, speaker, event.channel, is_private(event.audience))
    text = event.content
    try:
        text = yield _judge(script, text, about)
    except (GeneratorExit, CancelledError):
        raise  # the server stops; the next start asks again
    except BaseException as error:  # noqa: BLE001 - one that waits for ever holds up all behind it
        script.log(f"moderation broke off ({type(error).__name__}); a line passed", warning=True)
    runtime.judged(event.id, text)
    if script.pk and any(map(wants_answer, runtime.heard())):
        script.called()


def judge_said(script: "Assistant", text: str, channel: str, private: bool) -> "Deferred[str]":
    """Fires with what may be said instead of a text: the same, another, or an empty one."""
    speaker = Speaker(script.obj.key, script.obj.stable_id)
    return _judge(script, text, _about("said", script, speaker, channel, private))


def _about(kind: str, script: "Assistant", speaker: Speaker, channel: str, private: bool) -> About:
    """What the game's function is told of a text besides the text."""
    return {
        "kind": kind,
        "assistant": script.key,
        "speaker": speaker.key,
        "speaker_id": speaker.id,
        "channel": channel,
        "private": private,
    }


@inlineCallbacks
def judge_call(
    script: "Assistant", call: Mapping[str, Any], private: bool
) -> Generator["Deferred[Any]", Any, Mapping[str, Any]]:
    """Fires with a tool call as it may be stored and run.

    If what it says is refused, its text is `NOT_SAID`, which no tool says.
    """
    function = call.get("function") or {}
    tool = script.tools.tools.get(str(function.get("name") or ""))
    if tool is None or not tool.speaks:
        return call
    try:
        arguments = read_arguments(function.get("arguments"), tool.parameters)
    except ToolError:
        return call  # it is not run either
    text = arguments.get("text")
    if not isinstance(text, str):
        return call
    passed = yield judge_said(script, text, tool.name, private or tool.to_one)
    if passed == text:
        return call
    changed = json.dumps({**arguments, "text": passed or NOT_SAID}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": changed}}


@inlineCallbacks
def _judge(script: "Assistant", text: str, about: About) -> Generator["Deferred[Any]", Any, str]:
    """Fires with the text to go on with, empty if it is refused; fails only if cancelled.

    Where the function fails, what was heard passes, as everybody there heard it too, and nothing
    is said.
    """
    moderator = script.moderator
    if moderator is None:  # the setting was removed while the event waited in the saved queue
        return text
    try:
        answer = yield moderator.ask(text, about)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - a game's own function may raise anything
        why = where(error)
        _audit(script, "failed", about, why=why)
        if script.now() - moderator.told_at > ALERT_EVERY_S:
            moderator.told_at = script.now()
            script.alert(
                f"moderation failed ({why}): while it does, what is heard passes and nothing is "
                "said. Later failures are in the audit log."
            )
        return text if about["kind"] == "heard" else ""
    passed = storable(answer) if answer and answer.strip() else ""
    if passed != text:
        _audit(script, "replaced" if passed else "refused", about)
    return passed


def where(error: BaseException) -> str:
    """An error's type and place. Its text may quote what was said in private."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


def _audit(script: "Assistant", verdict: str, about: About, **more: object) -> None:
    """A line in the audit log, without the text: `aiforget` would not find it there."""
    facts = {name: about[name] for name in ("speaker_id", "channel", "private")}
    script.audit("moderation", verdict=verdict, of=about["kind"], **facts, **more)
