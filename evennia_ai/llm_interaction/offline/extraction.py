"""Before a compaction: write down what was told and is not yet in the journal."""

import re
from collections.abc import Set

from evennia_ai.language.words import words
from evennia_ai.llm_interaction.offline.acts import journal_text, read_acts
from evennia_ai.llm_interaction.offline.reply import Reply, ToolCall
from evennia_ai.llm_interaction.offline.transcript import Talk

MAX_CALLS = 16
IMPORTANCE = 5


def is_extraction(system: str, tools: Set[str]) -> bool:
    """Whether a request asks for facts to be saved before a compaction."""
    asked = re.search(r"pre[-_ ]compaction", system, re.IGNORECASE)
    return bool(asked) and "add_journal_entry" in tools


def extract(talk: Talk, tools: Set[str]) -> Reply:
    """Journal up to `MAX_CALLS` told facts that are not journaled yet; none left: `noop`."""
    made = (call for call in (*talk.before, *talk.done) if call.name == "add_journal_entry")
    kept = {tuple(words(str(call.arguments.get("content")))) for call in made}
    calls: list[ToolCall] = []
    told = (line for line in talk.heard if line.who not in ("", talk.me) and line.verb != "poses")
    for act in (act for line in told for act in read_acts(line, talk.me)):
        content = journal_text(act)
        key = tuple(words(content))
        if act.kind in ("fact", "remember") and key and key not in kept and len(calls) < MAX_CALLS:
            kept.add(key)
            entry = {"content": content, "importance": IMPORTANCE}
            calls.append(ToolCall("add_journal_entry", entry))
    if calls or "noop" in tools:
        return Reply(None, tuple(calls) or (ToolCall("noop"),))
    return Reply("All that was told is written down.")
