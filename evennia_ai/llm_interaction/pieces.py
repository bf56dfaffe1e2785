"""Lines of text in runs that fit a request, without losing a character."""

from collections.abc import Callable, Sequence

Counter = Callable[[str], int]


def packed(lines: Sequence[str], room_tokens: int, count: Counter) -> tuple[tuple[str, ...], ...]:
    """Lines in runs of at most `room_tokens`, in order.

    A line that does not fit by itself is cut into pieces that do, so that every character of it
    stands in exactly one run.

    Args:
        lines: Lines, in order.
        room_tokens: Most tokens of a run.
        count: Token counter; a line costs one token besides, for its break.
    """
    runs: list[tuple[str, ...]] = []
    run: list[str] = []
    used = 0
    for piece in (part for line in lines for part in pieces(line, room_tokens, count)):
        tokens = count(piece) + 1
        if run and used + tokens > room_tokens:
            runs.append(tuple(run))
            run, used = [], 0
        run.append(piece)
        used += tokens
    if run:
        runs.append(tuple(run))
    return tuple(runs)


def pieces(line: str, room_tokens: int, count: Counter) -> list[str]:
    """A line in pieces of at most `room_tokens` tokens (one character at least)."""
    if count(line) + 1 <= room_tokens or len(line) < 2:
        return [line]
    parts = max(2, -(-(count(line) + 1) // max(1, room_tokens)))
    step = max(1, len(line) // parts)
    cut = [line[start : start + step] for start in range(0, len(line), step)]
    return [piece for part in cut for piece in pieces(part, room_tokens, count)]
