"""What work costs by the size of the past: rows, bytes and calls are counted, not seconds.

Each row of `COSTS` makes a past of a size and does one thing. Whatever the size, it reads and
writes the same.
"""

import pickle
import unittest
from collections import Counter
from dataclasses import replace
from functools import partial

from twisted.internet.defer import maybeDeferred

from evennia_ai.features.bonds import note_event
from evennia_ai.history.archive import SEGMENT_MESSAGES, SUMMARIES, Segment, SummaryRecord
from evennia_ai.history.audience import PUBLIC, Views, private
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.budget import Room
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import KEEP_DAYS, JournalHandler
from evennia_ai.rag_memory.ledger import PROPOSED, WITHDRAWN, LedgerHandler
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.values import Hit
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.plan import MANUAL, plan_compaction
from evennia_ai.sleep.cycle import SLEEP_STEPS
from tests.fake import FakeAssistant, MemoryStore
from tests.growth import steps
from tests.memory_assistant import MemoryWorld, MemoryWorldTest
from tests.waiting import wait_for

SIZES = (100, 400, 1_600)
# Pages are fuller or emptier by chance of the size.
MOST_TIMES, GRACE = 1.5, 200
# The steps of a night that look at memories.
NIGHT = ("memory_links", "entity_consolidation", "orphaned_links", "episodic_prune")


class CountingStore(MemoryStore):
    """A store that counts the values and bytes read and written, and the keys listed."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def get(self, key, category=None, default=None):
        value = super().get(key, category, default)
        self._count("read", value)
        return value

    def set(self, key, value, category=None):
        self._count("written", value)
        super().set(key, value, category)

    def delete(self, key, category=None):
        self.counts["rows deleted"] += 1
        super().delete(key, category)

    def _count(self, how, value):
        self.counts[f"rows {how}"] += 1
        self.counts[f"bytes {how}"] += len(pickle.dumps(value))


def said(n, audience=PUBLIC):
    text = f"line {n:06d} of a long evening"
    return Message("user", text, speaker=Speaker("Alice", "o1.a"), audience=audience, channel="say")


def talk(size):
    """A live history that is not compacted; returns its store and handler."""
    store = CountingStore()
    history = HistoryHandler(store, lambda: len)
    history.append(said(n) for n in range(size))
    history.replace(history.messages())
    return store, history


def hear(size):
    store, history = talk(size)
    return store, lambda: [history.append([said(n)]) for n in range(48)]


def hear_after_a_start(size):
    """Lines that are heard where older pages were loaded by another handler."""
    store, history = talk(size)
    history = HistoryHandler(store, lambda: len)
    history.messages()
    return store, lambda: [history.append([said(n)]) for n in range(48)]


def change_a_line(size):
    """Of the live history one old line changes, as when it is masked or forgotten."""
    store, history = talk(size)
    old, *rest = history.messages()
    return store, lambda: history.replace([replace(old, content="Changed."), *rest])


def archive(size):
    """An archive of segments of 40 messages."""
    store = CountingStore()
    history = HistoryHandler(store, lambda: len)
    ids = []
    for start in range(0, size, 40):
        messages = [said(n).completed(len, 0.0, n) for n in range(start, start + 40)]
        key, ids = f"s{start:06d}", [message.id for message in messages]
        history.archive(Segment.sealed(key, key, messages))
        history.save_summary(
            SummaryRecord(
                id=key,
                tier="recent",
                created_at="",
                audience=PUBLIC,
                text="Much was said.",
                source_ids=tuple(ids),
                segments={key: 40},
            )
        )
    history.by_ids(ids)
    return store, history, ids


def look_into_the_archive(size):
    store, history, ids = archive(size)
    return store, lambda: history.by_ids(ids[:3])


def bury(size):
    """Tombstones for a few messages, beside those of many."""
    store = CountingStore()
    history = HistoryHandler(store, lambda: len)
    for start in range(0, size, 40):
        history.add_tombstones([f"m{n}" for n in range(start, start + 40)], "then")
    return store, lambda: history.add_tombstones(["a", "b"], "now")


def observation(size):
    """One more observation of one of many people."""
    store = CountingStore()
    entities = EntityHandler(store)
    for n in range(size):
        person = new_profile(f"o{n}", f"Guest {n}", 0.0)
        entities.put({person.id: observe(person, f"Guest {n} likes cider.", 0.0, "m1")})

    def note():
        known = entities.get("o7")
        met = entities.met(None, "Guest 7", 0.0, (), PUBLIC)
        assert met == known
        entities.put({"o7": observe(known, "Guest 7 likes rum.", 1.0, "m2")})

    return store, note


def journal_entry(size):
    """One more entry of the journal, and one that is looked up."""
    store = CountingStore()
    journal = JournalHandler(store)
    ids = [journal.add(f"fact {n}").id for n in range(size)]
    journal.get(ids[7])
    return store, lambda: (journal.add("one more"), journal.get(ids[7]))


def night(size):
    """The memory steps of a night after an evening of three entries, with an old journal."""
    world = MemoryWorld()
    store = CountingStore()
    world.body.journal = JournalHandler(store, world.clock.seconds)
    for n in range(size):
        world.body.journal.add(f"fact {n}", importance=9)
    steps = [s for s in SLEEP_STEPS if s.name in NIGHT]
    run = [lambda s=s: wait_for(maybeDeferred(s.run, world.script, world.body)) for s in steps]
    for _ in range(2):
        for each in run:
            each()
        world.later((KEEP_DAYS + 1) * 86_400)
    for n in range(3):
        world.body.journal.add(f"new fact {n}")
    return store, lambda: [each() for each in run]


def queued_line(size):
    """One more line that is heard while many wait."""
    script = MemoryWorld().script
    store = script.state.store = CountingStore()
    heard = [replace(said(n), id=f"m{n:06d}") for n in range(size)]
    script.state.save_queue(heard)
    more = replace(said(size), id=f"m{size:06d}")
    return store, lambda: script.state.save_queue([*heard, more])


def note(size):
    """A note of the ledger, where many were withdrawn."""
    store = CountingStore()
    ledger = LedgerHandler(store)
    for n in range(size):
        old = ledger.add(f"Guest {n} likes cider.", Speaker("Alice", "o1.a"), state=PROPOSED)
        ledger.change(old.id, WITHDRAWN, Speaker("Alice", "o1.a"))
    ledger.entries()
    return store, lambda: ledger.add("Nobody likes rum.", Speaker("Bram", "o2"), state=PROPOSED)


def feeling(size):
    """An event of one bond beside many."""
    store = CountingStore()
    aria = FakeAssistant(store=store)
    for n in range(size):
        note_event(aria, Speaker(f"Guest {n}", f"o{n}"), 5, "was kind")
    return store, lambda: note_event(aria, Speaker("Guest 7", "o7"), 5, "was kind again")


def read_in_quarantine(size):
    """What a prompt and a search read of memory while somebody is in quarantine."""
    world, store = MemoryWorld(), CountingStore()
    script, history = world.script, world.script.history
    lines = [said(n).completed(len, 0.0, n) for n in range(size)]
    history.append(lines)
    for n, line in enumerate(lines):
        guest = script.entities.get(f"o{n % 20}") or new_profile(f"o{n % 20}", "Guest", 0.0)
        script.entities.put({guest.id: observe(guest, line.content, 0.0, line.id)})
        script.ledger.add(line.content, Speaker("Guest", f"p{n}"), state=PROPOSED, source=line.id)
    hits = [Hit(line.id, 1.0, "", line.content, None) for line in lines]
    script.memory.quarantine.add({"o2.b": "Bram"})
    by_ids = history.by_ids

    def counted(ids):
        store.counts["looks into the history"] += 1
        return by_ids(ids)

    history.by_ids = counted
    seen, quarantine = script.seen(PUBLIC, trusted=True), script.memory.quarantine
    return store, lambda: (seen.profiles(), seen.profile("o7"), seen.notes(), quarantine.hits(hits))


COSTS = {
    "a heard line": hear,
    "a heard line after a start": hear_after_a_start,
    "a changed old line": change_a_line,
    "a look into the archive": look_into_the_archive,
    "tombstones": bury,
    "an observation": observation,
    "a journal entry": journal_entry,
    "a night": night,
    "a queued line": queued_line,
    "a note of the ledger": note,
    "a feeling": feeling,
    "memory with somebody in quarantine": read_in_quarantine,
}


class TestCosts(unittest.TestCase):
    def test_nothing_costs_more_with_the_past(self):
        for name, make in COSTS.items():
            with self.subTest(name):
                costs = []
                for size in SIZES:
                    store, work = make(size)
                    store.counts.clear()
                    work()
                    costs.append(dict(store.counts))
                first, *later = costs
                for cost in later:
                    for kind, count in cost.items():
                        most = MOST_TIMES * first.get(kind, 0) + (GRACE if "bytes" in kind else 1)
                        self.assertLessEqual(count, most, (kind, costs))

    def test_a_search_of_profiles(self):
        """It looks at those that it names, however many others there are."""
        counts = []
        for size in SIZES:
            entities = EntityHandler(MemoryStore())
            for n in range(size):
                person = new_profile(f"o{n}", f"Guest {n}", 0.0)
                entities.put({person.id: observe(person, f"She likes cider {n}.", 0.0, "m1")})
            baker = observe(new_profile("b", "Elin", 0.0), "Elin bakes bread.", 0.0, "m1")
            entities.put({"b": baker})
            self.assertEqual(entities.called("What does Elin bake?"), [baker])
            counts.append(steps(entities.called, "What does Elin bake?"))
        self.assertLessEqual(max(counts), counts[0] + 3)

    def test_a_plan(self):
        """It takes about as long for each line, however many circles there are."""
        costs = []
        for size in SIZES:
            circles = [private([f"o{n}", f"o{n + 1}"]) for n in range(size)]
            lines = [said(n, circle) for n, circle in enumerate(circles)] * 2
            lines = [line.completed(len, 0.0, n) for n, line in enumerate(lines)]
            room, window = Room(limit=200, fixed=0, reserved=0), 2 * size - 1
            plan = plan_compaction(lines, window, room, archive_before="9999")
            self.assertGreater(len(plan.leaving), size // 2)
            work = partial(plan_compaction, lines, window, room, 0)
            costs.append(steps(lambda _, work=work: work("9999"), "") / size)
        self.assertLessEqual(max(costs), 2 * costs[0])

    def test_a_line_in_a_circle(self):
        """To know the widest view takes as long however many circles of others there are."""
        counts = []
        for size in SIZES:
            views = Views({private([f"o{n}", f"o{n + 1}"]): n for n in range(size)})
            views.add(private(["o1", "o2"]), 1)  # reads the ids of its people
            counts.append(steps(lambda _, v=views: v.add(private(["o1", "o2"]), 7), ""))
        self.assertLessEqual(max(counts), counts[0] + 3)

    def test_a_heard_line_among_circles(self):
        """To store one, and know the widest view, takes as long whatever others whispered."""
        counts = []
        for size in SIZES:
            history = HistoryHandler(MemoryStore(), lambda: len)
            history.append(said(n, private([f"o{n}", f"o{n + 1}"])) for n in range(size))
            history.replace(history.messages())  # its pages are full
            history.append([said(size, private(["o1", "o2"]))])
            line = said(size + 1, private(["o1", "o2"]))

            def hear(_, history=history, line=line):
                history.append([line])
                history.widest_tokens()

            counts.append(steps(hear, ""))
        self.assertLessEqual(max(counts), counts[0] + 3)


class TestErasing(MemoryWorldTest):
    """Files are rewritten where somebody is forgotten, and not for each text that changes."""

    def test_the_recall_index(self):
        """What is replaced or removed is marked; erasing rewrites the file, once."""
        for size in SIZES:
            index, done = RecallIndex(":memory:"), list[str]()
            index.add("aria", [Turn(f"t{n}", "Bob", f"line {n}", 60.0 * n) for n in range(size)])
            index._db.set_trace_callback(done.append)
            for n in range(3):
                index.add("aria", [Turn(f"t{n}", "Bob", f"another line {n}", 60.0 * n)])
            index.remove("aria", ["t7"])
            rewriting = ("VACUUM", "INSERT INTO said (said) VALUES ('optimize')")
            self.assertEqual([done.count(each) for each in rewriting], [0, 0])
            index.erase()
            index.erase()
            self.assertEqual([done.count(each) for each in rewriting], [1, 1])
            index.close()

    def test_what_is_taken_back(self):
        """It leaves the index; no file is rewritten for it."""
        erased = []
        self.world.index.erase = lambda: erased.append(True)
        entry = self.world.body.journal.add("Alice likes cider.")
        wait_for(self.script.memory.remember_entry(entry))
        self.assertIn(entry.id, self.world.indexed())
        wait_for(self.script.memory.forget_entry(entry.id))
        self.assertNotIn(entry.id, self.world.indexed())
        self.assertEqual(erased, [])


class TestCompactions(MemoryWorldTest):
    """What a compaction writes, and in pieces of which size."""

    def test_a_commit(self):
        """It writes the summaries that it makes, and none of those before it."""
        store, moved = self.world.storage.script, Counter()
        move_values = store.move

        def count(keys, category, to):
            moved[to] += len([*keys])
            move_values(keys, category, to)

        store.move = count
        for number in range(1, 26):
            moved.clear()
            self.fill(10)
            self.compact()
            made = 1 if number == 1 else 2 + (number % 8 == 1)  # a recent and a long one, a node
            self.assertEqual(moved[SUMMARIES], made, number)
        self.assert_proven()

    def test_a_commit_is_small(self):
        """Of what leaves it writes the ids, twice: segments and summaries are drafts before it."""
        costs, id_bytes = [], 24
        for lines in (200, 800, 2_000):
            world, steps, written = MemoryWorld(), list[str](), Counter()
            world.model.default = "They talked."
            world.script.at_commit_step = steps.append
            for store in (world.storage.script, world.storage.body):

                def write(key, value, category=None, inner=store.set, cost=written, at=steps):
                    if "archive" in at:
                        cost["rows"] += 1
                        cost["bytes"] += len(pickle.dumps(value))
                    inner(key, value, category)

                store.set = write
            world.script.history.append(said(n) for n in range(lines))
            outcome = wait_for(Compaction(world.script, MANUAL).run())
            left = outcome.record.report.compacted_messages
            self.assertEqual(steps.count("segment"), -(-left // SEGMENT_MESSAGES))
            costs.append((left, written["rows"], written["bytes"]))
        (fewest, rows, least), *others = costs
        for left, count, size in others:
            self.assertEqual(count, rows)
            self.assertLess(size - least, 2 * id_bytes * (left - fewest))

    def test_segments(self):
        """Many messages are archived in several, and found, proven and taken back as one."""
        history = self.script.history
        messages = self.fill(2 * SEGMENT_MESSAGES + 54)
        result = self.compact()
        segments = [segment.messages for segment in history.segments()]
        self.assertEqual(list(map(len, segments)), [SEGMENT_MESSAGES, SEGMENT_MESSAGES, 50])
        self.assertEqual(sum(segments, ()), messages[:-4])
        self.assertEqual([*history.below(result["summary_id"])], list(messages[:-4]))
        beside = history.around(messages[SEGMENT_MESSAGES].id)
        self.assertEqual(beside, list(messages[50:151]))
        shown, older = history.raw_back(PUBLIC, 1)
        self.assertEqual((shown, older), (list(segments[-1]), 2 * SEGMENT_MESSAGES))
        self.assert_proven()
        self.roll_back()
        self.assertEqual(history.messages(), messages)
        self.assert_proven()
