"""`en.toml`: what the offline model says, and the expressions by which it knows what it hears."""

import re
import tomllib
from pathlib import Path
from typing import Any

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "en.toml").read_text("utf-8")
)


def _expression(text: str) -> str:
    joined = "|".join(text.strip().splitlines())
    return re.sub(r"\{([a-z]+)\}", lambda at: f"(?:{_expression(TABLE['words'][at[1]])})", joined)


def expressions(section: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of a section, in its order."""
    return {
        key: re.compile(_expression(text), re.IGNORECASE) for key, text in TABLE[section].items()
    }


GESTURES: dict[str, str] = TABLE["gestures"]
TABLE["words"]["gesture"] = "|".join(GESTURES)
SPEECH = expressions("speech")
LISTS: dict[str, list[str]] = {key: text.split() for key, text in TABLE["lists"].items()}
