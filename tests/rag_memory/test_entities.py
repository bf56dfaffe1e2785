"""Entities: adding observations, finding who is meant, and profiles that hold too much."""

import unittest

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.rag_memory.entities import (
    CUT_BACK_TO,
    MOST_KEPT,
    Profile,
    cut_back,
    new_profile,
    observe,
    with_alias,
)
from evennia_ai.rag_memory.entity_store import ARCHIVE, BATCH, EntityHandler, note_met
from evennia_ai.turns.tools.base import ToolContext
from evennia_ai.turns.tools.memory import ExpandMemory
from tests.fake import MemoryStore
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

ALICE_ONLY = private(["o1"])
DAY = 86400.0


def alice():
    return new_profile("o1", "Alice", 0.0)


class TestObserve(unittest.TestCase):
    def test_an_observation_holds_all_its_fields(self):
        """Text, fact, time, sources and audience are stored; the profile itself is as before."""
        old = alice()
        fields = {"predicate": "lives in", "value": "the mill", "told_by": "Bram"}
        rests_on = {"sources": ["m1", "x1"], "audience": ALICE_ONLY}
        text = " Alice  lives in the mill. "
        noted = observe(old, text, DAY, *rests_on.values(), subject="ALICE", **fields)
        (item,) = noted.observations
        said = {"id": item.id, "text": "Alice lives in the mill.", "at": utc_iso(DAY)}
        self.assertEqual(item.to_dict(), said | fields | rests_on)
        self.assertEqual(old, alice())


class TestNames(unittest.TestCase):
    def setUp(self):
        called = with_alias(alice(), "Al", 0.0, "m1", PUBLIC)
        others = (("r1", "The Gilded Lantern"), ("o2", "Sam"), ("o3", "sam"), ("o9", "..."))
        self.handler = EntityHandler(MemoryStore())
        self.handler.put({key: new_profile(key, name, 0.0) for key, name in others})
        self.handler.put({"o1": with_alias(called, "Grey", 0.0, "m1", ALICE_ONLY)})

    def test_names(self):
        """By id, name and other name, whatever the case and article, as the viewer knows them.

        An unknown, empty or ambiguous name finds nobody, and one without letters is none.
        """
        for wanted, audience, found in (
            ("o1", PUBLIC, "o1"),
            ("alice", PUBLIC, "o1"),
            ("AL", PUBLIC, "o1"),
            ("gilded lantern", PUBLIC, "r1"),
            ("the Gilded Lantern!", PUBLIC, "r1"),
            ("Grey", ALICE_ONLY, "o1"),
            *((nobody, PUBLIC, None) for nobody in ("Grey", "Zoe", "", "...", "Sam")),
        ):
            self.assertEqual(self.handler.find(wanted, audience), found, wanted)
        self.assertEqual(self.handler.mentioned("the o9", STAFF, 1), [])

    def test_only_the_same_name_is_joined(self):
        """Whoever is known under another name, or one that several have, is not joined."""
        other = with_alias(Profile("n.al", "Al"), "Alice", 0.0, "m1", PUBLIC)
        unmet = {"n.al": other, "n.alice": Profile("n.alice", "the Alice")}
        for others, joined in (({}, ["n.al", "o1"]), ({"o2": "Alice"}, [*unmet, "o1", "o2"])):
            world = MemoryWorld()
            world.script.history.append([Message("user", "Hi", speaker=Speaker("Alice", "o1"))])
            known = {key: new_profile(key, name, 0.0) for key, name in others.items()}
            world.body.entities.put({**unmet, "o1": alice(), **known})
            note_met(world.body.entities, world.script.history, {"id": ""}, "me", 0.0, DAY)
            self.assertEqual(sorted(world.body.entities.profiles()), sorted(joined))


SURPLUS = MOST_KEPT + 1 - CUT_BACK_TO


def profile(count, entity_id="o1.a", towns=0):
    """A profile with so many observations, the oldest of them of where she lived."""
    made = new_profile(entity_id, "Elin", 0.0)
    for day in range(count):
        fact = {"predicate": "lives in", "value": f"Ford {day}"} if day < towns else {}
        made = observe(made, f"Noted {day}.", float(day), f"m{day}", **fact)
    return made


def sources(observations):
    return [item.sources[0] for item in observations]


class TestCutBack(unittest.TestCase):
    """Which observations are too much."""

    def test_the_oldest_first(self):
        """The oldest that is no property goes; properties and other names stay."""
        full = with_alias(profile(MOST_KEPT, towns=3), "Ela", 0.0, "m900", "public")
        kept, gone = cut_back(full)
        self.assertEqual(sources(gone), [f"m{n}" for n in range(3, 3 + SURPLUS)])
        self.assertEqual(len(kept.observations), CUT_BACK_TO)
        self.assertLessEqual({"m0", "m1", "m2", "m900"}, set(sources(kept.observations)))


class TestOpened(unittest.TestCase):
    def test_opened(self):
        """What is archived is opened by its id, however much there is, also after a restart."""
        world = MemoryWorld()
        made = observe(new_profile("n.elin", "Elin", 0.0), "Fears geese.", 0.0, "m0")
        wanted = made.observations[0].id
        for day in range(2 * MOST_KEPT):
            made = observe(made, f"Noted {day}.", 1.0 + day, "m1")
            if len(made.observations) > MOST_KEPT:
                world.body.entities.put({made.id: made})
                made = world.body.entities.get(made.id)
        for _ in range(2):
            opened = wait_for(
                ExpandMemory().run(ToolContext(world.script, world.script.tools), id=wanted)
            )
            self.assertEqual(opened["text"], "Elin: Fears geese.")
            world.body.entities = EntityHandler(world.body.entities.store)


class TestForget(unittest.TestCase):
    """Profiles and their pages, without what is forgotten."""

    def setUp(self):
        self.store = MemoryStore()
        self.handler = EntityHandler(self.store)
        for who in ("o1.a", "o2.b"):
            self.handler.put({who: profile(MOST_KEPT + 1, who)})

    def forget(self, left, meanwhile=lambda: None):
        for _ in self.handler.forget(left):
            meanwhile()
        self.handler = EntityHandler(self.store)

    def test_dropped(self):
        """A profile goes with what was archived of it; others stay as they were."""
        self.forget(lambda item: None if item.id == "o1.a" else item)
        self.assertEqual(list(self.handler.profiles()), ["o2.b"])
        self.assertEqual(self.store.keys(ARCHIVE), ("o2.b",))
        self.assertEqual(len(self.handler.archived("o2.b")), SURPLUS)

    def test_changed_meanwhile(self):
        """A profile that somebody changes in a pause is looked at as it is then."""
        self.handler.put({f"o{n}.x": profile(1, f"o{n}.x") for n in range(BATCH)})
        last = f"o{BATCH - 1}.x"
        self.forget(
            lambda item: None if len(item.observations) == 2 else item,
            lambda: self.handler.put({last: profile(2, last)}) if self.handler.get(last) else None,
        )
        self.assertIsNone(self.handler.get(last))
