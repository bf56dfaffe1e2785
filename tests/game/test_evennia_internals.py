"""What relies on Evennia's internals: values in Attributes, transactions."""

import contextlib
from collections import OrderedDict

from django.db import connection
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from evennia import search_object
from evennia.typeclasses.attributes import Attribute
from evennia.utils.test_resources import BaseEvenniaTest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import StoreError
from evennia_ai.game.evennia_internals import AttributeStore, transaction

PLAIN = {"version": 1, "messages": [{"id": "m1", "content": "a | {b} é \ud800", "n": 1.5}]}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)
ITS_OWN = ("id", "db_key", "db_date_created")


class TestAttributeStore(BaseEvenniaTest):
    def setUp(self):
        super().setUp()
        self.store = AttributeStore(self.obj1)

    def stored(self, key, category=None):
        """What the database holds, past every cache."""
        Attribute.flush_instance_cache(force=True)
        self.obj1.attributes.reset_cache()
        return self.store.get(key, category)

    def test_what_is_stored_comes_back(self):
        """New and changed values, from the cache and from the database."""
        for value in (PLAIN, {"n": 2}, None, [], 0, "text", ("a", {1, 2})):
            self.store.set("kept", value)
            self.assertEqual(self.store.get("kept", default="none"), value)
            self.assertEqual(self.stored("kept"), value)

    def test_a_new_value_is_as_evennia_stores_it(self):
        """A new Attribute is the row that Evennia would have made, and is read like it."""

        @settings(max_examples=30)
        @given(VALUES)
        def check(value):
            rows = []
            self.obj1.attributes.clear(category="kept")
            self.store.set("Ours", value, "kept")
            self.obj1.attributes.add("Evennias", value, "kept")
            for key in ("ours", "evennias"):
                self.assertEqual(self.stored(key, "kept"), value)
                row = Attribute.objects.filter(db_key=key, db_category="kept").values().get()
                rows.append({k: v for k, v in row.items() if k not in ITS_OWN})
            self.assertEqual(*rows)

        check()

    def test_a_builder_reads_and_changes_the_same(self):
        """Evennia's own access sees the value, and a change by it has another stamp."""
        self.store.set("kept", PLAIN)
        self.store.set("kept", {"lines": ["one"]})
        before = self.store.stamp("kept")
        self.obj1.db.kept["lines"].append("two")
        self.assertIsNot(self.store.stamp("kept"), before)
        self.assertEqual(self.stored("kept"), {"lines": ["one", "two"]})

    def test_no_key_is_none_of_a_category(self):
        """Evennia takes an empty key for all of a category, of which it gives the only one."""
        for count in range(3):
            self.assertIsNone(self.store.get("", "kept"))
            self.assertIsNone(self.store.stamp("", "kept"))
            self.store.set(f"key {count}", PLAIN, "kept")

    def test_copies_are_independent(self):
        """Neither what was handed in nor what was read is the stored value."""
        value = {"lines": ["one"]}
        for _ in range(2):
            self.store.set("kept", value)
            value["lines"].append("two")
            self.store.get("kept")["lines"].append("three")
            self.assertEqual(self.store.get("kept"), {"lines": ["one"]})
            value["lines"].pop()

    def test_what_is_not_plain_goes_evennias_way(self):
        """Database objects come back as such; other classes as Evennia keeps them."""
        self.store.set("kept", 1)
        for value in ({"who": self.obj2}, [OrderedDict(a=1)]):
            self.store.set("kept", value)
            self.assertEqual(self.stored("kept"), value)
        self.obj1.db.kept = {"who": self.obj2}
        self.assertEqual(self.store.get("kept")["who"], self.obj2)

    def test_a_row_that_is_gone_is_made_again(self):
        """As Evennia does when somebody deleted the Attribute elsewhere."""
        self.store.set("kept", 1)
        row = Attribute.objects.filter(db_key="kept")
        row._raw_delete(row.db)
        self.store.set("kept", 2)
        self.assertEqual(self.stored("kept"), 2)

    def test_an_attribute_that_exists_twice_stays_readable(self):
        """The one Evennia finds is the one that is written."""
        self.store.set("kept", 1)
        self.obj1.attributes.backend.create_attribute("kept", None, "", 5)
        self.store.set("kept", 2)
        self.assertEqual(self.store.get("kept"), 2)
        self.assertEqual(self.obj1.db.kept, 2)

    def test_what_is_taken_back(self):
        """A rollback undoes the making and the change of an Attribute, also in the caches."""
        self.store.set("old", {"n": 1})
        with self.assertRaises(OSError), transaction():
            self.store.set("kept", PLAIN)
            self.store.set("old", {"n": 2})
            raise OSError("disk full")
        self.assertIsNone(self.store.stamp("kept"))
        self.assertFalse(search_object(self.obj1.key)[0].attributes.has("kept"))
        self.assertEqual(self.store.get("old"), {"n": 1})
        self.assertEqual(self.obj1.db.old["n"], 1)

    def test_what_waits_for_the_end_is_read(self):
        """Inside a transaction its values are there, by ours and by Evennia's access."""
        with transaction():
            self.store.set("kept", {"n": 1}, "some")
            self.store.set("kept", {"n": 2}, "some")
            self.assertEqual(self.store.get("kept", "some"), {"n": 2})
            self.assertEqual(self.obj1.attributes.get("kept", category="some")["n"], 2)
            with transaction():
                self.store.set("kept", {"n": 3}, "some")
            self.assertEqual(self.store.keys("some"), ("kept",))
            self.store.set("other", {"n": 4}, "some")
            self.store.delete("other", "some")
        self.assertEqual(self.store.keys("some"), ("kept",))
        self.assertEqual(self.stored("kept", "some"), {"n": 3})

    def test_one_inside_that_fails_takes_the_outer_one_with_it(self):
        """Also if its exception was caught between them."""
        with self.assertRaises(TransactionManagementError), transaction():
            self.store.set("kept", 1)
            with contextlib.suppress(OSError), transaction():
                raise OSError("disk full")
        self.assertIsNone(self.stored("kept"))

    def test_values_move_and_go_together(self):
        """In few queries, however many there are; in the caches, too."""
        keys = [f"g{number}" for number in range(9)]
        for key in keys:
            self.store.set(key, {"of": key}, "draft")
        with CaptureQueriesContext(connection) as moving:
            self.store.move(keys[:8], "draft", "kept")
        self.assertEqual(len(moving), 2)
        self.assertEqual(self.store.keys("draft"), ("g8",))
        self.assertIsNone(self.store.stamp("g1", "draft"))
        for read in (self.store.get, self.stored):
            self.assertEqual([read(key, "kept") for key in keys[:8]], [{"of": k} for k in keys[:8]])
            self.assertIsNone(read("g1", "draft"))
        self.store.set("g1", "changed", "kept")
        self.assertEqual(self.stored("g1", "kept"), "changed")
        costs = []
        for some in (keys[:2], keys[2:8]):
            with CaptureQueriesContext(connection) as deleting:
                self.store.delete_all([*some, "absent"], "kept")
            costs.append(len(deleting))
            self.assertEqual([self.store.get(key, "kept") for key in some], [None] * len(some))
        self.assertEqual(costs[0], costs[1])
        self.assertEqual(self.store.keys("kept"), ())
        self.store.set("g1", "again", "kept")
        self.assertEqual(self.stored("g1", "kept"), "again")

    def test_a_move_that_fails_moves_nothing(self):
        """Also if one of the values is not there; what was moved or deleted is back."""
        self.store.set("g1", 1, "draft")
        self.store.set("g2", 2, "draft")
        with self.assertRaisesRegex(StoreError, "Of 2 values of `draft` only 1"), transaction():
            self.store.delete_all(["g2"], "draft")
            self.store.move(["g1", "g2"], "draft", "kept")
        for read in (self.store.get, self.stored):
            self.assertEqual([read(key, "draft") for key in ("g1", "g2")], [1, 2])
            self.assertIsNone(read("g1", "kept"))

    def test_stamps_are_those_of_each_key(self):
        """Asked for together or alone, known to Evennia's cache or not."""
        self.store.set("kept", PLAIN)
        self.obj1.attributes.reset_cache()
        stamps = self.store.stamps(["kept", "absent"])
        self.assertIs(stamps[0], self.store.stamp("kept"))
        self.assertIsNone(stamps[1])

    def test_nothing_stale_is_read_where_the_owner_switched_caching_off(self):
        """With `TYPECLASS_AGGRESSIVE_CACHE` off, the database is asked each time."""
        self.store.set("kept", 1)
        self.store.preload(["kept", "later"])
        with self.settings(TYPECLASS_AGGRESSIVE_CACHE=False):
            with self.assertNumQueries(0):
                self.store.preload(["absent"])
            self.assertEqual(self.store.get("kept"), 1)
