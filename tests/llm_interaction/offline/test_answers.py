"""What the offline model quotes as an answer, what it offers as near, what it does not know."""

import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.frames import heard_line, note
from evennia_ai.language.words import excerpt
from evennia_ai.llm_interaction.budget import shortened
from evennia_ai.llm_interaction.conversation import NOW, place_text, summary_text
from evennia_ai.llm_interaction.offline.acts import read_acts
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.offline.transcript import heard_lines, quotes_of
from tests.llm_interaction.offline.requests import (
    SYSTEM,
    TOOLS,
    answered,
    asking,
    calling,
    hit,
    play,
    reply_to,
    result,
    said,
)

OFFER = r"^I don't know that for certain\. The nearest I know: "
BEES = "My brother Tomas keeps bees."


class TestQuoting(unittest.TestCase):
    def test_the_best_sentence_with_its_speaker(self):
        """An answer quotes the sentence that holds what was asked, and who said it.

        The asker's `my` is the teller's `I`; the teller is `You` to themselves. Words that only
        frame other questions are what one about the asker is about.
        """
        others = hit("What a night in Ford.", "Dora", "m9"), hit("My boat is red.", "Ed", "m8")
        for told, who, asker, question, is_answer in (
            (BEES, "Alice", "Zed", "What does Alice's brother keep?", True),
            ("I owe Alice twelve silver.", "Bob", "Zed", "How much does Bob owe Alice?", True),
            ("The ferry leaves at dawn.", "Cora", "Zed", "When does the ferry leave?", True),
            ("The mare belongs to Odo.", "Cora", "Zed", "Who does the mare belong to?", True),
            ("Wren's horse is chestnut.", "Cora", "Zed", "What colour is Wren's horse?", True),
            ("I hid the key under the floor.", "Bob", "Zed", "Where did Bob hide the key?", True),
            ("My boat is called Heron.", "Alice", "Bob", "What is Alice's boat called?", True),
            ("My boat is called Gull.", "Bob", "Bob", "What is my boat called?", True),
            ("I come from Oxmoor and I sell rye.", "Bob", "Bob", "Where do I come from?", True),
            ("I work at the mill.", "Bob", "Bob", "Where do I work?", True),
            ("I need a new saddle.", "Bob", "Bob", "What do I need?", True),
            ("My boat is called Heron.", "Bob", "Bob", "Where do I come from?", False),
            ("I come from Oxmoor.", "Bob", "Bob", "What do you think of me?", False),
        ):
            with self.subTest(question):
                teller = "You" if who == asker else who
                want = f'{teller} told me: "{told}"' if is_answer else "I don't know."
                self.assertTrue(play(question, [*others, hit(told, who)], asker).startswith(want))

    def test_what_a_long_line_lost_is_no_fact(self):
        """Of a line that a prompt shows shortened, only what was said counts."""
        (line,) = heard_lines(heard_line("Bob", "o1.bob", "say", shortened("x" * 3000, 400)), 0)
        self.assertEqual([act.kind for act in read_acts(line, "Aria")], ["nonsense"])

    def test_a_cut_is_not_quoted(self):
        """Of text that was shortened on its way whole sentences are quoted, or words, no mark."""
        rain = "It rained on the road to Ford. " * 30
        told = f"{rain}{BEES} {rain}"
        long = "Tomas keeps bees " + "and bees by the old mill " * 60
        rows = "\n".join(f"- Alice: {BEES[:-1]} since {year}." for year in range(1200, 1300))
        summary = summary_text(shortened(rows, 400), "s1", True)
        question = "What does Alice's brother Tomas keep?"
        for reply in (
            play(question, [hit(excerpt(told, question, 400))]),
            play(question, [hit(excerpt(long, question, 400))]),
            play(question, [hit(long)]),
            reply_to("Bob", question, said("Alice", shortened(rain + BEES, 900)), tools=()).content,
            reply_to("Bob", question, {"role": "user", "content": summary}, tools=()).content,
        ):
            with self.subTest(reply):
                quotes = [quote.text for quote in quotes_of(reply)]
                self.assertTrue(quotes)
                for quote in quotes:
                    self.assertIn("bees", quote)
                    self.assertTrue(any(quote in text for text in (told, long, rows)), quote)

    def test_a_note_of_the_same_is_not_offered_beside_it(self):
        """Of a line and a note that holds it, only the first is offered."""
        note = hit('Bob: "Aria, I sell rye and flax."', "", "e1", kind="journal")
        line = hit("I sell rye and flax.", "Bob")
        for found in ([line, note], [note, line]):
            reply = play("What do I sell?", found, "Bob")
            self.assertEqual(reply.count("rye"), 1, reply)

    def test_latest_wins(self):
        """Of two tellings of one thing by one person the later counts, in whatever order."""
        old = hit("The ferry to Ford leaves at dawn.", at="2026-01-01T10:00:00")
        new = hit("The ferry to Ford leaves at noon now.", memory_id="m2", at="2026-02-01T10:00:00")
        for hits in ([old, new], [new, old]):
            reply = play("When does the ferry to Ford leave?", hits)
            self.assertEqual(reply, 'Alice told me: "The ferry to Ford leaves at noon now."')

    def test_what_the_search_finds_first_needs_no_word_in_common(self):
        """A line of the one asked about is offered if the search has it among its first three."""
        others = [hit("What a night!", "Dora", f"d{n}") for n in range(3)]
        axe = hit("I fight with an axe.", "Ines")
        for hits, is_offered in (([axe, *others], True), ([*others, axe], False)):
            self.assertEqual("axe" in play("What is Ines armed with?", hits), is_offered)

    def test_history_memories_and_ledger(self):
        """What the prompt shows is found without any hit, with its speaker."""
        for block in (
            note("You remember, m3, 2 months ago", "Alice: My horse is called Thunder."),
            summary_text("[2026-01-01 10:00] Alice: My horse is called Thunder.", "s1", True),
        ):
            for before in (block, said("Alice", "My horse is called Thunder.")["content"]):
                with self.subTest(before):
                    shown = [{"role": "user", "content": before}]
                    reply = play("What is Alice's horse called?", [], before=shown)
                    self.assertEqual(reply, 'Alice told me: "My horse is called Thunder."')

    def test_near_is_offered_as_near(self):
        """What only speaks of those asked about is offered, worded as an offer.

        A sentence that begins with a pronoun stays with the one it speaks of.
        """
        told = "The new guard has a scar. He's called Milo."
        self.assertIn("Milo", play("What is the new guard called?", [hit(told)]))
        told = "Wystan still has to square things with the bookbinder."
        reply = play("To whom does Wystan owe money?", [hit(told)])
        self.assertRegex(reply, OFFER + f'Alice told me: "{told}"$')

    def test_orders_and_what_only_a_name_finds_are_not_offered(self):
        """Of somebody asked about, no order is quoted, and no line without the kind of answer."""
        hits = [hit("Give me the lantern."), hit("Bob, pass me the salt.", memory_id="m2")]
        hits.append(hit("I lost a shoe.", memory_id="m3"))
        for question in ("What did Alice say?", "What colour is Alice's horse?"):
            self.assertNotRegex(play(question, hits), "lantern|salt")
        self.assertNotIn("shoe", play("What colour is Alice's horse?", hits))

    def test_advice_is_told(self):
        """An order that goes on with a statement is kept with it."""
        told = "Stay off the north bridge, the planks are rotten."
        [note] = reply_to("Bob", told).tool_calls
        self.assertEqual(note.arguments["content"], f"Bob: {told}")
        self.assertIn(told, play("What is rotten on the north bridge?", [hit(told)]))

    def test_never_told(self):
        """What nobody told is admitted, however much is told of other things."""
        hits = [hit(BEES), hit("My boat is called Heron.", memory_id="m2")]
        for question in (
            "How old is Tomas?",
            "How many sheep does Tomas keep?",
            "What colour is Alice's boat?",
            "What is the name of the king's horse?",
            "Who taught Tomas?",
            "Where is Bob's boat?",
        ):
            with self.subTest(question):
                self.assertRegex(play(question, hits), "don't know")

    def test_frames_and_own_words(self):
        """Own words, questions, echoes, looks, exits, lists and descriptions are nobody's words."""
        hits = [
            hit("Alice lives in Dunmere.", who="Aria"),
            hit("Does Alice live in Dunmere?", who="Bob", memory_id="m2"),
            hit('Alice told me: "I live in Dunmere."', who="Cleo", memory_id="m3"),
            hit("Alice lives in Dunmere: exits north.", "", "t1", kind="tool"),
            hit("Alice: lives in Dunmere", "", "o1", kind="observation"),
            hit("Mentioned: Alice, live, Dunmere.", "", "s1x", kind="summary"),
        ]
        place = place_text({"key": "Dunmere", "description": "Alice lives here."})
        system = {"role": "system", "content": f"You are Aria.\n\nA barkeep.\n\n{place}"}
        before = [system, answered("Alice lives in Dunmere.")]
        reply = play("Where does Alice live?", hits, before=before)
        self.assertNotRegex(reply, "told me:|noted|Dunmere")

    @settings(max_examples=100)
    @given(
        st.sampled_from(("Where is the mill?", "Who keeps the mill?", "What do you know of Ann?")),
        st.sampled_from(("look", "expand_memory", "search_memory", "move")),
        st.text(max_size=20),
    )
    def test_tool_results_are_nobodys_words(self, question, tool, noise):
        """Whatever a tool returns that nobody said, nothing of it is quoted as told."""
        seen = f"Ann keeps the mill by the river {noise}. Exits: mill, river."
        looks = respond([SYSTEM, said("Bob", "look at the mill")], TOOLS).tool_calls
        before = [calling(*looks), result(0, tool, seen)]
        reply = play(question, [{"id": "t1", "kind": "tool", "text": seen}], before=before)
        self.assertNotIn("told me:", reply or "")


class TestSearching(unittest.TestCase):
    def test_as_it_was_asked(self):
        """It searches for the question itself, then it looks around."""
        messages, queries = asking("Bob", "Aria, what profession does Alice follow?"), []
        while calls := respond(messages, TOOLS).tool_calls:
            queries += [call.arguments.get("query", call.name) for call in calls]
            messages.append(calling(*calls))
            messages += [result(i, "search_memory", {"results": []}) for i in range(len(calls))]
        self.assertEqual(queries, ["what profession does Alice follow?", "look"])

    def test_asked_without_marks(self):
        """A question needs neither a comma behind the name nor its mark; `Aria is late` is told."""
        for question, told in (
            ("aria where does mona work", "I work at the mill."),
            ("aria do you know anything about reeve", "Old Reeve has a glass eye."),
            ("aria was steht auf dem plakat", "Auf dem Plakat steht ein Name."),
            ("aria cómo se llama mi perro", "Mi perro se llama Canelo."),
        ):
            reply = play(question, [hit(told, who="Mona")], who="Mona")
            self.assertIn(told, reply, question)
        [note] = reply_to("Bob", "Aria is late again today.").tool_calls
        self.assertEqual(note.arguments["content"], "Bob: Aria is late again today.")

    def test_looks_at_what_is_asked_about(self):
        """A thing in the room is read, in any language; what is not there is not known."""
        room = "The Lantern\nA dim room.\nCharacters: Bob and Aria\nYou see: a noticeboard, "
        room += "an iron stove, a Kamin, and a 掛け軸"

        def looked(question, description):
            """The reply in a room of some things, one of which has a description."""

            def seen(arguments):
                target = arguments.get("target")
                return f"{target}\n{description}" if target else room

            return play(question, [], seen=seen)

        for question, description in (
            ("Aria, what is written on the noticeboard?", "Rowers wanted."),
            ("What stands on the stove, Aria?", "A copper kettle."),
            ("Aria, woraus ist der Kamin?", "Er ist aus Sandstein."),
            ("Aria、掛け軸には何が描いてありますか？", "鶴が描かれている。"),
        ):
            self.assertEqual(looked(question, description), description)
        self.assertRegex(looked("Who is the king of Ys?", "Old."), "don't know")
        # What it does not say is no more than the nearest.
        why = looked("Aria, when was the stove built?", "Black iron.")
        self.assertRegex(why, "for certain.*Black iron")
        self.assertRegex(looked("Aria, what is on the stove?", ""), "don't know")


class TestSource(unittest.TestCase):
    def test_every_wording(self):
        """However it is asked, it names the id of the words it quoted."""
        hits = [hit("Tomas keeps geese.", "Cora", "m1later"), hit("Tomas keeps bees.")]
        answer = answered('Alice told me: "Tomas keeps bees."')
        before = [said("Bob", "What does Tomas keep?"), answer]
        for wording in (
            "How do you know?",
            "Aria, how do you know that?",
            "Who told you that?",
            "Where did you hear that?",
            "Are you sure about that?",
            "What makes you say that?",
            "Says who?",
        ):
            with self.subTest(wording):
                reply = play(wording, hits, before=before)
                self.assertEqual(reply, 'Alice told me: "Tomas keeps bees." (memory m1)')

    def test_offers_have_a_source_too(self):
        """What was offered as near is found by its words; what was not known has no source."""
        offer = "I don't know that for certain. The nearest I know: Alice told me:"
        before = [said("Bob", "Who is Tomas?"), answered(f'{offer} "{BEES}"')]
        reply = play("How do you know?", [hit(BEES, memory_id="m7")], before=before)
        self.assertIn("(memory m7)", reply)
        reply = play("How do you know?", [], before=[answered("I don't know.")])
        self.assertNotIn("memory m", reply)

    def test_the_time(self):
        """The clock or the day, in the words of the present moment."""
        for time, question, want in (
            ("about noon, Sunday 22 November 2026", "What time is it?", "It is about noon."),
            ("about noon, Sunday 22 May 2026", "What day is it?", "It is Sunday 22 May 2026."),
            ("dusk", "What time is it?", "It is dusk."),
            ("dusk", "What day is it?", "It is dusk."),
            ("", "What time is it?", "I don't know what time it is."),
        ):
            with self.subTest(time=time, question=question):
                line = f"{note(NOW, time)}\n{said('Alice', question)['content']}"
                request = [SYSTEM, {"role": "user", "content": line}]
                self.assertEqual(respond(request).content, want)
