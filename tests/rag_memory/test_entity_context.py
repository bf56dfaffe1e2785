"""Entity profiles: observations, supersession, merging, who may be shown what."""

import copy
import itertools
import unittest
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock

from evennia_ai.history.audience import PUBLIC, STAFF, private, visible
from evennia_ai.history.messages import utc_iso
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.profile import Observation, Profile, summary_line
from evennia_ai.rag_memory.profiles import BATCH, run_entity_consolidation_batch
from tests import stand_ins
from tests.waiting import wait_for

ALICE_ONLY = private(["o1"])
DAY = 86400.0


def ids():
    """A maker of short ids."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}{next(numbers)}"


def raw(number, text="x", at=0.0, audience=PUBLIC, fact=(None, None), **fields):
    """An observation, as one is stored."""
    predicate, value = fact
    stored = {
        "id": f"o{number}",
        "text": text,
        "subject": None,
        "predicate": predicate,
        "value": value,
        "at": utc_iso(at),
        "source": f"m{number}",
        "audience": audience,
        "status": "current",
        "superseded_by": None,
        **fields,
    }
    return Observation.from_dict(stored)


def profile(*observations, **fields):
    """Alice with observations."""
    alice = entities.new_profile("o1", "Alice", 10 * DAY)
    return replace(alice, observations=observations, **fields)


class TestObserve(unittest.TestCase):
    """Noting something."""

    def setUp(self):
        self.make_id = ids()
        self.profile = entities.new_profile("o1", "Alice", 0.0)

    def observe(self, text, at, **fields):
        self.profile = entities.observe(
            self.profile, text, at, f"m{at}", make_id=self.make_id, **fields
        )
        return self.profile.observations

    def test_an_observation_holds_all_its_fields(self):
        """Text, fact, time, source and audience are kept, and the sight is refreshed."""
        before = copy.deepcopy(self.profile)
        old = self.profile
        (noted,) = self.observe(
            " Alice  lives in the mill. ",
            DAY,
            audience=ALICE_ONLY,
            subject="Alice",
            predicate="lives in",
            value="the mill",
        )
        self.assertEqual(noted.text, "Alice lives in the mill.")
        self.assertEqual(noted.audience, ALICE_ONLY)
        self.assertEqual(noted.status, "current")
        self.assertEqual(self.profile.last_seen, utc_iso(DAY))
        self.assertEqual(self.profile.first_seen, utc_iso(0))
        self.assertEqual(old, before)

    def test_a_newer_value_supersedes_the_older(self):
        """The older is kept, marked, and says by what and when it was replaced."""
        self.observe("lives in the mill", 1.0, predicate="lives in", value="the mill")
        old, new = self.observe("lives in town", 2.0, predicate="Lives in", value="town")
        self.assertEqual(old.status, "superseded")
        self.assertEqual(old.superseded_by, new.id)
        self.assertEqual(old.superseded_at, utc_iso(2.0))
        self.assertEqual(new.status, "current")

    def test_a_value_that_comes_back_is_a_new_one(self):
        """Mill, town, mill: the last holds, the first stays superseded."""
        for at, value in ((1.0, "mill"), (2.0, "town"), (3.0, "mill")):
            noted = self.observe(f"lives in {value}", at, predicate="lives in", value=value)
        self.assertEqual([o.status for o in noted], ["superseded", "superseded", "current"])

    def test_late_news_of_an_older_time_does_not_replace(self):
        """What is noted later but happened earlier is the outdated one."""
        self.observe("lives in town", 5.0, predicate="lives in", value="town")
        town, mill = self.observe("lived in mill", 1.0, predicate="lives in", value="mill")
        self.assertEqual((town.status, mill.status), ("current", "superseded"))

    def test_different_subjects_do_not_meet(self):
        """Her brother's home is not hers; her own name or id is the same as no subject."""
        self.observe("a", 1.0, predicate="lives in", value="mill", subject="o1")
        self.observe("b", 2.0, predicate="lives in", value="town", subject="her brother")
        noted = self.observe("c", 3.0, predicate="lives in", value="barn", subject="ALICE")
        statuses = {o.text: o.status for o in noted}
        self.assertEqual(statuses, {"a": "superseded", "b": "current", "c": "current"})

    def test_the_same_again_is_one_observation(self):
        """Said twice it is kept once, with both sources and both times."""
        self.observe("Keeps bees.", 1.0)
        (noted,) = self.observe("keeps  bees", 2.0)
        self.assertEqual(noted.sources, ("m1.0", "m2.0"))
        self.assertEqual(noted.times, 2)
        self.assertEqual((noted.at, noted.last_at), (utc_iso(1.0), utc_iso(2.0)))
        self.assertEqual(noted.other_texts, ())

    def test_other_words_for_the_same_fact_are_kept(self):
        """A fact put differently is one fact, and no wording is lost."""
        fact = {"predicate": "lives in", "value": "mill"}
        self.observe("She lives in the mill.", 1.0, **fact)
        self.observe("Her home is the mill.", 2.0, **fact)
        (noted,) = self.observe("Home: mill.", 3.0, **fact)
        self.assertEqual(noted.other_texts, ("Her home is the mill.", "Home: mill."))

    def test_an_iso_time_is_taken_as_it_is(self):
        """Times may be given in the journal's form."""
        (noted,) = self.observe("x", "2026-01-01T00:00:00.000+00:00")
        self.assertEqual(noted.at, "2026-01-01T00:00:00.000+00:00")


class TestSources(unittest.TestCase):
    """What an observation rests on."""

    def test_one_or_several(self):
        """The first of several is the source; none is an empty one."""
        for sources, first, every in (("m1", "m1", ()), (["m1", "m2"], "m1", ("m1", "m2"))):
            (item,) = entities.observe(profile(), "x", 0.0, sources).observations
            self.assertEqual((item.source, item.sources), (first, every))
        (item,) = entities.observe(profile(), "x", 0.0, ()).observations
        self.assertEqual(item.source, "")


class TestAudience(unittest.TestCase):
    """Secrets."""

    def test_a_secret_does_not_supersede_what_was_said_aloud(self):
        """Told in private that she moved, Alice sees the new home, everyone else the old."""
        told = entities.tidy(
            profile(
                raw(1, "lives in the mill", 1.0, fact=("lives in", "mill")),
                raw(2, "lives in the cellar", 2.0, ALICE_ONLY, fact=("lives in", "cellar")),
            )
        )
        statuses = [observation.status for observation in told.observations]
        self.assertEqual(statuses, ["current", "current"])
        self.assertEqual(told.lines(PUBLIC)[1:], ["- lives in the mill [o1]"])
        self.assertEqual(told.lines(ALICE_ONLY)[1:], ["- lives in the cellar [o2]"])
        self.assertNotIn("cellar", told.summary)

    def test_a_public_value_supersedes_a_secret(self):
        """What everyone knows replaces what few knew."""
        told = entities.tidy(
            profile(
                raw(1, "lives in the cellar", 1.0, ALICE_ONLY, fact=("lives in", "cellar")),
                raw(2, "lives in the mill", 2.0, fact=("lives in", "mill")),
            )
        )
        self.assertEqual(told.observations[0].status, "superseded")

    def test_the_same_words_to_different_people_stay_two(self):
        """Merging would widen one audience or narrow the other."""
        told = entities.tidy(profile(raw(1, "is ill"), raw(2, "is ill", audience=ALICE_ONLY)))
        self.assertEqual(len(told.observations), 2)

    def test_an_observation_without_audience_is_for_staff(self):
        """What was put in by hand with no audience is shown to nobody else."""
        odd = Observation.from_dict({"id": "o1", "text": "unknown origin"})
        self.assertEqual(len(profile(odd).lines(PUBLIC)), 1)
        self.assertEqual(len(profile(odd).lines(STAFF)), 2)

    def test_superseded_by_what_one_may_not_know_still_holds(self):
        """If the newer observation is hidden, the older is what this viewer knows."""
        hidden = profile(
            raw(
                1,
                "lives in mill",
                fact=("lives in", "mill"),
                status="superseded",
                superseded_by="o2",
            ),
            raw(2, "lives in town", 2.0, STAFF, fact=("lives in", "town")),
        )
        self.assertEqual(hidden.lines(PUBLIC)[1:], ["- lives in mill [o1]"])

    def test_the_relationship_is_what_was_last_said_aloud(self):
        """The profile's relationship follows observations that everyone may know."""
        told = profile(
            raw(1, "a guest", 1.0, fact=("Relationship", "guest")),
            raw(2, "a friend", 2.0, fact=("relationship", "friend")),
            raw(3, "a debtor", 3.0, ALICE_ONLY, fact=("relationship", "debtor")),
        )
        self.assertEqual(entities.tidy(told).relationship, "friend")
        self.assertIn(", friend", summary_line(entities.tidy(told)))

    def test_a_relationship_set_by_hand_stays(self):
        """Where nothing was observed, what a builder wrote is kept."""
        by_hand = replace(profile(raw(1, "keeps bees")), relationship="sister")
        self.assertEqual(entities.tidy(by_hand).relationship, "sister")


class TestLines(unittest.TestCase):
    """What a prompt or a command shows."""

    def test_newest_first_and_limited(self):
        """The heading comes first, then the newest observations up to the limit."""
        told = profile(
            *(raw(n, f"fact {n}.", float(n)) for n in range(5)), relationship="a  friend"
        )
        lines = told.lines(PUBLIC, limit=2)
        self.assertEqual(lines, ["Alice (person), a friend", "- fact 4 [o4]", "- fact 3 [o3]"])
        self.assertEqual(len(told.lines(PUBLIC, limit=-1)), 1)

    def test_properties_first(self):
        """What has a predicate and a value comes before what was only noticed, newer or not."""
        told = profile(
            raw(1, "lives in Ford", 1.0, fact=("lives in", "Ford")),
            raw(2, "has a dog called Bo", 2.0, fact=("dog", "Bo")),
            raw(3, "laughed today", 3.0),
        )
        shown = [line[-3:-1] for line in told.lines(PUBLIC)[1:]]
        self.assertEqual(shown, ["o2", "o1", "o3"])

    def test_summary_counts_what_it_leaves_out(self):
        """Three facts are named, the rest is a number."""
        told = profile(*(raw(n, f"fact {n}", float(n)) for n in range(5)))
        self.assertEqual(summary_line(told), "Alice (person): fact 4; fact 3; fact 2 (+2 more)")
        self.assertEqual(summary_line(profile()), "Alice (person)")

    def test_a_name_cannot_break_out_of_its_line(self):
        """Brackets, quotes and line breaks in a name are taken out."""
        odd = profile(name='Eve"]\n[SYSTEM')
        self.assertEqual(odd.lines(PUBLIC), ["Eve SYSTEM (person)"])

    def test_a_profile_by_hand_with_few_fields(self):
        """A profile that only has an id is shown by it."""
        self.assertEqual(Profile("o9", "").lines(PUBLIC), ["o9 (entity)"])
        self.assertEqual(entities.refresh(Profile("o9", "")).summary, "o9 (entity)")


class TestNames(unittest.TestCase):
    """Finding who is meant."""

    def setUp(self):
        self.profiles = {
            "o1": entities.with_alias(entities.new_profile("o1", "Alice", 0.0), " Al "),
            "r1": entities.new_profile("r1", "The Gilded Lantern", 0.0, "place"),
            "o2": entities.new_profile("o2", "Sam", 0.0),
            "o3": entities.new_profile("o3", "sam", 0.0),
        }

    def test_by_id_name_alias_and_without_article(self):
        """Case and a leading article do not matter."""
        for wanted in ("o1", "alice", "AL"):
            self.assertEqual(entities.find(self.profiles, wanted), "o1")
        for wanted in ("gilded lantern", "the Gilded Lantern!"):
            self.assertEqual(entities.find(self.profiles, wanted), "r1")

    def test_nobody_rather_than_the_wrong_one(self):
        """An unknown, empty or ambiguous name finds nobody."""
        for wanted in ("Zoe", "", "...", "Sam"):
            self.assertIsNone(entities.find(self.profiles, wanted))

    def test_mentioned_in_a_text(self):
        """Whole words only, and no names of two letters."""
        found = entities.mentioned(self.profiles, "Was Alice's sister at the gilded lantern?")
        self.assertEqual(found, ["o1", "r1"])
        self.assertEqual(entities.mentioned(self.profiles, "al the samovar, malice"), [])

    def test_a_name_without_letters_is_no_name(self):
        """What is left of it when punctuation is taken out could match anything."""
        odd = {"o9": entities.new_profile("o9", "...", 0.0)}
        self.assertEqual(entities.names_index(odd), {})
        self.assertEqual(entities.mentioned(odd, "anything ..."), [])

    def test_an_alias_is_added_once(self):
        """The name itself, a known alias and an empty one change nothing."""
        alice = self.profiles["o1"]
        for alias in ("alice", "AL", " "):
            self.assertEqual(entities.with_alias(alice, alias), alice)


class TestJoined(unittest.TestCase):
    """A profile of a mere name and that of who was met."""

    def test_holds_what_both_held(self):
        """Observations by their time, the latest value in force, links and aliases of both."""
        mill = raw(1, "Lives in the mill.", DAY, fact=("lives in", "mill"), subject="n.alice")
        ford = raw(2, "Lives in Ford.", 2 * DAY, fact=("lives in", "Ford"))
        told = entities.new_profile("n.alice", "alice", 0.0, "unknown")
        told = replace(told, observations=(mill,), memory_links=("v1", "v2"))
        told = entities.with_alias(replace(told, relationship="friend"), "Al")
        met = profile(ford, memory_links=("v2", "v3"))
        both = entities.joined(met, told)
        found = [(item.id, item.status, item.subject) for item in both.observations]
        self.assertEqual(found, [("o1", "superseded", None), ("o2", "current", None)])
        self.assertEqual((both.id, both.name, both.kind), ("o1", "Alice", "person"))
        self.assertEqual((both.aliases, both.relationship), (("Al",), "friend"))
        self.assertEqual(both.memory_links, ("v2", "v3", "v1"))
        self.assertEqual(both.first_seen, utc_iso(0.0))
        self.assertTrue(entities.is_tidy(both))

    def test_another_subject_stays(self):
        """What was said of somebody else beside the entity keeps whom it is about."""
        told = entities.new_profile("n.alice", "Alice", 0.0)
        told = replace(told, observations=(raw(1, "Her sister sings.", subject="her sister"),))
        (item,) = entities.joined(profile(), told).observations
        self.assertEqual(item.subject, "her sister")


class TestMostLinks(unittest.TestCase):
    """A profile does not grow for ever."""

    def test_the_newest_links_stay(self):
        """Of many memories those linked last are kept."""
        found = [f"v{number}" for number in range(entities.MOST_LINKS + 2)]
        linked = entities.link_memories(entities.link_memories(profile(), found[:3]), found[3:])
        self.assertEqual(linked.memory_links, tuple(found[2:]))


class TestLinks(unittest.TestCase):
    """Links to memories."""

    def test_each_link_once(self):
        """A memory that is linked already is not linked again."""
        linked = entities.link_memories(profile(memory_links=("a",)), ["b", "a", "c"])
        self.assertEqual(linked.memory_links, ("a", "b", "c"))


class TestTidy(unittest.TestCase):
    """The whole of it."""

    observations = st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from([PUBLIC, ALICE_ONLY, private(["o1", "o2"]), STAFF]),
            st.sampled_from([None, "lives in", "likes"]),
            st.sampled_from([None, "mill", "town", "Mill."]),
        ),
        max_size=12,
    )

    def untidy(self, rows):
        return profile(
            *(
                raw(n, f"{predicate} {value}", float(at), audience, fact=(predicate, value))
                for n, (at, audience, predicate, value) in enumerate(rows)
            )
        )

    @settings(max_examples=300, deadline=None)
    @given(observations)
    def test_tidying_again_changes_nothing(self, rows):
        """Tidying is idempotent, and leaves its argument alone."""
        before = self.untidy(rows)
        copied = copy.deepcopy(before)
        once = entities.tidy(before)
        self.assertEqual(entities.tidy(once), once)
        self.assertEqual(before, copied)

    @settings(max_examples=300, deadline=None)
    @given(observations)
    def test_no_source_is_lost_and_no_audience_changes(self, rows):
        """Every observation's source stands afterwards in one of the same audience."""
        tidied = entities.tidy(self.untidy(rows)).observations
        where = {
            source: observation.audience
            for observation in tidied
            for source in observation.source_ids
        }
        self.assertEqual(where, {f"m{n}": row[1] for n, row in enumerate(rows)})

    @settings(max_examples=300, deadline=None)
    @given(observations)
    def test_what_supersedes_exists_and_is_known_to_the_same(self, rows):
        """A superseded observation points to one that stands and that its audience may see."""
        tidied = entities.tidy(self.untidy(rows)).observations
        by_id = {observation.id: observation for observation in tidied}
        for observation in tidied:
            if observation.status == "superseded":
                newer = by_id[observation.superseded_by]
                self.assertTrue(visible(newer.audience, observation.audience))


class TestBatch(unittest.TestCase):
    """The sleep step."""

    def run_step(self, character):
        return wait_for(run_entity_consolidation_batch(stand_ins.script(), character))

    def test_none_is_left(self):
        """Batch follows batch until all are tidy, others having their turn between two."""
        people = [profile(raw(1), id=f"o{n}") for n in range(BATCH + 1)]
        character, clock = stand_ins.character(people), Clock()
        running = run_entity_consolidation_batch(stand_ins.script(), character, reactor=clock)
        self.assertFalse(running.called)
        clock.advance(0)
        counts = wait_for(running)
        self.assertEqual((counts["changed"], counts["left"]), (BATCH + 1, 0))
        self.assertTrue(all(map(entities.is_tidy, character.entities.profiles().values())))

    def test_counts_and_writes_once(self):
        """Merged and superseded observations are counted, all in one write."""
        alice = profile(
            raw(1, "lives in mill", 1.0, fact=("lives in", "mill")),
            raw(2, "lives in town", 2.0, fact=("lives in", "town")),
            raw(3, "lives in town", 3.0, fact=("lives in", "town")),
            raw(4, "keeps bees", 4.0),
        )
        character = stand_ins.character([alice])
        writes = []
        put = character.entities.put
        character.entities.put = lambda profiles: writes.append(1) or put(profiles)
        counts = self.run_step(character)
        wanted = {"checked": 1, "changed": 1, "merged": 1, "superseded": 1, "left": 0}
        self.assertEqual(counts, wanted)
        after = character.entities.get("o1")
        self.assertEqual(len(after.observations), 3)
        self.assertEqual(after.first_seen, utc_iso(1.0))
        again = self.run_step(character)
        self.assertEqual(again, {**dict.fromkeys(wanted, 0), "checked": 1})
        self.assertEqual(len(writes), 1)

    def test_those_seen_last_come_first(self):
        """A night that is cut short has tidied those who are met most likely."""
        seen = range(BATCH + 2)
        people = [profile(raw(1), id=f"o{n}", last_seen=utc_iso(n * DAY)) for n in seen]
        character = stand_ins.character(people)
        run_entity_consolidation_batch(stand_ins.script(), character, reactor=Clock())
        everybody = character.entities.profiles().values()
        left = [person.id for person in everybody if not entities.is_tidy(person)]
        self.assertEqual(left, ["o0", "o1"])

    def test_a_profile_without_a_list_is_no_error(self):
        """A profile a builder wrote by hand is tidied as far as it goes."""
        character = stand_ins.character([Profile("o9", "Zed")])
        counts = self.run_step(character)
        self.assertEqual(counts["changed"], 1)
