"""A memory back end in eighty lines: a dict, searched by the words that a text shares."""

from twisted.internet.defer import fail, succeed

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer, visible
from evennia_ai.language.words import telling_words


class TinyBackend:
    """Memories by their ids. The folder is not used: what is stored is gone with the object."""

    def __init__(self):
        self.memories = {}

    @classmethod
    def from_settings(cls, directory, setting, worker=None):
        """An empty one."""
        return cls()

    def add(self, scope, items):
        """Store items, each source once."""
        if any(not item["source_id"] or not item["text"] for item in items):
            return fail(StoreError("A memory needs a `source_id` and a `text`."))
        return succeed([self._add(scope, item) for item in items])

    def _add(self, scope, item):
        memory_id = f"{scope}/{item['source_id']}"
        metadata = {"type": "memory", **item["metadata"], "source_id": item["source_id"]}
        metadata["audience"] = normalised(metadata.get("audience"))
        made = {"id": memory_id, "text": item["text"], "metadata": metadata, "scope": scope}
        self.memories.setdefault(memory_id, made)
        return memory_id

    def extraction_prompt(self, scope, item):
        """The text itself; None if it is stored."""
        known = f"{scope}/{item['source_id']}" in self.memories
        return succeed(None if known else [{"role": "user", "content": item["text"]}])

    def add_extracted(self, scope, item, answer):
        """The answer as the text of one memory, the item's where there is no answer."""
        return succeed(self._add(scope, {**item, "text": answer or item["text"]}))

    def search(self, scope, query, limit=10, audience=None):
        """Memories with a telling word of the query, those with most first."""
        wanted, hits = telling_words(query), []
        for memory in self._of(scope):
            shared = len(wanted & telling_words(memory["text"]))
            if shared and visible(memory["metadata"]["audience"], viewer(audience)):
                hits.append({**memory, "score": shared / len(wanted)})
        return succeed(sorted(hits, key=lambda hit: -hit["score"])[: max(0, limit)])

    def _of(self, scope):
        return [memory for memory in self.memories.values() if memory["scope"] == scope]

    def ids(self, scope):
        """The ids of a scope's memories."""
        return succeed({memory["id"] for memory in self._of(scope)})

    def sources(self, scope):
        """Memory ids by source."""
        return succeed({m["metadata"]["source_id"]: m["id"] for m in self._of(scope)})

    def source_of(self, scope, memory_id):
        """The source of one memory, or None."""
        found = [m for m in self._of(scope) if m["id"] == memory_id]
        return succeed(found[0]["metadata"]["source_id"] if found else None)

    def delete(self, scope, memory_ids):
        """Delete memories of the scope; fires with how many there were."""
        gone = {memory["id"] for memory in self._of(scope)} & set(memory_ids)
        return succeed(len([self.memories.pop(memory_id) for memory_id in gone]))

    def status(self):
        """Always well."""
        count = len(self.memories)
        return succeed({"ok": True, "detail": f"{count} memories.", "count": count, "path": ""})

    def close(self):
        """Nothing to release."""
        return succeed(None)
