"""Asking an assistant's model one question, beside all that it remembers."""

from dataclasses import replace

from twisted.internet.defer import Deferred

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE, CONTEXTS, system_prompt
from evennia_ai.llm_interaction.prompt import model_request
from evennia_ai.llm_interaction.regions import Prompt
from evennia_ai.llm_interaction.values import ModelReply


def asked(script: AssistantScript, asker: str, text: str) -> Deferred[ModelReply]:
    """Fires with what an assistant's model, and no other, answers to somebody (stable id)."""
    system = system_prompt(CONTEXTS[CONTEXT_AWAKE], script.obj.key, script.config.persona)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": text})
    sizes = {
        "History": script.count(system) + script.count(text),
        "Reserve": script.config.reply_reserve_tokens,
    }
    prompt = Prompt(messages, (), TokenBudget.of(sizes, script.limits().tokens))
    request = model_request(script, script.obj, prompt, "test")

    def note(reply: ModelReply) -> ModelReply:
        script.spent(reply, "test")
        return reply

    only = replace(request, fallback_models=())
    return script.spend.complete(only, asker).addCallback(note)
