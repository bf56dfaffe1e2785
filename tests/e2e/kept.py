"""Count what a game's database holds of what an assistant heard, from outside the game."""

import json
from typing import Any

from tests.e2e.game import Game

SOURCE = """
import json
from tests.e2e.kill_look import kept_lists
from collections import Counter
from tests.steps import verify_history
from evennia_ai.assistant_script import all_assistants
script = next(s for s in all_assistants() if s.obj.key == {name!r})
found = [m for messages in kept_lists(script) for m in messages]
stored = {{m.id for m in found}}
found += [m for m in script.state.load_queue() if m.id not in stored]
print(json.dumps({{
    "times": Counter(m.content for m in found if m.role == "user"),
    "doubled": [i for i, n in Counter(m.id for m in found).items() if n > 1],
    "violations": [str(v) for v in verify_history(script)],
}}))
"""


def kept(game: Game, name: str = "Aria") -> dict[str, Any]:
    """Read a game's database.

    Returns:
        ``{"times", "doubled", "violations"}``: how often each heard line is stored, live,
        archived or waiting for its turn; ids that are stored more than once; and what
        verification found.
    """
    found: dict[str, Any] = json.loads(game.python(SOURCE.format(name=name), 600).splitlines()[-1])
    return found
