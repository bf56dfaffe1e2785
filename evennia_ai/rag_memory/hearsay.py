"""Who said what a memory tells: without the speaker, hearsay would read like a fact."""

from collections.abc import Iterable
from dataclasses import replace

from evennia_ai.protocol import Assistant
from evennia_ai.recall.values import Hit

# Kinds of hits that are notes of the assistant on what people said.
NOTES = ("journal", "memory")
MOST_TELLERS = 2


def tellers(script: Assistant, ids: Iterable[str]) -> list[str]:
    """Names of the people, each once, who said these messages; other ids are left out."""
    said = script.history.by_ids(list(ids))
    return list(dict.fromkeys(m.speaker_name for m in said if m.role == "user" and m.speaker_name))


def attributed(script: Assistant, hit: Hit) -> Hit:
    """A hit with who said it (``Bram said``), if it is a note that does not begin with the name."""
    entry = script.journal.get(hit.turn_id) if hit.kind in NOTES and not hit.speaker else None
    if entry is None:
        return hit
    names = tellers(script, entry.source_message_ids)
    if not names or len(names) > MOST_TELLERS or hit.text.startswith(tuple(names)):
        return hit
    return replace(hit, speaker=f"{' and '.join(names)} said")
