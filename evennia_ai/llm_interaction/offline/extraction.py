"""Before a compaction: write down what was told and is not yet in the journal."""

import re
from collections.abc import Set

from evennia_ai.language.words import words
from evennia_ai.llm_interaction.offline.acts import journal_text, read_acts
from evennia_ai.llm_interaction.offline.reply import Reply, ToolCall, line_for
from evennia_ai.llm_interaction.offline.transcript import Talk

MAX_CALLS = 16
IMPORTANCE = 5


def is_extraction(system: str, tools: Set[str]) -> bool:
    """Whether a request asks for facts to be saved before a compaction."""
    return "add_journal_entry" in tools and bool(re.search(r"(?i)pre[-_ ]compaction", system))


def extract(talk: Talk, tools: Set[str]) -> Reply:
    """Journal up to `MAX_CALLS` told facts that are not journaled yet; none left: `noop`."""
    calls = (call for call in (*talk.before, *talk.done) if call.name == "add_journal_entry")
    journaled = {tuple(words(str(call.arguments.get("content")))) for call in calls}
    entries: dict[tuple[str, ...], str] = {}
    told = (line for line in talk.heard if line.who not in ("", talk.me) and line.verb != "poses")
    for act in (act for line in told for act in read_acts(line, talk.me)):
        if act.kind in ("fact", "remember") and (key := tuple(words(journal_text(act)))):
            entries.setdefault(key, journal_text(act))
    new = [text for key, text in entries.items() if key not in journaled][:MAX_CALLS]
    if not new and "noop" not in tools:
        return Reply(line_for("extracted"))
    arguments = ({"content": text, "importance": IMPORTANCE} for text in new)
    writing = tuple(ToolCall("add_journal_entry", each) for each in arguments)
    return Reply(None, writing or (ToolCall("noop"),))
