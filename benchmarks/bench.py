"""What the package is to reach, in one table: the goal, what is measured here, and whether.

Runs the benchmarks one after the other; all of them take hours. With `--old` each is run with
another checkout too, and its figures stand beside these. What needs a file that is no part of the
package is left out until you name it. Prints a table in Markdown; `--json` keeps what the
benchmarks printed, also when the table is not finished.

    python -m benchmarks.bench --only storage evening
    python -m benchmarks.bench --old ../earlier --locomo locomo.json --json build/bench.json
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MISSING = "–"


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Args:
        what: What is measured.
        run: The benchmark and its arguments; ``{locomo}`` is the file of `--locomo`.
        read: Finds the figure in what the benchmark prints.
        goal: The figure to reach.
        unit: What stands behind a figure.
        at_least: Whether the goal is the least, not the most.
    """

    what: str
    run: str
    read: Callable[[Any], float]
    goal: float
    unit: str = ""
    at_least: bool = False

    def figure(self, printed: Any) -> float | None:
        """The figure, or None if the benchmark printed none."""
        try:
            return float(self.read(printed))
        except (LookupError, TypeError):
            return None

    def cells(self, *printed: Any) -> list[str]:
        """The line's cells: what, the goal, a figure for each of these runs, and whether reached.

        The last of the runs is this version's.
        """
        figures = [self.figure(each) for each in printed]
        sign, now = "≥" if self.at_least else "≤", figures[-1]
        reached = "" if now is None else "no"
        if now is not None and (now >= self.goal if self.at_least else now <= self.goal):
            reached = "yes"
        return [self.what, f"{sign} {self._shown(self.goal)}", *map(self._shown, figures), reached]

    def _shown(self, figure: float | None) -> str:
        return MISSING if figure is None else f"{figure:g} {self.unit}".strip()


STORAGE, EVENING, STALLS = "storage", "evening --lines 200", "stalls"
CACHE, RECALL = (
    "prompt_cache --lines 150 --tokens 8000",
    "recall {locomo}",
)
CROWD, FULL = "crowd", "crowd --assistants 1000 --talking 200"
BEHIND, PLAIN = "background", "offline_plain benchmarks/offline_sets/stranger.txt"


def _plain(printed: Any) -> Mapping[str, float]:
    [found] = printed["texts"].values()
    return dict(found)


LINES = (
    Line("idle tick, short history", STORAGE, lambda f: f["idle_tick"][0]["median_ms"], 0.2, "ms"),
    Line("idle tick, long history", STORAGE, lambda f: f["idle_tick"][1]["median_ms"], 0.2, "ms"),
    Line("storing a turn, median", STORAGE, lambda f: f["stored_turn_ours"]["median_ms"], 5, "ms"),
    Line(
        "checkpoint, longest",
        STORAGE,
        lambda f: f["stored_turn_ours"]["checkpoint"]["max_ms"],
        25,
        "ms",
    ),
    Line(
        "journal append at 100,000", STORAGE, lambda f: f["journal_append"][1]["median_ms"], 2, "ms"
    ),
    Line("reactor stalls, p99.9", STALLS, lambda f: f["talking"]["p999_ms"], 10, "ms"),
    Line("reactor stalls, longest", STALLS, lambda f: f["talking"]["max_ms"], 50, "ms"),
    Line("`look`, 50 talking, p95", CROWD, lambda f: f["talking"]["look_ms"]["p95"], 10, "ms"),
    Line("memory of the Server", CROWD, lambda f: f["talking"]["memory_mb"]["server"], 130, "MB"),
    Line(
        "1,000 assistants, idle",
        FULL,
        lambda f: f["all"]["cpu_percent"]["server"],
        5,
        "% of a core",
    ),
    Line("`look`, 200 talking, p95", FULL, lambda f: f["talking"]["look_ms"]["p95"], 20, "ms"),
    Line(
        "search, 10,000 turns, p95", RECALL, lambda f: f["speed"][0]["search_ms"]["p95"], 20, "ms"
    ),
    Line(
        "search, 100,000 turns, p95", RECALL, lambda f: f["speed"][1]["search_ms"]["p95"], 60, "ms"
    ),
    Line("  first after a start", RECALL, lambda f: f["speed"][1]["first_search_ms"], 1_000, "ms"),
    Line("recall, R@5", RECALL, lambda f: f["headline"]["R@5"], 0.72, at_least=True),
    Line("recall, R@10", RECALL, lambda f: f["headline"]["R@10"], 0.79, at_least=True),
    Line("cached: turns", CACHE, lambda f: f["requests"]["awake"]["mean"], 0.9, at_least=True),
    Line(
        "calls of a compaction with whisperers",
        "whisperers",
        lambda f: max(row["calls"] for row in f["limits"]),
        8,
    ),
    Line(
        "prompt tokens of it",
        "whisperers",
        lambda f: max(row["prompt_tokens"] for row in f["limits"]),
        18_000,
    ),
    Line(
        "lines of talk it keeps",
        "whisperers",
        lambda f: min(row["talk_kept"] for row in f["limits"] if row["limit"] >= 6000),
        16,
        at_least=True,
    ),
    Line(
        "a line to its request, p95", EVENING, lambda f: f["line_to_request_ms"]["p95"], 100, "ms"
    ),
    Line("right answerers", EVENING, lambda f: f["right_answerers"], 0.95, at_least=True),
    Line("calls a public line", EVENING, lambda f: f["calls_per_public_line"], 1.2),
    Line(
        "history grown by a question",
        "hard_evening",
        lambda f: f["memory"]["grown_tokens"]["median"],
        300,
        "tokens",
    ),
    Line(
        "answers during a compaction",
        BEHIND,
        lambda f: f["background"]["p95_to_plain"]["during"],
        1.2,
    ),
    Line(
        "answers in an emergency",
        BEHIND,
        lambda f: f["background"]["p95_to_plain"]["emergency"],
        1.2,
    ),
    Line(
        "offline: answered or offered",
        PLAIN,
        lambda f: round(_plain(f)["answered"] + _plain(f)["offered"], 3),
        0.9,
        at_least=True,
    ),
    Line("offline: wrong", PLAIN, lambda f: _plain(f)["wrong_of_all"], 0.06),
    Line(
        "offline: never told, admitted",
        PLAIN,
        lambda f: _plain(f)["never_told_admitted"],
        0.85,
        at_least=True,
    ),
    Line(
        "facts after ten compactions",
        "compaction_facts --facts 100 --compactions 10",
        lambda f: f["found_by_history_search_with_its_words"],
        100,
        "of 100",
        at_least=True,
    ),
    Line("server start, longer by", "server_start", lambda f: f["more_with_package_s"], 0.5, "s"),
    Line("lines lost in kills", "kill --kills 100", lambda f: f["lost"], 0),
    Line("lines doubled in kills", "kill --kills 100", lambda f: f["doubled"], 0),
    Line("proofs that fail after kills", "kill --kills 100", lambda f: f["violations"], 0),
    *(
        Line(f"{what} in kills of the mind", "kill_mind --kills 100", read, 0)
        for what, read in (
            ("messages lost or doubled", lambda f: f["lost"] + f["doubled"] + f["changed"]),
            ("questions unanswered", lambda f: f["unanswered"]),
        )
    ),
    *(
        Line(f"{what} in half an hour of faults", "soak --minutes 30", read, 0)
        for what, read in (
            (
                "lines lost, doubled or leaked",
                lambda f: sum(f[name] for name in ("lost", "doubled", "leaked", "not_proven")),
            ),
            ("questions unanswered", lambda f: f["unanswered"]),
        )
    ),
    Line(
        "reloads that come back",
        "reload --times 20",
        lambda f: f["came_back"],
        20,
        "of 20",
        at_least=True,
    ),
    Line(
        "calls answered over reloads",
        "reload --times 20",
        lambda f: f["answered"],
        20,
        "of 20",
        at_least=True,
    ),
)


def result_of(run: str, checkout: Path) -> Any:
    """What a benchmark of a checkout prints; None if it prints no JSON, as is then said."""
    name, *arguments = shlex.split(run)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    # First on the path, also for the processes of a started game.
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    print(f"-- {checkout}: {run}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        return json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        print(f"{run} printed no figures (exit code {done.returncode})", file=sys.stderr)
        return None


def wanted(only: Sequence[str], locomo: Path | None) -> Iterator[Line]:
    """The lines to be measured; what is left out for want of a file is said."""
    for line in LINES:
        if only and line.run.split()[0] not in only:
            continue
        if locomo is None and "{locomo}" in line.run:
            print(f"left out: {line.what} (needs --locomo)", file=sys.stderr)
        else:
            yield line


def table(lines: Sequence[Line], printed: Mapping[str, Sequence[Any]], names: Sequence[str]) -> str:
    """The lines as Markdown; `printed` holds what each run printed, for each of `names`."""
    rows = [["what", "goal", *names, "reached"], ["---"] * (len(names) + 3)]
    rows += [line.cells(*printed[line.run]) for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Run everything that is wanted and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    names = sorted({line.run.split()[0] for line in LINES})
    parser.add_argument("--only", nargs="+", choices=names, default=(), metavar="BENCHMARK")
    parser.add_argument("--old", type=Path, help="a checkout to measure beside this one")
    parser.add_argument("--locomo", type=Path, help="LoCoMo's conversations, for `recall`")
    parser.add_argument("--json", type=Path, help="where to keep what the benchmarks print")
    options = parser.parse_args()
    checkouts = [each.resolve() for each in (options.old, ROOT) if each]
    lines = list(wanted(options.only, options.locomo))
    locomo = shlex.quote(str(options.locomo and options.locomo.resolve()))
    printed: dict[str, list[Any]] = {}
    for run in dict.fromkeys(line.run for line in lines):
        printed[run] = [result_of(run.format(locomo=locomo), each) for each in checkouts]
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(printed, indent=1), encoding="utf-8")
    print(table(lines, printed, ["old", "now"][-len(checkouts) :]))


if __name__ == "__main__":
    main()
