"""What shows an assistant's life to somebody reads it through the read gate alone."""

import ast
import unittest
from pathlib import Path

import evennia_ai

PACKAGE = Path(evennia_ai.__file__).parent
# What shows it: to people, to the model.
SHOWING = ("commands", "web", "staff", "turns", "llm_interaction", "features")
# Methods that hand out content without asking who looks, by the attribute that holds the object.
READS = {
    "history": "messages by_ids around segment segments summaries summary below raw_back archived",
    "journal": "recent stretch all get oldest",
    "entities": "profiles get archived archived_profiles profiles_for",
    "ledger": "entries closed everything get",
    "memory": "search",
    "prompts": "events newest",
}
ALLOWED = {
    "staff/cards.py": "whether there is a history: old talk goes into none",
    "staff/status.py": "counts",
    "staff/acts.py": "ids of summaries, to have them made again",
    "turns/agent_loop.py": "the request of the turn itself",
    "turns/assistant.py": "whether a line was answered, and in which language somebody spoke",
}


def reads(path):
    """Where a module reads content without the gate, as ``line: object.method``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and "visible" in {name.name for name in node.names}:
            yield f"{node.lineno}: imports visible"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute | ast.Name):
            holder = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
            if node.attr in READS.get(holder, "").split():
                yield f"{node.lineno}: {holder}.{node.attr}"


class TestReadGate(unittest.TestCase):
    def test_nothing_goes_round_it(self):
        """Folders that show content read it through `Seen`, but for the modules named here."""
        around = {}
        for folder in SHOWING:
            for path in sorted((PACKAGE / folder).rglob("*.py")):
                if lines := list(reads(path)):
                    around[path.relative_to(PACKAGE).as_posix()] = lines
        self.assertEqual(around.keys() - ALLOWED.keys(), set(), around)
        self.assertEqual(ALLOWED.keys() - around.keys(), set(), "no longer needed")
