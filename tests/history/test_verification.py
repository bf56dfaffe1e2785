"""The proof that nothing was lost holds for whole histories and fails for damaged ones."""

import copy
import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history import verification
from evennia_ai.history.messages import Message
from evennia_ai.history.records import Segment, SummaryRecord
from evennia_ai.history.verification import EMPTY_DIGEST, Evidence, digest_add
from tests.strategies import CONTENTS, MANY, heard, marker


class World:
    """A plain account of a history that is spoken in, compacted, rolled back and forgotten in.

    Compactions go by either strategy in turn: a single summary that takes up the one before, or
    a recent one that waterfalls into a long-term one.
    """

    def __init__(self):
        self.live, self.segments, self.summaries = [], {}, {}
        self.restored, self.tombstones = set(), set()
        self.count, self.digest, self.made, self.undo = 0, EMPTY_DIGEST, 0, []

    def new_id(self, prefix):
        self.made += 1
        return f"{prefix}{self.made}"

    def say(self, low):
        message = heard(CONTENTS[low % len(CONTENTS)], id=self.new_id("m"), metadata={})
        self.live.append(message)
        self.count, self.digest = self.count + 1, digest_add(self.digest, [message.id])

    def raw(self):
        return [message for message in self.live if not message.metadata.get("type")]

    def compact(self, low):
        leaving = self.raw()[: 1 + low % 5]
        if not leaving:
            return
        before = {key: dict(record) for key, record in self.summaries.items()}
        markers = [message for message in self.live if message.metadata.get("type")]
        recent, segment = self.new_id("s"), self.new_id("g")
        self.undo.append((segment, leaving, markers, before))
        old = [key for key, record in self.summaries.items() if record["status"] == "live"]
        ids = [message.id for message in leaving]
        self.segments[segment] = Segment.sealed(segment, recent, leaving).to_dict()
        self.add_summary(recent, segment=segment, source_ids=ids)
        shown = [recent]
        if old and low % 2:
            shown.insert(0, self.add_summary(self.new_id("s"), child_ids=old))
        for key in old:
            self.summaries[key].update(status="absorbed", absorbed_by=shown[0])
        rest = [message for message in self.raw() if message.id not in ids]
        made = [replace(marker(summary_id=key), id=self.new_id("m")) for key in shown]
        self.live = made + rest

    def add_summary(self, summary_id, **fields):
        self.summaries[summary_id] = {"id": summary_id, "status": "live", **fields}
        return summary_id

    def roll_back(self, low):
        if not self.undo:
            return
        segment, leaving, markers, before = self.undo.pop()
        self.restored.add(segment)
        kept = [message for message in leaving if message.id not in self.tombstones]
        self.live = [*markers, *kept, *self.raw()]
        for key, record in self.summaries.items():
            withdrawn = {**record, "status": "rolled back", "absorbed_by": None}
            self.summaries[key] = before.get(key, withdrawn)

    def forget(self, low):
        archived = {m["id"] for s in self.segments.values() for m in s["messages"]}
        candidates = sorted({message.id for message in self.raw()} | archived)
        if not candidates:
            return
        gone = candidates[low % len(candidates)]
        self.tombstones.add(gone)
        self.live = [message for message in self.live if message.id != gone]
        for segment in self.segments.values():
            for message in [m for m in segment["messages"] if m["id"] == gone]:
                segment["messages"].remove(message)
                segment.setdefault("tombstones", {})[gone] = "then"
                segment["sha256"] = Segment.from_dict(segment).checksum

    def evidence(self):
        """The stored values: dicts, so that damage can be done to them."""
        return copy.deepcopy(
            Evidence(
                tuple(self.live),
                tuple(self.segments.values()),
                frozenset(self.restored),
                self.summaries,
                frozenset(self.tombstones),
                self.count,
                self.digest,
            )
        )


def verify(stored):
    """The proof of stored values."""
    bare = {"tier": "recent", "created_at": "", "audience": "public", "text": ""}
    summaries = {
        key: SummaryRecord.from_dict({**bare, **raw}) for key, raw in stored.summaries.items()
    }
    segments = tuple(Segment.from_dict(raw) for raw in stored.segments)
    return verification.verify(replace(stored, segments=segments, summaries=summaries))


ACTS = ("say", "say", "say", "say", "say", "compact", "compact", "roll_back", "forget")


def lived(data):
    """The world after a life decoded from bytes; each byte is an act and how it is done."""
    world = World()
    for byte in data:
        getattr(world, ACTS[byte % len(ACTS)])(byte // len(ACTS))
    return world


lives = st.binary(max_size=40).map(lived)
# Lives that have all there is to damage.
FULL = bytes([0, 1, 2, 3] * 3 + [6, 5, 0, 14, 1, 6, 8, 15, 7, 0, 5, 17])
full_lives = st.binary(max_size=20).map(lambda data: lived(FULL + data))


def kinds(evidence):
    return [violation.kind for violation in verify(evidence)]


# --- single corruptions; each changes a deep copy, or gives None where there is nothing to ---


def pick(items, at):
    items = list(items)
    return items[at % len(items)] if items else None


def drop_live(e, at):
    message = pick((m for m in e.live), at)
    return message and replace(e, live=tuple(m for m in e.live if m is not message))


def double_live(e, at):
    message = pick(e.live, at)
    return message and replace(e, live=(*e.live, message))


def revive_archived(e, at):
    message = pick((m for s in e.segments if s["id"] not in e.restored for m in s["messages"]), at)
    return message and replace(e, live=(*e.live, Message.from_dict(message)))


def rename_live(e, at):
    message = pick((m for m in e.live if not m.metadata.get("type")), at)
    return message and replace(
        e, live=tuple(replace(m, id="other") if m is message else m for m in e.live)
    )


def drop_archived(e, at):
    segment = pick((s for s in e.segments if s["messages"]), at)
    return segment and (segment["messages"].pop(at % len(segment["messages"])), e)[1]


def double_archived(e, at):
    segment = pick((s for s in e.segments if s["messages"]), at)
    return segment and (segment["messages"].append(segment["messages"][0]), e)[1]


def move_archived(e, at):
    """With checksums made to fit: only the summaries tell."""
    held = [s for s in e.segments if s["messages"] and s["id"] not in e.restored]
    if len(held) < 2:
        return None
    first, second = held[at % len(held)], held[(at + 1) % len(held)]
    second["messages"].append(first["messages"].pop())
    for segment in (first, second):
        segment["sha256"] = Segment.from_dict(segment).checksum
    return e


def flip_byte(e, at):
    message = pick((m for s in e.segments for m in s["messages"]), at)
    return message and (message.update(content=message["content"] + "x"), e)[1]


def change_checksum(e, at):
    segment = pick(e.segments, at)
    return segment and (segment.update(sha256="0" * 64), e)[1]


def change_grave(e, at):
    segment = pick((s for s in e.segments if s.get("tombstones")), at)
    return segment and (segment.update(tombstones={pick(segment["tombstones"], at): "0"}), e)[1]


def drop_graves(e, at):
    """With the checksum made to fit: only the citations tell."""
    segment = pick((s for s in e.segments if s.get("tombstones")), at)
    if segment:
        del segment["tombstones"]
        segment["sha256"] = Segment.from_dict(segment).checksum
    return segment and e


def drop_segment(e, at):
    segment = pick(e.segments, at)
    return segment and replace(e, segments=tuple(s for s in e.segments if s is not segment))


def double_segment(e, at):
    segment = pick(e.segments, at)
    return segment and replace(e, segments=(*e.segments, segment))


def resurrect(e, at):
    segment = pick(sorted(e.restored), at)
    return segment and replace(e, restored=e.restored - {segment})


def restore(e, at):
    segment = pick((s["id"] for s in e.segments if s["id"] not in e.restored), at)
    return segment and replace(e, restored=e.restored | {segment})


def restore_unknown(e, at):
    return replace(e, restored=e.restored | {"g0"})


def used(e):
    """Summaries something rests on: a segment, a marker or another summary."""
    held = {s["summary_id"] for s in e.segments}
    held |= {m.metadata.get("summary_id") for m in e.live}
    held |= {r.get("absorbed_by") for r in e.summaries.values()}
    return sorted(held - {None})


def drop_record(e, at):
    key = pick(used(e), at)
    return key and replace(e, summaries={k: v for k, v in e.summaries.items() if k != key})


def cut_chain(e, at):
    record = pick((r for r in e.summaries.values() if r.get("absorbed_by")), at)
    return record and (record.update(absorbed_by=None), e)[1]


def tie_ring(e, at):
    record = pick((r for r in e.summaries.values() if r.get("absorbed_by")), at)
    return record and (record.update(absorbed_by=record["id"]), e)[1]


def lose_chain(e, at):
    record = pick((r for r in e.summaries.values() if r.get("absorbed_by")), at)
    return record and (record.update(absorbed_by="s0"), e)[1]


def change_status(e, at):
    record = pick(e.summaries.values(), at)
    if record is None:
        return None
    others = [s for s in ("live", "absorbed", "rolled back", "lost") if s != record["status"]]
    record["status"] = pick(others, at // 7)
    # Of a withdrawn summary without words of its own nothing tells that it was another.
    return e if record.get("segment") or record["status"] != "rolled back" else None


def change_sources(e, at):
    record = pick((r for r in e.summaries.values() if r.get("source_ids")), at)
    return record and (record["source_ids"].append("m0"), e)[1]


def swap_sources(e, at):
    record = pick((r for r in e.summaries.values() if r.get("segment")), at)
    return record and (record.update(segment="g0"), e)[1]


def change_summary_id(e, at):
    segment = pick(e.segments, at)
    return segment and (segment.update(summary_id="s0"), e)[1]


def lose_child(e, at):
    record = pick((r for r in e.summaries.values() if r.get("child_ids")), at)
    return record and (record["child_ids"].append("s0"), e)[1]


def change_marker(e, at):
    message = pick((m for m in e.live if m.metadata.get("type")), at)
    return message and (message.metadata.update(summary_id=pick(("s0", None), at)), e)[1]


def double_marker(e, at):
    message = pick((m for m in e.live if m.metadata.get("type")), at)
    return message and replace(e, live=(*e.live, replace(message, id="m0")))


def drop_tombstone(e, at):
    gone = pick(sorted(e.tombstones), at)
    return gone and replace(e, tombstones=e.tombstones - {gone})


def bury_living(e, at):
    living = pick((m.id for m in e.live if not m.metadata.get("type")), at)
    return living and replace(e, tombstones=e.tombstones | {living})


def bury_unknown(e, at):
    return replace(e, tombstones=e.tombstones | {"m0"})


def miscount(e, at):
    return replace(e, recorded_count=e.recorded_count + (1, -1, 50)[at % 3])


def misdigest(e, at):
    digest = (digest_add(e.recorded_digest, ["m0"]), "", "x" * 64)[at % 3]
    return replace(e, recorded_digest=digest)


CORRUPTIONS = (
    drop_live, double_live, revive_archived, rename_live, drop_archived, double_archived,
    move_archived, flip_byte, change_checksum, change_grave, drop_graves, drop_segment,
    double_segment, resurrect, restore, restore_unknown, drop_record, cut_chain, tie_ring,
    lose_chain, change_status, change_sources, swap_sources, change_summary_id, lose_child,
    change_marker, double_marker, drop_tombstone, bury_living, bury_unknown,
    miscount, misdigest,
)  # fmt: skip


class TestDigest(unittest.TestCase):
    """The digest of a set of ids."""

    @MANY
    @given(st.lists(st.text(), unique=True), st.randoms(use_true_random=False))
    def test_any_order(self, ids, random):
        """Added in any order, at once or one by one, ids give one digest."""
        whole = digest_add(EMPTY_DIGEST, ids)
        random.shuffle(ids)
        single = EMPTY_DIGEST
        for each in ids:
            single = digest_add(single, [each])
        self.assertEqual(single, whole)
        self.assertRegex(whole, "^[0-9a-f]{64}$")
        self.assertEqual(whole == EMPTY_DIGEST, not ids)

    def test_wraps(self):
        """The sum stays within 64 digits."""
        self.assertEqual(len(digest_add("f" * 64, ["m1"])), 64)
        self.assertEqual(digest_add(EMPTY_DIGEST, ()), EMPTY_DIGEST)


class TestProof(unittest.TestCase):
    """What is whole is proven, what is damaged reported."""

    @MANY
    @given(lives)
    def test_any_life(self, world):
        """Talk, compactions, rollbacks and forgetting in any order leave the proof whole."""
        self.assertEqual(verify(world.evidence()), ())

    @MANY
    @given(full_lives, st.sampled_from(CORRUPTIONS), st.integers(0, 1000))
    def test_any_corruption(self, world, corrupt, at):
        """Any single corruption is reported, in a sentence."""
        damaged = corrupt(world.evidence(), at)
        if damaged is not None:
            violations = verify(damaged)
            self.assertTrue(violations, corrupt.__name__)
            self.assertTrue(all(v.detail.endswith(".") for v in violations), violations)

    def test_each_corruption_happens(self):
        """The full life has something for every corruption to damage, and all are reported."""
        for corrupt in CORRUPTIONS:
            for at in range(30):
                with self.subTest(corrupt=corrupt.__name__, at=at):
                    damaged = corrupt(lived(FULL).evidence(), at)
                    self.assertTrue(damaged is None or verify(damaged))
        idle = [c.__name__ for c in CORRUPTIONS if not c(lived(FULL).evidence(), 0)]
        self.assertEqual(idle, [])


class TestWords(unittest.TestCase):
    """Violations say what is wrong and name the ids."""

    def setUp(self):
        self.world = World()
        for number in range(30):
            self.world.say(number)
        self.world.compact(4)

    def details(self, evidence):
        return " ".join(violation.detail for violation in verify(evidence))

    def test_two_places(self):
        """A message in two places is named with both."""
        evidence = revive_archived(self.world.evidence(), 0)
        self.assertIn(
            "Message `m1` stands in the live history and in segment", self.details(evidence)
        )

    def test_missing(self):
        """A missing message is told by its id where a summary cites it."""
        evidence = drop_archived(self.world.evidence(), 0)
        self.assertIn("1 missing. Summaries cite `m1`.", self.details(evidence))
        evidence = self.world.evidence()
        evidence = replace(evidence, live=evidence.live[:-1])
        self.assertIn("29 are there: 1 missing.", self.details(evidence))

    def test_many(self):
        """Of very many ids the first are named."""
        evidence = self.world.evidence()
        evidence.segments[0]["tombstones"] = {f"m{n}": "" for n in range(200, 230)}
        self.assertIn("`m209` and 20 more", self.details(evidence))
        evidence = self.world.evidence()
        evidence.segments[0]["tombstones"] = {f"m{n}": "" for n in range(200, 210)}
        self.assertIn("`m208`, `m209`.", self.details(evidence))

    def test_without_id(self):
        """A message without an id is reported, not counted."""
        evidence = self.world.evidence()
        self.assertEqual(kinds(replace(evidence, live=(*evidence.live, heard()))), ["place"])

    def test_put_aside(self):
        """What cannot be read is counted, of the history and its archive alone."""
        aside = {"conversation_tail": 2, "ai_archive_g1": 1, "followers": 1}
        details = [v.detail for v in verify(replace(self.world.evidence(), aside=aside))]
        self.assertEqual(len(details), 2)
        self.assertIn("2 of `conversation_tail` could not be read", details[0])

    def test_a_record_that_was_rebuilt(self):
        """Where the record of ids is a later one, that is told with its time."""
        evidence = self.world.evidence()
        (violation,) = verify(replace(evidence, rebuilt_at="2026-01-02T03:04:05.000+00:00"))
        self.assertEqual(violation.kind, "record")
        self.assertIn("2026-01-02T03:04:05", violation.detail)

    def test_summary_below_a_shown_one(self):
        """A live summary that a shown one was made from needs no marker of its own."""
        evidence = self.world.evidence()
        shown = next(iter(evidence.summaries.values()))
        shown["child_ids"] = ["s", "s"]
        below = {"id": "s", "status": "live"}
        more = {**evidence.summaries, "s": below}
        self.assertEqual(kinds(replace(evidence, summaries=more)), [])
        shown["child_ids"] = []
        self.assertEqual(kinds(replace(evidence, summaries=more)), ["marker"])

    def test_archived_without_a_summary(self):
        """A few lines have a record and a segment of their own, which no marker shows."""
        evidence = self.world.evidence()
        segment = Segment.sealed("g", "s", [heard("noted", id="m99")]).to_dict()
        record = {"id": "s", "status": "live", "segment": "g", "source_ids": ["m99"]}
        whole = replace(
            evidence,
            segments=(*evidence.segments, segment),
            summaries={**evidence.summaries, "s": {**record, "tier": "unsummarised"}},
            recorded_count=evidence.recorded_count + 1,
            recorded_digest=digest_add(evidence.recorded_digest, ["m99"]),
        )
        self.assertEqual(kinds(whole), [])
        shown = {**evidence.summaries, "s": {**record, "tier": "recent"}}
        self.assertEqual(kinds(replace(whole, summaries=shown)), ["marker"])

    def test_forgotten_in_a_restored_segment(self):
        """Words that were forgotten may not stay in a segment that was taken back either."""
        self.world.roll_back(0)
        evidence = self.world.evidence()
        live = tuple(message for message in evidence.live if message.id != "m1")
        left = replace(evidence, live=live, tombstones=frozenset(("m1",)))
        self.assertEqual(kinds(left), ["tombstone"])
        self.assertIn("still holds `m1`", self.details(left))
