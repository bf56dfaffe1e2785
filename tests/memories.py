"""The recall index and semantic memory in dicts, found by shared words."""

from dataclasses import replace

from twisted.internet.defer import succeed

from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.recall.values import Hit


def shared_words(turns, query, audience):
    """Turns that share words with a query, scored by how many, as far as an audience may see."""
    words, hits = set(query.lower().split()), []
    for turn in turns:
        score, owner = len(words & set(turn.text.lower().split())), turn.audience or PUBLIC
        if score and visible(owner, audience or PUBLIC):
            facts = (turn.id, float(score), turn.speaker, turn.text, str(turn.at), turn.kind)
            hits.append(Hit(*facts, audience=owner))
    return hits


class MemorySemanticStore:
    """Semantic memory in a dict, found by shared words; with the port of the real store."""

    def __init__(self):
        self.memories = {}

    def add(self, scope, turns):
        self.memories.setdefault(scope, {}).update({turn.id: turn for turn in turns})
        return succeed(None)

    def search(self, scope, query, limit=10, audience=None):
        hits = shared_words(self.memories.get(scope, {}).values(), query, audience)
        best = sorted(hits, key=lambda hit: -hit.score)[:limit]
        return succeed([replace(hit, speaker="", kind="memory") for hit in best])

    def ids(self, scope):
        return succeed(set(self.memories.get(scope, {})))

    def delete(self, scope, ids):
        held = self.memories.get(scope, {})
        return succeed(sum(held.pop(each, None) is not None for each in ids))

    def status(self):
        return succeed({"ok": True, "detail": "in memory", "path": ""})

    def close(self):
        return succeed(None)


class MemoryIndex:
    """A recall index in a dict; it finds what shares a word with the query."""

    damaged = False

    def __init__(self):
        self.turns, self._scopes = {}, {}

    def add(self, scope, turns):
        new = {turn.id: turn for turn in turns}
        self.turns.update(new)
        self._scopes.update(dict.fromkeys(new, scope))
        return len(new)

    def remove(self, scope, ids):
        return sum(self.turns.pop(each, None) is not None for each in ids)

    def erase(self):
        """Nothing of what was removed is kept anyway."""

    def clear(self, scope):
        return self.remove(scope, [each for each in self.turns if self._scopes[each] == scope])

    def count(self, scope, ids=None):
        wanted = set(self.turns if ids is None else ids)
        return sum(each in wanted and self._scopes[each] == scope for each in self.turns)

    def search(
        self,
        scope,
        query,
        limit=10,
        audience=None,
        tools=False,
    ):
        turns = [turn for turn in self.turns.values() if (turn.kind == "tool") == tools]
        return tuple(shared_words(turns, query, audience)[-limit:])

    def close(self):
        """Nothing to release."""
