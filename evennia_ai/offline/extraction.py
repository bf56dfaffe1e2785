"""Before a compaction: write down what was told and is not yet in the journal."""

import re
from collections.abc import Set

from evennia_ai.offline.acts import journal_text, read_acts
from evennia_ai.offline.reply import Reply, ToolCall
from evennia_ai.offline.transcript import Talk

MAX_CALLS = 16
IMPORTANCE = 5


def is_extraction(system: str, tools: Set[str]) -> bool:
    """Whether a request asks for facts to be saved before a compaction."""
    asked = re.search(r"pre[-_ ]compaction", system, re.IGNORECASE)
    return bool(asked) and "add_journal_entry" in tools


def extract(talk: Talk, tools: Set[str]) -> Reply:
    """Journal up to `MAX_CALLS` told facts that are not journaled yet; none left: `noop`."""
    kept = _journaled(talk)
    calls: list[ToolCall] = []
    for content in _told_facts(talk):
        key = _key(content)
        if key not in kept and len(calls) < MAX_CALLS:
            kept.add(key)
            calls.append(
                ToolCall("add_journal_entry", {"content": content, "importance": IMPORTANCE})
            )
    if calls:
        return Reply(None, tuple(calls))
    if "noop" in tools:
        return Reply(None, (ToolCall("noop", {}),))
    return Reply("All that was told is written down.")


def _told_facts(talk: Talk) -> list[str]:
    return [
        journal_text(act)
        for line in talk.heard
        if line.who and line.who != talk.me and line.verb != "poses"
        for act in read_acts(line, talk.me)
        if act.kind in ("fact", "remember") and act.text.strip()
    ]


def _journaled(talk: Talk) -> set[str]:
    calls = (*talk.before, *talk.done)
    made = [str(c.arguments.get("content")) for c in calls if c.name == "add_journal_entry"]
    return {_key(content) for content in made}


def _key(content: str) -> str:
    return re.sub(r"\W+", " ", content).strip().lower()
