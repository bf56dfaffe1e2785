"""What a stop or a crash leaves behind is put right at the next start."""

from unittest.mock import patch

from django.db import connection
from evennia import ScriptDB
from twisted.internet.defer import Deferred, succeed

from evennia_ai import services, startstop
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.values import READ_AHEAD, ModelReply
from evennia_ai.recall.values import Query
from evennia_ai.testing import call
from evennia_ai.turns.runtime import RUNTIMES
from tests.base import AssistantTest
from tests.waiting import pump_until, wait_for


class TestRestart(AssistantTest):
    def restart(self):
        """Forget what was only in memory, and start."""
        RUNTIMES.pop(self.script.scope, None)
        self.script.at_server_start()

    def crash(self):
        """The timer is gone without a word."""
        self.script.ndb._task.stop()
        self.script.ndb._task = None

    def test_crash_leaves_the_timer_standing(self):
        """A script that counts as active gets its timer back; one paused by hand does not."""
        self.script.start(interval=100)
        self.crash()
        self.restart()
        self.assertTrue(self.script.ndb._task.running)
        self.script.pause()
        self.restart()
        self.assertIsNone(self.script.ndb._task)
        self.script.unpause()

    def test_no_tick_thinks_before_all_are_mended(self):
        """At the start of the server ticks wait until everything is loaded and mended."""
        self.script.state.outbox = ["e1"]  # what is to leave the search index
        services.use(ready=False)
        startstop.warm_up()
        self.say("Aria, are you there?")
        self.assertEqual(self.tick(), "warming up")
        pump_until(services.ready)
        pump_until(lambda: not self.script.state.outbox)
        self.restart()
        self.assertEqual(self.tick(), "turn")

    def test_tables_that_are_missing_are_named(self):
        """Staff learn what to run and which of the two tables is not there."""
        seen = connection.introspection.table_names()
        left = [name for name in seen if name != "evennia_ai_event"]
        services.use(ready=False)
        there = patch.object(type(connection.introspection), "table_names", return_value=left)
        with there, patch("evennia.utils.logger.log_err") as log:
            startstop.warm_up()
        pump_until(services.ready)
        self.assertIn("run `evennia migrate` (evennia_ai_event)", log.call_args_list[0][0][0])

    def test_a_model_reads_ahead_what_its_trial_gives(self):
        """One on this machine: tried at the start, it reads the prompt of a talk as it will be."""
        self.model.own, self.model.held, self.model.calls_tools = True, True, None

        def trial(name):
            self.model.tried.append(name)
            self.model.calls_tools = True
            return succeed(ModelReply("", attempts=0))

        self.model.trial = trial
        services.use(ready=False)
        startstop.warm_up()
        pump_until(services.ready)
        self.assertEqual(self.model.tried, [self.script.model_name])
        [request] = self.model.requests
        expected = (READ_AHEAD, self.script.config.turn_timeout_s, True)
        self.assertEqual((request.purpose, request.timeout_s, bool(request.tools)), expected)
        self.model.release()

    def test_a_server_that_stops_at_once_loads_nothing(self):
        """What is loaded soon after the start is not loaded once the server stops."""
        services.use(ready=False)
        startstop.at_server_start()
        startstop.at_server_stop()
        self.assertFalse(startstop._warm_up.active())

    def test_timer_outlives_another_interval(self):
        """A timer that was given another interval runs on after a reload and after a crash."""
        self.script.start(interval=100)
        self.configure(tick_interval_s=50)
        self.script.at_server_start()
        self.assertEqual((self.script.ndb._task.interval, self.script.interval), (50, 50))
        self.crash()
        ScriptDB.flush_instance_cache(force=True)
        self.script = ScriptDB.objects.get(pk=self.script.pk)
        self.restart()
        self.assertTrue(self.script.ndb._task.running)

    def test_stopped_timer_stays_stopped(self):
        """A tick by hand does not start a timer that was stopped."""
        self.configure(tick_interval_s=50)
        self.tick()
        self.assertFalse(self.script.is_active)
        self.assertIsNone(self.script.ndb._task)

    def test_heard_before_the_stop(self):
        """What was heard but not thought about is heard after the restart, once."""
        self.say("Aria, are you there?")
        self.script.at_server_reload()
        self.restart()
        self.restart()
        self.model.answers = ["Always."]
        self.tick()
        contents = [content for _, content in self.contents()]
        self.assertEqual(contents, ["Aria, are you there?", "Always."])
        self.restart()
        self.assertEqual(self.script.runtime.queue, [])

    def test_an_error_of_a_deleted_assistant(self):
        """What fails because its assistant was deleted meanwhile is no trouble of the next one."""
        scope = self.script.scope
        self.script.delete()
        self.script.log_error("search index", ValueError("it needs a value for the field `id`"))
        self.assertNotIn(scope, RUNTIMES)

    def test_signal_and_phase(self):
        """A dream that was cut short leaves neither its signal nor its phase."""
        self.script.state.signals = {"pre_compaction": {"since": "then"}}
        self.script.state.set_mode("sleep", "dreaming")
        self.restart()
        self.assertEqual(self.script.state.signals, {})
        self.assertEqual(self.script.state.phase, "sleeping")

    def test_asked_before_the_stop(self):
        """Who asked just before a stop is answered after it, once."""
        self.model.held = True
        self.say("Aria, what is my boat called?")
        turn = self.script.at_tick()
        pump_until(lambda: self.model.requests)
        self.script.stop_thinking()
        wait_for(turn)
        self.model.release()
        self.restart()
        self.restart()
        self.model.answers = ["Heron."]
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(self.contents()[-1], ("assistant", "Heron."))
        self.restart()
        self.assertEqual(self.tick(), "idle")

    def test_answered_before_the_stop(self):
        """What was answered, or what nothing was to be said to, is not taken up again."""
        for answer in ("Heron.", call("noop")):
            self.model.answers = [answer]
            self.say("Aria, what is my boat called?")
            self.script.runtime.last_turn_at = 0.0
            self.tick()
            self.restart()
            self.assertEqual(self.tick(), "idle")

    def test_woken_from_a_dream(self):
        """A dream that a wake cut short is dreamt in the next sleep."""
        self.aria.journal.add("Bob keeps bees.")
        held = Deferred()
        inner, self.semantic.add = self.semantic.add, lambda *args: held
        self.script.fall_asleep()
        dream = self.script.at_tick()
        self.script.wake()
        self.semantic.add = inner
        held.callback(["x1"])
        wait_for(dream)
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")

    def test_dreams_once_a_sleep(self):
        """A restart in mid-sleep begins no second dream; the next sleep has its own."""
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        self.restart()
        self.assertEqual(self.tick(), "asleep")
        self.script.wake()
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")

    def test_rollback_cut_short(self):
        """What a rollback still had to withdraw is withdrawn."""
        self.script.state.outbox = ["j1"]
        self.restart()
        pump_until(lambda: not self.script.state.outbox)

    def test_index_catches_up(self):
        """What never reached the recall index is found after the start."""
        line = Message("user", "the ferry is called Heron", speaker=Speaker("Bob"), channel="say")
        self.script.history.append([line])
        wait_for(self.script.memory.clear())
        self.assertEqual(wait_for(self.script.memory.search(Query("ferry Heron"))), [])
        self.restart()
        pump_until(lambda: wait_for(self.script.memory.search(Query("ferry Heron"))))
