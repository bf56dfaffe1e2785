"""Extraction and summaries asked behind the prompt of a turn awake.

Providers charge little for a beginning that they have seen lately: system text, tools, summaries
and history are those of the turns, and the instruction comes last. Where that cannot be, or not
everything that matters would be shown, the callers ask in a request of its own.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import INSTRUCTION_LABEL
from evennia_ai.history.messages import Message, mask_of
from evennia_ai.llm_interaction.contexts import (
    CONTEXT_PRE_COMPACTION,
    EXTRACT_NOW,
    ONLY_LINES,
    SUMMARISE_NOW,
    WITH_EARLIER,
)
from evennia_ai.llm_interaction.prompt import (
    can_continue,
    context_caps,
    draft_prompt,
    shown_history,
)
from evennia_ai.llm_interaction.regions import Prompt, text_tokens
from evennia_ai.llm_interaction.summary import summary_prompt
from evennia_ai.protocol import Assistant, Character


def extraction_instruction(
    script: Assistant, character: Character, audience: str, leaving: Collection[str]
) -> str:
    """What an extraction says behind the prompt of a turn; empty where it needs one of its own.

    `leaving` are the ids of the messages that it must show.
    """
    if script.config.pre_compact_prompt or not can_continue(script):
        return ""
    text = f"{INSTRUCTION_LABEL}\n{EXTRACT_NOW}"
    prompt = draft_prompt(script, character, audience, CONTEXT_PRE_COMPACTION, instruction=text)
    is_whole = prompt.fits and not prompt.budget.notes
    return text if is_whole and set(leaving).isdisjoint(prompt.budget.left_out) else ""


def summary_continuation(
    script: Assistant,
    character: Character,
    messages: Sequence[Message],
    earlier: str = "",
    instructions: str | None = None,
) -> Prompt | None:
    """The request of a summary of messages as a prompt that goes on from a turn awake.

    `earlier` is the summary that the new one takes up. None where it cannot be: another model
    writes summaries, or to a prompt of the game's own; the messages are not the oldest that
    everybody may see; or they would not all be shown as they were said.
    """
    config = script.config
    is_other = config.compact_model or config.compact_prompt or not can_continue(script)
    if is_other or script.over_spend():
        return None
    history, _ = shown_history(script, PUBLIC)
    raw = [message for message in history if not message.is_summary]
    end = len(messages)
    if not messages or [m.id for m in raw[:end]] != [m.id for m in messages]:
        return None
    if any(map(mask_of, messages)):
        return None
    parts = (
        INSTRUCTION_LABEL,
        SUMMARISE_NOW,
        WITH_EARLIER if earlier else ONLY_LINES,
        "",
        summary_prompt(script, instructions),
    )
    hidden = frozenset(message.id for message in raw[end:])
    prompt = draft_prompt(script, character, hidden_ids=hidden, instruction="\n".join(parts))
    return _with_reply(prompt, context_caps(script).summary)


def one_more_line(script: Assistant, prompt: Prompt, text: str) -> Prompt | None:
    """The prompt with one more message of ours behind it; None if that does not fit."""
    budget = prompt.budget
    more = budget.regions["Tail"] + text_tokens(text, script.counter)
    longer = replace(budget, regions={**budget.regions, "Tail": more})
    messages = (*prompt.messages, {"role": "user", "content": text})
    longer_prompt = replace(prompt, messages=messages, budget=longer)
    return longer_prompt if longer_prompt.fits else None


def _with_reply(prompt: Prompt, reply_tokens: int) -> Prompt | None:
    """The prompt with so much room for its reply; None unless it shows everything."""
    budget = prompt.budget
    budget = replace(budget, regions={**budget.regions, "Reserve": reply_tokens})
    prompt = replace(prompt, budget=budget)
    return prompt if prompt.fits and not (budget.left_out or budget.notes) else None
