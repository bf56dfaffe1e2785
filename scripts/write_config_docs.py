"""Write `docs/config.md` from the table of options, the one source of defaults and help.

Usage: python scripts/write_config_docs.py [path]
"""

import sys
from pathlib import Path

from evennia_ai.assistant.config import OPTIONS, default_of

DOCS = Path(__file__).resolve().parent.parent / "docs" / "config.md"
HEAD = """\
# Options of an assistant

This page is written by `scripts/write_config_docs.py`; do not edit it by hand.

Each option is an Attribute of the assistant's script. In the game:

```
aiconfig Aria                                  all options and their values
aiconfig Aria persona                          what one means
aiconfig Aria persona = A retired smuggler.    change it, at once
aiconfig Aria persona = default                take the default again
```

A value that cannot be used is refused. One that was put there by other means, as Evennia's own
`set`, is reported once, shown in `aistatus`, and the default is used.
"""


def page() -> str:
    """The whole page as Markdown."""
    groups: dict[str, list[str]] = {}
    for name, item in OPTIONS.items():
        groups.setdefault(item.metadata["group"], []).append(row(name))
    parts = [HEAD]
    for group, rows in groups.items():
        table = ["| option | default | takes | unit | meaning |", "|---|---|---|---|---|", *rows]
        parts.append(f"## {group}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def row(name: str) -> str:
    """One option as a row of its table."""
    meta = OPTIONS[name].metadata
    cells = (f"`{name}`", f"`{default_of(name)!r}`", meta["kind"].says, meta["unit"], meta["help"])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else DOCS).write_text(page(), encoding="utf-8")
