"""Which turn holds which words: the words of each turn, and the turns of each word.

Words are numbers from 1 on; 0 stands for one that was removed. The turns of a word are looked up in
blocks of turns, each sorted by word, and in what follows the last block. Blocks of equal size merge
into one of twice the size, so there are few.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.growing import Growing, write_durably
from evennia_ai.recall.vectors import Ints

# Turns of the smallest and of the largest block, each a power of two.
SMALLEST, LARGEST = 1 << 10, 1 << 15

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Block:
    """`count` turns from `first` on: ascending words, where each begins, and positions."""

    first: int
    count: int
    words: Numbers
    starts: Numbers
    positions: Numbers

    @classmethod
    def read(cls, first: int, count: int, data: Numbers) -> "Block":
        """A block from its `data`."""
        size = int(data[0])
        words, starts = data[1 : 1 + size], data[1 + size : 2 + 2 * size]
        return cls(first, count, words, starts, data[2 + 2 * size :])

    @property
    def data(self) -> Numbers:
        """All numbers of a block in one array, as it is stored."""
        size = np.array([len(self.words)], dtype=np.int32)
        return np.concatenate([size, self.words, self.starts, self.positions])

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"words-{self.first}-{self.count}"

    def of(self, some: Numbers) -> Iterator[Numbers]:
        """Ascending positions of the turns that hold each of some words."""
        places = np.minimum(self.words.searchsorted(some), max(0, len(self.words) - 1))
        found = self.words[places] == some if len(self.words) else np.zeros(len(some), dtype=bool)
        for place, is_here in zip(places.tolist(), found.tolist(), strict=True):
            low, high = self.starts[place : place + 2].tolist() if is_here else (0, 0)
            yield self.positions[low:high]

    def without(self, positions: Ints) -> "Block":
        """The same without some turns."""
        kept = ~np.isin(self.positions, positions)
        ends = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        sizes = np.diff(ends)
        words = self.words[sizes > 0]
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int32)
        return Block(self.first, self.count, words, starts, self.positions[kept])


class TurnWords:
    """The words of turns, each once a turn; turns are added in order and keep their positions.

    Attributes:
            numbers: The words of all turns, one turn after the other.
            ends: Where each turn's end in `numbers`.
    """

    def __init__(self) -> None:
        self.numbers, self.ends = Growing(np.int32), Growing(np.int64)
        self._blocks: list[Block] = []
        self._folder: Path | None = None

    def extend(self, turns: Sequence[Sequence[int]]) -> None:
        """Append turns."""
        start = len(self.numbers)
        sizes = np.array([len(each) for each in turns], dtype=np.int64)
        self.numbers.extend([number for each in turns for number in each])
        self.ends.extend(start + np.cumsum(sizes))
        self._make_blocks(len(self.ends))

    def use(self, folder: Path, turns: int) -> None:
        """Keep blocks in a folder from now on, and read those of the first `turns` turns."""
        if folder == self._folder:
            return
        self._folder, self._blocks = folder, []
        kept = {f"words-{first}-{count}" for first, count in _sizes(turns)}
        for file in folder.glob("words-*"):
            if file.name not in kept:
                file.unlink()
        for first, count in _sizes(turns):
            self._blocks.append(self._read(first, count) or self._made(first, count))

    def _read(self, first: int, count: int) -> Block | None:
        assert self._folder is not None
        file = self._folder / f"words-{first}-{count}"
        try:
            data = np.memmap(file, dtype=np.int32, mode="r")
            return Block.read(first, count, np.asarray(data))  # which is faster to slice
        except FileNotFoundError:
            return None

    def _make_blocks(self, turns: int) -> None:
        made = [(each.first, each.count) for each in self._blocks]
        wanted = _sizes(turns)
        shared = 0
        while shared < min(len(made), len(wanted)) and made[shared] == wanted[shared]:
            shared += 1
        old = self._blocks[shared:]
        self._blocks[shared:] = [self._made(first, count) for first, count in wanted[shared:]]
        for block in old:
            self._delete(block)

    def _made(self, first: int, count: int) -> Block:
        """A block of some turns, written to its file if there is a folder."""
        low, sizes = self._range(first, count)
        words = self.numbers.values[low : low + int(sizes.sum())]
        positions = np.repeat(np.arange(first, first + count, dtype=np.int32), sizes)
        order = np.argsort(words, kind="stable")
        order = order[np.searchsorted(words, 1, sorter=order) :]
        different, starts = np.unique(words[order], return_index=True)
        ends = np.append(starts, len(order)).astype(np.int32)
        block = Block(first, count, different, ends, positions[order])
        try:
            return self._kept(block)
        except OSError:
            return block  # the disk is full; it is made again at the next start

    def _kept(self, block: Block) -> Block:
        if not self._folder:
            return block
        write_durably(self._folder / block.name, block.data.tobytes())
        return self._read(block.first, block.count) or block

    def _delete(self, block: Block) -> None:
        if self._folder:
            (self._folder / block.name).unlink(missing_ok=True)

    def _range(self, first: int, count: int) -> tuple[int, Ints]:
        """Where the words of some turns begin, and how many each has."""
        ends = self.ends.values[first : first + count]
        low = int(self.ends.values[first - 1]) if first else 0
        return low, np.diff(ends, prepend=low)

    def of(self, some: Sequence[int]) -> list[Ints]:
        """Ascending positions of the turns that hold each of some words; of none for word 0."""
        wanted = np.array(some, dtype=np.int32)
        parts: list[list[Ints]] = [[] for _ in some]
        for block in self._blocks:
            for part, positions in zip(parts, block.of(wanted), strict=True):
                if len(positions):
                    part.append(positions)
        low, done = self._tail
        newest = self.numbers.values[low:]
        for word, part in zip(some, parts, strict=True):
            at = np.flatnonzero(newest == word) + low
            if word and len(at):
                part.append(done + np.searchsorted(self.ends.values[done:], at, side="right"))
        return [
            np.concatenate(part, dtype=np.int64) if part else np.zeros(0, dtype=np.int64)
            for part in parts
        ]

    @property
    def _tail(self) -> tuple[int, int]:
        """Where the words begin that are in no block, and the first turn that has them."""
        done = self._blocks[-1].first + self._blocks[-1].count if self._blocks else 0
        return int(self.ends.values[done - 1]) if done else 0, done

    def at(self, turns: Ints) -> tuple[NDArray[np.int32], Ints]:
        """The words of some turns, one turn after the other, and how many each has."""
        ends = self.ends.values[turns]
        starts = np.where(turns > 0, self.ends.values[turns - 1], 0)
        sizes = ends - starts
        firsts = np.cumsum(sizes) - sizes
        at = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
        return self.numbers.values[at], sizes

    def remove(self, turns: Ints) -> list[int]:
        """Forget the words of some turns; returns those that no turn holds any more."""
        gone = set(np.unique(self.at(turns)[0]).tolist()) - {0}
        for turn in turns.tolist():
            low, sizes = self._range(turn, 1)
            self.numbers.values[low : low + int(sizes[0])] = 0
        for place, block in enumerate(self._blocks):
            inside = turns[(turns >= block.first) & (turns < block.first + block.count)]
            if len(inside):
                self._blocks[place] = self._kept(block.without(inside))
        return sorted(gone - self._held(gone))

    def _held(self, some: set[int]) -> set[int]:
        """Those words that a turn holds."""
        wanted = np.array(sorted(some), dtype=np.int32)
        parts = [block.words for block in self._blocks] + [self.numbers.values[self._tail[0] :]]
        return {number for part in parts for number in wanted[np.isin(wanted, part)].tolist()}

    def held(self) -> Iterator[int]:
        """All words that a turn holds; some more than once."""
        for block in self._blocks:
            yield from block.words.tolist()
        yield from np.unique(self.numbers.values[self._tail[0] :]).tolist()

    @property
    def memory(self) -> int:
        """Bytes in memory, without what is mapped from files."""
        blocks = () if self._folder else self._blocks
        arrays = self.numbers.memory + self.ends.memory
        return arrays + sum(block.positions.nbytes + block.words.nbytes for block in blocks)


def _sizes(turns: int) -> list[tuple[int, int]]:
    """First turn and count of the blocks of so many turns: large ones, then ever smaller ones."""
    found, first, size = [], 0, LARGEST
    while size >= SMALLEST:
        while turns - first >= size:
            found.append((first, size))
            first += size
        size //= 2
    return found
