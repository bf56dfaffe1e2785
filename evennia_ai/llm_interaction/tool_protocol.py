"""How an assistant's model is told of its tools: as the provider does it, or as text."""

from dataclasses import dataclass

from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.protocol import Assistant


@dataclass(frozen=True)
class ToolProtocol:
    """Whether tool calls are written as text, and why so, in plain words."""

    is_text: bool
    why: str

    def __str__(self) -> str:
        return f"{'text' if self.is_text else 'native'} ({self.why})"


NATIVE = ToolProtocol(False, "the provider's tool calling")
DROPPED = ToolProtocol(True, "the model's template drops tools: calls are written as text")
CARRIED = ToolProtocol(False, "the model's template carries tools")


def tool_protocol(script: Assistant, model: str = "") -> ToolProtocol:
    """How a model (the assistant's own by default) is told of its tools, as far as is known now."""
    model = model or script.model_name
    if model == OFFLINE_MODEL:
        return NATIVE
    if script.config.llm_api == "completion":
        return ToolProtocol(True, "base models write calls as text")
    carries = script.mind.model.facts(model).carries_tools
    return NATIVE if carries is None else CARRIED if carries else DROPPED
