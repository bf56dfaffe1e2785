"""Write `docs/config.md` from the models of options and settings.

Usage: python scripts/write_config_docs.py [path]
"""

import sys
from pathlib import Path

from evennia_ai.conf import Settings
from evennia_ai.kinds import About
from evennia_ai.options import OPTIONS

DOCS = Path(__file__).resolve().parent.parent / "docs" / "config.md"
HEAD = """\
# Options

`scripts/write_config_docs.py` writes this page from `evennia_ai/options.py` and
`evennia_ai/conf.py`. Do not edit it by hand.

Each option is an Attribute of the assistant's script. In the game:

```
aiconfig Aria                                  list all options and their values
aiconfig Aria persona                          explain one option
aiconfig Aria persona = A retired smuggler.    change it; takes effect at once
aiconfig Aria persona = default                restore the default
aiconfig/undo Aria                             bring back what the newest change replaced
```

`aiconfig` refuses an invalid value. If an invalid value was set in another way, for example with
Evennia's `set` command, the assistant uses the default, reports the problem once and shows it in
`aistatus`.

Options that hold several values are changed one by one; the other values stay as they are:

```
aiconfig Aria emotes.wake = stretches and looks around.
aiconfig Aria emotes.sleep = none
aiconfig Aria spend_caps.tokens_day = 200000
aiconfig Aria llm_extra.temperature = 0.7
aiconfig Aria tool_levels.give = confirm
```

The setting `EVENNIA_AI_OPTIONS` gives options to groups of assistants: by typeclass (also one that
the body's typeclass inherits from), by a tag of the body, or by the key of the prototype it was
made from. Later entries win over earlier ones, and an assistant's own value wins over all.
`aiconfig` and `aistatus` say where a value comes from:

```python
EVENNIA_AI_OPTIONS = {
    "evennia_ai.body.Assistant": {"compact_model": "openai/gpt-4o-mini"},
    "guard": {"attention": "addressed", "emotes": {"wake": None}},  # a tag or a prototype
}
```

What few games change are attributes of the script's class, which the body's class names:

```python
class QuickCharacter(AssistantCharacter):
    script_typeclass = "typeclasses.scripts.QuickAssistant"


class QuickAssistant(AssistantScript):
    reply_cooldown_s = 0.2  # shortest time between two turns
    thinking_after_s = 4.0  # wait after which the emote `thinking` is shown
    stale_after_s = 180.0  # age of a line that is remembered, but not answered
    tick_interval_s = 5  # time between two ticks
    summary_max_tokens = 500  # largest size of each summary
```

A change shows the value that it replaces.

Models are checked against the setting `EVENNIA_AI_MODELS` when an option is set and whenever it is
used, for admins too. A name that holds an address is always refused: prompts go only where the
game's settings say. A refused `llm_model` is replaced by the game's own model.
"""


def page() -> str:
    """Return the whole page as Markdown."""
    groups: dict[str, list[str]] = {}
    for option in OPTIONS.values():
        groups.setdefault(option.facts["group"], []).append(row(option))
    parts = [HEAD]
    for group, rows in groups.items():
        table = ["| option | default | takes | unit | meaning |", "|---|---|---|---|---|", *rows]
        parts.append(f"## {group}\n\n" + "\n".join(table) + "\n")
    rows = [
        f"| `EVENNIA_AI_{name}` | {about.help} | {about.facts['unset']} |"
        for name, about in Settings.about().items()
    ]
    table = ["| setting | meaning | default |", "|---|---|---|", *rows]
    parts.append("## Settings\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def row(option: About) -> str:
    """Return the table row of one option."""
    cells = (
        f"`{option.name}`",
        f"`{option.default!r}`",
        option.kind.says,
        option.facts["unit"],
        option.help,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else DOCS).write_text(page(), encoding="utf-8")
