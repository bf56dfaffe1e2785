"""The recall benchmark judges our ranking by talks its weights have not seen."""

import random
import tempfile
import unittest
from pathlib import Path

from benchmarks.recall import Conversation, Question, all_recalls, weights_have_seen
from benchmarks.train_recall import crowd
from evennia_ai.recall import Turn

LINES = (
    ("Ann", "I bought a raven at the harbour."),
    ("Ben", "The carts were late again."),
    ("Ann", "My aunt keeps the lighthouse."),
    ("Ben", "I broke my arm at the mill."),
)
ASKED = (("What did Ann buy at the harbour?", 4, 0), ("Where did Ben break his arm?", 1, 3))


def conversation(name):
    """A little talk and two questions on it."""
    turns = tuple(Turn(f"t{n}", who, text, 60.0 * n) for n, (who, text) in enumerate(LINES))
    questions = tuple(Question(text, kind, frozenset([f"t{at}"])) for text, kind, at in ASKED)
    return Conversation(name, turns, questions)


class TestAllRecalls(unittest.TestCase):
    def test_seen_talks_are_also_ranked_by_weights_of_the_others(self):
        """Where the weights have seen the talks, each is ranked by what the others teach too."""
        found = all_recalls([conversation("a"), conversation("b")], seen=True, mem0=False)
        ours = {"ours_shipped", "ours_left_out", "ours_left_out_no_lexicon"}
        self.assertEqual(set(found), {"bm25", "static_vectors"} | ours)
        for name in ours:
            self.assertEqual(found[name]["categories_1_to_4"]["questions"], 4)
            self.assertEqual(found[name]["categories_1_to_4"]["R@5"], 1.0)

    def test_unseen_talks_are_ranked_by_the_shipped_weights(self):
        """Talks the weights have not seen need nothing left out."""
        found = all_recalls([conversation("a")], seen=False, mem0=False)
        self.assertEqual(set(found), {"bm25", "static_vectors", "ours_shipped"})

    def test_any_other_file_is_unseen(self):
        """A file that the weights were not learned on is known for that."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "talks.json"
            path.write_text("[]", encoding="utf-8")
            self.assertFalse(weights_have_seen(path))


class TestCrowd(unittest.TestCase):
    def test_all_is_said_once_some_of_it_by_others(self):
        """Merged talks hold every turn; what another tells of one names them and not `I`."""
        talks = [conversation("a"), conversation("b")] * 5
        merged = crowd(talks, random.Random(1), in_order=True)
        self.assertEqual(len({turn.id for turn in merged}), 10 * len(LINES))
        self.assertEqual(
            [t.id for t in merged if t.id.startswith("3:")], [f"3:t{n}" for n in range(4)]
        )
        told = {(turn.speaker, turn.text) for turn in merged if turn.id.endswith(":t2")}
        self.assertEqual(told, {("Ann", LINES[2][1]), ("Ben", "Ann's aunt keeps the lighthouse.")})
