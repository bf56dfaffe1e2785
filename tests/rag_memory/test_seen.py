"""The read gate: whoever looks, and through whatever way, sees what they may know, and no more."""

import re
import unittest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF, private, visible
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.entities import Profile, observe
from evennia_ai.rag_memory.ledger import APPROVED
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from tests.memory_assistant import MemoryWorld
from tests.models import ScriptedModel
from tests.waiting import wait_for

PEOPLE = {"a": "Alice", "b": "Bram", "c": "Cora"}
AUDIENCES = [PUBLIC, STAFF, *(private(each) for each in ("a", "b", "ab", "bc", "abc"))]
# Who wrote each piece, whom it is for, and whether the piece came early enough to be archived.
PIECES = st.lists(
    st.tuples(st.sampled_from(sorted(PEOPLE)), st.sampled_from(AUDIENCES)), min_size=6, max_size=30
)


class Life:
    """An assistant whose every message, entry, note and observation names its own audience."""

    def __init__(self, pieces):
        self.world = MemoryWorld(
            ScriptedModel(default="They spoke of the harvest."), compact_preserve_window=2
        )
        script, body = self.world.script, self.world.body
        script.history.append(
            Message(
                "user", words(n, audience), speaker=Speaker(PEOPLE[who], who), audience=audience
            )
            for n, (who, audience) in enumerate(pieces)
        )
        stored = script.history.messages()
        for n, (message, (who, audience)) in enumerate(zip(stored, pieces, strict=True)):
            text, source = words(n, audience), message.id
            body.journal.add(text, audience=audience, source_message_ids=[source])
            script.ledger.add(
                text, Speaker(PEOPLE[who], who), state=APPROVED, audience=audience, source=source
            )
            profile = body.entities.get(f"p{n % 3}") or Profile(f"p{n % 3}", f"Place {n % 3}")
            profile = observe(profile, text, script.now(), [source], audience)
            body.entities.put({profile.id: profile})
        wait_for(compact_conversation_history(script, body, force=True))

    def shown(self, viewer, trusted=False):
        """All texts that a viewer gets, by every way there is."""
        script = self.world.script
        seen = script.seen(viewer, trusted)
        ids = [message.id for message in script.history.messages()]
        ids += [m.id for s in script.history.segments() for m in s.messages]
        yield from (m.content for m in (*seen.messages(), *seen.newest(), *seen.by_ids(ids)))
        yield from (m.content for each in ids for m in seen.around(each))
        yield from (m.content for stretch in seen.stretches() for m in stretch)
        yield from (m.content for m in seen.as_if_never_compacted((), 10**6)[0])
        for each in script.history.summary_ids():
            yield from (m.content for m in seen.below(each))
        journal = script.journal
        yield from (e.content for e in seen.stretch(0, journal.count()))
        yield from (e.content for each in journal.all() if (e := seen.entry(each.id)))
        for profile in (*seen.profiles(), *filter(None, map(seen.profile, ("p0", "p1", "p2")))):
            yield from (item.text for item in (*profile.observations, *seen.older(profile)))
        yield from (item.text for page in seen.older_profiles() for item in page.observations)
        yield from (n.text for n in (*seen.pinned(), *seen.notes(), *seen.closed_notes()))
        query = Query("secret plan", limit=200, audience=STAFF, observations=True)
        yield from (hit.text for hit in wait_for(seen.search(query)))


def words(number, audience):
    """A text with its audience in it."""
    return f"secret plan {number} is known to <{audience}>."


def audiences(texts):
    return {part.split(">")[0] for text in texts for part in text.split("<")[1:]}


class TestSeen(unittest.TestCase):
    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(PIECES, st.sampled_from([*AUDIENCES, "nonsense", ""]))
    def test_nothing_else(self, pieces, viewer):
        """Each way shows a viewer what they may know, and no more; an odd viewer is the public."""
        life = Life(pieces)
        may = {a for _, a in pieces if visible(a, viewer if viewer in AUDIENCES else PUBLIC)}
        self.assertEqual(audiences(life.shown(viewer)), may)

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(PIECES, st.sampled_from(AUDIENCES))
    def test_distrusted(self, pieces, viewer):
        """In turns, nothing is shown of what somebody in quarantine said, nor what rests on it."""
        life = Life(pieces)
        life.world.script.memory.quarantine.add({"a": "Alice"})
        of_others = {n for n, (who, a) in enumerate(pieces) if who != "a" and visible(a, viewer)}
        shown = re.findall(r"plan (\d+)", " ".join(life.shown(viewer, trusted=True)))
        self.assertEqual(set(map(int, shown)), of_others)

    def test_summaries(self):
        """A summary and its messages are for those who may know them."""
        life = Life([("a", private("a"))] * 20 + [("b", PUBLIC)] * 20)
        script = life.world.script
        records = {record.audience: record for record in script.history.summaries()}
        self.assertEqual(records.keys(), {private("a"), PUBLIC})
        seen, of_alice = script.seen(PUBLIC), records[private("a")].id
        self.assertEqual([r.audience for r in seen.summaries()], [PUBLIC])
        self.assertIsNone(seen.summary(of_alice))
        self.assertEqual(len(script.seen(private("a")).summaries()), 2)
        script.memory.quarantine.add({"b": "Bram"})
        self.assertEqual(script.seen(PUBLIC, trusted=True).summaries(), [])
