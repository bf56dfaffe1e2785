"""Write `docs/config.md` from the options in `evennia_ai/turns/options.py`.

Usage: python scripts/write_config_docs.py [path]
"""

import sys
from pathlib import Path

from evennia_ai.turns.options import OPTIONS, default_of

DOCS = Path(__file__).resolve().parent.parent / "docs" / "config.md"
HEAD = """\
# Options

`scripts/write_config_docs.py` writes this page from `evennia_ai/turns/options.py`. Do not edit
it by hand.

Each option is an Attribute of the assistant's script. In the game:

```
aiconfig Aria                                  list all options and their values
aiconfig Aria persona                          explain one option
aiconfig Aria persona = A retired smuggler.    change it; takes effect at once
aiconfig Aria persona = default                restore the default
```

`aiconfig` refuses an invalid value. If an invalid value was set in another way, for example with
Evennia's `set` command, the assistant uses the default, reports the problem once and shows it in
`aistatus`. Texts that are too long are cut to the first characters that the option takes.

A change shows the value that it replaces. `aiconfig/undo Aria` takes back the last change, then the
one before it, up to 20.

Models are checked against the setting `EVENNIA_AI_MODELS` when an option is set and whenever it is
used, for admins too. A name that holds an address is always refused: prompts go only where the
game's settings say. A refused `llm_model` is replaced by the game's own model.
"""


def page() -> str:
    """Return the whole page as Markdown."""
    groups: dict[str, list[str]] = {}
    for name, item in OPTIONS.items():
        groups.setdefault(item.metadata["group"], []).append(row(name))
    parts = [HEAD]
    for group, rows in groups.items():
        table = ["| option | default | takes | unit | meaning |", "|---|---|---|---|---|", *rows]
        parts.append(f"## {group}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def row(name: str) -> str:
    """Return the table row of one option."""
    meta = OPTIONS[name].metadata
    cells = (f"`{name}`", f"`{default_of(name)!r}`", meta["kind"].says, meta["unit"], meta["help"])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else DOCS).write_text(page(), encoding="utf-8")
