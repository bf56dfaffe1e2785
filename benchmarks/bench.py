"""Run the benchmarks that have a goal, one after the other, and print one table in Markdown.

All of them take hours. `recall` needs a file of LoCoMo conversations.

    python -m benchmarks.bench --only storage crowd
    python -m benchmarks.bench --locomo locomo.json
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FULL = "crowd --assistants 1000 --talking 200"
PLAIN = "offline benchmarks/offline_sets/stranger.txt"
BY_TOOLS = "evening --lines 50 --through-tools"
STEPS = "great_store_steps_ms"  # each is the longest of its kind
OTHERS_LOST = "by_language.*.share_of_others_lost"
# What is measured, by which command, the figure in what it prints ("*" is each of a list or table:
# the worst one counts), and the goal.
LINES = (
    ("idle tick, short history, ms", "storage", "idle_tick.0.ms.median", "≤", 0.2),
    ("idle tick, long history, ms", "storage", "idle_tick.1.ms.median", "≤", 0.2),
    ("storing a turn, median, ms", "storage", "stored_turn_ours.ms.median", "≤", 5),
    ("journal append at 100,000, ms", "storage", "journal_append.1.ms.median", "≤", 2),
    ("longest step, a line heard, ms", "storage", f"{STEPS}.heard.max", "≤", 20),
    ("longest step, answered, ms", "storage", f"{STEPS}.answered.max", "≤", 20),
    ("longest step, forgotten, ms", "storage", f"{STEPS}.forgotten.max", "≤", 20),
    ("commit of a compaction, ms", "storage", f"{STEPS}.compacting.max", "≤", 60),
    ("reactor stalls, p99.9, ms", "stalls", "talking.late_ms.p999", "≤", 50),
    ("reactor stalls, longest, ms", "stalls", "talking.late_ms.max", "≤", 120),
    ("`look`, 50 talking, p95, ms", "crowd", "talking.look_ms.p95", "≤", 60),
    ("memory, 100 idle assistants, MB", "crowd", "all.memory_mb.together", "≤", 450),
    ("1,000 assistants idle, % of a core", FULL, "all.cpu_percent.server", "≤", 5),
    ("search, 10,000 turns, p95, ms", "recall {locomo}", "speed.0.search_ms.p95", "≤", 20),
    ("search, 100,000 turns, p95, ms", "recall {locomo}", "speed.1.search_ms.p95", "≤", 60),
    ("first search after a start, ms", "recall {locomo}", "speed.1.first_search_ms", "≤", 1000),
    ("recall, R@5", "recall {locomo}", "headline.R@5", "≥", 0.71),
    ("recall, R@10", "recall {locomo}", "headline.R@10", "≥", 0.79),
    ("cached share of turns", "prompt_cache", "requests.awake.mean", "≥", 0.9),
    ("calls of a compaction, whisperers", "compaction", "limits.*.calls", "≤", 6),
    ("prompt tokens of it", "compaction", "limits.*.prompt_tokens", "≤", 14_000),
    ("lines of talk it keeps", "compaction --limits 6000 8000", "limits.*.talk_kept", "≥", 16),
    ("a line to its request, p95, ms", "evening", "line_to_request_ms.p95", "≤", 100),
    ("right answerers", "evening", "right_answerers", "≥", 0.95),
    ("calls a public line, by tools", BY_TOOLS, "calls_per_public_line", "≤", 1.2),
    ("fixed part of a turn, median", "prompt_size", "*.fixed.median", "≤", 1_200),
    ("fixed part of a turn, worst", "prompt_size", "*.fixed.worst", "≤", 1_800),
    ("a sign, the model down, s", "hard_evening", "down.seconds_to_sign.p95", "≤", 2.5),
    ("history grown by a question, tokens", "hard_evening", "memory.grown_tokens.median", "≤", 300),
    ("answers in a compaction", "background", "during_to_plain.p95", "≤", 1.2),
    ("offline: answered or offered", PLAIN, "texts.*.answered_or_offered", "≥", 0.85),
    ("offline: wrong", PLAIN, "texts.*.wrong_of_all", "≤", 0.02),
    ("offline: never told, admitted", PLAIN, "texts.*.never_told_admitted", "≥", 0.9),
    ("facts after ten compactions", "compaction", "facts.history_by_words", "≥", 100),
    ("runs of a forgotten guest left", "forgetting --half 1", "by_language.*.runs_left", "≤", 0),
    ("others' replies lost", "forgetting --half 1", OTHERS_LOST, "≤", 0.01),
    ("server start, longer by, s", "server_start", "more_with_package_s", "≤", 0.5),
)


def figures(printed: Any, path: str) -> list[float]:
    """The figures at a path; none where the benchmark printed none."""
    name, _, rest = path.partition(".")
    if isinstance(printed, Mapping):
        parts = printed.values() if name == "*" else [printed[name]] if name in printed else []
    else:
        parts = printed if name == "*" else printed[int(name) :][:1]
    return [each for part in parts for each in (figures(part, rest) if rest else [part])]


def printed_by(command: str) -> Any:
    """What a benchmark prints; an empty table if that is no JSON."""
    name, *arguments = shlex.split(command)
    print(f"-- {command}", file=sys.stderr, flush=True)
    run = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    text = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=False).stdout
    try:
        return json.loads(text[text.index("{") :])
    except ValueError:
        return {}


def main() -> None:
    """Run what is wanted and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", default=(), metavar="BENCHMARK")
    parser.add_argument("--locomo", type=Path, help="LoCoMo's conversations, for `recall`")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    print("| what | goal | figure | reached |\n|---|---|---|---|")
    for what, command, path, sign, goal in LINES:
        name = command.split()[0].rpartition(".")[2]
        if (options.only and name not in options.only) or ("{" in command and not options.locomo):
            continue
        if command not in results:
            results[command] = printed_by(command.format(locomo=options.locomo))
        values = figures(results[command], path)
        figure = (max(values) if sign == "≤" else min(values)) if values else None
        reached = figure is not None and (figure <= goal if sign == "≤" else figure >= goal)
        shown = "–" if figure is None else f"{figure:g}"
        print(f"| {what} | {sign} {goal:g} | {shown} | {'yes' if reached else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
