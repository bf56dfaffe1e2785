"""Mutation testing: change one thing in the code that must not fail, and see which test notices.

cosmic-ray makes the mutants. This module samples them, and runs for each the tests that reach the
changed line, quickest first, in a copy of the source. It prints what no test noticed as JSON.

    python -m scripts.mutants --count 200 --seed 1
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
# What is mutated, by area; a file belongs to the first that names it. Each area gives the same
# share of the sample.
AREAS = {
    "authority": (
        "turns/tools/execution.py",
        "turns/waiting.py",
    ),
    "audiences": ("history/audience.py",),
    "rollback": ("sleep/compaction/rollback*.py",),
    "forgetting": ("privacy/*.py",),
    "replies": ("llm_interaction/reply.py",),
    "spend": ("turns/spend*.py",),
    "history": ("history/*.py",),
    "compaction": ("sleep/compaction/*.py",),
    "turn": ("turns/agent_loop.py",),
    "tick": ("turns/tick.py", "turns/runtime.py"),
    "manners": ("turns/turn_taking.py", "game/seeing.py"),
}
# Left out: type unions, which any import notices; decorators, likewise; identity for equality,
# which Python's shared small values make equal.
DULL = re.compile(
    r"BinaryOperator_BitOr_|RemoveDecorator|Operator_(Eq|NotEq|Lt|LtE|Gt|GtE)_Is(Not)?$"
)
TESTS = (
    "tests/history",
    "tests/sleep",
    "tests/turns",
    "tests/privacy",
    "tests/game",
    "tests/llm_interaction/test_reply.py",
    "tests/commands",
    "tests/test_context_compaction.py",
    "tests/test_pre_compaction_extraction.py",
)
# Tests a mutant is run against take so long together at most, as measured without mutants.
TESTS_S = 90.0
# A run may take so much longer than its tests did before it counts as hanging.
START_S, SLOWER = 60.0, 4.0
SHARE = "0.02"  # of the examples of the longest property tests
NOT_COPIED = shutil.ignore_patterns(".*", "build", "demo", "dist", "__pycache__", "site")


@dataclass(frozen=True)
class Reached:
    """Which tests reach which lines, and how long each takes.

    Args:
        lines: Names of tests by line, by file.
        seconds: What each test that passed took, by name.
    """

    lines: Mapping[str, Mapping[int, frozenset[str]]]
    seconds: Mapping[str, float]

    def tests(self, mutation: MutationSpec) -> list[str]:
        """The tests that reach a mutation, quickest first; of a constant, those of its module."""
        lines = self.lines.get(str(mutation.module_path), {})
        at = max((n for n in lines if n <= mutation.start_pos[0]), default=None)
        if mutation.definition_name is None or at is None:
            found = frozenset[str]().union(*lines.values())
        else:
            found = lines[at]
        return sorted(found & self.seconds.keys(), key=lambda name: (self.seconds[name], name))

    def affordable(self, tests: Sequence[str]) -> list[str]:
        """As many of the first of these tests as may be run for one mutant."""
        chosen, left = list[str](), TESTS_S
        for name in tests:
            left -= self.seconds[name]
            if chosen and left < 0:
                break
            chosen.append(name)
        return chosen


@dataclass(frozen=True)
class Job:
    """A mutant to be tested: its id and mutation, the tests to run, and how many reach it."""

    id: str
    mutation: MutationSpec
    tests: tuple[str, ...]
    reaching: int
    timeout_s: float


def areas(wanted: Collection[str] = AREAS) -> dict[str, str]:
    """The area of each file that is mutated; files are relative to the root."""
    found: dict[str, str] = {}
    for area, patterns in AREAS.items():
        for path in (path for each in patterns for path in (ROOT / "evennia_ai").glob(each)):
            found.setdefault(str(path.relative_to(ROOT)), area)
    return {file: area for file, area in found.items() if area in wanted}


def sample(database: WorkDB, count: int, seed: int) -> list[WorkItem]:
    """So many mutants, the same number of each area and one a place; the same for a seed."""

    def place(item: WorkItem) -> tuple[str, tuple[int, int], str, int]:
        (spec,) = item.mutations
        return str(spec.module_path), spec.start_pos, spec.operator_name, spec.occurrence

    chance, area_of = random.Random(seed), areas()
    places: dict[str, dict[Any, list[WorkItem]]] = defaultdict(lambda: defaultdict(list))
    for item in sorted(database.work_items, key=place):
        file, position, operator, _ = place(item)
        if not DULL.search(operator):
            places[area_of[file]][file, position].append(item)
    queues = [list(places[area].values()) for area in AREAS]
    for queue in queues:
        chance.shuffle(queue)
    chosen: list[WorkItem] = []
    while len(chosen) < count and any(queues):
        chosen += [chance.choice(queue.pop()) for queue in queues if queue]
    return chosen[:count]


def pytest_command(*arguments: str) -> list[str]:
    """A quick run of pytest, whose random examples are the same each time."""
    always = ("-q", "-p", "no:cacheprovider", "--tb=no", "--no-migrations", "--hypothesis-seed=0")
    return [sys.executable, "-m", "pytest", *always, *arguments]


def measure(folder: Path, tests: Sequence[str], workers: int) -> None:
    """Run the tests once without a mutant, noting what each reaches and how long it takes."""
    arguments = ["-m", "not e2e", "--cov=evennia_ai", "--cov-context=test", "--cov-report="]
    arguments += ["--numprocesses", str(workers), "--dist", "loadfile"]
    arguments += ["-o", "junit_family=xunit1", f"--junitxml={folder / 'tests.xml'}", *tests]
    environment = {**os.environ, "TEST_SHARE": SHARE, "COVERAGE_FILE": str(folder / "coverage")}
    subprocess.run(
        pytest_command(*arguments), cwd=ROOT, env=environment, stdout=sys.stderr, check=False
    )


def reached(folder: Path) -> Reached:
    """What `measure` noted."""
    seconds = {}
    for case in ElementTree.parse(folder / "tests.xml").iter("testcase"):
        file = case.get("file", "")
        within = case.get("classname", "").removeprefix(file[:-3].replace("/", "."))
        name = "::".join([file, *within.strip(".").split("."), case.get("name", "")])
        if not any(child.tag in ("failure", "error", "skipped") for child in case):
            seconds[name] = float(case.get("time", 0.0))
    data, lines = CoverageData(str(folder / "coverage")), {}
    data.read()
    for file in data.measured_files():
        by_line = {
            line: frozenset(context.split("|")[0] for context in contexts if context)
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        relative = str(Path(file).relative_to(ROOT))
        lines[relative] = {line: names for line, names in by_line.items() if names}
    return Reached(lines, seconds)


def enter_copy(folder: Path) -> None:
    """Give this process a copy of the source, in which it may change files."""
    copy = folder / f"copy{os.getpid()}"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    os.chdir(copy)
    os.environ.update(PYTHONPATH=str(copy), TEST_SHARE=SHARE)


def run(job: Job) -> tuple[Job, WorkResult, float]:
    """Test one mutant, in the copy of this process."""
    began = time.monotonic()
    if not job.tests:  # pytest would run them all
        return job, WorkResult(WorkerOutcome.NO_TEST, test_outcome=TestOutcome.SURVIVED), 0.0
    Path("tests.txt").write_text("\n".join(job.tests), encoding="utf-8")
    command = shlex.join(pytest_command("-x", "@tests.txt"))
    result = mutate_and_test([job.mutation], command, job.timeout_s)
    return job, result, time.monotonic() - began


def outcome(result: WorkResult) -> str:
    """``survived``, ``killed``, ``timeout``, or ``crashed`` where it ended without a failed test.

    A mutant that does not compile, or that pytest cannot import, is killed.
    """
    if result.test_outcome == TestOutcome.SURVIVED:
        return "survived"
    if result.output == "timeout":
        return "timeout"
    is_noticed = re.search(r"^(SUB)?(FAILED|ERROR)", result.output or "", re.MULTILINE)
    return "killed" if is_noticed else "crashed"


def survivor(job: Job, result: WorkResult) -> dict[str, Any]:
    """What is reported of a mutant that no test noticed."""
    return {
        "file": str(job.mutation.module_path),
        "line": job.mutation.start_pos[0],
        "in": job.mutation.definition_name,
        "operator": job.mutation.operator_name.removeprefix("core/"),
        "tests_run": len(job.tests),
        "tests_reaching": job.reaching,
        "diff": re.findall(r"^[-+](?![-+]{2}).*$", result.diff or "", re.MULTILINE),
    }


def test_all(database: WorkDB, jobs: Sequence[Job], folder: Path, workers: int) -> dict[str, Any]:
    """Test mutants in parallel; returns the report."""
    area_of = areas()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors, seconds, began = [], list[float](), time.monotonic()
    with ProcessPoolExecutor(workers, get_context("spawn"), enter_copy, (folder,)) as pool:
        for done in as_completed([pool.submit(run, job) for job in jobs]):
            job, result, took = done.result()
            database.set_result(job.id, result)
            how = outcome(result)
            seconds.append(took)
            counts[area_of[str(job.mutation.module_path)]][how] += 1
            if how == "survived":
                survivors.append(survivor(job, result))
            spec = job.mutation
            place = f"{spec.module_path}:{spec.start_pos[0]} {spec.operator_name}"
            print(f"{how} in {took:.0f} s: {place}", file=sys.stderr, flush=True)
    total = sum(counts.values(), Counter[str]())
    return {
        "mutants": total.total(),
        **{how: total[how] for how in ("killed", "timeout", "crashed", "survived")},
        "minutes": round((time.monotonic() - began) / 60, 1),
        "seconds_median": round(sorted(seconds)[len(seconds) // 2], 1) if seconds else 0.0,
        "seconds_max": round(max(seconds, default=0.0), 1),
        "areas": {area: dict(counts[area]) for area in AREAS},
        "survivors": sorted(survivors, key=lambda each: (each["file"], each["line"])),
    }


def main() -> None:
    """Measure, sample, test, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=AREAS, help="what to change")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--resume", action="store_true", help="go on with the folder's session")
    parser.add_argument("tests", nargs="*", default=TESTS, help="the tests to choose from")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not options.resume:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tests.xml").exists():
        measure(folder, options.tests, options.workers)
    with use_db(folder / "session.sqlite") as database:
        if not database.num_work_items:
            init(map(Path, areas(options.areas)), database, {})
            chosen = sample(database, options.count, options.seed)
            database.clear()
            database.add_work_items(chosen)
        found, jobs = reached(folder), []
        for item in database.pending_work_items:
            reaching = found.tests(item.mutations[0])
            tests = found.affordable(reaching)
            timeout_s = START_S + SLOWER * sum(found.seconds[name] for name in tests)
            mutation = item.mutations[0]
            jobs.append(Job(item.job_id, mutation, tuple(tests), len(reaching), timeout_s))
        print(json.dumps(test_all(database, jobs, folder, options.workers), indent=1))


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
