"""Heard events: groups, what is answered, who came and who went."""

import unittest

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from evennia_ai.background import TurnLock
from evennia_ai.history.messages import Speaker
from evennia_ai.turns.runtime import ANSWER, UNJUDGED, by_speaker, resolved, wants_answer
from tests.strategies import FEW, audiences, heard
from tests.waiting import wait_for

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


class TestHeard(unittest.TestCase):
    """One turn for each speaker and audience, arrivals and departures."""

    @FEW
    @given(st.lists(events))
    def test_partition(self, given_events):
        """Every event is in the group of its speaker, in order; groups come as first heard."""
        groups = by_speaker(given_events)
        for group in groups:
            mine = [e for e in given_events if (e.audience, e.speaker_id) == group.key]
            self.assertEqual(list(map(id, group.events)), list(map(id, mine)))
        places = {id(each): place for place, each in enumerate(given_events)}
        firsts = [places[id(group.events[0])] for group in groups]
        self.assertEqual(firsts, sorted(firsts))
        self.assertEqual(sum(len(group.events) for group in groups), len(given_events))

    def test_what_is_answered(self):
        """Speech it is to answer calls for a turn; no more."""
        heard_ones = [event(channel) for channel in CHANNELS]
        speech = ["say", "whisper", "page", "pose"]
        self.assertEqual([e.channel for e in heard_ones if wants_answer(e)], speech)
        self.assertFalse(wants_answer(event(metadata={ANSWER: False})))
        self.assertTrue(wants_answer(event(metadata={ANSWER: True})))
        self.assertFalse(wants_answer(event(metadata={ANSWER: True, UNJUDGED: True})))

    def test_who_is_here_came(self):
        """Who is here came, who is not went, and one nobody knows went too."""
        heard = [event("move", speaker=Speaker(id=each)) for each in "ab"] + [event("move")]
        channels = [e.channel for e in resolved(heard, ["a"])]
        self.assertEqual(channels, ["arrive", "leave", "leave"])


class TestTurnLock(unittest.TestCase):
    """One thing runs at a time, and what needs the lock has it."""

    def test_who_holds_it(self):
        """Nobody but what runs; it is free again whatever comes of it."""
        lock, turn, seen = TurnLock(), Deferred(), []
        with self.assertRaises(RuntimeError):
            lock.holder()
        running = lock.run(lambda: turn.addCallback(lambda _: seen.append(lock.holder())))
        self.assertIs(lock.holder(), running)
        turn.callback(None)
        self.assertEqual(seen, [running])
        with self.assertRaises(RuntimeError):
            lock.holder()

    def test_run_here(self):
        """Under the lock of the caller, or under its own."""
        lock, seen = TurnLock(), []
        wait_for(lock.run_here(lambda: seen.append(lock.is_exclusive)))
        wait_for(lock.run(lambda: lock.run_here(lambda: seen.append(lock.is_exclusive))))
        self.assertEqual((seen, lock.running), ([True, False], None))

    def test_steps_without_the_lock(self):
        """No step is made by what does not hold the lock."""
        made = []
        with self.assertRaises(RuntimeError):
            TurnLock().run_steps(made.append(n) for n in range(9))
        self.assertEqual(made, [])
