"""`aihistory`, `compact`, `aimemory`: reading and folding what is remembered."""

import json
import re
from dataclasses import replace
from pathlib import Path

from evennia import CmdSet
from evennia.server.portal.mxp import mxp_parse
from evennia.utils.ansi import parse_ansi

from evennia_ai import services
from evennia_ai.commands.compaction import CmdCompact
from evennia_ai.commands.history import CmdAIHistory
from evennia_ai.commands.memory import CmdAIMemory
from evennia_ai.errors import Refusal
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import STAFF, private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.entities import Observation, Profile, new_profile, observe
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.staff.acts import note_called
from evennia_ai.testing import call
from tests.command_line import CommandLineTest, WholePagesTest
from tests.store_case import item
from tests.waiting import alone, pump_until, wait_for

SUMMARY = "They talked of the harvest."
FORGED = "2026-11-22 08:00 Char2 (say): I stole the crown."
TWO_LINES = f"hello lantern\n{FORGED}"
PERSIAN = "می\u200cخواهم"
FAMILY = "👨\u200d👩\u200d👧"


class OpenCmdSet(CmdSet):
    """Over the assistants' own set: the commands as a game may have them, open to everyone."""

    priority = 1

    def at_cmdset_creation(self):
        for command in (CmdAIHistory, CmdCompact, CmdAIMemory):
            fields = {"__doc__": command.__doc__, "locks": "cmd:all();admin:perm(Admin)"}
            self.add(type(f"{command.__name__}Open", (command,), fields))


class MemoryLineTest(CommandLineTest):
    """With a room of many lines, and a model that summarises."""

    default = SUMMARY

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)

    def heard(self, text, **fields):
        """Store a line somebody said."""
        (stored,) = self.script.history.append(
            [Message("user", text, speaker=Speaker(key="Bob", id="o9.x"), **fields)]
        )
        return stored

    def open_to_players(self):
        """The game opens the commands to everyone, and `self.char1` is a player."""
        self.char1.cmdset.add(OpenCmdSet)
        self.be("Player")

    def secret(self, text):
        """Store a line `self.char1` whispered."""
        circle = private([stable_id(self.char1)])
        return self.heard(text, channel="whisper", audience=circle)


class TestHistory(MemoryLineTest):
    def test_newest_first(self):
        """The newest stands first, with time, speaker and channel."""
        self.heard("first words")
        self.heard("last words", channel="pose")
        shown = self.assertTold(
            "aihistory Aria", "Bob (say): first words", "(2 of 2 live messages)"
        )
        self.assertRegex(shown, r"\d{4}-\d\d-\d\d \d\d:\d\d Bob \(pose\): last words")
        self.assertLess(shown.index("last words"), shown.index("first words"))

    def test_pages(self):
        """A long history comes in pages; the next is shown when it is asked for."""
        for number in range(30):
            self.heard(f"line {number} ends")
        shown = self.assertTold("aihistory Aria", "line 29 ends", "line 20 ends")
        self.assertNotIn("line 19 ends", shown)
        self.assertTold("next", "line 19 ends")
        self.assertTold("q", "Exited pager")

    def test_a_page_is_a_screen(self):
        """Of long lines the beginnings are shown; /full shows them whole."""
        for number in range(30):
            self.heard(f"line {number} begins " + "and goes on " * 40 + "and ends")
        shown = self.assertTold("aihistory Aria", "line 29 begins and goes on", "…")
        rows = sum(-(-max(1, len(line)) // 80) for line in shown.splitlines())
        self.assertLessEqual(rows, 24, shown)
        self.assertIn("and ends", self.typed("aihistory/full Aria"))

    def test_private_is_for_admins(self):
        """Where a game opens the command to others, they see public talk only."""
        self.secret("the key is under the mat")
        self.heard("a public word")
        self.open_to_players()
        for switch in ("", "/full", "/raw"):
            shown = self.assertTold(f"aihistory{switch} Aria", "a public word")
            self.assertNotIn("under the mat", shown)
        self.assertTold("aihistory/export Aria", "`aihistory/export` is for admins.")

    def test_hidden_summaries(self):
        """To others, a summary of private talk is answered as one that is not there."""
        for number in range(60):
            self.secret(f"the key {number} is under the mat " * 8)
        self.heard("a public word")
        self.fill(60)
        self.typed("compact Aria", until="compacted")
        records = {record.audience: record.id for record in self.script.history.summaries()}
        public = records.pop("public")
        (hidden,) = records.values()
        self.assertTold(f"aihistory/expand Aria = {hidden}", "was made from")
        self.open_to_players()
        begun = next(hidden[:n] for n in range(len(hidden)) if not public.startswith(hidden[:n]))
        for wanted in (hidden, begun):
            shown = self.assertTold(f"aihistory/expand Aria = {wanted}", "There is no summary")
            self.assertNotIn(hidden, shown.replace(f"`{wanted}`", ""))
        self.assertTold(f"aihistory/expand Aria = {public[:3]}", f"Summary {public} was made")

    def test_tool_calls(self):
        """The full history has tool calls and results, the plain one has not."""
        self.heard("look around")
        calls = call("look", target="Bob")
        called = Message("assistant", "", tool_calls=tuple(calls))
        result = Message("tool", "a bearded man", tool_call_id=calls[0]["id"], name="look")
        self.script.history.append([called, result])
        self.assertTold(
            "aihistory/full Aria", 'calls look {"target": "Bob"}', "result of look (tool): a bear"
        )
        self.assertNotIn("bearded", self.typed("aihistory Aria"))

    def test_markup(self):
        """Markup, braces, links and function calls in stored text stay text, on every page."""
        self.heard("|rred|n {0} {name} $pad(x,9) %s |lcquit|ltclick|le")
        shown = "|rred|n {0} {name} $pad(x,9) %s ¦lcquit¦ltclick¦le"
        self.assertTold("aihistory Aria", shown)
        self.fill(20)
        self.assertTold("aihistory Aria", "(21 of 21 live messages)")
        self.assertTold("end", shown)
        for sent in self.told:
            self.assertNotIn("SEND", mxp_parse(parse_ansi(sent, mxp=True)))

    def test_expand(self):
        """A summary's id brings back the messages it was made from, word for word."""
        self.heard("the very first word")
        self.fill(40)
        self.typed("compact Aria", until="compacted")
        (record,) = self.script.history.summaries()
        self.assertTold("aihistory/summaries Aria", record.id, "recent", "live", SUMMARY)
        shown = self.assertTold(f"aihistory/expand Aria = {record.id}", "these 21 messages")
        self.assertIn("Bob (say): the very first word", shown)
        self.assertTold(f"aihistory/expand Aria = {record.id[:-2]}", "these 21 messages")

    def test_receipts(self):
        """Each compaction's receipt says how much left, how well, and which query finds it."""
        self.heard("Captain Mirabel hid 47 crowns under the Salt Chapel.")
        self.fill(40)
        self.typed("compact Aria", until="compacted")
        shown = self.assertTold(
            "aihistory/summaries Aria", "Compaction: Aria compacted 21 messages"
        )
        self.assertRegex(shown, r"\(manual\): [\d,]+ to [\d,]+ tokens, level main, \d+% of names")
        query = re.search(r"aihistory/search Aria = ([^.<]+)\.", shown)[1]
        self.assertIn("Mirabel", query)
        found = self.typed(f"aihistory/search Aria = {query}", until="best first")
        self.assertIn("under the Salt Chapel", found)
        self.open_to_players()  # they see summaries only
        self.assertNotIn("Compaction:", self.assertTold("aihistory/summaries Aria", SUMMARY))
        self.be("Admin")
        wait_for(alone(rollback_compaction, self.script))
        self.assertTold("aihistory/summaries Aria", "Taken back 20")

    def test_search(self):
        """Words are found in the history and the journal, private ones too."""
        self.secret("the lantern hides a map")
        self.aria.journal.add("Bob likes the old lantern.")
        shown = self.typed("aihistory/search Aria = lantern", until="best first")
        self.assertIn("|wlantern|n", "\n".join(self.told))
        self.assertIn("[private: Char] Bob: the lantern hides a map", shown)
        self.assertRegex(shown, r"e\w+ journal .*old lantern")
        self.typed("ai/create Bertram")
        self.assertTold("aihistory/search Bertram = x", "knows nothing of", until="knows nothing")
        self.assertTold("aihistory/search Aria", "Usage: aihistory/search")
        for source in ("archive", "journal", "observations", "output of tools"):
            self.assertIn(source, CmdAIHistory.__doc__)

    def test_export_leaves_nothing_out(self):
        """Every Attribute of script and body is in the file, by key and category."""
        self.fill(40)
        self.typed("compact Aria", until="compacted")
        self.script.ledger.add("Never sing", Speaker("Char", "o1.x"), state="approved")
        self.script.attributes.add("spend", ["gone wrong"], category="ai_damaged")
        self.aria.attributes.add("odd", {(1, 2): {3}, "who": self.char1, "n": None})
        self.aria.aliases.add("barkeep")
        self.aria.tags.add("staffed", category="inn")
        shown = self.typed("aihistory/export Aria", until="Written: ")
        data = json.loads(Path(shown.split("Written: ")[1].strip()).read_text(encoding="utf-8"))
        for name, owner in (("script", self.script), ("body", self.aria)):
            kept = {(a["key"], a["category"]): a["value"] for a in data["attributes"][name]}
            there = {(a.key, a.category) for a in owner.attributes.all()}
            self.assertEqual(set(kept), there)
        odd = kept["odd", None]
        self.assertEqual(odd, {"(1, 2)": [3], "who": str(self.char1), "n": None})
        self.assertEqual((data["aliases"], data["tags"]), (["barkeep"], [["staffed", "inn"]]))
        stored = [(each["category"], each["value"]) for each in data["attributes"]["script"]]
        [note] = [value for category, value in stored if category == "ai_ledger"]
        self.assertEqual(note["text"], "Never sing")
        compactions = [record.to_dict() for record in self.script.history.compactions()]
        self.assertEqual([v for category, v in stored if category == "ai_compactions"], compactions)


class TestCompact(MemoryLineTest):
    def test_figures(self):
        """Facts are saved with it and counted; figures are told, and how to see what left."""
        self.configure(pre_compact_extraction_enabled=True)
        self.fill(40)
        note = {"lines": [1], "text": "Bob keeps bees.", "about": ""}
        self.model.answers = [json.dumps({"summary": "They talked.", "notes": [note]})]
        shown = self.assertTold(
            "compact Aria",
            "compacted 20 messages",
            "Saved into the journal: 1 entry.",
            until="Raw words",
        )
        self.assertRegex(shown, r"[\d,]+ to [\d,]+ tokens, level main")
        self.assertRegex(shown, r"aihistory/expand Aria = s\w+")

    def test_reasons(self):
        """Why it did not compact is told in words."""
        self.assertTold("compact Aria", "it has no history yet", until="did not")
        self.configure(compact_enabled=False)
        off = "compaction is off; compact/on"
        shown = self.assertTold("compact Aria", off, until="did not")
        self.assertNotIn("begins", shown)

    def test_waits_for_the_turn(self):
        """In mid-turn it waits; the turn is whole, then it compacts."""
        self.fill(40)
        self.model.held = True
        self.say("Aria, hello")
        turn = self.script.at_tick()
        pump_until(lambda: self.model.requests)
        self.assertTold("compact Aria", "when its turn is over")
        self.assertEqual(len(self.model.requests), 1)
        self.model.release()
        self.assertEqual(wait_for(turn), "turn")
        pump_until(lambda: "compacted" in self.shown())
        self.assertIsNone(self.script.runtime.lock.running)

    def test_stopped(self):
        """A stop waits for a compaction that somebody asked for, and says so."""
        self.fill(40)
        self.model.held = True
        self.typed("compact Aria")
        self.assertTold("ai/stop Aria", "is switched off.", "Waiting until Aria has finished")
        self.assertIsNotNone(self.script.runtime.lock.running)
        self.model.release()
        pump_until(lambda: "Aria has finished." in self.shown())
        self.assertIn("compacted", self.shown())

    def test_opened_to_others(self):
        """Where a game opens the command, compaction stays for admins."""
        self.char1.cmdset.add(OpenCmdSet)
        self.be("Player")
        self.assertTold("compact Aria", "`compact` is for admins")
        for switch in ("rollback", "verify", "on", "off"):
            self.assertTold(f"compact/{switch} Aria", f"`compact/{switch}` is for admins")

    def test_compact_memories(self):
        """It works with and without the @, with and without a name."""
        for line in ("@compact-memories", "compact-memories Aria", "@compact-memories ar"):
            for hint in ("", "keep ships"):
                self.fill(30)
                typed = f"{line} = {hint}" if hint else line
                self.assertTold(typed, "Aria compacted", until="compacted")
                self.assertIn(hint, str(self.model.requests[-1].messages))
        self.open_to_players()
        self.assertTold("@compact-memories Aria", "`compact` is for admins.")


class TestMemory(MemoryLineTest):
    def test_query_marks_what_is_private(self):
        """Whispers, journal entries, memories and observations are marked with who knows them."""
        circle = private([stable_id(self.char1)])
        self.secret("the lantern hides a map")
        self.aria.journal.add("Bob hid the lantern.", audience=circle)
        known = new_profile("o9.b", "Bob", 1.0)
        known = observe(known, "Bob has a lantern.", 1.0, "m1", circle)
        self.aria.entities.put({"o9.b": known})
        self.semantic.add(self.script.scope, [item("e9", "A lantern shone.", STAFF)])
        shown = self.typed("aimemory Aria = Bob's lantern", until="best first")
        for text in ("Bob: the lantern hides a map", "Bob hid the lantern", "Bob has a lantern"):
            self.assertRegex(shown, rf"\[private: Char\] .*{text}")
        self.assertIn("[staff] A lantern shone.", shown)

    def test_counts(self):
        """Without a query, with /status and as a command of its own, it counts."""
        self.heard("the lantern hides a map")
        self.aria.journal.add("Bob keeps bees.")
        self.semantic.add(self.script.scope, [item("e1", "Bob keeps bees.")])
        self.semantic.add("another", [item("e2", "Ann sails.")])
        lines = ("aimemory Aria", "aimemory/status Aria", "@memory-status", "memory-status Aria")
        for line in lines:
            self.assertTold(
                line,
                "Search index: 2 items",
                "works (in memory); 1 memories",
                "Journal: 1 entries, 1 not yet consolidated",
                until="Entity profiles: 0",
            )

    def test_entities(self):
        """Profiles show who, when, and what is known, former things marked."""
        told = (
            Observation("b0", "A friend.", "", "", "relationship", "friend"),
            Observation("b1", "Has |rbees|n", "1", "", "keeps", "bees"),
            Observation("b2", "Has cows", "0", "", "keeps", "cows"),
        )
        seen = {"first_seen": "2026-01-01T10:00:00", "last_seen": "2026-01-02T10:00:00"}
        bob = Profile("o9.x", "Bob", "person", observations=told, **seen)
        self.aria.entities.put({"o9.x": bob})
        self.assertTold(
            "aimemory/entities Aria",
            "Bob (person, o9.x), last seen 2026-01-02 10:00",
            "relationship: friend",
            "[staff] Has |rbees|n (before: cows)",
        )

    def test_opened_to_others(self):
        """Where a game opens the command to others, they read what is public, change nothing."""
        circle = private([stable_id(self.char1)])
        by = Speaker("Bob", "o9.b")
        waiting = self.script.ledger.add("Char is tall", by, state="proposed")
        self.script.ledger.add("I fear cats", by, state="approved", audience=circle)
        entry = self.aria.journal.add("Bob keeps bees")
        met = {
            "o9.b": observe(new_profile("o9.b", "Bob", 0.0), "keeps bees", 1.0, "e1"),
            "o8.c": observe(new_profile("o8.c", "Cat", 0.0), "is a spy", 1.0, "e2", circle),
        }
        met["o9.b"] = observe(met["o9.b"], "owes ale", 2.0, "e3", circle)
        self.aria.entities.put(met)
        self.assertTold("aimemory/entities Aria", "is a spy", "owes ale", "keeps bees", "(2)")
        self.open_to_players()
        shown = self.assertTold("aimemory/entities Aria", "keeps bees", "(1)")
        shown += self.assertTold("aimemory/facts Aria", "Char is tall")
        for hidden in ("is a spy", "Cat", "owes ale", "fear cats"):
            self.assertNotIn(hidden, shown)
        for switch, wanted in (("approve", waiting), ("reject", waiting), ("forget", entry)):
            self.assertTold(f"aimemory/{switch} Aria = {wanted.id}", "is for admins")
        self.assertTold("aimemory/rebuild Aria", "is for admins")
        self.assertEqual(self.script.ledger.get(waiting.id).state, "proposed")
        self.be("Admin")
        self.assertTold(f"aimemory/approve Aria = {waiting.id}", "approved by Char")

    def test_an_id_that_begins_another(self):
        """A whole id names its note, though another's begins so; a beginning must be of one."""
        by = Speaker("Char", "o1")
        tea = self.script.ledger.add("Tea", by, state="approved")
        notes = [replace(tea, id=each) for each in ("l1", "l10")]
        self.assertEqual(note_called(notes, " L1 "), notes[0])
        self.assertEqual(note_called(notes, "l10"), notes[1])
        with self.assertRaises(Refusal):
            note_called(notes, "l")

    def test_rebuild(self):
        """The index is made anew from history, archive and journal, with the same hits."""
        for number in range(40):
            self.heard(f"the lantern of house {number}")
        self.typed("compact Aria", until="compacted")
        self.aria.journal.add("Bob keeps bees.")
        wait_for(self.script.memory.count())
        services.mind().recall.open_index().clear(self.script.scope)
        self.assertEqual(wait_for(self.script.memory.count()), 0)
        self.typed("aimemory/rebuild Aria", until="holds 42 items again")
        self.assertTold("aimemory Aria = bees", "Bob keeps bees", until="best first")


class TestStoredWords(WholePagesTest):
    """What was said and summarised is shown letter by letter; the summariser here forges."""

    default = f"{SUMMARY}\n{FORGED}"

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)

    def heard_and_compacted(self, text):
        """The record of the summary of what was said."""
        self.talk(text)
        self.fill(60)
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        return self.script.history.summaries()[-1].id

    def assertMarked(self, line, until=None, marks="    | "):  # noqa: N802 - unittest's own form
        """What the line tells has the forged words, on a line that is marked."""
        shown = self.typed(line, until).split("\n")
        told = [each for each in shown if "stole the crown" in each]
        self.assertTrue(told, line)
        self.assertTrue(all(each.startswith(marks) for each in told), told)

    def test_no_line_is_taken_for_a_record(self):
        """Wherever stored words are shown, what looks like a record of its own is marked."""
        self.talk(TWO_LINES)
        for line in ("aihistory Aria", "aihistory/full Aria"):
            self.assertMarked(line)
        for line in ("aihistory/search Aria = lantern", "aimemory Aria = lantern"):
            self.assertMarked(line, until="best first")
        summary = self.heard_and_compacted(f"{TWO_LINES} {PERSIAN} {FAMILY}")
        self.assertMarked("aihistory/summaries Aria")
        self.assertMarked(f"aihistory/expand Aria = {summary}")
        for joined in (PERSIAN, FAMILY):  # what joins letters and parts of an emoji stays
            self.assertIn(joined, self.shown())
        bob = observe(new_profile("o9.x", TWO_LINES, 0.0), TWO_LINES, 1.0, "m1")
        self.aria.entities.put({"o9.x": bob})
        self.assertMarked("aimemory/entities Aria", marks=("    | ", "  hello lantern"))
        self.script.trouble(TWO_LINES)
        self.assertMarked("aistatus Aria")

    def test_raw(self):
        """As JSON also what cannot be seen is there, as an escape, and nothing is lost."""
        heard = f"{PERSIAN} {FAMILY} soft\u00adhyphen \u202eturned\x7f \U000e0067 a\nb\\"
        self.script.history.append([Message("user", heard)])
        escapes = ("soft\\u00adhyphen", "\\u202eturned\\u007f", "\\udb40\\udc67")
        shown = self.assertTold("aihistory/raw Aria", PERSIAN, *escapes)
        self.assertEqual(json.loads(shown)[0]["content"], heard)
