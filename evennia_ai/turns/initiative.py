"""Speaking unasked: reasons to, and what code asks before it spends a call on one.

A turn that nobody asked for may only speak, pose or do nothing: `agent_loop` drops all other calls
of its model.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import unasked_line
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.contexts import CONTEXT_UNASKED
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, TurnReport, TurnRequest
from evennia_ai.rag_memory.bonds import LIKED
from evennia_ai.turns.cues import CUE_S, IDLE_S, MOST_UNANSWERED, QUIET_S, SPEND_SHARE, Cue, Used

if TYPE_CHECKING:
    from evennia_ai.protocol import Assistant

_QUIET = "it has been quiet here for a while"


def _used(script: "Assistant") -> Used:
    return script.state.unasked.since(script.now(), script.runtime.player_spoke_at)


# Why nobody speaks unasked, and what must hold that it does; in the order in which it is asked.
RULES: tuple[tuple[str, Callable[["Assistant"], bool]], ...] = (
    ("its option `initiative` is 0", lambda s: s.config.initiative > 0),
    ("it is on the offline model", lambda s: s.model_name != OFFLINE_MODEL),
    ("it is switched off or asleep", lambda s: s.enabled and s.state.mode == "awake"),
    ("no player who is not idle is here", lambda s: bool(s.game.company(IDLE_S))),
    (
        "somebody spoke in the last two minutes",
        lambda s: s.runtime.quiet_s(s.now()) >= QUIET_S,
    ),
    (
        "an assistant spoke unasked here in the last two minutes",
        lambda s: not 0 <= s.now() - s.game.manners.cued_at < QUIET_S,
    ),
    (
        "it has spoken unasked often enough for this hour",
        lambda s: _used(s).within_hour(s.now()) < s.config.initiative,
    ),
    ("half of a spend limit is used up", lambda s: s.spend.reached(share=SPEND_SHARE) is None),
    (
        "nobody answered its last two lines; it waits until a player speaks",
        lambda s: _used(s).unanswered < MOST_UNANSWERED,
    ),
)


def why_not(script: "Assistant") -> str:
    """Why an assistant does not speak unasked now, in words; empty if it may."""
    return next((why for why, holds in RULES if not holds(script)), "")


def note_arrivals(script: "Assistant", events: Iterable[Message]) -> None:
    """Take the coming of somebody whom it likes, as all may know, for a reason to speak."""
    seen, now = script.seen(PUBLIC, trusted=True), script.now()
    for event in events if script.config.initiative else ():
        if event.channel == "arrive" and seen.bond(event.speaker_id).level(now) in LIKED:
            script.runtime.cue = Cue(f"{event.speaker_name}, whom you like, has come", now)


@inlineCallbacks
def speak_unasked(script: "Assistant") -> Steps[str]:
    """One turn that nobody asked for, if all rules let it be; fires with what the tick did."""
    if why_not(script):
        return "idle"
    runtime, now, used = script.runtime, script.now(), _used(script)
    cue, runtime.cue = runtime.cue, None
    is_fresh = cue is not None and 0 <= now - cue.at < CUE_S
    reason = cue.text if cue is not None and is_fresh else _QUIET
    # Before the call: one that a crash cuts short has cost as much.
    script.state.unasked = used = replace(used, at=(*used.at, now))
    script.game.manners.cued_at = now
    request = TurnRequest(
        audience=script.game.audience(),
        context=CONTEXT_UNASKED,
        max_iterations=1,
        deadline=now + script.turn_timeout_s,
        answering=(unasked_line(reason),),
    )
    try:
        report: TurnReport = yield script.run_turn(request)
    except ModelError as error:
        script.log(f"nothing is said unasked: {error}", warning=True)
        return "idle"
    finally:
        runtime.last_turn_at = script.now()
    runtime.counts["unasked"] += 1
    if report.spoken:
        script.state.unasked = replace(used, unanswered=used.unanswered + 1)
    return "unasked"
