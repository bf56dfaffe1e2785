"""One damaged assistant is one bad row: everything else works, and the doctor names it."""

import subprocess
from collections.abc import Mapping
from datetime import datetime
from itertools import cycle, product
from pathlib import Path

from evennia import create_object
from evennia.utils.create import create_script
from evennia.utils.dbserialize import deserialize

from evennia_ai import services, startstop
from evennia_ai.assistant_character import AssistantCharacter
from evennia_ai.assistant_script import all_assistants
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.stored import ASIDE
from evennia_ai.processes import pid_file
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.staff import doctor
from evennia_ai.staff.status import status_or_trouble
from evennia_ai.turns.runtime import RUNTIMES
from evennia_ai.turns.spend_book import Amount
from tests.base import CHARACTER
from tests.command_line import WholePagesTest
from tests.thoroughness import sampled
from tests.waiting import pump_until, wait_for

NESTED = []
for _ in range(90):
    NESTED = [NESTED]
BY_HAND = [{"id": 7, "role": "user", "content": "hi"}]
JUNK = (
    7,
    None,
    -(10**400),
    True,
    float("nan"),
    "text \ud800",
    b"\xff",
    [5, None],
    ["a", ["b"]],
    NESTED,
    {"x": 1},
    {5: 6, None: 7},
    (1, 2),
    {1, 2},
    BY_HAND,
    [{"id": [], "role": {}, "content": {1: 2}, "tokens": "x", "metadata": [1], "speaker": 9}],
    {"entries": [7, {"id": 7}], "messages": [{"id": 7}, None], "profiles": {8: {"id": 5}, 9: 3}},
    datetime(2000, 1, 1),
    {"at": float("inf"), "tokens": 10**5000, "page": "x", "version": "y", "day": 3, "steps": [1]},
)
STATES = ("awake", "asleep", "compacting", "reload")


class BadRowTest(WholePagesTest):
    """Borg, who has lived, and Aria in the same room."""

    default = "Well met."

    def setUp(self):
        super().setUp()
        self.borg = create_object(CHARACTER, key="Borg", location=self.room1)
        self.bad = self.borg.assistant
        self.bad.stop()

    def tearDown(self):
        if self.borg.pk:
            self.borg.delete()
        super().tearDown()

    def examined(self):
        """What the doctor says of the assistants, as a line."""
        [found] = wait_for(doctor.run_checks(True, [doctor.check_assistants]))
        return found.line()

    def look_around(self):
        """Every list and page of all assistants, the reload, and Aria's answer."""
        for line in ("ai", "aistatus Borg", "aihistory Borg"):
            shown = self.typed(line)
            self.assertIn("Borg", shown, line)
            self.assertNotIn("failed:", shown, line)
        self.go_on()

    def go_on(self):
        """All are listed, and the server reloads; returns what the lists show of Borg."""
        self.assertIn("Aria", self.typed("ai"))
        rows = [status_or_trouble(script) for script in all_assistants()]
        self.assertEqual([row[0].split()[0] for row in rows], ["Aria", "Borg"])
        self.bad.at_server_reload()
        self.bad.at_server_start()
        self.assert_aria_answers()
        return rows[1]

    def assert_aria_answers(self):
        """Aria hears a line that Borg hears too, and answers it."""
        self.model.requests.clear()
        self.script.runtime.said.clear()  # or a guard stops the same words again and again
        self.say("Aria, are you there?")
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(len(self.model.requests), 1)
        self.assertEqual(self.contents()[-1], ("assistant", "Well met."))


class TestBreaks(BadRowTest):
    def test_messages_by_hand(self):
        """Messages set by a builder are adopted; what is none is put aside and named."""
        said = [{"role": "user", "content": "hi"}, *BY_HAND]
        self.typed(f"set/script Borg/conversation_tail = {said}")
        self.look_around()
        self.assertEqual([m.content for m in self.bad.history.messages()][0], "hi")
        self.assertTrue(all(m.is_complete for m in self.bad.history.messages()))
        self.assertTold("aistatus Borg", "1 of `conversation_tail` could not be read")

    def test_every_assistant_is_repaired_at_the_start(self):
        """The repairs after a start go on behind the damaged one."""
        self.bad.attributes.add("conversation_tail", BY_HAND)
        self.borg.attributes.add("journal", 7)
        services.use(ready=False)
        startstop.warm_up()
        pump_until(services.ready)
        self.look_around()

    def test_named_and_put_aside(self):
        """What cannot be read is put aside; the doctor names assistant and Attribute."""
        self.assertTrue(self.examined().startswith("ok"))
        self.bad.attributes.add("summaries_stale", "lots")
        self.bad.state.stale = ["m5"]
        found = self.examined()
        self.assertTrue(found.startswith("note"), found)
        self.assertIn("Borg: 1 of `summaries_stale` could not be read and are kept aside", found)
        self.bad.attributes.clear(category=ASIDE)
        self.assertTrue(self.examined().startswith("ok"))

    def test_overwritten(self):
        """What is written over by the assistant itself is put aside before."""
        for junk in ("lots", {"tokens": "many"}):
            self.bad.attributes.add("summaries_stale", junk)
            self.bad.state.stale = ["m5"]
            self.assertEqual(self.bad.state.stale, ["m5"])
            self.assertEqual(self.bad.store.get("summaries_stale", ASIDE)[-1], junk)
        self.bad.state.stale = ["m6"]
        self.assertEqual(len(self.bad.store.get("summaries_stale", ASIDE)), 2)

    def test_only_read_from_a_shell(self):
        """Where the game runs in another process, the doctor changes nothing."""
        self.bad.attributes.add("summaries_stale", "lots")
        pid = pid_file(self.folder.name, "server")
        pid.parent.mkdir()
        with subprocess.Popen(["twistd", "60"], executable="/bin/sleep") as game:
            pid.write_text(str(game.pid))
            pump_until(Path(f"/proc/{game.pid}/cmdline").read_bytes)  # empty during the exec
            [found] = wait_for(doctor.run_checks(False, [doctor.check_assistants]))
            game.kill()
        self.assertIn("Borg: summaries_stale cannot be read", found.line())
        self.assertEqual(self.bad.db.summaries_stale, "lots")

    def test_a_wrong_option(self):
        """An option that cannot be used is remarked."""
        self.bad.attributes.add("llm_timeout_s", "often")
        self.assertIn("Borg: `llm_timeout_s` = 'often'", self.examined())

    def test_two_scripts_on_one_body(self):
        """The second is idle."""
        second = create_script(type(self.bad).path, key="Borg", autostart=False)
        second.obj = self.borg
        self.assertEqual([s.obj.key for s in all_assistants()], ["Aria", "Borg"])
        self.assertFalse(second.enabled)
        self.assertTrue(self.bad.enabled)
        self.look_around()

    def test_a_script_without_a_body(self):
        """It stops nothing."""
        stray = create_script(type(self.bad).path, key="Nobody", autostart=False)
        stray.at_server_reload()
        stray.at_server_start()
        self.assertEqual(wait_for(stray.at_tick()), "disabled")
        self.look_around()

    def test_a_body_without_a_script(self):
        """The room talks on, and the doctor says how to give it one."""
        self.bad.delete()
        self.assert_aria_answers()
        self.assertEqual([s.obj.key for s in all_assistants()], ["Aria"])
        found = self.examined()
        self.assertIn(f"Borg (#{self.borg.pk}) has no script", found)
        self.typed(found.split("Type: ")[1])
        self.assertTrue(self.borg.assistant.enabled)
        self.assertTrue(self.examined().startswith("ok"))


class Torn(AssistantCharacter):
    """A game's own class with a mistake in it."""

    @property
    def journal(self):
        raise LookupError("no journal today")

    entities = journal


class TestBrokenClass(BadRowTest):
    """An assistant that raises whatever is asked of it."""

    def setUp(self):
        super().setUp()
        self.borg.delete()
        self.borg = create_object("tests.game.test_bad_rows.Torn", "Borg", self.room1)
        self.bad = self.borg.assistant
        self.bad.stop()

    def test_is_one_bad_row(self):
        """It is named where it stands, and by a command that fails; all else is as before."""
        self.assertIn("failed: LookupError: no journal", self.typed("aimemory/entities Borg"))
        self.assertIn("no journal today", self.typed("aistatus Borg"))
        self.assertIn("Borg is broken.", self.typed("aistatus Borg"))
        self.assertIn("no journal today", self.go_on()[1])
        self.assertIn("Borg: LookupError: no journal today", self.examined())
        self.say("good evening, Borg")
        errors = self.bad.runtime.counts["errors"]
        self.bad.at_repeat()
        pump_until(lambda: self.bad.runtime.counts["errors"] > errors)


class TestJunkEverywhere(BadRowTest):
    """Junk in every Attribute that a lived-in assistant has."""

    def live(self):
        """Talk, write, note, compact, dream and wake: most Attributes get a value."""
        bad, borg = self.bad, self.borg
        options = {"compact_preserve_window": 4, "persona": "A smith.", "obeys": "perm(Builder)"}
        options |= {"tool_levels": {"say": "on"}, "llm_fallback_models": ["scripted/model"]}
        for name, value in options.items():
            bad.attributes.add(name, value)
        char = Speaker("Char", "o1.x")
        for text in ("I like jazz", "I like tea"):
            note = bad.ledger.add(text, char, state="approved")
        bad.ledger.change(note.id, "withdrawn", char)
        for number in range(52):
            borg.journal.add(f"note {number}")
        text = "line {} " + "word " * 10
        bad.history.append(Message("user", text.format(n), speaker=char) for n in range(12))
        self.assertTrue(wait_for(compact_conversation_history(bad, borg, force=True))["success"])
        bad.fall_asleep()
        wait_for(bad.at_tick())
        bad.wake()
        self.say("Borg, hello")
        bad.save_queue()
        bad.spend.add(Amount(1, 10, cost=0.1))
        bad.state.signals = {"x": "y"}
        bad.state.stale = ["m1"]
        bad.store.set("enabled", True)
        bad.state.hold = True
        bad.state.extracted = ["x"]
        bad.state.outbox = ["j1"]
        bad.attributes.add("tombstones", {"m1": "0" * 64})
        bad.attributes.add("spend", ["lots"], category=ASIDE)

    def put_back(self):
        """The life before the junk, seen by handlers that know nothing yet."""
        RUNTIMES.pop(self.bad.scope, None)
        for owner, stored in self.before.items():
            owner.attributes.clear()
            owner.attributes.batch_add(*stored)
            owner.attributes.reset_cache()

    def test_every_attribute(self):
        """Whatever is in whichever of Borg's Attributes, he is one bad row."""
        self.live()
        self.before = {
            owner: [(a.key, deserialize(a.value), a.category) for a in owner.attributes.all()]
            for owner in (self.bad, self.borg)
        }
        places = [(owner, *row) for owner, stored in self.before.items() for row in stored]
        self.assertGreater(len(places), 30, [place[1] for place in places])
        cases = zip(sampled(product(places, JUNK)), cycle(STATES), strict=False)
        for ((owner, key, good, category), junk), state in cases:
            with self.subTest(attribute=key, category=category, junk=repr(type(junk)), state=state):
                self.put_back()
                self.bad.history.messages()  # half of what is known is known before
                owner.attributes.add(key, junk, category=category)
                self.suffer(state)
                if junk in (7, b"\xff") and isinstance(good, Mapping | list):
                    self.put_back()
                    owner.attributes.add(key, junk, category=category)
                    self.assertRegex(self.examined(), f"Borg: .*{key}")

    def suffer(self, state):
        """Look around while Borg is in a state, and let him go on."""
        bad = self.bad
        if state == "asleep":
            bad.fall_asleep()
        if state == "compacting":
            compact_conversation_history(bad, self.borg, force=True)
        if state == "reload":
            RUNTIMES.pop(bad.scope, None)
            bad.at_server_reload()
            bad.at_server_start()
            bad.repair_when_ready()
        self.look_around()
        self.say("Borg, are you there?")
        wait_for(bad.at_tick())
        errors = bad.runtime.counts["errors"]
        self.assertEqual(errors, 0, bad.runtime.trouble.text)
