"""The offline model in its tool loop, with the recall index for its memory: for benchmarks."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history.frames import note, talk_line
from evennia_ai.llm_interaction.conversation import HERE, NOW
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.testing import call

PLAYERS = ("Alice", "Bob", "Cora", "Dunstan", "Edith", "Falk")
ADMITS = re.compile(r"don't know|not know|no memory of", re.IGNORECASE)
MAX_ROUNDS = 8
RESULTS, OWN_LINES = 20, 3  # as `search_memory` limits them
TOOLS = [
    {"type": "function", "function": {"name": name}}
    for name in ("search_memory", "add_journal_entry", "noop", "emote", "move", "look", "whisper")
]
Search = Callable[[str], list[dict[str, Any]]]
Store = Callable[[str, str, str, str], None]


@dataclass
class Game:
    """A stand-in for the game around the model: history, recall index, journal."""

    search: Search
    store: Store
    history: list[dict[str, Any]] = field(default_factory=list)
    clock: int = 0
    heard: int = 0

    def hear(self, who: str, text: str) -> str:
        """Somebody speaks; returns what the model says, "" for silence."""
        self.clock += 1
        self.heard = self.clock
        self.store(f"m{self.clock:05d}", who, text, "message")
        rows = (note(NOW, "evening"), note(HERE, ", ".join(PLAYERS)), talk_line(who, "say", text))
        self.history.append({"role": "user", "content": "\n".join(rows)})
        return self._turn()

    def _turn(self) -> str:
        start = len(self.history) - 1
        for _ in range(MAX_ROUNDS):
            reply = respond(self._prompt(self.history[start:]), TOOLS)
            if not reply.tool_calls:
                self._say(reply.content or "")
                return reply.content or ""
            if self._act(reply):
                return ""
        return "(no end of tool calls)"

    @staticmethod
    def _prompt(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
        place = "Where you are: The Gilded Lantern"
        system = f"You are Aria, in a game.\n\nA friendly barkeep.\n\n{place}"
        return [{"role": "system", "content": system}, *shown]

    def _say(self, text: str) -> None:
        if text:
            self.clock += 1
            self.store(f"m{self.clock:05d}", "Aria", text, "message")
            self.history.append({"role": "assistant", "content": text})

    def _act(self, reply: Any) -> bool:
        """Run the tool calls; returns whether the turn is over."""
        calls = [one for made in reply.tool_calls for one in call(made.name, **made.arguments)]
        self.history.append({"role": "assistant", "content": None, "tool_calls": calls})
        for one, made in zip(calls, reply.tool_calls, strict=True):
            result = {"name": made.name, "content": self._run(made.name, made.arguments)}
            self.history.append({"role": "tool", "tool_call_id": one["id"], **result})
        return any(made.name == "noop" for made in reply.tool_calls)

    def _run(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "search_memory":
            current = f"m{self.heard:05d}"  # the game leaves out the turn's own messages
            found = [hit for hit in self.search(arguments["query"]) if hit["id"] != current]
            own = [hit for hit in found if hit["speaker"] == "Aria"][OWN_LINES:]
            return json.dumps({"results": [hit for hit in found if hit not in own][:RESULTS]})
        if name == "add_journal_entry":
            self.clock += 1
            self.store(f"j{self.clock:05d}", "Aria", arguments["content"], "journal")
        return json.dumps({"ok": True})


def stable_id(name: str) -> str:
    """The stable id of a player."""
    return f"o{sum(name.encode())}.{name[:2].lower()}"


def recall_memory() -> tuple[Search, Store]:
    """Search and store over the package's recall index, in memory."""
    index = RecallIndex(":memory:")

    def store(turn_id: str, who: str, text: str, kind: str) -> None:
        at = time.gmtime(1_767_225_600 + 20 * int(turn_id[1:]))
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", at)
        index.add("bench", [Turn(turn_id, who, text, stamp, kind=kind)])

    def search(query: str) -> list[dict[str, Any]]:
        return [
            {"id": h.turn_id, "kind": h.kind, "speaker": h.speaker, "at": h.at, "text": h.text}
            for h in index.search("bench", query, limit=2 * RESULTS)
        ]

    return search, store
