"""What benchmarks share: the spread of many values, the model's address, the output."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from evennia_ai.history.messages import Heard
from evennia_ai.llm_interaction.conversation import read_prompt

SHARES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}


def spread(values: Iterable[float], digits: int = 2) -> dict[str, float]:
    """Median, high percentiles and maximum of values, and how many there are."""
    ordered = sorted(values)
    places = {name: round(share * (len(ordered) - 1)) for name, share in SHARES.items()}
    figures = {name: round(ordered[place], digits) for name, place in places.items() if ordered}
    return {"count": len(ordered), **figures}


def model_at(url: str) -> dict[str, str]:
    """The environment of a game whose model is a server there."""
    settings = {"MODEL": "openai/loopback", "API_BASE": url, "API_KEY": "sk-bench"}
    return {f"EVENNIA_AI_LLM_{name}": value for name, value in settings.items()}


def asked_lines(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Who said which of the lines that a prompt wants to be answered."""
    talk = [*messages]
    while talk and talk[-1]["role"] != "user":  # calls of this turn, and what they gave
        talk.pop()
    turns = [line for _, line in read_prompt(talk).turns]
    lines = takewhile(lambda line: isinstance(line, Heard), reversed(turns))
    return [(line.who, line.text) for line in reversed([*lines])]


def show(figures: Any) -> None:
    """Print figures as JSON."""
    print(json.dumps(figures, indent=2, ensure_ascii=False))
