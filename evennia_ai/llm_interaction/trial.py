"""A short trial of a model: whether it talks as well with tools as without, and calls one if asked.

Many models do worse with tools in their prompt: they call them for small talk, or write the call as
words. So a model is offered tools only where a few calls have shown that it handles them: natively,
else in a JSON object of words and call.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import note
from evennia_ai.language.tables import DEFAULT
from evennia_ai.llm_interaction.conversation import (
    HERE,
    NOW,
    place_text,
    shipped_examples,
    system_prompt,
)
from evennia_ai.llm_interaction.reply import clean_reply, fault
from evennia_ai.llm_interaction.values import (
    FORM,
    ONLY_SPEAKS,
    SPEAKS_AND_CALLS,
    ModelReply,
    ModelRequest,
)

# The purpose of its requests.
TRIAL = "trial"
ME, GUEST = "Quillon", "Merrit"
PERSONA = "You are a miller, friendly and a little sleepy."
PLACE: dict[str, Any] = {"key": "The old mill", "description": "Flour dust hangs in the air."}
GREETING = f"Good morning, {ME}. How are you today?"
SMALL_TALK = f"What a windy week this was, {ME}. My hat flew off twice."
ORDER = f"{ME}, please give me the copper lamp."
# Always the likeliest words, so that every trial of a model finds the same.
REPLY_TOKENS, TEMPERATURE = 120, 0.0


# Failures by which a way to call tools is unfit; behind others, as no connection, nothing is known.
UNFIT = ("bad_request", "bad_response", "empty", "refused")


def _tool(name: str, says: str, *arguments: str) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in arguments}
    schema = {"type": "object", "properties": properties, "required": [*arguments]}
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    }


TOOLS = (
    _tool("give", "Give a thing that you carry to somebody.", "thing", "to"),
    _tool("search_memory", "Search what was said and done before.", "query"),
    _tool("noop", "Say and do nothing."),
)


def trial_request(model: str, line: str, speech: str, timeout_s: float) -> ModelRequest:
    """The request of one line of the trial; `speech` is how the model is to call tools."""
    place = place_text(PLACE, ("a millstone",), ("a copper lamp",))
    system = system_prompt(ME, PERSONA, place, has_tools=True)
    messages = [{"role": "system", "content": system}]
    for asked, answer in shipped_examples(DEFAULT, ME, (GUEST,)):
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": answer})
    now = [note(NOW, "about nine in the morning"), note(HERE, GUEST)]
    messages.append({"role": "user", "content": "\n".join([*now, f"{GUEST}: {line}"])})
    return ModelRequest(
        model=model,
        messages=tuple(messages),
        tools=TOOLS,
        called=frozenset(("give", "search_memory", "noop")),
        max_tokens=REPLY_TOKENS,
        timeout_s=timeout_s,
        within_s=timeout_s,
        extra={"temperature": TEMPERATURE},
        speech=speech,
        purpose=TRIAL,
    )


async def speech_of(
    ask: Callable[[ModelRequest], Awaitable[ModelReply]], model: str, timeout_s: float
) -> str:
    """How a model speaks and acts: the first way of `values` that it handles, else words alone.

    Args:
        ask: Makes one call; raises `ModelError`.
        model: The model's name.
        timeout_s: Longest time of one call.
    """
    for speech in (SPEAKS_AND_CALLS, FORM):
        try:
            if await _talks_with_tools(ask, model, speech, timeout_s):
                return speech
        except ModelError as error:
            if error.kind not in UNFIT:
                raise
    return ONLY_SPEAKS


async def _talks_with_tools(
    ask: Callable[[ModelRequest], Awaitable[ModelReply]],
    model: str,
    speech: str,
    timeout_s: float,
) -> bool:
    """Whether a model talks as well with tools as without, and calls one when it is asked."""
    for line in (GREETING, SMALL_TALK):
        reply = await ask(trial_request(model, line, speech, timeout_s))
        said = clean_reply(reply.content, [ME])
        if reply.tool_calls or fault(said, "", [line], [GUEST]):
            return False
    reply = await ask(trial_request(model, ORDER, speech, timeout_s))
    return "give" in {call["function"]["name"] for call in reply.tool_calls}
