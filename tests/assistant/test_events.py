"""Heard events: groups, who is meant, who came and who went."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.assistant.events import Group, addressed, by_audience, names, resolved
from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Speaker
from tests.strategies import FEW, audiences, heard

CHANNELS = ("say", "whisper", "page", "pose", "arrive", "leave", "event", "move")
events = st.builds(
    heard,
    st.sampled_from(("hello", "Aria!", "")),
    channel=st.sampled_from(CHANNELS),
    audience=audiences,
    speaker=st.one_of(st.none(), st.builds(Speaker, id=st.sampled_from("abc"))),
)


def event(channel="say", content="hello", **fields):
    return heard(content, channel=channel, **fields)


class TestGroups(unittest.TestCase):
    """One turn for each audience."""

    @FEW
    @given(st.lists(events))
    def test_partition(self, given_events):
        """Every event is in the group of its audience, in order; groups come as first heard."""
        groups = by_audience(given_events)
        for group in groups:
            mine = [e for e in given_events if e.audience == group.audience]
            self.assertEqual(list(map(id, group.events)), list(map(id, mine)))
        places = {id(each): place for place, each in enumerate(given_events)}
        firsts = [places[id(group.events[0])] for group in groups]
        self.assertEqual(firsts, sorted(firsts))
        self.assertEqual(sum(len(group.events) for group in groups), len(given_events))

    def test_triggers(self):
        """Speech calls for a turn; arrivals only where they are greeted; the rest never."""
        group = Group(PUBLIC, tuple(event(channel) for channel in CHANNELS))
        speech = ["say", "whisper", "page", "pose"]
        self.assertEqual([e.channel for e in group.triggers(False)], speech)
        self.assertEqual([e.channel for e in group.triggers(True)], [*speech, "arrive"])


class TestNames(unittest.TestCase):
    """Whether a text names somebody."""

    def test_whole_words(self):
        """The whole name or its first word, in any case, as whole words."""
        self.assertTrue(names("hi aria, how are you?", "Aria Vale"))
        self.assertTrue(names("ARIA VALE?", "Aria Vale"))
        self.assertFalse(names("the malaria is back", "Aria"))
        self.assertFalse(names("vale of tears", "Aria Vale"))
        self.assertFalse(names("hello", " "))

    def test_articles_are_no_names(self):
        """One called The Barkeep is not meant by every `the`."""
        self.assertFalse(names("the ale is good", "The Barkeep"))
        self.assertTrue(names("barkeep, an ale!", "The Barkeep"))
        self.assertTrue(names("ask the barkeep", "the  Barkeep"))
        self.assertTrue(names("a the!", "The"))

    def test_names_with_marks(self):
        """Names that end or begin with a mark are found too, and are no patterns."""
        self.assertTrue(names("well, Dr. Who?", "Dr. Who"))
        self.assertTrue(names("hey R2.D2!", "R2.D2!"))
        self.assertFalse(names("hey R2xD2!", "R2.D2"))

    @FEW
    @given(st.text(), st.text("abcÄ.*+?() -'", min_size=1).filter(str.strip), st.text())
    def test_called_by_name(self, before, name, after):
        """Whoever is called by the whole name, set apart, is named, whatever else is said."""
        said = " ".join(name.split())
        self.assertTrue(names(f"{before} {said} {after}", name))


class TestAddressed(unittest.TestCase):
    """Whether the assistant is meant."""

    def test_private_talk(self):
        """A whisper, a page, or anything in a closed circle is meant for it."""
        alice = private(["a"])
        for each in (event("whisper"), event("page"), event("pose", audience=alice)):
            self.assertTrue(addressed([each], "Aria", 5))

    def test_by_name(self):
        """Speech and poses that name it are meant for it; notices are not."""
        self.assertTrue(addressed([event(content="hi Aria")], "Aria", 5))
        self.assertTrue(addressed([event("pose", "waves at Aria")], "Aria", 5))
        self.assertFalse(addressed([event("event", "Aria is here")], "Aria", 5))
        self.assertFalse(addressed([event(content="")], "Aria", 5))

    def test_alone_together(self):
        """Where nobody else is there to be meant, what is said is said to it."""
        self.assertTrue(addressed([event()], "Aria", 0))
        self.assertFalse(addressed([event()], "Aria", 1))
        self.assertFalse(addressed([event("pose"), event("arrive")], "Aria", 0))
        self.assertFalse(addressed([], "Aria", 0))
        self.assertFalse(addressed([event(audience=STAFF)], "Aria", 1))

    @FEW
    @given(st.lists(events), st.lists(events), st.integers(0, 2))
    def test_any_of_them(self, first, second, listeners):
        """It is addressed by events together if and only if it is by some of them."""
        apart = [addressed([each], "Aria", listeners) for each in first + second]
        self.assertEqual(addressed(first + second, "Aria", listeners), any(apart))


class TestResolved(unittest.TestCase):
    """Arrivals and departures."""

    def test_who_is_here_came(self):
        """Who is here came, who is not went, and one nobody knows went too."""
        heard = [event("move", speaker=Speaker(id=each)) for each in "ab"] + [event("move")]
        channels = [e.channel for e in resolved(heard, ["a"])]
        self.assertEqual(channels, ["arrive", "leave", "leave"])

    @FEW
    @given(st.lists(events), st.sets(st.sampled_from("abc")))
    def test_only_moves_change(self, heard, here):
        """No move is left, nothing else changes, and no event given is altered."""
        before = list(heard)
        after = resolved(heard, here)
        self.assertEqual(heard, before)
        for old, new in zip(heard, after, strict=True):
            self.assertEqual(replace(new, channel=old.channel), old)
            if old.channel == "move":
                self.assertIn(new.channel, ("arrive", "leave"))
            else:
                self.assertIs(new, old)
