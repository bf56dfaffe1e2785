"""The plan of a compaction."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import total_tokens
from evennia_ai.history.pairs import cut_points, pairing
from evennia_ai.sleep.compaction.plan import (
    Plan,
    circle_windows,
    cut_by_count,
    plan_compaction,
    spliced,
)
from tests.strategies import MANY, calls, heard, histories, marker, numbered, result

windows = st.integers(1, 12)
keeps = st.one_of(st.just(0), st.integers(0, 12_000))
capacities = st.one_of(st.none(), st.integers(0, 12_000))
plans = given(histories(), windows, keeps, capacities)


def identities(messages):
    return [id(message) for message in messages]


def raw_of(messages):
    return [message for message in messages if not message.is_summary]


def sized(*tokens):
    """Heard lines of these token counts."""
    return numbered([heard(tokens=each) for each in tokens])


class TestPlanByExample(unittest.TestCase):
    """What leaves, case by case."""

    def leaving(self, history, *args):
        return [message.id for message in plan_compaction(history, *args).leaving]

    def test_window(self):
        """The newest messages of the window stay, the rest leaves."""
        self.assertEqual(self.leaving(sized(1, 1, 1, 1, 1), 2), ["m0", "m1", "m2"])

    def test_a_long_extraction_leaves_half_the_window_to_the_talk(self):
        """Its newest messages count for half the window at most, all others leave or stay."""
        talk = sized(*[1] * 10)
        saved = numbered([heard(metadata={"context": "pre_compaction"}) for _ in range(7)])
        saved = [replace(message, id=f"x{number}") for number, message in enumerate(saved)]
        self.assertEqual(self.leaving([*talk, *saved], 4), [f"m{n}" for n in range(8)])
        self.assertEqual(self.leaving([*talk, saved[0]], 4), [f"m{n}" for n in range(7)])
        self.assertEqual(
            self.leaving([*talk[:5], *saved, *talk[5:]], 4),
            ["m0", "m1", "m2", "m3", "m4"] + [f"x{n}" for n in range(7)] + ["m5"],
        )

    def test_within_window(self):
        """A history within the window is left alone."""
        self.assertTrue(plan_compaction(sized(1, 1), 2).empty)
        self.assertTrue(plan_compaction((), 2).empty)

    def test_keep_tokens(self):
        """More than the window stays where more tokens are to be kept, no message too many."""
        self.assertEqual(self.leaving(sized(10, 10, 10, 10), 1, 15), ["m0", "m1"])
        self.assertEqual(self.leaving(sized(10, 10, 10, 10), 1, 20), ["m0", "m1"])
        self.assertEqual(self.leaving(sized(10, 10, 10, 10), 1, 99), [])
        uncounted = numbered([heard(), heard(tokens=5), heard(tokens=5)])
        self.assertEqual(self.leaving(uncounted, 1, 11), [])

    def test_capacity_overrides(self):
        """Where what is to be kept cannot fit, more leaves, up to the newest message."""
        self.assertEqual(self.leaving(sized(9, 9, 9, 9), 3, 0, 18), ["m0", "m1"])
        self.assertEqual(self.leaving(sized(9, 9, 9, 9), 3, 99, 1), ["m0", "m1", "m2"])

    def test_no_pair_is_parted(self):
        """A cut inside an exchange moves before it; for lack of room, behind it."""
        history = numbered(
            [heard(tokens=1), calls("c1", tokens=9), result("c1", tokens=9), heard(tokens=1)]
        )
        self.assertEqual(self.leaving(history, 2), ["m0"])
        self.assertEqual(self.leaving(history, 2, 0, 5), ["m0", "m1", "m2"])

    def test_newest_exchange_stays_whole(self):
        """An exchange that fills the history is never cut away, however large."""
        history = numbered([heard(tokens=1), calls("c1", tokens=50), result("c1", tokens=900)])
        self.assertEqual(self.leaving(history, 1, 0, 10), ["m0"])
        self.assertEqual(self.leaving(history[1:], 1, 0, 10), [])

    def test_only_touched_markers_are_folded(self):
        """A summary is taken up only where messages of its audience leave."""
        alice = private(["a"])
        history = numbered([marker(PUBLIC), marker(alice), heard(), heard(audience=alice)])
        plan = plan_compaction(history, 1)
        self.assertEqual([m.id for m in plan.folded], ["m0"])
        self.assertEqual([m.id for m in plan.staying], ["m1", "m3"])

    def test_by_count(self):
        """So many leave and no more, once that many stand before the window."""
        history = sized(1, 1, 1, 1, 1)
        self.assertEqual(cut_by_count(history, 3, 3), 0)
        self.assertEqual(cut_by_count(history, 2, 3), 3)
        self.assertEqual(cut_by_count(history, 1, 3), 3)
        plan = plan_compaction(history, 1, count_cut=3)
        self.assertEqual([m.id for m in plan.leaving], ["m0", "m1", "m2"])

    def test_by_count_a_small_part_is_not_counted(self):
        """What a circle said counts from the message on with which it is enough to leave."""
        alice = private(["a"])
        secrets = [heard(audience=alice, tokens=4) for _ in range(3)]
        lines = [heard(tokens=1) for _ in range(3)]
        history = numbered([*secrets[:2], lines[0], secrets[2], *lines[1:]])
        self.assertEqual(cut_by_count(history, 1, 2, least_tokens=10), 4)
        self.assertEqual(cut_by_count(history, 1, 2, least_tokens=20), 5)
        plan = plan_compaction(history, 1, least_tokens=20, count_cut=5)
        self.assertEqual([m.id for m in plan.leaving], ["m2", "m4"])
        self.assertEqual([m.id for m in plan.held], ["m0", "m1", "m3"])
        self.assertEqual([m.id for m in plan.staying], ["m0", "m1", "m3", "m5"])

    def test_by_count_an_extraction_is_not_counted(self):
        """It neither fires nor is asked to leave: it goes with the talk it stands among."""
        saved = heard(tokens=50, metadata={"context": "pre_compaction"})
        line = heard(tokens=1)
        history = numbered([line, saved, saved, line, line, saved])
        self.assertEqual(cut_by_count(history, 1, 3), 0)
        self.assertEqual(cut_by_count(history, 1, 2), 4)
        plan = plan_compaction(history, 1, count_cut=4)
        self.assertEqual([m.id for m in plan.leaving], ["m0", "m1", "m2", "m3"])
        only = numbered([saved, saved, saved, line])
        self.assertEqual(cut_by_count(only, 1, 1), 0)

    def test_by_count_a_circle_grown_by_its_extraction(self):
        """With the tokens of an extraction a circle's talk is enough to leave; its lines count."""
        alice = private(["a"])
        saved = heard(audience=alice, tokens=9, metadata={"context": "pre_compaction"})
        secret, line = heard(audience=alice, tokens=4), heard(tokens=1)
        history = numbered([secret, secret, saved, saved, line])
        self.assertEqual(cut_by_count(history, 1, 2, least_tokens=10), 3)
        self.assertEqual(cut_by_count(history, 1, 3, least_tokens=10), 0)

    def test_by_count_half_is_enough(self):
        """A plan by count keeps how many were to leave; with less than half of them it missed."""
        alice, bob = private(["a"]), private(["b"])
        lines = [heard(audience=alice), heard(audience=bob), heard(audience=bob), heard()]
        plan = plan_compaction(numbered([*lines, heard()]), 1, count_cut=4)
        self.assertEqual(plan.by_count, 4)
        self.assertFalse(plan.without([bob]).missed)
        self.assertTrue(plan.without([alice, bob]).missed)
        any_other = plan_compaction(numbered([*lines, heard()]), 1)
        self.assertEqual(any_other.by_count, 0)
        self.assertFalse(any_other.without([alice, bob]).missed)

    def test_what_is_held_adds_up(self):
        """What stays behind is held, whether it was held back first or second."""
        alice, bob = private(["a"]), private(["b"])
        secrets = [heard(audience=alice), heard(audience=bob)]
        plan = plan_compaction(numbered([*secrets, heard(), heard()]), 1)
        held = plan.without([alice]).without([bob]).held
        self.assertEqual([message.id for message in held], ["m0", "m1"])

    def test_parts_by_audience(self):
        """Each audience has its part and its earlier summary, public first."""
        alice = private(["a"])
        secret, marked = heard(audience=alice), marker(alice)
        plan = Plan((secret, heard(), heard(audience=STAFF)), (marked, marker()), ())
        self.assertEqual(plan.audiences, (PUBLIC, alice, STAFF))
        self.assertEqual((plan.part(alice), plan.part(PUBLIC)), ((secret,), (heard(),)))
        self.assertEqual((plan.previous(alice), plan.previous(STAFF)), ((marked,), ()))


class TestPlanAlways(unittest.TestCase):
    """What holds for every history."""

    @MANY
    @plans
    def test_partition(self, history, window, keep, capacity):
        """Every message leaves, is folded or stays, once, in order."""
        plan = plan_compaction(history, window, keep, capacity)
        everything = identities(plan.leaving + plan.folded + plan.staying)
        self.assertEqual(sorted(everything), sorted(identities(history)))
        place = {id(message): index for index, message in enumerate(history)}
        for part in (plan.leaving, plan.folded, raw_of(plan.staying)):
            places = [place[each] for each in identities(part)]
            self.assertEqual(places, sorted(places))
        self.assertEqual(identities(plan.leaving), identities(raw_of(history))[: len(plan.leaving)])
        markers = len(plan.staying) - len(raw_of(plan.staying))
        self.assertTrue(all(message.is_summary for message in plan.staying[:markers]))

    @MANY
    @plans
    def test_no_pair_is_parted(self, history, window, keep, capacity):
        """A result leaves if and only if its call leaves, also where small parts stay."""
        raw = raw_of(history)
        for least in (0, 60):
            plan = plan_compaction(history, window, keep, capacity, least_tokens=least)
            gone = {m.id for m in plan.leaving}
            for index, caller in pairing(raw).items():
                self.assertEqual(raw[index].id in gone, raw[caller].id in gone)

    @MANY
    @given(histories(), windows, keeps)
    def test_window_and_tokens_are_kept(self, history, window, keep):
        """With no cap at least the window stays, and at least the tokens; no cut would be later."""
        plan = plan_compaction(history, window, keep)
        raw, stays = raw_of(history), raw_of(plan.staying)
        self.assertGreaterEqual(len(stays), min(window, len(raw)))
        self.assertGreaterEqual(total_tokens(stays), min(keep, total_tokens(raw)))
        for later in cut_points(raw):
            if later > len(plan.leaving):
                rest = raw[later:]
                self.assertTrue(len(rest) < window or total_tokens(rest) < keep)

    @MANY
    @given(histories(), windows, keeps, st.integers(0, 12_000))
    def test_capacity(self, history, window, keep, capacity):
        """Where any legal cut fits, what stays fits; no more leaves than that takes."""
        raw = raw_of(history)
        stays = raw_of(plan_compaction(history, window, keep, capacity).staying)
        free = raw_of(plan_compaction(history, window, keep).staying)
        legal = [raw[point:] for point in cut_points(raw)[:-1]]
        fitting = [rest for rest in legal if total_tokens(rest) <= capacity]
        if fitting:
            wanted = max((rest for rest in fitting if len(rest) <= len(free)), key=len)
            self.assertEqual(identities(stays), identities(wanted))
        elif raw:
            self.assertEqual(identities(stays), identities(legal[-1]))

    @MANY
    @plans
    def test_newest_turn_stays(self, history, window, keep, capacity):
        """The newest exchange, or the newest message, never leaves."""
        raw = raw_of(history)
        if raw:
            newest = raw[cut_points(raw)[-2] :]
            stays = raw_of(plan_compaction(history, window, keep, capacity).staying)
            self.assertEqual(identities(stays[-len(newest) :]), identities(newest))

    @MANY
    @plans
    def test_again_is_empty(self, history, window, keep, capacity):
        """Compacting what was just compacted does nothing."""
        plan = plan_compaction(history, window, keep, capacity)
        made = [replace(marker(audience), id=f"s{audience}") for audience in plan.audiences]
        after = spliced(history, plan, made)
        self.assertTrue(plan_compaction(after, window, keep, capacity).empty)

    @MANY
    @plans
    def test_audiences_never_mix(self, history, window, keep, capacity):
        """The parts of the audiences are what leaves, and earlier markers go with their own."""
        plan = plan_compaction(history, window, keep, capacity)
        parts = [m for audience in plan.audiences for m in plan.part(audience)]
        self.assertEqual(sorted(identities(parts)), sorted(identities(plan.leaving)))
        folded = [m for audience in plan.audiences for m in plan.previous(audience)]
        self.assertEqual(sorted(identities(folded)), sorted(identities(plan.folded)))
        self.assertEqual(plan.audiences[1:], tuple(a for a in plan.audiences[1:] if a != PUBLIC))

    @MANY
    @given(histories(), windows, windows, st.sampled_from((0, 60, 600)))
    def test_by_count_that_many_leave(self, history, window, leaving, least):
        """A cut by count is of use: so many leave at least, and the newest turn stays."""
        wanted, points = cut_by_count(history, window, leaving, least), cut_points(raw_of(history))
        plan = plan_compaction(history, window, least_tokens=least, count_cut=wanted)
        if wanted and any(wanted <= point for point in points[:-1]):
            self.assertGreaterEqual(len(plan.leaving), leaving)
        newest = raw_of(history)[points[-2:][0] :]
        stays = raw_of(plan.staying)
        self.assertEqual(identities(stays[len(stays) - len(newest) :]), identities(newest))


class TestCircleWindows(unittest.TestCase):
    """The parts in which a private circle's own words are shown."""

    ALICE = private(["a"])

    def parts(self, history, room):
        found = circle_windows(history, self.ALICE, room)
        return [[message.id for message in part] for part in found]

    def test_filled_with_the_nearest(self):
        """One part holds all its words, and what was said right before and after them."""
        public = [heard(tokens=3) for _ in range(4)]
        secrets = [heard(audience=self.ALICE, tokens=3) for _ in range(2)]
        history = numbered([*public[:2], secrets[0], *public[2:], secrets[1]])
        self.assertEqual(self.parts(history, 100), [[f"m{n}" for n in range(6)]])
        self.assertEqual(self.parts(history, 6), [["m2", "m5"]])
        self.assertEqual(self.parts(history, 14), [["m1", "m2", "m3", "m5"]])

    def test_as_many_as_its_words_need(self):
        """More words than fit make more parts; no tool call is parted from its result."""
        secrets = [heard(audience=self.ALICE, tokens=3) for _ in range(3)]
        pair = [calls("c1", tokens=1), result("c1", tokens=1)]
        history = numbered([secrets[0], *pair, *secrets[1:]])
        self.assertEqual(self.parts(history, 6), [["m0", "m3"], ["m1", "m2", "m4"]])

    @MANY
    @given(histories(), st.integers(1, 9000))
    def test_all_its_words_are_shown(self, history, room):
        """Each message of the circle stands in one part, and nothing a part holds is too much."""
        raw = raw_of(history)
        for audience in {m.audience for m in raw} - {PUBLIC}:
            parts = circle_windows(raw, audience, room)
            own = [m.id for part in parts for m in part if m.audience == audience]
            self.assertEqual(own, [m.id for m in raw if m.audience == audience])
            for part in parts:
                fits = total_tokens(part) <= room
                alone = len(cut_points(part)) == 2
                self.assertTrue(fits or alone)


class TestSpliced(unittest.TestCase):
    """The history after a compaction."""

    @MANY
    @given(histories(), histories(), windows)
    def test_later_arrivals_stay(self, history, later, window):
        """What came while the summary was written stays, in order, behind what stayed."""
        plan = plan_compaction(history, window)
        new = tuple(replace(message, id=f"new{i}") for i, message in enumerate(later))
        after = spliced(history + new, plan, [replace(marker(), id="s1")])
        self.assertEqual(raw_of(after), raw_of(plan.staying) + raw_of(new))
        markers = [m for m in plan.staying + new if m.is_summary]
        shown = [m for m in after if m.is_summary and m.id != "s1"]
        self.assertEqual(sorted(identities(shown)), sorted(identities(markers)))

    @MANY
    @given(histories(), windows)
    def test_markers_first(self, history, window):
        """Summaries stand before all else, public ones first."""
        plan = plan_compaction(history, window)
        made = [replace(marker(audience), id=f"s{audience}") for audience in plan.audiences]
        after = spliced(history, plan, made)
        kinds = [(not m.is_summary, m.is_summary and m.audience != PUBLIC) for m in after]
        self.assertEqual(kinds, sorted(kinds))
        self.assertEqual({m.id for m in made} - {m.id for m in after}, set())

    def test_what_was_removed_meanwhile_stays_away(self):
        """A message somebody deleted during the compaction does not come back."""
        history = sized(1, 1, 1)
        plan = plan_compaction(history, 2)
        self.assertEqual([m.id for m in spliced(history[:2], plan, [])], ["m1"])
