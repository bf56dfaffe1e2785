"""The audit log: one JSON line for each call, tool use, refusal and compaction."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LONG = 300


def write_audit(path: Path, kind: str, fields: Mapping[str, Any], at: float | None = None) -> None:
    """Append one line to an existing folder's log file, at `at` (seconds since the epoch) or now.

    Long texts in `fields` are cut. They must hold neither prompt text nor keys.
    """
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    line = {"at": stamp, "kind": kind, **{key: _short(value) for key, value in fields.items()}}
    with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
        log.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")


def _short(value: Any) -> Any:
    return value[:_LONG] if isinstance(value, str) else value
