"""`aiforget`: what players and admins type, and what is left afterwards."""

import json
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from django.db import OperationalError
from django.test import override_settings
from evennia import create_object, create_script
from evennia.comms.models import Msg
from evennia.server.signals import SIGNAL_ACCOUNT_POST_LOGIN
from evennia.utils.create import create_message
from twisted.internet.defer import fail

from evennia_ai import services, startstop
from evennia_ai.assistant_script import all_scripts
from evennia_ai.commands.privacy import EXPORT_EVERY_S, RETRY_S
from evennia_ai.errors import StoreError
from evennia_ai.game.seeing import _telling, speaker_of, stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
from evennia_ai.history.stored import unseal
from evennia_ai.models import Call, Event
from evennia_ai.privacy.export import export_folder
from evennia_ai.privacy.requests import (
    REPORT,
    ForgettingJob,
    Request,
    enqueue,
    forget_queued,
    queued,
)
from evennia_ai.recall import RecallIndex
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.turns.spend_book import FORGOTTEN, Amount
from tests.asked import source_of
from tests.base import CHARACTER, events
from tests.command_line import WholePagesTest
from tests.steps import verify_history
from tests.waiting import wait_for

SECRET = "zorblax"


def parrot(request):
    """A summariser that repeats the end of every line it is given."""
    lines = source_of(request.messages).splitlines()
    return " ".join(line.split()[-1] for line in lines if line)[:1200]


class ForgettingGameTest(WholePagesTest):
    """Two players have talked with Aria and Borg."""

    def setUp(self):
        super().setUp()
        self.model.default = parrot
        self.borg = create_object(CHARACTER, key="Borg", location=self.room1)
        self.borg.assistant.stop()
        for body in (self.aria, self.borg):
            body.assistant.attributes.add("compact_preserve_window", 4)
            body.assistant.attributes.add("pre_compact_extraction_enabled", False)
        self.be("Player")

    def lived(self):
        """Two compactions, a rename, whispers and a dream."""
        for rounds in range(2):
            for n in range(6):
                self.say(f"My boat is {SECRET}{rounds}{n}x")
                self.say(f"I sell {n} sacks of barley", self.char2)
                self.char1.execute_cmd(f"whisper Aria = I fear {SECRET}w{rounds}{n}x")
            for body in (self.aria, self.borg):
                script = body.assistant
                script.runtime.give_up()
                self.stored(script)
                reply = f"So it is {SECRET}{rounds}0x, {self.char1.key}."
                asker = {"asker": stable_id(self.char1)}
                said = Message("assistant", reply, speaker=speaker_of(body), metadata=asker)
                script.history.append([said])
                wait_for(compact_conversation_history(script, body, force=True))
            self.char1.key = "Renamed"
        mine = next(m for m in self.lines(self.script) if SECRET in m.content and m.speaker)
        self.aria.journal.add("Char has a boat.", source_message_ids=[mine.id])
        wait_for(self.script._run_sleep_tick())
        self.script.audit("error", what=f"lost {SECRET}00x")

    @staticmethod
    def stored(script):
        """What it has heard goes into the history."""
        script.history.append(script.runtime.take())

    def lines(self, script):
        """All messages, live and archived."""
        return [
            *(m for s in script.history.segments() for m in s.messages),
            *script.history.messages(),
        ]

    def forget_me(self, until="Forgotten:"):
        """The player types it and confirms; what is told."""
        self.typed("aiforget me")
        return self.typed("aiforget me = yes", until)

    def exported(self):
        """The file that `aiforget/export` writes."""
        self.typed("aiforget/export", until="Written to")
        [path] = (Path(self.folder.name) / "server" / "ai_exports").glob("player-*.json")
        return path

    def attributes(self):
        """All Attributes of ours, as one text."""
        return "\n".join(
            repr(unseal(attribute.db_value))
            for owner in (self.script, self.aria, self.borg.assistant, self.borg)
            for attribute in owner.db_attributes.all()
        )

    def everything(self):
        """All Attributes and all files of ours, as one text."""
        paths = [path for path in Path(self.folder.name).rglob("*") if path.is_file()]
        files = (path.read_bytes().decode("latin-1") for path in paths)
        return "\n".join([self.attributes(), *files])

    def assert_forgotten(self):
        everything = self.everything()
        place = everything.lower().find(SECRET)
        self.assertEqual(place, -1, everything[max(0, place - 200) : place + 50])
        for script in (self.script, self.borg.assistant):
            self.assertEqual(verify_history(script), ())
            texts = [m.content for m in self.lines(script)]
            self.assertEqual(sum("sacks of barley" in text for text in texts if text), 12)


class TestPlayers(ForgettingGameTest):
    """What players type."""

    def test_what_another_assistant_answered_them(self):
        """Whoever heard an answer to them forgets it, too; answers to others stay."""
        for speaker, answer in ((self.char1, "A fine one."), (self.char2, "A leaky one.")):
            self.model.answers = [answer]
            self.say("Borg, is that a boat?", speaker)
            self.borg.assistant.runtime.last_turn_at = 0.0
            self.assertEqual(wait_for(self.borg.assistant.at_tick()), "turn")
        self.stored(self.script)
        self.forget_me()
        for script in (self.script, self.borg.assistant):
            texts = [m.content for m in self.lines(script)]
            self.assertNotIn("A fine one.", texts)
            self.assertIn("A leaky one.", texts)

    def test_asks_first(self):
        """Nothing happens without a yes, and only admins may name others."""
        question = "Forget all that you ever said to any assistant? It cannot be undone."
        self.assertTold("aiforget me", question, "aiforget me = yes")
        self.assertEqual(queued(), [])
        self.assertTold("aiforget", "You asked for nothing")
        self.assertTold("aiforget Char2", "Only admins")
        self.assertTold("aiforget/export Char2", "Only admins")

    def test_nothing_is_left(self):
        """Of what was said aloud and whispered, to two assistants, under two names; proven.

        The file of the search index is rewritten once for both.
        """
        self.lived()
        path = self.exported()
        self.assertIn(SECRET, self.everything())
        erase = patch.object(RecallIndex, "erase", autospec=True, side_effect=RecallIndex.erase)
        with erase as erased:
            shown = self.forget_me()
        self.assertEqual(erased.call_count, 1)
        self.assertIn("Proven by `compact/verify` for Aria, Borg", shown)
        self.assertIn("The database keeps deleted rows", shown)  # it is in memory
        self.assert_forgotten()
        self.assertFalse(path.exists())
        self.assertEqual(queued(), [])
        self.assertTold("aiforget", "Forgotten: ")
        self.assertTold("aiforget me", "within the last hour")

    def test_a_damaged_history(self):
        """Whose history is damaged is named, and is called proven nowhere."""
        self.lived()
        history = self.borg.assistant.history
        history.archive(replace(next(iter(history.segments())), sha256="0"))
        shown = self.forget_me()
        self.assertIn("Proven by `compact/verify` for Aria:", shown)
        self.assertIn("Not proven for Borg: its history is damaged", shown)

    def test_the_report_of_a_sleep(self):
        """It repeats no word of what left, nor of what a step failed with."""
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.model.default = "They talked of boats."
        for n in range(60):
            self.say(f"My boat is the {SECRET.title()}, berth {n} of {SECRET.title()} Quay.")
        self.stored(self.script)
        self.script.runtime.give_up()
        self.aria.journal.add("Bob keeps bees.")
        self.semantic.add = lambda scope, items: fail(StoreError(f"no room for {SECRET}"))
        self.script.fall_asleep()
        self.assertEqual(self.tick(), "dreamt")
        self.assertIn("Quay", self.script.history.last_compaction().report.query)
        steps = self.script.db.last_sleep["steps"]
        self.assertEqual(steps["memory_links"], {"success": False, "failure": "StoreError"})
        self.assertGreater(steps["context_compaction"]["compacted_messages"], 0)
        self.assertNotRegex(str(self.script.db.last_sleep).lower(), f"{SECRET}|quay")
        self.be("Builder")
        self.assertTold("aistatus Aria", "memory_links: failed: StoreError")
        self.be("Player")
        self.forget_me()
        self.assertNotRegex(self.attributes().lower(), f"{SECRET}|quay")

    def test_what_waits_in_the_queue(self):
        """Lines that were heard and not stored yet."""
        self.say(f"Aria, {SECRET}!")
        self.say("Aria, two sacks of barley?", self.char2)
        self.script.save_queue()
        self.forget_me()
        self.assertNotIn(SECRET, self.everything())
        heard = {m.id: m for m in (*self.script.runtime.pending(), *self.lines(self.script))}
        [line] = [m for m in heard.values() if m.role == "user"]
        self.assertEqual(line.speaker.key, self.char2.key)

    def test_what_waits_is_dropped_first(self):
        """At all assistants, before the first has forgotten, also where a restart restored it."""
        self.say(f"Aria and Borg, {SECRET}!")
        self.script.save_queue()
        waiting = []

        def forget(job, script):
            waiting.append([SECRET in str(s.runtime.pending()) for s in all_scripts()])

        self.assertIn(SECRET, str([script.runtime.pending() for script in all_scripts()]))
        request = Request((stable_id(self.char1),), utc_iso(time.time()), new_id("m"), "")
        with patch.object(ForgettingJob, "_forget", forget):
            wait_for(ForgettingJob(request, all_scripts()).run())
        self.assertFalse(any(waiting[0]))

    def test_figures_of_spend(self):
        """What the player's calls cost is kept, for nobody."""
        account = stable_id(self.account)
        for who in (account, account, "a9.other"):
            self.script.shared_spend.count(Amount(1, 70, cost=0.5), time.time(), account=who)
        self.forget_me()
        sums = Call.objects.sums("account", "2000-01-01")
        self.assertEqual(sums.pop("a9.other"), Amount(1, 70, cost=0.5))
        [[nobody, spent]] = sums.items()
        self.assertTrue(nobody.startswith(FORGOTTEN))
        self.assertEqual(spent, Amount(2, 140, cost=1.0))

    def test_pages(self):
        """Pages to them, theirs to assistants, and those that repeat them; others stay."""
        own, said = self.account, "I owe Greta seven ducats for the ox."
        self.say(f"Aria, {said}")
        self.stored(self.script)
        for sender, to, text in (
            (self.aria, [own], "Good evening."),
            (self.aria, [self.account2], f"He said: {said}"),
            (self.borg, [self.account2], "Seven ducats for the ox, he owes."),
            (self.aria, [self.account2], "Good evening."),
            (own, [self.aria], "Are you there?"),
            (own, [self.aria, self.borg], "And you?"),
            (own, [self.aria, self.account2], "You, too?"),
            (own, [self.account2], said),
            (self.account2, [self.aria], said),
        ):
            create_message(sender, text, receivers=to, tags=[("page", "comms")])
        before = [(page.senders, page.receivers) for page in Msg.objects.order_by("pk")]
        self.forget_me()
        left = [(page.senders, page.receivers) for page in Msg.objects.order_by("pk")]
        stay = (2, 3, 6, 7, 8)
        self.assertEqual(left, [before[each] for each in stay])

    def test_a_page_that_quotes_them(self):
        """What was told another by a page goes wherever it is kept; that other's words stay."""
        self.say("Aria, I owe Greta seven ducats for the ox.")
        self.stored(self.script)
        self.script.runtime.give_up()
        self.model.answers = ["I owe Greta seven ducats for the ox, said he.", "It is Bess."]
        for text in ("what do I get?", "what is my horse's name?"):
            by = speaker_of(self.account2)
            circle = private([by.id])
            page = Message("user", text, new_id("m"), "", by, audience=circle, channel="page")
            self.script.runtime.hear(page, self.script.now())
            self.tick()
        self.assertIn("ducats", self.everything())
        self.assertTrue(Msg.objects.filter(db_message__contains="ducats"))
        _telling("Aria, I owe Greta seven ducats for the ox.")
        shown = self.forget_me()
        self.assertIn("Proven", shown)
        self.assertNotIn("ducats", self.everything())
        self.assertFalse(Msg.objects.filter(db_message__contains="ducats"))
        self.assertEqual(_telling.cache_info().currsize, 0)
        contents = [m.content for m in self.script.history.messages()]
        self.assertEqual(contents, ["what do I get?", "what is my horse's name?", "It is Bess."])

    def test_export(self):
        """Their own words, notes and what they may know that was observed; nothing of others."""
        self.lived()
        self.typed("airemember Aria = I like jazz.")
        path = self.exported()
        found = json.loads(path.read_text())["assistants"]
        aria = found[f"Aria (#{self.aria.pk})"]
        self.assertEqual(len(aria["said"]), 24)
        self.assertEqual([note["text"] for note in aria["notes"]], ["I like jazz."])
        self.assertEqual([entry["content"] for entry in aria["journal"]], ["Char has a boat."])
        self.assertNotIn("barley", path.read_text())

    def test_another_player(self):
        """Admins name an account, a character, or the id of a character that is gone."""
        self.lived()
        self.be("Admin")
        self.account2.characters.add(self.char2)
        for name in (self.account2.key, self.char2.key):
            self.assertTold(f"aiforget {name}", f"all that `{name}` ever said")
        self.assertTold("aiforget Nobody", "no player called `Nobody`")
        gone = stable_id(self.char2)
        self.typed(f"aiforget {gone}")
        self.typed(f"aiforget {gone} = yes", until="Forgotten:")
        self.assertNotIn("sacks of barley", self.everything())
        self.assertIn(SECRET, self.everything())


class TestOtherCommands(ForgettingGameTest):
    """A player asks to be ignored, complains about an assistant, and is told who listens."""

    def test_nothing_is_heard(self):
        """Neither speech, nor whispers, nor pages; others are heard, and it can be taken back."""
        self.assertTold("ai/ignore", "no assistant hears, answers or remembers", "aiforget me")
        self.say("Aria, hello!")
        self.typed("whisper Aria = hello")
        self.char1.execute_cmd("pose waves at Aria.", session=self.session)
        self.assertTold("page Aria = hello", "Aria does not hear you")
        self.say("Aria, good evening!", self.char2)
        [event] = self.script.runtime.queue
        self.assertEqual(event.speaker.key, self.char2.key)
        self.assertTold("ai/ignore Aria", "No assistant hears you. Typed without a name")
        self.assertTold("ai/ignore", "Assistants hear you again.")
        self.say("Aria, hello!")
        self.assertEqual(len(self.script.runtime.queue), 2)

    def test_as_any_character(self):
        """It holds for the account, whichever character it plays."""
        self.typed("ai/ignore")
        self.account.unpuppet_object(self.session)
        self.script.runtime.queue.clear()  # nobody plays the one who leaves
        self.char2.account, before = self.account, self.char2.account
        self.say("Aria, hello!", self.char2)
        self.char2.account = before
        self.assertEqual(self.script.runtime.queue, [])

    def test_a_complaint(self):
        """The log has the words and the last lines the player could hear; one alert a minute."""
        self.typed("whisper Aria = my secret")
        self.say("a public line", self.char2)
        self.char2.execute_cmd("whisper Aria = not for you")
        self.assertTold("ai/report Aria = she is |rrude", "Staff are told")
        [found] = self.logged("report")
        self.assertEqual((found["by"], found["words"]), (stable_id(self.char1), "she is |rrude"))
        lines = "\n".join(found["lines"])
        self.assertIn("a public line", lines)
        self.assertIn("my secret", lines)
        self.assertNotIn("not for you", lines)
        self.assertIn("reports Aria", self.script.runtime.trouble.text)
        self.assertTold("ai/report Aria", "in a minute")
        self.assertEqual(len(self.logged("report")), 1)

    def test_told_at_login(self):
        """At each login, once, and not where the game does not want it."""
        startstop.tell_of_listening(self.account, session=self.session)
        self.assertIn("AI assistants listen in this game", self.shown())
        self.told.clear()
        with override_settings(EVENNIA_AI_LISTENING_NOTICE=False):
            startstop.tell_of_listening(self.account, session=self.session)
        self.assertEqual(self.told, [])
        startstop.at_server_start()
        startstop.at_server_start()
        startstop._warm_up.cancel()
        SIGNAL_ACCOUNT_POST_LOGIN.send(sender=self.account, session=self.session)
        self.assertEqual(self.shown().count("AI assistants listen"), 1)
        SIGNAL_ACCOUNT_POST_LOGIN.disconnect(dispatch_uid="evennia_ai")


class TestOtherPlaces(ForgettingGameTest):
    """Scripts that `ai` does not list, objects, and files that all assistants share."""

    def test_a_second_script_and_one_without_a_body(self):
        """Their histories are cleared too, and the report names them."""
        second = create_script(type(self.script), key="Aria")
        second.obj = self.aria
        bare = create_script(type(self.script), key="Bare")
        idle = (second, bare)
        for script in idle:
            told = Message("user", f"My {SECRET}.", speaker=speaker_of(self.char1))
            script.history.append([told, Message("user", "Barley.", speaker=Speaker("B", "o7.b"))])
        self.assertEqual([script.is_embodied for script in idle], [False, False])
        shown = self.forget_me()
        self.assertIn(f"Aria (idle script #{second.pk})", shown)
        self.assertIn(f"Bare (idle script #{bare.pk})", shown)
        for script in idle:
            self.assertEqual([m.content for m in script.history.messages()], ["Barley."])
            self.assertEqual(len(script.history.tombstones()), 1)

    def test_a_body_of_another_kind(self):
        """What an object remembers that is no assistant's body any more goes as well."""
        self.say(f"My {SECRET}")
        self.stored(self.script)
        [told] = self.script.history.messages()
        self.aria.journal.add("She has a boat.", source_message_ids=[told.id])
        box = create_object(key="a box", location=self.room1)
        box.attributes.add("journal", self.aria.attributes.get("journal"))
        script = create_script(type(self.script), key="Bare", obj=box)
        script.history.append([told])
        self.forget_me()
        self.assertEqual(script.history.messages(), ())
        stored = box.attributes.all()
        self.assertNotIn("boat", str([unseal(each.value) for each in stored]))

    def test_exports(self):
        """Copies for players go, and what names the player; other exports stay."""
        folder = export_folder()
        folder.mkdir(parents=True)
        texts = {"player-a9.x": "Hay.", "Aria": stable_id(self.char1), "Bo": "o9.x"}
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(json.dumps({"id": text}))
        self.forget_me()
        self.assertEqual([path.name for path in folder.iterdir()], ["Bo.json"])

    def test_the_log(self):
        """What may hold talk goes, and what names the player; calls and reports of others stay."""
        mine, other = stable_id(self.char1), stable_id(self.char2)
        lines, kept = ["Char: Hello.", "Aria: Hello!"], {"by": other, "words": "Bär 祭り"}
        self.script.audit("call", model="mistral", budget="budget 1/2")
        self.script.audit("error", what="turn", error="OSError: full")
        self.script.audit("tool", tool="look", audience=private([mine, "o7.b"]))
        self.script.audit("report", **kept, lines=lines, speakers=[mine, "o9.aria"])
        self.script.audit("report", **kept, lines=lines, speakers=[other, "o9.aria"])
        self.script.audit("report", by=mine, words="Rude.", lines=lines, speakers=[other])
        self.forget_me()
        call, first, second, *others = events()
        self.assertEqual(call.facts, {"model": "mistral", "budget": "budget 1/2"})
        self.assertEqual(first.facts, kept)
        self.assertEqual((second.facts["words"], second.facts["lines"]), ("Bär 祭り", lines))
        self.assertEqual({event.kind for event in others}, {"forgotten"})

    def test_a_log_that_cannot_be_cleared(self):
        """The player is told, and the request stays queued."""
        self.script.audit("error", what="turn")
        with patch.object(Event, "forget", side_effect=OperationalError("locked")):
            self.forget_me(until="the log could not be cleared")
        self.assertEqual(len(queued()), 1)


class TestBounds(ForgettingGameTest):
    """How much one player can ask for."""

    def test_one_after_the_other(self):
        """Requests are carried out as they came, each once; one that fails stays and is passed."""
        for number in range(3):
            enqueue((f"o9{number}.x",), utc_iso(number), f"a9{number}.x", all_scripts())
        done = []

        def at_step(job, name):
            if name == "forget files":
                done.append(job.request.at)
                if len(done) == 1:
                    job._failures.append("the log")

        with patch.object(ForgettingJob, "at_step", at_step):
            wait_for(forget_queued(all_scripts))
        self.assertEqual(done, [utc_iso(number) for number in range(3)])
        self.assertEqual([request.at for request in queued()], [utc_iso(0)])

    def test_one_copy_in_ten_minutes(self):
        """A new one takes the place of the last one."""
        path = self.exported()
        self.assertTold("aiforget/export", "You asked for a copy already")
        self.account.ndb.evennia_ai_exported = time.time() - EXPORT_EVERY_S
        self.assertEqual(self.exported(), path)

    def test_a_clock_set_back(self):
        """What was heard when the request came goes, whatever its date."""
        self.script.now = lambda: time.time() + 3600
        told = Message("user", f"Ahead {SECRET}", speaker=speaker_of(self.char1))
        self.script.history.append([told])
        del self.script.now
        self.say(f"And {SECRET}2x")
        self.script.runtime.queue[-1] = replace(
            self.script.runtime.queue[-1], created_at=utc_iso(time.time() + 3600)
        )
        self.forget_me()
        self.assertNotIn(SECRET, self.everything())
        self.assertEqual(self.script.runtime.pending(), [])


class TestUnfinished(ForgettingGameTest):
    """What a failing store or a broken assistant leaves stays queued."""

    def test_an_index_that_fails_to_clear(self):
        """It does not count as cleared: the request stays queued, and the player is told."""
        self.lived()
        recall = services.mind().recall
        works, recall.remove = recall.remove, lambda scope, ids: fail(OSError("read-only"))
        shown = self.forget_me(until="Not everything is forgotten")
        self.assertIn("Aria, Borg could not be cleared", shown)
        self.assertEqual(len(queued()), 1)
        recall.remove = works
        self.assertTold("aiforget", "Not everything is forgotten yet")  # not at any rate
        self.assertTold("aiforget me", "A request for this waits already")
        last = dict(self.account.attributes.get(REPORT[0], category=REPORT[1]))
        last["tried_at"] -= RETRY_S
        self.account.attributes.add(REPORT[0], last, category=REPORT[1])
        self.typed("aiforget", until="Forgotten:")
        self.assert_forgotten()
        self.assertTold("aiforget me", "within the last hour")

    def test_one_bad_assistant(self):
        """What one cannot forget does not stop the others."""
        self.lived()
        self.borg.assistant.history.gathered_evidence = lambda *args: fail(ValueError("odd"))
        self.forget_me(until="Borg could not be cleared")
        self.assertNotIn(SECRET, repr([m.content for m in self.lines(self.script)]))
        self.assertEqual(len(queued()), 1)
