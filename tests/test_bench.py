"""The table of all that is measured."""

import io
import unittest
from contextlib import redirect_stderr
from pathlib import Path

from benchmarks.bench import LINES, ROOT, Line, result_of, table, wanted

MOST = Line("a tick", "storage", lambda f: f["tick"][0], 0.2, "ms")
LEAST = Line("recall", "recall {locomo}", lambda f: f["share"], 0.9, at_least=True)


class TestTable(unittest.TestCase):
    """What is shown of what benchmarks print."""

    def test_cells(self):
        """A goal is reached at its very figure; what was not printed is neither reached nor not."""
        for line, printed, shown, reached in (
            (MOST, {"tick": [0.2]}, "0.2 ms", "yes"),
            (MOST, {"tick": [0.21]}, "0.21 ms", "no"),
            (LEAST, {"share": 0.9}, "0.9", "yes"),
            (LEAST, {"share": 0.89}, "0.89", "no"),
            (MOST, {"tick": []}, "–", ""),
            (LEAST, None, "–", ""),
        ):
            with self.subTest(printed=printed):
                self.assertEqual(line.cells(printed)[-2:], [shown, reached])

    def test_old_beside_new(self):
        """This version decides whether the goal is reached."""
        printed = {"storage": [{"tick": [0.1]}, {"tick": [0.3]}]}
        shown = table([MOST], printed, ["old", "now"])
        self.assertEqual(shown.splitlines()[-1], "| a tick | ≤ 0.2 ms | 0.1 ms | 0.3 ms | no |")

    def test_what_is_left_out(self):
        """Without the conversations the lines that need them are left out, and named."""
        said = io.StringIO()
        with redirect_stderr(said):
            lines = list(wanted((), None))
        self.assertFalse([line for line in lines if "{locomo}" in line.run])
        self.assertIn("left out: recall, R@10", said.getvalue())
        self.assertEqual(list(wanted((), Path("here"))), list(LINES))
        self.assertEqual({line.run for line in wanted(["storage"], None)}, {"storage"})

    def test_each_names_a_benchmark(self):
        for line in LINES:
            self.assertTrue((ROOT / "benchmarks" / f"{line.run.split()[0]}.py").is_file(), line.run)

    def test_one_that_fails(self):
        """It is said, and its lines stay empty."""
        said = io.StringIO()
        with redirect_stderr(said):
            self.assertIsNone(result_of("nothing --at all", ROOT))
        self.assertIn("nothing --at all printed no figures (exit code 1)", said.getvalue())
