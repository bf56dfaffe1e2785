"""The order of live and archived messages, as if nothing had ever left."""

from collections.abc import Sequence

from evennia_ai.history.messages import Message

# Role of what only holds the place of a message that the viewer may not see.
_HIDDEN = "hidden"
# Roles of what may have come late and then stands behind what it belongs to.
_BEHIND = ("tool", _HIDDEN)


def in_order(
    restored: Sequence[Message], raw: Sequence[Message], order: Sequence[str]
) -> list[Message]:
    """What left with a compaction and what is live, in the order there was.

    Args:
        restored: What left, oldest first.
        raw: Other raw messages. What was put in since stands behind what it stood behind, as a
            tool's late result behind its call; what came since stands behind all.
        order: Ids as `order_before` gave them; none where what left is simply the older.
    """
    if not order:
        return [*restored, *raw]
    places = {each: place for place, each in enumerate(order)}
    placed: list[tuple[float, Message]] = [(places.get(m.id, -1), m) for m in restored]
    known = [number for number, m in enumerate(raw) if m.id in places]
    place = places[raw[known[0]].id] - 0.5 if known else len(order)
    for number, message in enumerate(raw):
        came_since = (not known or number > known[-1]) and message.role not in _BEHIND
        place = len(order) if came_since else places.get(message.id, place)
        placed.append((place, message))
    return [message for _, message in sorted(placed, key=lambda pair: pair[0])]


def hidden(message_id: str) -> Message:
    """What stands for a message that the viewer may not see, and only holds its place."""
    return Message(_HIDDEN, "", message_id)


def with_archived(
    parts: Sequence[tuple[Sequence[Message], Sequence[str]]], live: Sequence[Message]
) -> list[Message]:
    """Live raw messages and what left before them, as if nothing had ever left.

    What is `hidden` tells where the others stand, which were put in behind it.

    Args:
        parts: What left with each compaction and its order, as for `in_order`, newest first.
        live: What is live, oldest first.

    Returns:
        The messages, oldest first, without hidden ones.
    """
    behind: list[Message] = list(live)
    front: list[Sequence[Message]] = []
    for left, order in parts:
        if not order:
            front.append(left)
            continue
        behind = in_order(left, [*_flat(front), *behind], order)
        front = []
    return [m for m in (*_flat(front), *behind) if m.role != _HIDDEN]


def _flat(parts: Sequence[Sequence[Message]]) -> list[Message]:
    """Parts that were put down newest first, as one, oldest first."""
    return [message for part in reversed(parts) for message in part]
