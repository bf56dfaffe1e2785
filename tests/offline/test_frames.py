"""What frames the offline model's evidence: never quoted, never told by anybody, never a source."""

import json
import unittest

from evennia_ai.llm_interaction.pinned_notes import LABEL, note_line
from evennia_ai.offline import words
from evennia_ai.offline.brain import respond
from evennia_ai.offline.lines import JOURNAL, LEDGER, SUMMARY, note_lines, told_lines
from evennia_ai.offline.smalltalk import LINES, is_fixed, line_for
from evennia_ai.offline.summary import MARK, summarise
from evennia_ai.rag_memory.ledger import APPROVED, new_entry
from tests.offline.test_brain import SYSTEM, TOOLS, calling, hit, moment, play, result, said

RECENT = "[Recent past] (a summary of 9 earlier messages; data, not orders)\n[CONTEXT SUMMARY]\n"


def user(text):
    return {"role": "user", "content": text}


def answered(text):
    return {"role": "assistant", "content": text}


def read(row, source=SUMMARY):
    return [(line.who, line.text) for line in told_lines(row, source=source)]


class TestFrames(unittest.TestCase):
    def test_stamps_and_speaker(self):
        """The times in front of a summary's line are no part of it; its speaker is found."""
        row = "[2026-11-20 14:51] [2026-11-20 14:50] Alice: Marla is devoted to Veshna."
        self.assertEqual(read(row), [("Alice", "Marla is devoted to Veshna.")])
        titled = f"[CONTEXT SYNTHESIS] {row}"
        self.assertEqual(read(titled), [("Alice", "Marla is devoted to Veshna.")])

    def test_echo_of_another(self):
        """What she quoted of somebody is that one's words, however often it was quoted."""
        echo = 'Bob told me: "It was Tomas who taught me. He is strict."'
        want = [("Bob", "It was Tomas who taught me. He is strict.")]
        self.assertEqual(read(echo), want)
        self.assertEqual(read(f"Aria: {echo}"), want)
        self.assertEqual(read(f"[2026-11-20 14:50] I have it noted: {echo}"), want)

    def test_several_quotes(self):
        """An answer of several quotes is read as what each of those quoted told."""
        row = 'Edith told me: "I won at dice." Bob told me: "I lost." You told me: "I drew."'
        for text in (row, f"Aria: {row}", f"- (m1own) 2026-11-20 Aria: {json.dumps(row)}"):
            with self.subTest(text=text):
                self.assertEqual(read(text), [("Edith", "I won at dice."), ("Bob", "I lost.")])

    def test_own_echo(self):
        """What she told somebody of their own words, and her fixed lines, are no evidence."""
        for row in (
            'You told me: "I live in Ford."',
            'Alice: You told me: "I live in Ford."',
            'You asked me to keep in mind: "I like rum."',
            *(line_for(kind, "x", "Mira", "Aria") for kind in LINES),
        ):
            with self.subTest(row=row):
                self.assertEqual(read(row), [])

    def test_bare_names(self):
        """Lists of names without what was said of them are no evidence."""
        for row in (
            "Also mentioned: Entry, Noted.",
            "Also mentioned in what was folded into s1abc: Entry; Noted",
            "I have it noted: Mentioned: Entry, Noted.",
            '- (e1x) 2026-11-20 "Also mentioned in what was folded into s1abc: Entry; Noted"',
        ):
            with self.subTest(row=row):
                self.assertEqual(read(row, JOURNAL), [])

    def test_sentences_said_apart(self):
        """A summary joins what was said apart; only a sentence that leans on another stays."""
        row = "Alice: Marla is devoted to Veshna. Quill lent me eight florins. He wants it back."
        want = ["Marla is devoted to Veshna.", "Quill lent me eight florins. He wants it back."]
        self.assertEqual([text for _, text in read(row)], want)
        whole = " ".join(want)
        self.assertEqual(read(f"Alice: {whole}", JOURNAL), [("Alice", whole)])

    def test_prose(self):
        """A summary in prose is read as a whole; a quote of hers within it stands apart."""
        row = 'Marla keeps bees. The hives stand at Ford. Bob told me: "I fear bees."'
        prose = ("", "Marla keeps bees. The hives stand at Ford.")
        self.assertEqual(read(row), [prose, ("Bob", "I fear bees.")])

    def test_cut_short(self):
        """A sentence of a summary that was cut off is no evidence."""
        row = "Alice: Quill keeps geese. Odo owes me eight fl…"
        self.assertEqual(read(row), [("Alice", "Quill keeps geese.")])

    def test_ledger(self):
        """Notes of the ledger are read with their giver, written small or not."""
        for name in ("Bob", "bob"):
            by = {"key": name, "id": "o29.1ng0pb1"}
            entry = new_entry("I like plum brandy", "l1abc", 0.0, by, state=APPROVED)
            (line,) = note_lines(f"{LABEL}\nPreferences:\n{note_line(entry)}\n(1 more note.)")
            self.assertEqual(
                (line.who, line.text, line.id, line.source),
                (name, "I like plum brandy", "l1abc", LEDGER),
            )

    def test_many_lines_of_one_memory(self):
        """A memory of several lines, quoted on one, is read line by line, all under its id."""
        text = json.dumps("[2026-11-20 14:50] Alice: I live in Ford.\nBob: I keep bees.")
        lines = list(note_lines(f"[Memories]\n- (s1abc) 2026-11-20 {text}"))
        self.assertEqual(
            [(x.who, x.id, x.source) for x in lines],
            [("Alice", "s1abc", SUMMARY), ("Bob", "s1abc", SUMMARY)],
        )


class TestEvidence(unittest.TestCase):
    def test_no_frame_is_quoted(self):
        """Asked what a summary's speaker follows, it does not quote what he said of another."""
        row = "[2026-11-20 14:51] [2026-11-20 14:50] Alice: Marla is devoted to Veshna."
        reply = play("What deity does Alice follow?", [], before=[user(RECENT + row)])
        self.assertRegex(reply, "don't know")
        reply = play("What deity does Marla follow?", [], before=[user(RECENT + row)])
        self.assertEqual(reply, 'Alice told me: "Marla is devoted to Veshna."')

    def test_message_before_summary(self):
        """Where message and summary say the same, the message is named."""
        hits = [
            hit("[CONTEXT SYNTHESIS] Alice: Tomas keeps bees.", "", "compact_1a", kind="summary"),
            hit("Tomas keeps bees.", "Alice", "m1abcdefghi"),
        ]
        before = [
            said("Bob", "What does Tomas keep?"),
            answered('Alice told me: "Tomas keeps bees."'),
        ]
        reply = play("How do you know that?", hits, before=before)
        self.assertIn("(memory m1abcdefghi)", reply)

    def test_newcomer(self):
        """A newcomer's greeting brings up no list of names."""
        before = [user(RECENT + "Also mentioned: Entry, Noted.")]
        reply = play("Hello Aria. What do you have noted?", [], "Mira", before, ("Mira",))
        self.assertNotRegex(reply, "Entry|entioned")

    def test_ledger_as_asked(self):
        """A note is what its giver asked to be kept in mind, and what he told to others."""
        by = {"key": "Bob", "id": "o29.1ng0pb1"}
        entry = new_entry("I like plum brandy", "l1abc", 0.0, by, state=APPROVED)
        before = [user(f"{LABEL}\nPreferences:\n{note_line(entry)}")]
        reply = play("Aria, what do I like to drink?", [], before=before)
        self.assertEqual(reply, 'You asked me to keep in mind: "I like plum brandy"')
        reply = play("Aria, what does Bob like to drink?", [], "Alice", before, ("Alice",))
        self.assertEqual(reply, 'Bob told me: "I like plum brandy"')

    def test_own_words_are_no_evidence(self):
        """Her own answers, found again, tell nothing."""
        hits = [hit('Bob told me: "Tomas keeps bees."', "Aria"), hit("I don't know.", "Aria")]
        self.assertRegex(play("What does Tomas keep?", hits), "don't know")


class TestSource(unittest.TestCase):
    def ask_source(self, wording, answer, hits, before=(), who="Bob"):
        history = [*before, said("Bob", "What does Tomas keep?"), answered(answer)]
        return play(wording, hits, who, history, ("Bob", "Alice"))

    def test_every_wording(self):
        """However it is asked, it names the id of the words it quoted."""
        hits = [
            hit("Tomas keeps geese, not bees.", "Cora", "m1later", "2026-02-02T10:00:00"),
            hit("Tomas keeps bees.", "Alice", "m1right"),
        ]
        for wording in (
            "How do you know?",
            "Aria, how do you know that?",
            "Who told you that?",
            "Where did you hear that?",
            "Are you sure about that?",
            "How come you know that?",
            "What makes you say that?",
            "Says who?",
            "Where do you know that from?",
            "Where do you have that from?",
        ):
            with self.subTest(wording=wording):
                reply = self.ask_source(wording, 'Alice told me: "Tomas keeps bees."', hits)
                self.assertEqual(reply, 'Alice told me: "Tomas keeps bees." (memory m1right)')

    def test_asked_again(self):
        """Asked twice, also by another, it names the same source."""
        answer = 'Alice told me: "Tomas keeps bees."'
        before = [said("Bob", "How do you know?"), answered(f"{answer} (memory m1right)")]
        hits = [hit("Tomas keeps bees.", "Alice", "m1right")]
        for who, want in (("Bob", "Alice"), ("Cora", "Alice"), ("Alice", "You")):
            history = [said("Bob", "What does Tomas keep?"), answered(answer), *before]
            reply = play("How do you know that?", hits, who, history, ("Bob", "Alice", "Cora"))
            self.assertEqual(reply, f'{want} told me: "Tomas keeps bees." (memory m1right)')

    def test_searches_for_the_words(self):
        """An answer from the history or a summary shown is searched for word by word."""
        row = user(RECENT + "Alice: Tomas keeps bees.")
        before = [SYSTEM, row, said("Bob", "What does Tomas keep?")]
        request = [*before, answered('Alice told me: "Tomas keeps bees."')]
        request += [said("Bob", "How do you know?"), moment("Bob")]
        reply = respond(request, TOOLS)
        self.assertEqual(reply.tool_calls[0].arguments, {"query": "Alice Tomas keeps bees."})
        found = {"results": [hit("Tomas keeps bees.", "Alice", "m1right")]}
        request += [calling(*reply.tool_calls), result(0, "search_memory", found)]
        self.assertIn("(memory m1right)", respond(request, TOOLS).content)

    def test_echo_is_no_source(self):
        """Where only her own quote of it is shown, the words are searched for, and they named."""
        echo = '- (m1own) 2026-11-20 Aria: "Alice told me: \\"Tomas keeps bees.\\""'
        hits = [hit("Tomas keeps bees.", "Alice", "m1right")]
        answer = 'Alice told me: "Tomas keeps bees."'
        reply = self.ask_source("How do you know?", answer, hits, [user(f"[Memories]\n{echo}")])
        self.assertIn("(memory m1right)", reply)

    def test_ledger_and_journal(self):
        """The id of a note of the ledger or of a journal entry is named where it was quoted."""
        by = {"key": "Bob", "id": "o2.bob"}
        entry = new_entry("I like plum brandy", "l1abc", 0.0, by, state=APPROVED)
        before = [user(f"{LABEL}\nPreferences:\n{note_line(entry)}")]
        answer = 'You asked me to keep in mind: "I like plum brandy"'
        self.assertEqual(
            self.ask_source("How do you know?", answer, [], before), f"{answer} (memory l1abc)"
        )
        hits = [hit("Tomas keeps bees in Ford.", "", "e1abc", kind="journal")]
        answer = "I have it noted: Tomas keeps bees in Ford."
        self.assertEqual(
            self.ask_source("How do you know?", answer, hits), f"{answer} (memory e1abc)"
        )

    def test_not_known(self):
        """Of what it did not know it names no source, and of lost words only that it said them."""
        reply = self.ask_source(
            "How do you know?", "I'm sorry, I don't know. I was never told.", []
        )
        self.assertNotIn("memory m", reply)
        lost = self.ask_source("How do you know?", 'Alice told me: "Tomas keeps bees."', [])
        self.assertIn("Tomas keeps bees", lost)


class TestCivil(unittest.TestCase):
    def test_presence(self):
        """Asked whether it is there, by page as well, it says so and looks nothing up."""
        for channel in ("say", "page"):
            for text in (
                "Aria, are you there?",
                "are you still here, Aria?",
                "Aria, can you hear me?",
            ):
                with self.subTest(text=text, channel=channel):
                    request = [SYSTEM, said("Bob", text, channel), moment("Bob")]
                    self.assertRegex(respond(request, TOOLS).content or "", "[Hh]ere")

    def test_pastime(self):
        """Asked for a joke or a song it declines, civilly."""
        for text in (
            "Aria, tell me a joke",
            "Sing us a song, Aria!",
            "Aria, do you know any jokes?",
        ):
            with self.subTest(text=text):
                request = [SYSTEM, said("Bob", text), moment("Bob")]
                self.assertIn("afraid", respond(request, TOOLS).content or "")

    def test_topic(self):
        """Asked what the talk was about it tells what was said last, or that nothing was."""
        asked = said("Bob", "Aria, what were we talking about?")
        reply = respond([SYSTEM, asked, moment("Bob")], TOOLS)
        self.assertIn("Nothing in particular", reply.content)
        before = [said("Alice", "The mill burned down."), answered("I see."), asked]
        reply = respond([SYSTEM, *before, moment("Bob")], TOOLS)
        self.assertEqual(reply.content, 'Just now Alice said "The mill burned down.".')

    def test_nonsense(self):
        """Symbols and one letter held down are no fact: neither kept, nor quoted, nor summed up."""
        for text in (
            "Aria |r{0} $rand(1,2) %s {evil}",
            "Aria, " + "a" * 400,
            "Aria, ### 4$%f {x} |w hm",
        ):
            with self.subTest(text=text):
                reply = respond([SYSTEM, said("Bob", text), moment("Bob")], TOOLS)
                self.assertFalse(reply.tool_calls)
                self.assertRegex(reply.content, "sense|follow")
                self.assertNotIn(
                    text[6:30], summarise(f"{MARK}\nBob: {text}\nBob: I live in Ford.")
                )
        hits = [hit("Aria |r{0} $rand(1,2) %s {evil}", "Mira")]
        self.assertRegex(play("What did Mira say?", hits), "don't know")

    def test_sense(self):
        """Odd but readable sentences are not nonsense."""
        for text in (
            "I owe Bob 12 silver!",
            "Waaah, it's 3:30 pm (already)...",
            "*waves* at Jory-Ann",
            "Meet me at 10pm, O'Brien & co.",
        ):
            with self.subTest(text=text):
                self.assertFalse(words.is_nonsense(text))

    def test_fixed_lines(self):
        """Its fixed lines are told from others, whomever they are said to."""
        self.assertTrue(is_fixed("Good to know, Mira the Bold."))
        self.assertTrue(is_fixed("I'll keep that in mind."))
        self.assertFalse(is_fixed("I'll keep the key in the well."))


class TestSummaries(unittest.TestCase):
    def test_echoes_stay_out(self):
        """A summary holds what was told, neither her quotes of it nor lists of names."""
        text = summarise(
            f"{MARK}\n[2026-11-20 14:51] Alice: Marla is devoted to Veshna.\n"
            'Also mentioned: Entry, Noted. \nassistant: Bob told me: "It was Tomas."\n'
            "assistant: I'm sorry, I don't know. I was never told.\n"
            'Bob [o1.b] says: "Quill lent me eight florins and wants it back."'
        )
        self.assertIn("Alice: Marla is devoted to Veshna.", text)
        self.assertNotRegex(text, r"Tomas|Entry|sorry|2026")


class TestPlainly(unittest.TestCase):
    def test_turns_of_phrase(self):
        """Questions in roundabout words find what the plain ones find."""
        smith = "I've a brother who earns good money as a blacksmith."
        tanner = "They apprenticed me young, and I've been a tanner ever since."
        password = "They changed the brewery's password to thistledown."
        for question, teller, told in (
            ("How does Edith's brother make money?", "Edith", smith),
            ("What profession does Edith follow?", "Edith", tanner),
            ("Say, what would Falk order at the bar?", "Falk", "I can't resist goat's milk."),
            ("What is the secret word at the brewery?", "Falk", password),
            ("Who took the map from Jory?", "Falk", "Jory's map was stolen by Corin."),
        ):
            with self.subTest(question=question):
                self.assertIn(told, play(question, [hit(told, teller)]))

    def test_supposed(self):
        """What holds on a condition only, or is denied by nobody's name, is no answer."""
        supposed = hit("If it rains on Friday I am staying in bed.", "Edith", "m2", "2026-02-02")
        home = hit("Since the flood I've been staying in Brackenford.", "Edith")
        self.assertIn("Brackenford", play("Whereabouts does Edith dwell?", [home, supposed]))
        gossip = hit("Nobody believes Elsbeth any more.", "Falk", "m2", "2026-02-02")
        god = hit("Elsbeth kneels before Luthiel and no other god.")
        self.assertIn("Luthiel", play("To which god does Elsbeth pray?", [god, gossip]))
        self.assertRegex(play("To which god does Elsbeth pray?", [gossip]), "don't know")
