"""The commands on assistants as a whole: who may use which, `ai` and its switches."""

import json
import re
import time
from pathlib import Path
from unittest.mock import patch

from evennia import Msg, create_object
from twisted.internet.defer import Deferred, fail

from evennia_ai import services
from evennia_ai.assistant_script import all_assistants
from evennia_ai.commands import all_commands
from evennia_ai.commands.assistants import CmdAI
from evennia_ai.commands.base import find_assistant, named
from evennia_ai.errors import AssistantError, StoreError
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import PUBLIC, members, private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.finder import scope_of_texts
from evennia_ai.recall import Turn
from evennia_ai.staff.export import NOT_TAKEN, export_assistant
from tests.base import CHARACTER, PLAYED
from tests.command_line import CommandLineTest
from tests.memories import MemorySemanticStore
from tests.store_case import item
from tests.waiting import pump_until, wait_for


class TestLocks(CommandLineTest):
    """Who may use which command."""

    PLAYERS = ("aipage", "airemember", "aierrand", "aiforget", "aibond", "ai")

    def test_players(self):
        """Players have none of the staff's commands; they may page, whisper and give notes."""
        self.be("Player")
        for command in all_commands():
            if command.key not in self.PLAYERS:
                with self.subTest(command=command.key):
                    self.assertIn("is not available", self.typed(f"{command.key} Aria"))
        self.assertTold("ai", "Players may type: ai/undo, ai/again, ai/me")
        shown = self.assertTold("help ai", "ai/ignore", "ai/report")
        for staffs in ("ai/delete", "aiconfig", "doctor", "\n\n\n"):
            self.assertNotIn(staffs, shown)
        for theirs in ("say its name", "aiforget", "airemember", "aipage"):
            self.assertIn(theirs, shown)
        self.assertTold("page Aria hello", "You paged Aria with: 'hello'")

    def test_players_are_sent_to_their_own_commands(self):
        """What helps and refusals name, they may type."""
        self.be("Player")
        staffs = {command.key for command in all_commands()} - {*self.PLAYERS}
        for key in self.PLAYERS:
            for line in self.typed(f"help {key}").splitlines():
                if line.startswith("See also"):
                    self.assertFalse(staffs & set(re.findall(r"\w+", line)), key)
        self.script.obj.delete()
        self.assertTold("ai/undo Zed", "There are no assistants yet. See: help ai")

    def test_help_is_one_screen(self):
        """Each rank reads of its own switches, all of them, on one screen of 24 lines."""
        known = {"Player": CmdAI.player_switches, "Admin": CmdAI.known_switches()}
        staff = {*CmdAI.known_switches()} - {*CmdAI.admin_switches}
        for rank, switches in {**known, "Builder": staff}.items():
            self.be(rank)
            shown = self.typed("help ai")
            self.assertLessEqual(len(shown.splitlines()), 24)
            self.assertLessEqual(max(map(len, shown.splitlines())), 78)
            named = set(re.findall(r"ai/(\w+)", shown))
            self.assertEqual(named, {*switches} - {"list"}, rank)

    def test_builders(self):
        """Builders see and make assistants, but read no talk."""
        self.be("Builder")
        self.assertTold("ai", "Aria")
        self.assertTold("aistatus Aria", "Mode: awake")
        for line in ("aihistory Aria", "compact Aria", "aimemory Aria"):
            self.assertIn("is not available", self.typed(line))
        for switch in ("delete Aria", "doctor", "import a.json", "why Aria"):
            self.assertTold(f"ai/{switch}", "is for admins")

    def test_builders_tune_only_their_own(self):
        """What belongs to others is not theirs to change; what they made is."""
        self.be("Builder")
        self.assertTold("aiconfig Aria persona = A thief.", "You may not change Aria")
        for switch in ("start", "stop", "sleep", "wake"):
            self.assertTold(f"ai/{switch} Aria", "You may not change Aria")
        self.typed("ai/create Bertram")
        self.assertTold("aiconfig Bertram persona = A smith.", "persona is now A smith.")
        self.assertTold("ai/stop Bertram", "switched off")

    def test_unknown_switch(self):
        """A switch that does not exist does nothing and names those that do."""
        self.fill(40)
        self.assertTold("compact/squash Aria", "no switch `/squash`", "/rollback")
        self.assertEqual(self.model.requests, [])
        self.assertTold("ai/s Aria", "no switch `/s`", "/sleep, /start, /stop")
        self.assertTold("compact/on/off Aria", "no switch `/on/off`")
        self.assertTold("ai/sl Aria", "Aria falls asleep")  # only one begins so


class TestLookup(CommandLineTest):
    """Which assistant a name means."""

    def setUp(self):
        super().setUp()
        self.arno = create_object(CHARACTER, key="Arno", location=self.room2)

    def test_names(self):
        """Whole names, beginnings, aliases and dbrefs are understood, in any case."""
        self.arno.aliases.add("miller")
        for name in ("Arno", "aRNo", "arn", "miller", f"#{self.arno.pk}"):
            self.assertIs(find_assistant(self.char1, name).obj, self.arno, name)

    def test_none_and_many(self):
        """No or more than one match is told in a sentence."""
        self.assertTold("aistatus Zed", "There is no assistant called `Zed`")
        self.assertTold("aistatus Arya", "Do you mean Aria?")
        self.arno.location = self.room1
        self.assertTold("aistatus ar", "more than one assistant called `ar`: Aria (#")
        self.assertTold("aistatus", "more than one assistant here")

    def test_no_name(self):
        """Without a name it is the only one here, if there is one."""
        self.assertTold("aistatus", "Aria (Room)")
        self.char1.location = None
        with self.assertRaisesRegex(AssistantError, "There is no assistant here"):
            find_assistant(self.char1)

    def test_no_assistants_at_all(self):
        """In a game without any it says how to make one."""
        self.arno.delete()
        self.aria.delete()
        self.assertTold("ai", "There are no assistants yet", "ai/create")
        self.assertTold("aistatus Aria", "no assistants yet. See: help ai")


class TestList(CommandLineTest):
    def test_table(self):
        """Name, room, mode, model, usage and messages; for a screen reader without boxes."""
        self.fill(3)
        self.assertTold("ai", "Name", "Aria", "Room", "awake", "scripted/model", "%", "3")
        self.session.protocol_flags["SCREENREADER"] = True
        shown = self.assertTold("ai", "Name: Aria. Room: Room. Mode: awake.")
        self.assertNotRegex(shown, r"[|~+]|---")

    def test_markup_in_names(self):
        """Markup in a name or room stays text."""
        self.room1.key = "|rHall|lcquit|ltclick|le"
        shown = self.typed("ai")
        self.assertNotIn("|r", "".join(self.told))
        self.assertNotIn("|lc", shown)


class TestCreate(CommandLineTest):
    def test_makes_one_here(self):
        """The new one stands in the room, has a script, and belongs to its maker."""
        self.assertTold("ai/create Bertram the Smith", "Bertram the Smith is here and listens")
        (script,) = (s for s in all_assistants() if s.obj.key == "Bertram the Smith")
        self.assertIs(script.obj.location, self.room1)
        self.assertTrue(script.obj.access(self.char1, "control"))

    def test_bad_names(self):
        """Names that are taken, in any case, with markup or signs, or too long, are refused."""
        self.assertTold("ai/create aria", "There is an assistant called Aria already.")
        for name in ("|rRed", "a=b", "#12", "x" * 41, "{name}", "Ann,Bob", "-"):
            with self.subTest(name=name):
                self.assertTold(f"ai/create {name}", "cannot be a name")
        self.assertTold("ai/create :some.Class", "Usage: ai/create <name>")
        self.assertEqual(len(all_assistants()), 1)

    def test_names_of_people(self):
        """A name of an account or a character is refused, in any case and normal form."""
        self.char2.key, self.account2.username = "Zoe\u0308", "Bertram"
        self.char2.location = None
        self.account2.save()
        for name, bearer in (
            ("Zoë", "a character called Zoe\u0308"),
            ("ＺＯＥ", "a character called Zoe\u0308"),
            ("BERTRAM", "an account called Bertram"),
        ):
            with self.subTest(name):
                self.assertTold(f"ai/create {name}", f"There is {bearer} already.")
        self.assertEqual(len(all_assistants()), 1)

    def test_names_of_any_script(self):
        """What Evennia takes is taken, in one normal form, and found in any."""
        for name in ("आरिया", "อารียา", "Ари́я", "アリア", "O’Hara", "R2.D2", "Zoe\u0308"):
            with self.subTest(name=name):
                self.assertTold(f"ai/create {name}", "is here")
        self.assertEqual(named("ZOË").obj.key, "Zoë")
        self.assertEqual(named("zoe\u0308").obj.key, "Zoë")

    def test_typeclass(self):
        """A typeclass can be named; one that is none, or no assistant, is refused."""
        self.assertTold(f"ai/create Bert:{CHARACTER}", "Bert is here")
        self.assertTold("ai/create Carl:no.such.Thing", "There is no typeclass `no.such.Thing`")
        self.assertTold(
            "ai/create Carl:evennia.objects.objects.DefaultCharacter", "is no assistant"
        )
        self.assertEqual(len(all_assistants()), 2)


class TestSwitches(CommandLineTest):
    def test_stop_and_start(self):
        """Switched off it does not think; switched on it does."""
        self.assertTold("ai/stop Aria", "Aria is switched off", "still hears")
        self.assertEqual(self.tick(), "disabled")
        self.assertTold("ai/start Aria", "Aria is switched on")
        self.assertEqual(self.tick(), "idle")
        self.script.stop()

    def test_sleep_and_wake(self):
        """It falls asleep and wakes up; twice is told apart."""
        self.assertTold("ai/sleep Aria", "Aria falls asleep")
        self.assertEqual(self.script.state.mode, "sleep")
        self.assertTold("ai/sleep Aria", "asleep already")
        self.assertTold("ai/wake Aria", "Aria wakes up")
        self.assertEqual(self.script.state.mode, "awake")
        self.assertTold("ai/wake Aria", "awake already")


class TestImport(CommandLineTest):
    """A file that `ai/delete` wrote becomes an assistant again."""

    def exported(self):
        """Aria, who has lived, as a file; she is deleted. Its name."""
        script, circle = self.script, private([stable_id(self.char2)])
        self.fill(3)
        whispered = Message("user", "The key is in the well.", audience=circle, channel="whisper")
        own = Message("assistant", "I keep it.", speaker=Speaker("Aria", self.aria.stable_id))
        script.history.append([whispered, own])
        self.aria.journal.add("Bob keeps bees.")
        self.aria.db.desc, self.aria.db.gold = "Tall.", 5
        self.typed("aiconfig Aria persona = A smuggler.")
        self.typed("airemember Aria = The inn closes at ten.")
        self.typed("ai/delete Aria")
        self.typed("ai/delete Aria = yes", until="is deleted")
        (path,) = (Path(self.folder.name) / "server" / "ai_exports").iterdir()
        return path

    def imported(self, path, name="Aria"):
        """The script of the assistant that is made of a file."""
        self.told_last = self.typed(f"ai/import {path.name} = {name}", until="is here and listens")
        (script,) = (each for each in all_assistants() if each.obj.key == name)
        script.stop()
        return script

    def test_it_is_who_it_was(self):
        """Options, talk with its audiences, memories, notes and look are back, and found."""
        path = self.exported()
        script = self.imported(path)
        self.assertTrue(script.enabled)
        self.assertEqual(script.config.persona, "A smuggler.")
        self.assertEqual(script.obj.db.desc, "Tall.")
        messages = script.history.messages()
        self.assertEqual(messages[-1].speaker_id, script.obj.stable_id)
        self.assertEqual(messages[-2].audience, private([stable_id(self.char2)]))
        self.assertNotIn("well", repr(script.seen(PUBLIC).messages()))
        self.assertIn("Bob keeps bees.", [entry.content for entry in script.obj.journal.all()])
        self.assertIn("The inn closes at ten.", repr(script.ledger.entries()))
        self.assertIn("bees", self.typed("aimemory Aria = bees", until="bees"))
        self.assertIsNone(script.obj.db.gold)
        self.assertIn("the game's own: gold", self.told_last)

    def test_twice_is_the_same(self):
        """An export of what was imported has the same life, under its own ids."""
        path = self.exported()
        script = self.imported(path)
        again = wait_for(script.run_exclusive(lambda: export_assistant(script)))
        lives = []
        for file in (path, again):
            text = file.read_text()
            for number, each in enumerate(json.loads(text)["ids"]):
                text = text.replace(each, f"id {number}")
            done = r'"consolidated_entry_ids": \[[^\]]*\]'  # an import consolidates them
            text = re.sub(done, '"consolidated_entry_ids": []', text)
            rows = [row for part in json.loads(text)["attributes"].values() for row in part]
            other = (*NOT_TAKEN, "gold", "options", "schema_version", "nights_done")
            rows = [row for row in rows if row["key"] not in other]
            lives.append(sorted(rows, key=lambda row: (row["key"], row["category"] or "")))
        self.assertEqual(*lives)

    def test_twice_in_one_game(self):
        """Another name makes another assistant of the same file."""
        path = self.exported()
        script, other = self.imported(path, "Nia"), self.imported(path, "Cora")
        self.assertEqual(len(other.history.messages()), len(script.history.messages()))
        self.assertNotEqual(other.obj.stable_id, script.obj.stable_id)

    def test_what_is_refused(self):
        """A taken name, another file, one that is not there: nothing is made."""
        path = self.exported()
        text = path.read_text()
        number = len(all_assistants())
        create_object(PLAYED, key="Bram")
        self.assertTold(f"ai/import {path.name} = Bram", "already", until="already")
        self.assertTold("ai/import no.json", "cannot be read", path.name, until="cannot be read")
        other = json.dumps({**json.loads(text), "ids": ["", ""]})
        none = "is no export of an assistant"
        for bad, words in (("{", none), ("[1]", none), (other, none)):
            path.write_text(bad)
            self.assertTold(f"ai/import {path.name}", words, until=words)
        self.assertEqual(len(all_assistants()), number)
        data = json.loads(text)
        data["typeclass"] = "no.such.Class"
        row = {"key": "max_context_tokens", "category": None, "value": "many"}
        data["attributes"]["script"].append(row)
        path.write_text(json.dumps(data))
        self.imported(path)
        self.assertIn("The usual one is used", self.told_last)
        self.assertIn("Not taken: `max_context_tokens`", self.told_last)
        self.be("Builder")
        self.assertTold(f"ai/import {path.name}", "is for admins")


class TestDelete(CommandLineTest):
    def delete(self, until=None):
        """Ask for it and confirm it; what is told."""
        self.typed("ai/delete Aria")
        return self.typed("ai/delete Aria = yes", until)

    def test_asks_first(self):
        """It only says what it would do: at first, after a minute, after a yes to another."""
        asked = ("Delete Aria (#", "A file is written first.", "ai/delete Aria = yes")
        self.assertTold("ai/delete Aria = yes", *asked)
        self.assertTold("ai/delete Aria", *asked)
        with patch("time.time", return_value=time.time() + 61):
            self.assertTold("ai/delete Aria = yes", *asked)
        self.assertTold("ai/delete Aria = no", "Only `yes`")
        create_object(CHARACTER, key="Bo", location=self.room1)
        self.typed("ai/delete Bo")
        self.assertTold("ai/delete Aria = yes", *asked)
        self.assertTrue(self.aria.pk)

    def test_exports_then_deletes(self):
        """A yes writes everything into a file, says where, and deletes body and script."""
        self.fill(3)
        self.aria.journal.add("Bob keeps bees.")
        self.assertIn("ai_exports", self.delete(until="is deleted"))
        self.assertIsNone(self.aria.pk)
        self.assertIsNone(self.script.pk)
        (path,) = (Path(self.folder.name) / "server" / "ai_exports").iterdir()
        data = json.loads(path.read_text(encoding="utf-8"))
        stored = {
            each["key"]: each["value"] for part in data["attributes"].values() for each in part
        }
        self.assertEqual(len(stored["conversation_tail"]["messages"]), 3)
        [entry] = stored["journal"]["entries"]
        self.assertEqual(entry["content"], "Bob keeps bees.")

    def test_in_mid_turn(self):
        """A turn in flight is given up, and then it is deleted."""
        self.model.held = True
        self.say("Aria, hello")
        self.script.at_tick()
        pump_until(lambda: self.model.requests)
        self.delete(until="is deleted")
        self.assertIsNone(self.aria.pk)

    def test_no_file_no_deletion(self):
        """If the file cannot be written it stays, as it was."""
        (Path(self.folder.name) / "server").write_text("in the way", encoding="utf-8")
        self.delete(until="was not deleted")
        pump_until(lambda: "cannot be written" in self.shown())
        self.assertTrue(self.aria.pk)
        self.assertTrue(self.script.enabled)

    def remembered(self):
        """Give it an entry in index and store; returns its scope and how much is there."""
        self.aria.journal.add("Bob keeps bees.")
        scope = self.script.scope
        self.semantic.add(scope, [item("e1", "Bob keeps bees.")])
        wait_for(self.script.memory.count())
        return scope, lambda: (
            services.mind().recall.open_index().count(scope),
            len(self.semantic.memories[scope]),
        )

    def test_a_failing_store(self):
        """It is deleted all the same; the log names what is left."""
        _, left = self.remembered()
        store = MemorySemanticStore()
        store.ids = lambda scope: fail(StoreError("the files are locked"))
        services.use(memories=store)
        with patch("evennia_ai.assistant_script.logger.log_err") as logged:
            self.delete(until="is deleted")
        pump_until(lambda: logged.called)
        self.assertIn("the files are locked", logged.call_args[0][0])
        pump_until(lambda: left()[0] == 0)

    def test_waits_for_its_memories(self):
        """It is said to be deleted once its memories are."""
        store, ids = MemorySemanticStore(), Deferred()
        store.ids = lambda scope: ids
        services.use(memories=store)
        self.delete(until="Writing Aria")
        pump_until(lambda: self.script.pk is None)
        self.assertNotIn("is deleted", self.shown())
        ids.callback(set())
        pump_until(lambda: "is deleted" in self.shown())

    def test_destroyed(self):
        """Evennia's own command takes the derived data along, of nobody else's."""
        scope, left = self.remembered()
        other = create_object(CHARACTER, key="Bo", location=self.room1)
        other.journal.add("Bob keeps bees.")
        wait_for(other.assistant.memory.count())
        index, texts = services.mind().recall.open_index(), scope_of_texts(scope)
        index.add(texts, [Turn("help:x", "", "Bees", None)])
        self.typed("destroy/force Aria")
        self.assertIsNone(self.script.pk)
        pump_until(lambda: (left(), index.count(texts)) == ((0, 0), 0))
        self.assertEqual(index.count(other.assistant.scope), 1)

    def test_a_body_that_stays_keeps_its_memories(self):
        """Nothing is deleted of one that was to be deleted and was not."""
        _, left = self.remembered()
        before = left()
        self.aria.at_object_delete = lambda: False
        self.delete(until="was not deleted")
        self.assertEqual(left(), before)


class TestWhisper(CommandLineTest):
    def test_the_answer_reaches_the_circle(self):
        """All who are whispered to get the answer, and nobody else; a name may mean nobody."""
        odo = create_object("evennia.objects.objects.DefaultCharacter", key="Odo")
        odo.location = self.char2.location = self.aria.location
        theirs, others = self.lines_of(self.char2), self.lines_of(odo)
        self.model.answers = ["I will be there."]
        self.assertTold("whisper Aria, Char2, Nobody = at dawn", "You whisper to", '"at dawn"')
        (event,) = self.script.runtime.queue
        self.assertEqual(members(event.audience), {stable_id(self.char1), stable_id(self.char2)})
        self.tick()
        self.assertIn("I will be there.", self.shown())
        self.assertIn("I will be there.", theirs[-1])
        self.assertNotIn("there", " ".join(others))


class TestPage(CommandLineTest):
    def heard(self):
        return [(e.channel, e.content, e.audience) for e in self.script.runtime.queue]

    def test_assistant(self):
        """A page reaches the assistant wherever it is, for the pager alone."""
        self.aria.location = self.room2
        self.assertTold("page aria I hid the key.", "You paged Aria with: 'I hid the key.'")
        ((channel, content, audience),) = self.heard()
        self.assertEqual((channel, content), ("page", "I hid the key."))
        self.assertTrue(audience.startswith("private:"))

    def test_accounts(self):
        """Without an assistant among the targets it is Evennia's own command."""
        self.assertTold("page TestAccount2 = hello", "You paged TestAccount2 with: 'hello'")
        self.assertTold("page", "Your latest pages")
        self.assertTold("page/last", "You last paged")
        self.assertEqual(self.heard(), [])

    def test_switched_off(self):
        """The pager is told when nobody will answer."""
        self.typed("ai/stop Aria")
        self.assertTold("page Aria = hello", "will not answer", "You paged Aria")

    def test_markup(self):
        """Markup in a page stays text."""
        self.assertTold("page Aria = |rred|n $pad(x)", "'|rred|n $pad(x)'")

    def test_answered_after_the_pager_left(self):
        """The answer is kept for the account, which logged off, and told to nobody else."""
        self.model.default = "Under the bridge."
        for number, player_then in enumerate((None, self.account2), 1):
            self.char1.account = self.account
            self.typed("page Aria = where is it?")
            self.char1.account = player_then
            self.tick()
            answers = [msg for msg in Msg.objects.all() if "bridge" in msg.message]
            receivers = [account for msg in answers for account in msg.receivers]
            self.assertEqual(receivers, [self.account] * number)
