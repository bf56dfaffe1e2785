"""How the work of a reader grows with its text.

Steps are counted on any machine: calls of functions, ours and built-in ones. Only `make test-all`
measures time as well, which also shows what a single built-in call or a pattern does.
"""

import sys
from collections.abc import Callable
from time import process_time

from tests.thoroughness import SHARE

# Eight times the text must not take over 20 times as many steps, nor over 32 times as long; the
# square of the length would take 64 times.
TIMES, MOST_STEPS, MOST_TIME = 8, 20, 32
# So many steps a character, and so much time, show no growth.
GRACE_STEPS, GRACE_S = 10, 0.1
# Times are the least of so many, as other processes take time, too.
TRIES = 3


def assert_not_square(work: Callable[[str], object], make: Callable[[int], str], size: int) -> None:
    """Fail if the work of `work(make(size))` grows with the square of the size."""
    work(make(1))  # what is loaded or compiled first does not count
    short, long = make(size // TIMES), make(size)
    few, many = steps(work, short), steps(work, long)
    assert many <= MOST_STEPS * few + GRACE_STEPS * len(long), (make(1)[:40], few, many)
    if SHARE < 1 or _seconds(work, long) <= GRACE_S:
        return
    short_s, long_s = (min(_seconds(work, text) for _ in range(TRIES)) for text in (short, long))
    assert long_s <= MOST_TIME * short_s + GRACE_S, (make(1)[:40], short_s, long_s)


def steps(work: Callable[[str], object], text: str) -> int:
    """How many functions are called to do some work."""
    count = 0

    def on_event(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work(text)
    finally:
        sys.setprofile(before)
    return count


def _seconds(work: Callable[[str], object], text: str) -> float:
    begun = process_time()
    work(text)
    return process_time() - begun
