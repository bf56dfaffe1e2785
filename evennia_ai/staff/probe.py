"""Trying a model out: a few short calls, what they show, and one line of advice."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.prompt import model_request
from evennia_ai.llm_interaction.regions import Prompt
from evennia_ai.llm_interaction.values import ModelFacts, ModelReply
from evennia_ai.turns.tools.game import Look

# The word for water in each language.
WATER = {
    "German": "wasser",
    "Spanish": "agua",
    "French": "eau",
    "Russian": "вода",
    "Polish": "woda",
    "Turkish": "su",
    "Arabic": "ماء",
    "Hindi": "पानी",
    "Chinese": "水",
    "Japanese": "水",
    "Korean": "물",
    "Thai": "น้ำ",
}
# Longest time of a short answer, and fewest tokens a second, with which a talk is a pleasure.
PATIENCE_S, FLUENT = 12.0, 6.0
LEAST_WINDOW = 4_096

PERSONA = "Your name is Quillon. You are a miller."
ASKED_NAME = ("What is your name? Answer with one word.",)
SEVERAL = ("My dog is called Fenwick.", "What is my dog called? Answer with one word.")
LOOKED = ("Look at the chest with the tool `look`.",)
LANGUAGES = (f"Write the word for water in these languages, one a line: {', '.join(WATER)}.",)


@dataclass
class Trial:
    """What the calls showed."""

    follows: bool = False  # whether it follows the system text
    talks: bool = False  # whether it answers with what an earlier line said
    calls: str = ""  # how it calls a tool: ``native``, ``text``, or not at all
    thinks: bool = False  # whether it thinks before it speaks
    seconds: float = 0.0  # time of the first, short answer
    speed: float = 0.0  # tokens a second of a longer one
    languages: Sequence[str] = ()  # those it wrote a word in
    failed: list[str] = field(default_factory=list)  # why a call failed

    def lines(self, facts: ModelFacts) -> list[str]:
        """What was found, a line a fact."""
        calls = {"native": "called by the provider's tool calling", "text": "called as text"}
        missing = [language for language in WATER if language not in self.languages]
        known = ", ".join(self.languages) or "none"
        return [
            f"Speed: a short answer in {self.seconds:.1f} s, {self.speed:.0f} tokens a second",
            f"System text: {'followed' if self.follows else 'not followed'}",
            f"Earlier lines: {'taken up' if self.talks else 'not taken up'}",
            f"Tools: {calls.get(self.calls, 'not called')}",
            f"Thinking: {'it thinks before it speaks' if self.thinks else 'none seen'}",
            f"Languages: {known}" + (f"; not {', '.join(missing)}" if missing else ""),
            f"Window: {facts.window or 'unknown'}",
            "Learned: " + ("; ".join(facts.profile) or "nothing that it cannot do"),
            *(f"Failed: {why}" for why in self.failed),
            f"Advice: {self.advice(facts)}",
        ]

    def advice(self, facts: ModelFacts) -> str:
        """What to do about the worst that was found."""
        if len(self.failed) > 1:
            return "it fails too often to be played with; `ai/doctor` says more."
        if facts.window and facts.window.tokens < LEAST_WINDOW:
            larger = "give its server a larger window, 8,192 tokens or more"
            return f"{larger} (Ollama: OLLAMA_CONTEXT_LENGTH)."
        if not (self.follows and self.talks):
            return "it hardly follows a talk: for trying only; take a larger model."
        if not self.calls:
            silent = "it talks, but calls no tools: it will act and note little"
            return f"{silent}; take one made for tool calls."
        if self.thinks:
            return "switch its thinking off, if its answers come late: `llm_thinking = off`."
        if self.seconds > PATIENCE_S or self.speed < FLUENT:
            return "it is slow here: take a smaller model or a faster machine."
        if len(self.languages) < len(WATER) / 2:
            return "use it for the languages above; it knows few others."
        return "fit to be played with."


@inlineCallbacks
def try_out(script: AssistantScript, asker: str | None = None) -> Steps[list[str]]:
    """Try an assistant's model out, for somebody (stable id); fires with what was found, in lines.

    Fails as `SpendHandler.complete` does where not even the first call is answered.
    """
    trial = Trial()
    named: ModelReply = yield asked(script, asker, ASKED_NAME, 32)
    trial.follows, trial.seconds = "quillon" in named.content.lower(), named.seconds
    replies = [named]
    for messages, tokens in ((SEVERAL, 32), (LOOKED, 96), (LANGUAGES, 256)):
        try:
            tools = (Look().schema(),) if messages is LOOKED else ()
            reply: ModelReply = yield asked(script, asker, messages, tokens, tools=tools)
        except AssistantError as error:
            trial.failed.append(str(error))
            continue
        replies.append(reply)
        said = reply.content.lower()
        if messages is SEVERAL:
            trial.talks = "fenwick" in said
        elif messages is LOOKED and reply.tool_calls:
            trial.calls = "native" if reply.native else "text"
        elif messages is LANGUAGES:
            trial.languages = [language for language, word in WATER.items() if word in said]
            trial.speed = reply.completion_tokens / max(reply.seconds, 0.01)
    trial.thinks = any(reply.thought for reply in replies)
    return trial.lines(script.mind.model.facts(script.model_name))


def asked(
    script: AssistantScript,
    asker: str | None,
    said: Sequence[str],
    tokens: int | None = None,
    system: str = PERSONA,
    tools: Sequence[dict[str, Any]] = (),
) -> Deferred[ModelReply]:
    """Fires with what an assistant's model, and no other, answers to a small talk."""
    lines = tuple({"role": "user", "content": text} for text in said)
    messages = ({"role": "system", "content": system}, *lines)
    reserve = tokens or script.config.reply_reserve_tokens
    sizes = {"History": sum(map(script.count, (system, *said))), "Reserve": reserve}
    prompt = Prompt(messages, tuple(tools), TokenBudget.of(sizes, script.limits().tokens))
    request = model_request(script, script.obj, prompt, "test", max_tokens=tokens)
    reply = script.spend.complete(replace(request, fallback_models=()), asker)

    def note(reply: ModelReply) -> ModelReply:
        script.spent(reply, "test")
        return reply

    return reply.addCallback(note)
