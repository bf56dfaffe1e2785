"""A memory back end in sixty lines: a dict, searched by the words that a text shares."""

from twisted.internet.defer import fail, succeed

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer, visible
from evennia_ai.language.words import telling_words
from evennia_ai.recall.values import Hit


class TinyBackend:
    """Turns by scope and id. The folder is not used: what is stored is gone with the object."""

    def __init__(self):
        self.turns = {}

    @classmethod
    def from_settings(cls, directory, setting):
        """An empty one."""
        return cls()

    def add(self, scope, turns):
        """Store turns in place of those with the same ids."""
        if any(not turn.id or not turn.text for turn in turns):
            return fail(StoreError("A memory needs an id and a text."))
        self.turns.setdefault(scope, {}).update({turn.id: turn for turn in turns})
        return succeed(None)

    def search(self, scope, query, limit=10, audience=None):
        """Memories with a telling word of the query, those with most first."""
        wanted, hits = telling_words(query), []
        for turn in self.turns.get(scope, {}).values():
            shared, owner = len(wanted & telling_words(turn.text)), normalised(turn.audience)
            if shared and visible(owner, viewer(audience)):
                score = shared / len(wanted)
                said = (turn.id, score, turn.speaker, turn.text, turn.at)
                hits.append(Hit(*said, kind="memory", audience=owner))
        return succeed(sorted(hits, key=lambda hit: -hit.score)[: max(0, limit)])

    def ids(self, scope):
        """The ids of a scope's turns."""
        return succeed(set(self.turns.get(scope, {})))

    def delete(self, scope, ids):
        """Delete turns of the scope; fires with how many there were."""
        held = self.turns.get(scope, {})
        return succeed(sum(held.pop(each, None) is not None for each in ids))

    def status(self):
        """Always well."""
        return succeed({"ok": True, "detail": "in memory", "path": ""})

    def close(self):
        """Nothing to release."""
        return succeed(None)
