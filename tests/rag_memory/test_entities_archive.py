"""Profiles that hold too much: what moves into pages of its own, and what becomes of it."""

import unittest
from dataclasses import replace

from evennia_ai.errors import ToolError
from evennia_ai.history.aside import aside
from evennia_ai.history.pages import PAGES_KEPT
from evennia_ai.rag_memory.entities import (
    CUT_BACK_TO,
    MOST_KEPT,
    cut_back,
    new_profile,
    observe,
    with_alias,
)
from evennia_ai.rag_memory.observations import found_observations
from evennia_ai.rag_memory.profiles import ARCHIVE, BATCH, PAGES_SEARCHED, EntityHandler
from evennia_ai.testing import MemoryStore
from evennia_ai.turns.tools.base import ToolContext
from evennia_ai.turns.tools.memory import ExpandMemory
from tests.memory_assistant import MemoryWorld
from tests.stand_ins import CountingStore
from tests.waiting import wait_for

SURPLUS = MOST_KEPT + 1 - CUT_BACK_TO


def profile(count, entity_id="o1.a", towns=0):
    """A profile with so many observations, the oldest of them of where she lived."""
    made = new_profile(entity_id, "Elin", 0.0)
    for day in range(count):
        fact = {"predicate": "lives in", "value": f"Ford {day}"} if day < towns else {}
        made = observe(made, f"Noted {day}.", float(day), f"m{day}", **fact)
    return made


def sources(observations):
    """Their first sources."""
    return [item.sources[0] for item in observations]


class TestCutBack(unittest.TestCase):
    """Which observations are too much."""

    def test_as_many_as_may_be(self):
        """A profile that is just full keeps them all."""
        full = profile(MOST_KEPT)
        self.assertEqual(cut_back(full), (full, []))

    def test_superseded_first(self):
        """First what no longer holds goes, then the oldest that is no property; nothing is lost."""
        full = profile(MOST_KEPT + 1, towns=SURPLUS)
        kept, gone = cut_back(full)
        wanted = [f"m{n}" for n in (*range(SURPLUS - 1), SURPLUS)]  # the last town holds
        self.assertEqual(sources(gone), wanted)
        self.assertEqual(len(kept.observations), CUT_BACK_TO)
        self.assertIn(f"m{SURPLUS - 1}", sources(kept.observations))

    def test_other_names_last(self):
        """What was said again goes early, other names last."""
        full = with_alias(new_profile("o1.a", "Elin", 0.0), "Ela", 0.0, "m900", "public")
        for day in range(MOST_KEPT + 1):
            full = observe(full, "Sings." if day % 2 else f"Noted {day}.", float(day), f"m{day}")
        kept, gone = cut_back(full)
        self.assertIn("m900", sources(kept.observations))
        self.assertEqual({item.text for item in gone}, {"Sings."})


class TestArchive(unittest.TestCase):
    """Where they go."""

    def setUp(self):
        self.store = MemoryStore()
        self.entities = EntityHandler(self.store)
        self.entities.put({"o1.a": profile(MOST_KEPT + 1), "o2.b": profile(3, "o2.b")})

    def archived(self):
        """The sources of what was archived."""
        return sources(self.entities.archived(self.entities.get("o1.a")))

    def test_moved(self):
        """A profile that holds too much is cut back in the same write; others stay."""
        self.assertEqual(len(self.entities.get("o1.a").observations), CUT_BACK_TO)
        self.assertEqual(self.archived(), [f"m{n}" for n in range(SURPLUS)])
        self.assertEqual(len(self.entities.get("o2.b").observations), 3)
        self.assertEqual(self.entities.archived(self.entities.get("o2.b")), [])

    def test_page_after_page(self):
        """Each page is a new one, and found after a restart."""
        more = self.entities.get("o1.a")
        for day in range(MOST_KEPT + 1):
            more = observe(more, f"Later {day}.", 1e3 + day, f"n{day}")
        self.entities.put({"o1.a": more})
        self.entities = EntityHandler(self.store)
        self.assertEqual(len(self.store.keys(ARCHIVE)), 2)
        held = sources(self.entities.get("o1.a").observations)
        self.assertEqual(len({*held, *self.archived()}), 2 * (MOST_KEPT + 1))

    def test_keys_by_hand(self):
        """A page put in under another key is no page; none that is stored is written over."""
        stored = self.store.get("page_000001", category=ARCHIVE)
        for key in ("page_2", "page_x", "notes"):
            self.store.set(key, "by hand", category=ARCHIVE)
        self.store.set("page_000007", stored, category=ARCHIVE)
        self.entities.put({"o2.b": profile(MOST_KEPT + 1, "o2.b")})
        self.assertEqual(self.entities.get("o2.b").archived, ("page_000008",))
        self.assertEqual(self.store.get("page_000007", category=ARCHIVE), stored)
        self.assertEqual(self.store.get("page_2", category=ARCHIVE), "by hand")

    def test_forgotten(self):
        """What rests on forgotten sources alone leaves the pages too."""
        self.entities.forget_sources(["m0", "m1", "m150"])
        self.assertEqual(self.archived(), [f"m{n}" for n in range(2, SURPLUS)])

    def test_failed_write(self):
        """If it cannot be stored, nothing was moved."""
        before = dict(self.store.values)
        with self.assertRaises(RuntimeError), self.store.transaction():
            self.entities.put({"o2.b": profile(MOST_KEPT + 1, "o2.b")})
            raise RuntimeError
        self.assertEqual(self.store.values, before)
        self.assertEqual(len(self.entities.get("o2.b").observations), 3)

    def test_damaged_page(self):
        """A page that is no page holds nothing, and is put aside."""
        self.store.set("page_000001", "odd", category=ARCHIVE)
        self.assertEqual(self.archived(), [])
        self.assertEqual(aside(self.store), {f"{ARCHIVE}_page_000001": 1})

    def test_damaged_profile(self):
        """One that cannot be read is put aside; the others stay."""
        stored = self.store.get("entity_profiles")
        self.store.set("entity_profiles", {**stored, "o3": {"name": "Zed"}})
        self.assertEqual(set(self.entities.profiles()), {"o1.a", "o2.b"})
        self.assertEqual(aside(self.store), {"entity_profiles": 1})
        self.assertEqual(EntityHandler(self.store).profiles(), self.entities.profiles())

    def test_found(self):
        """Who is named in a query is searched with what was archived, and what holds is found."""
        world = MemoryWorld()
        elin = observe(new_profile("o1.a", "Elin", 0.0), "Elin fears geese.", 1.0, "m900")
        fact = {"predicate": "lives in", "value": "Ford"}
        elin = observe(elin, "Elin lives in Ford.", 2.0, "m901", **fact)
        elin = observe(elin, "Elin lives in Ash.", 3.0, "m902", **{**fact, "value": "Ash"})
        for day in range(MOST_KEPT):
            elin = observe(elin, f"Elin bought barrel {day}.", 10.0 + day, f"m{day}")
        world.body.entities.put({"o1.a": elin})

        def found(query):
            return [
                hit.text for hit in found_observations(profiles(query, "public"), query, "public")
            ]

        profiles = world.body.entities.profiles_for
        self.assertEqual(found("What does Elin fear?")[0], "Elin fears geese.")
        self.assertEqual(found("Where does Elin live?")[0], "Elin lives in Ash.")
        self.assertNotIn("Elin lives in Ford.", found("Where does Elin live?"))
        self.assertEqual(
            len(profiles("who fears geese", "public")["o1.a"].observations), CUT_BACK_TO
        )
        world.body.entities.forget_sources(["m902"])  # what it had taken the place of holds again
        self.assertEqual(found("Where does Elin live?")[0], "Elin lives in Ford.")

    def test_expanded(self):
        """It is opened by its id as those that the profile holds."""
        world = MemoryWorld()
        world.body.entities.put({"o1.a": profile(MOST_KEPT + 1)})
        old = world.body.entities.archived(world.body.entities.get("o1.a"))[0]
        found = wait_for(ExpandMemory().run(ToolContext(world.script, world.body), id=old.id))
        self.assertEqual((found["text"], found["of"]), ("Noted 0.", "Elin"))


class TestOpened(unittest.TestCase):
    """What is archived is opened by its id, however much there is, by who may know it."""

    def setUp(self):
        self.world = MemoryWorld()
        self.ids = {}
        for name, audience in (("Elin", "public"), ("Ida", "private:o7.x"), ("Odo", "public")):
            made = observe(new_profile(f"n.{name}", name, 0.0), "Fears geese.", 0.0, "m0", audience)
            self.ids[name] = made.observations[0].id
            for day in range(2 * MOST_KEPT):
                made = observe(made, f"Noted {day}.", 1.0 + day, f"m{day}", audience)
                self.world.body.entities.put({made.id: made})
                made = self.world.body.entities.get(made.id)

    def opened(self, name):
        """What a public turn is shown."""
        context = ToolContext(self.world.script, self.world.body)
        return wait_for(ExpandMemory().run(context, id=self.ids[name]))["text"]

    def test_opened(self):
        """Also after a restart."""
        self.assertEqual(self.opened("Elin"), "Fears geese.")
        self.world.body.entities = EntityHandler(self.world.body.entities.store)
        self.assertEqual(self.opened("Elin"), "Fears geese.")

    def test_only_who_may_know(self):
        """What others may not know is not there for them, searched or not."""
        self.world.body.entities.profiles_for("Is Ida in fear?", "public")
        with self.assertRaises(ToolError):
            self.opened("Ida")


class TestPagesSearched(unittest.TestCase):
    """Which pages a search reads."""

    def setUp(self):
        self.store = CountingStore(ARCHIVE)
        self.entities = EntityHandler(self.store)

    def keep(self, name, pages):
        """Somebody of whom so many pages are archived, of one observation each."""
        keys, made = [], new_profile(f"n.{name}", name, 0.0)
        for page in range(pages):
            keys.append(f"page_{len(self.store.keys(ARCHIVE)) + 1:06d}")
            old = observe(made, f"{name} sang {page}.", float(page), f"{name} {page}")
            self.store.set(keys[-1], old.to_dict(), category=ARCHIVE)
        self.entities.put({made.id: replace(made, archived=tuple(keys))})

    def found(self, query):
        """Sources of what is archived of those named, and how many pages were read for them."""
        self.store.reads = 0
        profiles = self.entities.profiles_for(query, "public")
        found = {key: sources(each.observations) for key, each in profiles.items()}
        return {key: each for key, each in found.items() if each}, self.store.reads

    def test_one_bound_for_all(self):
        """However many are named, so many pages are read, the newest of each."""
        for name in ("Elin", "Bram", "Odo"):
            self.keep(name, PAGES_SEARCHED)
        found, reads = self.found("What did Elin, Bram and Odo sing?")
        self.assertEqual(reads, PAGES_SEARCHED)
        self.assertEqual(sum(map(len, found.values())), PAGES_SEARCHED)
        self.assertEqual(set(found), {"n.Elin", "n.Bram", "n.Odo"})
        newest = [f"Odo {page}" for page in range(PAGES_SEARCHED)]
        self.assertEqual(found["n.Odo"], newest[-(PAGES_SEARCHED // 3) :])
        self.assertEqual(self.found("What did Odo sing?"), ({"n.Odo": newest}, 14))

    def test_surely_named_first(self):
        """Who shares no more than a word with the query comes last."""
        self.keep("old Odo", 1)
        self.keep("Elin", PAGES_SEARCHED)
        self.assertEqual(set(self.found("Which old song did Elin sing?")[0]), {"n.Elin"})
        self.assertEqual(self.found("an old song"), ({"n.old Odo": ["old Odo 0"]}, 1))
        self.assertEqual(self.found("a song"), ({}, 0))

    def test_read_once(self):
        """A page is read anew only when it has changed, or after many others."""
        self.keep("Elin", 2)
        held = {"n.Elin": ["Elin 0", "Elin 1"]}
        self.assertEqual(self.found("Who is Elin?"), (held, 2))
        self.assertEqual(self.found("Does Elin sing?"), (held, 0))
        self.entities.forget_sources(["Elin 0"])
        self.assertEqual(self.found("Who is Elin?"), ({"n.Elin": ["Elin 1"]}, 0))
        for number in range(PAGES_KEPT // PAGES_SEARCHED + 1):
            self.keep(f"Bram{number}", PAGES_SEARCHED)
            self.found(f"Who is Bram{number}?")
        self.assertEqual(self.found("Who is Elin?"), ({"n.Elin": ["Elin 1"]}, 1))


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
        """A profile goes with the words of its pages; the pages keep their numbers."""
        self.forget(lambda item: None if item.id == "o1.a" else item)
        self.assertEqual(list(self.handler.profiles()), ["o2.b"])
        first, second = self.store.keys(ARCHIVE)
        self.assertEqual(self.handler._pages.get(first).observations, ())
        self.assertNotIn("Elin", repr(self.store.get(first, ARCHIVE)))
        other = self.handler.get("o2.b")
        self.assertEqual(other.archived, (second,))
        self.assertEqual(len(self.handler.archived(other)), SURPLUS)

    def test_an_emptied_page(self):
        """A page that holds nothing any more is no longer named by its profile."""
        old = self.handler.archived(self.handler.get("o1.a"))

        def left(item):
            kept = tuple(each for each in item.observations if each not in old)
            return replace(item, observations=kept)

        self.forget(left)
        self.assertEqual(self.handler.get("o1.a").archived, ())
        self.assertEqual(len(self.handler.get("o1.a").observations), CUT_BACK_TO)

    def test_in_slices(self):
        """Many profiles are looked at with pauses, and are written once."""
        self.handler.put({f"o{n}.x": profile(1, f"o{n}.x") for n in range(3 * BATCH)})
        writes, put = [], self.handler.put
        self.handler.put = lambda *args: (writes.append(1), put(*args))
        pauses = []
        self.forget(lambda item: None, lambda: pauses.append(1))
        self.assertGreater(len(pauses), 3)
        self.assertEqual((len(writes), self.handler.profiles()), (1, {}))

    def test_changed_meanwhile(self):
        """A profile that somebody changes or adds in a pause is looked at again."""
        new = profile(2, "o3.c")

        def add():
            if "o3.c" not in self.handler.profiles():
                self.handler.put({"o3.c": new, "o2.b": profile(1, "o2.b")})

        self.forget(lambda item: None if item.id == "o3.c" else item, add)
        self.assertEqual(set(self.handler.profiles()), {"o1.a", "o2.b"})
        self.assertEqual(len(self.handler.get("o2.b").observations), 1)
