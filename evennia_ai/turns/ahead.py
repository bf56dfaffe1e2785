"""Reading ahead: a model of the game's own reads a prompt before somebody waits for its answer.

A model on the game's machine may read a prompt for a minute. Its server keeps what it has read, so
that a later prompt that begins in the same way is read in a moment.
"""

from twisted.internet.defer import Deferred, succeed

from evennia_ai.llm_interaction.prompt import draft_prompt, model_request
from evennia_ai.llm_interaction.values import READ_AHEAD, TurnRequest
from evennia_ai.protocol import Assistant

# A server that has not answered for so long may have dropped what it had read.
KEEP_WARM_S = 300.0


def see_company(script: Assistant) -> None:
    """Read ahead when the first player comes near after a quiet time."""
    runtime, now = script.runtime, script.now()
    players = [person for person, is_played in script.game.here().items() if is_played]
    quiet_s = now - max(runtime.company_at, runtime.last_turn_at)
    if players:
        runtime.company_at = now
    if players and quiet_s > KEEP_WARM_S:
        read_ahead(script, players[0])


def read_ahead(script: Assistant, asker: str) -> Deferred[None]:
    """Let its model read what the answer to somebody (stable id) will begin with, if it is ours.

    Nothing is said, nothing is learned of the model, and no cap is used up by it. What fails is no
    trouble yet. Fires when it is over, whatever came of it.
    """
    if not script.enabled or not script.mind.model.facts(script.model_name).own:
        return succeed(None)
    if script.limits().only_talks:
        return succeed(None)
    with script.spend.shared.as_if_tried(script.model_name):
        prompt = draft_prompt(script, script.obj, TurnRequest(asker=asker))
    request = model_request(script, script.obj, prompt, READ_AHEAD, max_tokens=1)
    script.log(f"{script.model_name} reads {request.prompt_tokens:,} tokens ahead")
    return script.spend.ahead(request).addCallbacks(
        lambda reply: script.log(f"{script.model_name} has read ahead in {reply.seconds:.1f} s"),
        lambda failure: script.log(f"reading ahead: {failure.getErrorMessage()}"),
    )
