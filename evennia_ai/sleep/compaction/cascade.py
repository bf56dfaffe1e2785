"""The cascade of summaries: a forest in which each node stands for `FAN_IN` nodes below it.

A recent summary is made from raw messages and is a leaf. Eight roots of one level are merged
into a node one level higher, so that n leaves have at most 7 roots a level and a tree of height
⌊log₈ n⌋. The long-term summary is made from the roots: a word has passed one summary at the
leaf, one for each level above it and the long-term one, log₈ n + 2 at most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

FAN_IN = 8


@dataclass(frozen=True)
class Node:
    """One summary of the tree.

    Level 0 are recent summaries, made from raw messages, level 1 is made from eight of those, and
    so on; `children` are the ids of the nodes it was made from, oldest first.
    """

    id: str
    level: int
    children: tuple[str, ...] = ()


def topmost(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Ids of the roots of the forest, of which the long-term summary is made, oldest first.

    They are sorted by the place of their first leaf; `nodes` are all nodes, those of one level
    oldest first. A node none of whose leaves is there comes first: what was merged is old.
    """
    places = {node.id: place for place, node in enumerate(nodes) if node.level == 0}
    found = {node.id: node for node in nodes}

    def place(node: Node) -> int:
        leaves = _leaves(found, node.id)
        return min((places[leaf] for leaf in leaves if leaf in places), default=-1)

    return tuple(node.id for node in sorted(_roots(nodes), key=place))


def due_groups(nodes: Sequence[Node]) -> tuple[tuple[str, ...], ...]:
    """Roots that must be merged now, each group into a node one level higher.

    Applied again with the new nodes, until nothing is due, at most `FAN_IN` - 1 roots a level
    remain; each merge lowers the number of roots, so that it ends.

    Returns:
        Groups of `FAN_IN` ids, the oldest of their level, lowest level first.
    """
    roots = sorted(_roots(nodes), key=lambda node: node.level)
    groups = []
    for _, same in groupby(roots, key=lambda node: node.level):
        ids = [node.id for node in same]
        whole = len(ids) - len(ids) % FAN_IN
        groups += [tuple(ids[at : at + FAN_IN]) for at in range(0, whole, FAN_IN)]
    return tuple(groups)


def _roots(nodes: Sequence[Node]) -> list[Node]:
    children = {child for node in nodes for child in node.children}
    return [node for node in nodes if node.id not in children]


def _leaves(found: dict[str, Node], root_id: str) -> Iterator[str]:
    """Leaves below a node in order; each node is visited once, so that a ring ends."""
    waiting, seen = [root_id], set[str]()
    while waiting:
        node_id = waiting.pop()
        node = found.get(node_id)
        if node is None or node_id in seen:
            continue
        seen.add(node_id)
        if node.level == 0:
            yield node_id
        waiting.extend(reversed(node.children))
