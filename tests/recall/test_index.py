"""The recall index: adding, finding, removing, audiences, threads."""

import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.audience import STAFF, private, visible
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.view import new_records, record_type

TALK = (
    ("Alice", "Good evening! I came up from the harbour today."),
    ("Bram", "Welcome. What brings you to the Gilded Lantern?"),
    ("Alice", "My brother Tobias sells lamp oil in Northgate, I am visiting him."),
    ("Bram", "Do you keep any pets, Alice?"),
    ("Alice", "Two. A raven and a very old tortoise."),
    ("Bram", "What are they called?"),
    ("Alice", "The raven is Pepper, the tortoise is Mister Slow."),
    ("Bram", "I broke my left arm at the mill in spring."),
    ("Cora", "The bridge over the Wend was washed away last week."),
    ("Bram", "Then the grain carts must go round by Oxford Cross."),
)


def talk(prefix="t", audience=None, start=0.0):
    """The little talk as turns, a minute apart."""
    return [
        Turn(f"{prefix}{n}", speaker, text, start + 60.0 * n, audience=audience)
        for n, (speaker, text) in enumerate(TALK)
    ]


def turns_in(index, scope, wanted):
    """The turns of a scope with these ids, in their order."""
    numbers = index._numbers_of(index._number_of(scope), wanted)
    turns = index._turns(numbers.values())
    return tuple(turns[numbers[each]] for each in wanted if each in numbers)


def ids(hits):
    """Turn ids of hits, in order."""
    return [hit.turn_id for hit in hits]


def whispered(text="the raven hid gold", turn_id="w", speaker="Eve", audience="private:o1"):
    """A turn that not everybody may see."""
    return Turn(turn_id, speaker, text, 250.0, None, audience)


# In several languages: what held once, what holds now, and the question.
MOVES = (
    ("Bram lives in the mill.", "Bram lives in the tower.", "Where does Bram live?"),
    ("Bram wohnt in der Mühle.", "Bram wohnt im Turm.", "Wo wohnt Bram?"),
    ("布拉姆住在磨坊里。", "布拉姆住在塔楼里。", "布拉姆住在哪里？"),
    (
        "ブラムは水車小屋に住んでいます。",
        "ブラムは塔に住んでいます。",
        "ブラムはどこに住んでいますか？",
    ),
    ("برام يسكن في الطاحونة.", "برام يسكن في البرج.", "أين يسكن برام؟"),
    ("ब्राम चक्की में रहता है।", "ब्राम मीनार में रहता है।", "ब्राम कहाँ रहता है?"),
    # A thing or a name is the only word of the question.
    ("The key lies under the mat.", "The key lies in the chest.", "Where is the key?"),
    ("Bram is in the mill.", "Bram is in the tower.", "Where is Bram?"),
    ("Der Schlüssel liegt im Keller.", "Der Schlüssel liegt im Turm.", "Wo ist der Schlüssel?"),
    ("钥匙在垫子下面。", "钥匙在箱子里。", "钥匙在哪里？"),
    ("鍵はマットの下にあります。", "鍵は箱の中にあります。", "鍵はどこにありますか？"),
    ("المفتاح تحت السجادة.", "المفتاح في الصندوق.", "أين المفتاح؟"),
    ("चाबी चटाई के नीचे है।", "चाबी संदूक में है।", "चाबी कहाँ है?"),
    # Capitals beyond ASCII.
    ("Der Ölkrug steht im Keller.", "Der Ölkrug steht im Turm.", "Wo ist der Ölkrug?"),
    ("Étienne est au moulin.", "Étienne est dans la tour.", "Où est Étienne ?"),
    ("Иван живёт на мельнице.", "Иван живёт в башне.", "Где Иван?"),
)


class RecallCase(unittest.TestCase):
    def setUp(self):
        self.index = RecallIndex(":memory:")
        self.addCleanup(self.index.close)
        self.index.add("aria", talk())


class TestSearch(RecallCase):
    def test_finds_by_meaning(self):
        """A turn is found by words of near meaning; at most as many as are asked for."""
        self.assertIn("t8", ids(self.index.search("aria", "flood destroyed crossing"))[:3])
        for limit, count in ((3, 3), (0, 0), (-1, 0)):
            self.assertEqual(len(self.index.search("aria", "Alice raven", limit=limit)), count)

    def test_the_newest_of_two_that_say_the_same(self):
        """It comes first in every language, whatever it says."""
        for number, (one, other, question) in enumerate(MOVES):
            for place, (old, new) in enumerate(((one, other), (other, one))):
                with self.subTest(question=question, old=old):
                    scope = f"{number}.{place}"
                    said = (old, "Hm, hm.", new, "The soup is hot.")
                    turns = [Turn(f"t{n}", "Cora", text, 5e4 * n) for n, text in enumerate(said)]
                    self.index.add(scope, turns)
                    self.assertEqual(ids(self.index.search(scope, question))[:2], ["t2", "t0"])

    def test_questions_are_marked(self):
        """By the question mark of any script."""
        for statement, _, question in MOVES:
            turns = [Turn("a", "Cora", text, 0.0) for text in (statement, question)]
            records = new_records(turns, np.zeros((2, 8), np.float32), record_type(8))
            self.assertEqual(records["asks"].tolist(), [0, 1], question)

    def test_words_of_one_sign(self):
        """They are found where words have no spaces, and the best hit matches."""
        told = {
            "舟": "Aria、私の舟の名前はサギです。",
            "魚": "私は魚を食べません。",
            "船": "我的船叫苍鹭。",
            "猫": "昨天我买了一只猫。",
            "배": "저는 배가 있어요.",
            "งู": "ฉันเห็นงูในครัว",
        }
        self.index.add("aria", [Turn(word, "Mira", text, 0.0) for word, text in told.items()])
        for word in told:
            best = self.index.search("aria", word)[0]
            self.assertEqual((best.turn_id, best.matches), (word, True))

    def test_scopes_are_apart(self):
        """What one scope holds is not found in another, and stays when that is cleared."""
        self.index.add("bo", [Turn("z", "Dan", "nothing to see", 0)])
        self.assertEqual(self.index.search("nobody", "raven"), [])
        for count in (len(TALK), 0):
            self.assertEqual(ids(self.index.search("bo", "raven tortoise")), ["z"])
            self.assertEqual(self.index.count("aria"), count)
            self.assertEqual(self.index.clear("aria"), count)
        self.assertEqual(self.index.search("aria", "raven"), [])

    def words_found(self, query):
        """Ids of the turns that share a word with a query."""
        return {hit.turn_id for hit in self.index.search("aria", query) if hit.matches}

    def test_any_text_is_a_query(self):
        """Operators, quotes, accents and any length are looked through for words, as text."""
        signs = (
            "raven AND",
            "raven*",
            "^raven",
            "text:raven",
            "-raven",
            "{raven}",
            "NEAR(raven, b)",
        )
        for query in (*signs, "raven " * 20_000, "\x00raven", "ravén"):
            with self.subTest(query=query[:40]):
                self.assertEqual(self.words_found(query), {"t4", "t6"})

    def test_queries_that_find_no_word(self):
        """Signs alone find nothing at all; unknown words and impossible dates share no word."""
        for query in ("", " ", '"', "'", "NOT", "(((", "🐉🐉", "\ud800\udfff", "%_", "\\"):
            with self.subTest(query=query):
                self.assertEqual(self.index.search("aria", query), [])
        dates = ("may 99 2023", "in 0000", "May 0, 2023")
        for query in ("a" * 100_000, "日本語", "; DROP TABLE turns; --", *dates):
            with self.subTest(query=query[:40]):
                self.assertEqual(self.words_found(query), set())
        self.assertEqual(self.words_found("raven"), {"t4", "t6"})

    @settings(max_examples=60)
    @given(st.text(max_size=200))
    def test_random_texts(self, query):
        """No text at all makes a search fail."""
        self.assertLessEqual(len(self.index.search("aria", query, limit=3)), 3)

    def test_any_turn_can_be_stored(self):
        """Odd texts, names and times are stored and do not spoil searching."""
        odd = ["", "\ud800", "\x00", '"', "🐉" * 10, "x" * 100_000, "ÅÄÖ ravén", "日本語"]
        moments = [None, -1, 1e18, "never", "2023-05-08", date(2023, 5, 8), datetime.max, "1:5 pm"]
        odd += [None, 5, b"raw", ["a", "list"], "not a number"]
        moments += [float("inf"), -float("inf"), 10**400, {}, float("nan")]
        pairs = enumerate(zip(odd, moments, strict=True))
        turns = [Turn(f"odd{n}", text, text, moment) for n, (text, moment) in pairs]
        self.index.add("aria", turns)
        self.assertEqual(self.index.count("aria"), len(TALK) + len(odd))
        self.assertEqual(self.index.add("aria", turns), 0)
        nothing = Turn("odd8", "", "", None, None, "public")
        self.assertEqual(turns_in(self.index, "aria", ["odd8"]), (nothing,))
        self.assertIn("t4", ids(self.index.search("aria", "raven in may 2023")))


AUDIENCES = ["public", STAFF, private(["o1"]), private(["o2"]), private(["o1", "o2"])]
WORDS = ["raven", "tortoise", "mill", "bridge", "secret", "gold", "letter", "rose", "poison"]
# Two of them are words as well, in full or in short.
SPEAKERS = ["Eve", "Rose", "Goldie", "Bram Miller", ""]


class TestAudiences(RecallCase):
    def test_who_finds_a_whisper(self):
        """Those who took part, and staff; who asks for nobody known finds what is public."""
        public = self.index.search("aria", "raven gold", 50, "public")
        odd = whispered(turn_id="a", audience="everyone!!")
        self.index.add("aria", [whispered(), odd])
        strangers = ("public", private(["o2"]), private(["o1", "o2"]))
        for viewer in (*strangers, "o1", "o2", "Public", "everyone", "", "private:", "Staff", 5):
            self.assertEqual(self.index.search("aria", "raven gold", 50, viewer), public, viewer)
        for viewer, found in ((private(["o1"]), {"w"}), (STAFF, {"w", "a"}), (None, {"w", "a"})):
            hits = self.index.search("aria", "raven gold", 50, viewer)
            self.assertEqual(found, {"w", "a"} & set(ids(hits)))

    def test_filtered_before_limited(self):
        """Turns another may not see take no place in the list."""
        secret = [whispered("raven raven gold", f"w{n}", audience=STAFF) for n in range(30)]
        self.index.add("aria", secret)
        hits = self.index.search("aria", "raven gold", limit=5, audience="public")
        self.assertEqual([hit.turn_id[0] for hit in hits], ["t"] * 5)

    @settings(max_examples=60)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(AUDIENCES),
                st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
                st.integers(0, 40),
                st.sampled_from(SPEAKERS),
            ),
            min_size=1,
            max_size=25,
        ),
        st.sampled_from(AUDIENCES),
        st.lists(st.sampled_from([*WORDS, "did Eve", "Rose", "Bram"]), min_size=1, max_size=3),
    )
    def test_what_is_hidden_has_no_influence(self, said, viewer, asked):
        """A search for an audience answers as if the turns it may not see were not there."""
        turns = [
            Turn(f"t{n}", speaker, " ".join(text), 60.0 * minute, None, audience)
            for n, (audience, text, minute, speaker) in enumerate(said)
        ]
        whole, part = RecallIndex(":memory:"), RecallIndex(":memory:")
        whole.add("aria", turns)
        part.add("aria", [turn for turn in turns if visible(turn.audience, viewer)])
        query = " ".join(asked)
        hits = whole.search("aria", query, 50, viewer)
        self.assertTrue(all(visible(hit.audience, viewer) for hit in hits))
        self.assertEqual(hits, part.search("aria", query, 50))

    @settings(max_examples=60)
    @given(
        st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=25),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True),
    )
    def test_an_exact_hit_is_never_behind_a_vague_one(self, said, asked):
        """What tells all words of the query stands before what matches in nothing."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        turns = [Turn(f"t{n}", "Cora", " ".join(w), 60.0 * n) for n, w in enumerate(said)]
        index.add("aria", turns)
        hits = index.search("aria", " ".join(asked), 50)
        exact = [place for place, hit in enumerate(hits) if set(asked) <= set(hit.text.split())]
        vague = [place for place, hit in enumerate(hits) if not hit.matches]
        self.assertLess(max(exact, default=-1), min(vague, default=len(hits)))

    def test_adds_searches_and_removals_at_once(self):
        """Threads that add, search and remove at once lose nothing and never fail."""

        def work(number):
            for turn in talk(f"w{number}-", start=number * 10_000.0):
                self.index.add("aria", [turn])
                self.index.search("aria", turn.text, audience="public")
            self.index.remove("aria", [f"w{number}-0"])

        with ThreadPoolExecutor(6) as workers:
            list(workers.map(work, range(6)))  # raises what one of them raised
        self.assertEqual(self.index.count("aria"), len(TALK) + 6 * (len(TALK) - 1))
