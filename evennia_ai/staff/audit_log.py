"""Reading the end of the audit log; on a thread, as it is a file."""

import json
from pathlib import Path
from typing import Any

from evennia_ai.staff.show import moment

LOG_LINES, LOG_BYTES = 20, 65_536


def log_fields(
    path: Path, name: str | None = None, count: int = LOG_LINES, most_bytes: int = LOG_BYTES
) -> list[dict[str, Any]]:
    """The end of the audit log, oldest first: of one assistant, or of all."""
    if not path.exists():
        return []
    with path.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - most_bytes))
        rows = log.read().decode("utf-8", "replace").splitlines()
    lines = []
    for row in rows[1:] if size > most_bytes else rows:
        try:
            fields = json.loads(row)
        except (ValueError, RecursionError):
            continue  # a damaged line
        if isinstance(fields, dict) and name in (None, fields.get("assistant")):
            lines.append(fields)
    return lines[-count:]


def log_line(fields: dict[str, Any]) -> str:
    """A line of the log as people read it."""
    head = (moment(fields.pop("at", "")), fields.pop("assistant", ""), fields.pop("kind", ""))
    rest = ", ".join(f"{key} {value}" for key, value in fields.items())
    return f"{' '.join(map(str, head))}: {rest}"


def last_lines(path: Path, name: str | None = None) -> list[str]:
    """The end of the log as text."""
    return list(map(log_line, log_fields(path, name)))
