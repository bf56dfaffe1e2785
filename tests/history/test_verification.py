"""The proof that nothing was lost holds for a whole history and fails for each damage to it."""

import copy
import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history import verification
from evennia_ai.history.archive import Segment, SummaryRecord
from evennia_ai.history.messages import EMPTY_DIGEST, Message, digest_add
from evennia_ai.history.verification import Evidence
from tests.strategies import MANY, heard, marker


def segment(key, summary_id, messages):
    """An archive segment as it is stored."""
    return Segment.sealed(key, summary_id, messages).to_dict()


def evidence():
    """A history as it is stored, as dicts that damage can be done to.

    Of twelve lines six left in two compactions, the second of which took up the summary of the
    first; a third one was taken back, and two lines are forgotten, live and archived.
    """
    lines = [heard(f"line {n}", id=f"m{n}", metadata={}) for n in range(12)]
    archived, more, restored = lines[0:3], lines[3:6], lines[6:8]
    summaries = {
        "s0": {"segments": {"g0": 3}},
        "s1": {"tier": "long", "child_ids": ["s0"]},
        "s2": {"segments": {"g2": 3}, "source_ids": ["m3", "m4", "m5"]},
        "s3": {"rolled_back": True, "segments": {"g3": 2}, "source_ids": ["m6", "m7"]},
    }
    summaries["s0"]["source_ids"] = [message.id for message in archived]
    markers = [replace(marker(summary_id=key), id=f"k{key}") for key in ("s1", "s2")]
    ids = [message.id for message in lines]
    return copy.deepcopy(
        Evidence(
            (*markers, *(message for message in lines[6:] if message.id != "m11")),
            (
                segment("g0", "s0", archived[1:]),
                segment("g2", "s2", more),
                segment("g3", "s3", restored),
            ),
            {key: {"id": key, **fields} for key, fields in summaries.items()},
            frozenset(["m0", "m11"]),
            len(ids),
            digest_add(EMPTY_DIGEST, ids),
        )
    )


def verify(stored):
    bare = {"tier": "recent", "created_at": "", "audience": "public", "text": ""}
    summaries = {
        key: SummaryRecord.from_dict({**bare, **raw}) for key, raw in stored.summaries.items()
    }
    segments = tuple(Segment.from_dict(raw) for raw in stored.segments)
    return verification.verify(replace(stored, segments=segments, summaries=summaries))


def kinds(stored):
    return [violation.kind for violation in verify(stored)]


def live(stored, *messages):
    return replace(stored, live=messages)


def raw(stored):
    """The live messages that are no markers."""
    return [message for message in stored.live if not message.is_summary]


def markers(stored):
    return [message for message in stored.live if message.is_summary]


def having(name):
    """The summaries with a field."""
    return lambda stored: [record for record in stored.summaries.values() if record.get(name)]


def in_use(stored):
    """The segments that were not restored."""
    return [each for each in stored.segments if each["id"] != "g3"]


def resealed(each):
    """Make a segment's checksum fit: only other records tell then."""
    each["sha256"] = Segment.from_dict(each).checksum


def move(stored, source):
    """A message into another segment, with checksums made to fit."""
    target = next(each for each in in_use(stored) if each is not source)
    target["messages"].append(source["messages"].pop())
    for each in (source, target):
        resealed(each)


# By name: what may be damaged, and the act, which changes it or returns other evidence.
CORRUPTIONS = {
    "live lost": (lambda e: e.live, lambda e, m: live(e, *(x for x in e.live if x is not m))),
    "live twice": (lambda e: e.live, lambda e, m: live(e, *e.live, m)),
    "archived live": (
        lambda e: [m for each in in_use(e) for m in each["messages"]],
        lambda e, m: live(e, *e.live, Message.from_dict(m)),
    ),
    "live renamed": (
        raw,
        lambda e, m: live(e, *(replace(x, id="other") if x is m else x for x in e.live)),
    ),
    "archived lost": (lambda e: e.segments, lambda e, s: s["messages"].pop()),
    "archived twice": (lambda e: e.segments, lambda e, s: s["messages"].append(s["messages"][0])),
    "archived moved": (in_use, move),
    "words changed": (lambda e: e.segments, lambda e, s: s["messages"][0].update(content="x")),
    "checksum": (lambda e: e.segments, lambda e, s: s.update(sha256="0" * 64)),
    "segment lost": (
        lambda e: e.segments,
        lambda e, s: replace(e, segments=tuple(x for x in e.segments if x is not s)),
    ),
    "segment twice": (in_use, lambda e, s: replace(e, segments=(*e.segments, s))),
    "record lost": (
        lambda e: e.summaries,
        lambda e, key: replace(e, summaries={k: r for k, r in e.summaries.items() if k != key}),
    ),
    "chain cut": (having("child_ids"), lambda e, r: r["child_ids"].clear()),
    "chain a ring": (having("child_ids"), lambda e, r: r["child_ids"].append(r["id"])),
    "taken back": (
        lambda e: e.summaries.values(),
        lambda e, r: r.update(rolled_back=not r.get("rolled_back")),
    ),
    "taken up": (
        lambda e: ["s0", "s2"],
        lambda e, key: replace(
            e, summaries={**e.summaries, "s9": {"id": "s9", "child_ids": [key]}}
        ),
    ),
    "sources": (having("segments"), lambda e, r: r["source_ids"].append("m99")),
    "another segment": (having("segments"), lambda e, r: r.update(segments={"g9": 3})),
    "another summary": (lambda e: e.segments, lambda e, s: s.update(summary_id="s9")),
    "child lost": (having("child_ids"), lambda e, r: r["child_ids"].append("s9")),
    "marker changed": (markers, lambda e, m: m.metadata.update(summary_id="s9")),
    "marker of nothing": (markers, lambda e, m: m.metadata.update(summary_id=None)),
    "marker twice": (markers, lambda e, m: live(e, *e.live, replace(m, id="k9"))),
    "grave lost": (
        lambda e: e.tombstones,
        lambda e, key: replace(e, tombstones=e.tombstones - {key}),
    ),
    "living buried": (raw, lambda e, m: replace(e, tombstones=e.tombstones | {m.id})),
    "unknown buried": (lambda e: ["m99"], lambda e, m: replace(e, tombstones=e.tombstones | {m})),
    "count": ((lambda e: (1, -1, 50)), lambda e, n: replace(e, recorded_count=12 + n)),
    "digest": (
        lambda e: (digest_add(e.recorded_digest, ["m99"]), "", "x" * 64),
        lambda e, digest: replace(e, recorded_digest=digest),
    ),
}


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

    def test_whole(self):
        """Lives of real assistants: `tests/sleep/test_lossless_properties.py`."""
        self.assertEqual(verify(evidence()), ())

    def test_each_corruption(self):
        """Any single one, wherever it can happen, is reported in a sentence."""
        for name, (candidates, corrupt) in CORRUPTIONS.items():
            self.assertTrue(list(candidates(evidence())), name)
            for at, _ in enumerate(candidates(evidence())):
                damaged = evidence()
                result = corrupt(damaged, list(candidates(damaged))[at])
                self.assert_reported(result if isinstance(result, Evidence) else damaged, name, at)

    def assert_reported(self, damaged, name, at):
        with self.subTest(name, at=at):
            violations = verify(damaged)
            self.assertTrue(violations)
            self.assertTrue(all(v.detail.endswith(".") for v in violations), violations)


class TestWords(unittest.TestCase):
    """Violations say what is wrong and name the ids."""

    def details(self, damaged):
        return " ".join(violation.detail for violation in verify(damaged))

    def test_places(self):
        """A message in two places is named with both, one that is missing where it is cited."""
        whole = evidence()
        twice = live(whole, *whole.live, heard("line 1", id="m1", metadata={}))
        self.assertIn("Message `m1` stands in the live history and in segment", self.details(twice))
        whole.segments[1]["messages"].pop(0)
        self.assertIn("1 missing. Summaries cite `m3`.", self.details(whole))
        whole = evidence()
        short = self.details(live(whole, *whole.live[:-1]))
        self.assertIn("11 are there: 1 missing.", short)

    def test_many(self):
        """Of very many ids the first are named."""
        for count, said in ((30, "`m209` and 20 more"), (10, "`m208`, `m209` is missing")):
            damaged = evidence()
            damaged.summaries["s1"]["child_ids"] += [f"m{n}" for n in range(200, 200 + count)]
            self.assertIn(said, self.details(damaged))

    def test_without_id(self):
        """A message without an id is reported."""
        self.assertEqual(kinds(live(evidence(), *evidence().live, heard())), ["record"])

    def test_put_aside(self):
        """What cannot be read is counted, of the history and its archive alone."""
        aside = {"conversation_tail": 2, "ai_archive_g1": 1, "looked_through": 1}
        details = [v.detail for v in verify(replace(evidence(), aside=aside))]
        self.assertEqual(len(details), 2)
        self.assertIn("2 of `conversation_tail` could not be read", details[0])

    def test_a_record_that_was_rebuilt(self):
        """Where the record of ids is a later one, that is told with its time."""
        (violation,) = verify(replace(evidence(), rebuilt_at="2026-01-02T03:04:05.000+00:00"))
        self.assertEqual(violation.kind, "record")
        self.assertIn("2026-01-02T03:04:05", violation.detail)

    def test_summary_below_a_shown_one(self):
        """A summary that a shown one was made from, through others, needs no marker of its own."""
        whole = evidence()
        whole.summaries["s"] = {"id": "s", "tier": "node", "child_ids": ["s0"]}
        self.assertEqual(kinds(whole), ["marker"])
        whole.summaries["s1"]["child_ids"] = ["s"]
        self.assertEqual(kinds(whole), [])

    def test_a_former_long_term_summary(self):
        """It may stay unshown, and may not be shown beside the one that took its place."""
        whole = evidence()
        whole.summaries["s4"] = {"id": "s4", "tier": "long", "child_ids": ["s0", "s2"]}
        self.assertEqual(kinds(whole), ["marker", "marker"])
        new = replace(marker(summary_id="s4"), id="ks4")
        self.assertEqual(kinds(live(whole, new, *raw(whole))), [])

    def test_archived_without_a_summary(self):
        """A few lines have a record and a segment of their own, which no marker shows."""
        before = evidence()
        more = replace(
            before,
            segments=(*before.segments, segment("g", "s", [heard("noted", id="m99")])),
            recorded_count=before.recorded_count + 1,
            recorded_digest=digest_add(before.recorded_digest, ["m99"]),
        )
        more.summaries["s"] = {"id": "s", "segments": {"g": 1}, "source_ids": ["m99"]}
        for tier, expected in (("unsummarised", []), ("recent", ["marker"])):
            more.summaries["s"]["tier"] = tier
            self.assertEqual(kinds(more), expected)

    def test_forgotten_in_a_restored_segment(self):
        """Words that were forgotten may not stay in a segment that was taken back either."""
        whole = evidence()
        left = live(whole, *(message for message in whole.live if message.id != "m6"))
        left = replace(left, tombstones=left.tombstones | {"m6"})
        self.assertEqual(kinds(left), ["tombstone", "sources"])
        self.assertIn("still holds `m6`", self.details(left))
