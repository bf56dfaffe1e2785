"""How the time of some work grows with its text, whatever machine it runs on."""

from collections.abc import Callable
from time import process_time

# Eight times the text must not take over 32 times as long; the square of the length would take 64.
TIMES, MOST, GRACE_S = 8, 32, 0.5


def assert_not_square(work: Callable[[str], object], make: Callable[[int], str], size: int) -> None:
    """Fail if the processor's time for `work(make(size))` grows with the square of the size.

    The grace covers what a short run cannot show. It hides no square that anybody would notice.
    """
    work(make(1))  # what is loaded or compiled first does not count
    short_s, long_s = (_seconds(work, make(each)) for each in (size // TIMES, size))
    assert long_s <= MOST * short_s + GRACE_S, (make(1)[:40], short_s, long_s)


def _seconds(work: Callable[[str], object], text: str) -> float:
    begun = process_time()
    work(text)
    return process_time() - begun
