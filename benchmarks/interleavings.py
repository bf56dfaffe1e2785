"""Random sequences of talk, compactions, rollbacks, failures and restarts. Prints JSON.

After each step, every message ever recorded must exist once, in order and byte-identical to an
independent record; verification must pass; and every prompt must be valid, within its limit and
free of other people's whispers (`tests/interleaving.py`). The benchmark uses the real handlers and
services on stores in memory.

    python -m benchmarks.interleavings --count 5000
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def measure(count: int, length: int, first_seed: int = 0) -> dict[str, Any]:
    """Run sequences with consecutive seeds.

    Args:
        count: Number of sequences.
        length: Steps of each sequence, without the rollbacks at its end.
        first_seed: Seed of the first sequence.

    Returns:
        ``{"interleavings", "first_seed", "steps", "by_step", "messages", "broken": [first lines of
        the failures], "seconds"}``.
    """
    from tests.interleaving import Broken, Interleaving
    from tests.memory_assistant import MemoryWorld

    counts: Counter[str] = Counter()
    broken, steps, messages, began = [], 0, 0, time.monotonic()
    for seed in range(first_seed, first_seed + count):
        run = Interleaving(MemoryWorld(), seed)
        try:
            run.run(length)
        except Broken as error:
            broken.append(str(error)[:2000])
        counts += run.counts
        steps, messages = steps + len(run.steps), messages + len(run.record)
        if (seed - first_seed + 1) % 250 == 0:
            print(f"{seed - first_seed + 1}: {len(broken)} broken", file=sys.stderr, flush=True)
    return {
        "interleavings": count,
        "first_seed": first_seed,
        "steps": steps,
        "by_step": dict(sorted(counts.items())),
        "messages": messages,
        "broken": broken,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    """Print the figures. The exit code says whether a sequence failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    figures = measure(options.count, options.length, options.seed)
    print(json.dumps(figures, indent=2))
    sys.exit(bool(figures["broken"]))


if __name__ == "__main__":
    main()
