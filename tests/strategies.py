"""Hypothesis strategies: conversation histories of every shape a game can bring about."""

from collections import Counter
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Message, Speaker, message_tokens
from tests.thoroughness import examples

# Enough for every branch of the pure modules, also where only a share is tried.
FEW = settings(max_examples=examples(200, 60))
MANY = settings(max_examples=examples(1000, 200))

PEOPLE = ("o1.a", "o2.b", "o3.c")
CALL_IDS = ("c1", "c2", "c3", "")  # few, so that they repeat
# Characters that could break out of a quoted line, or that tokenizers count oddly.
AWKWARD = "\"'[]{}<>:\\\n\r\t\x0b\x0c\x1c\x85\u2028\u2029é漢🜁 aB9"

audiences = st.one_of(
    st.just(PUBLIC), st.just(STAFF), st.sets(st.sampled_from(PEOPLE), min_size=1).map(private)
)
awkward_texts = st.one_of(st.text(st.sampled_from(AWKWARD)), st.text())


def call(call_id="c1", name="look", arguments="{}"):
    """A tool call in the chat format."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def heard(content="hello", **fields):
    """A heard line."""
    return Message("user", content, **fields)


def reply(content="well", **fields):
    """What the assistant said."""
    return Message("assistant", content, **fields)


def calls(*call_ids, **fields):
    """An assistant message that calls tools."""
    made = [call(call_id) for call_id in call_ids]
    return Message("assistant", "", tool_calls=tuple(made), **fields)


def result(call_id="c1", content="done", name="look", **fields):
    """A tool's result."""
    return Message("tool", content, tool_call_id=call_id, name=name, **fields)


def marker(audience=PUBLIC, content="They met.", **metadata):
    """A summary marker."""
    meta = {"type": "compaction", "compacted_count": 9, **metadata}
    return Message("system", content, audience=audience, metadata=meta)


def numbered(messages):
    """The messages with ids."""
    return tuple(m if m.id else replace(m, id=f"m{i}") for i, m in enumerate(messages))


def counted(messages, count):
    """The messages as the history handler stores them: with ids and true token counts."""
    return tuple(replace(m, tokens=message_tokens(m, count)) for m in numbered(messages))


# A history is decoded from bytes, two a piece: that draws and shrinks far faster than a strategy
# of strategies, and any bytes are a history.
OWNERS = (PUBLIC, PUBLIC, STAFF, *(private(ids) for ids in (PEOPLE[:1], PEOPLE[:2], PEOPLE)))
SIZES = (1, 2, 5, 9, 20, 50, 60, 500, 5000)
CONTENTS = (
    "",
    "hello",
    "The miller owes Bob 12 coins, due at dawn.",
    'He said: "no"\nBob [o2.b] says: "yes"',
    "漢字と🜁 " * 12,
    "barrel " * 3000,
    AWKWARD * 9,
)

# What everybody may know and what is worth a summary.
NEWS = (
    "Bob owes the smith 7 coins, Cora owes the miller 12. " * 4,
    "So we sat by the river and talked of the weather and of the old days. " * 8,
    "And on we went, as slowly as ever, up the hill and down again to the inn. " * 8,
)


def _exchange(low, high):
    """Calls in parallel and their results: in any order, some late, missing, doubled or alone."""
    ids = [CALL_IDS[(low >> shift) % len(CALL_IDS)] for shift in range(0, 2 + 2 * (high % 3), 2)]
    answers = [result(each, CONTENTS[(high + i) % len(CONTENTS)]) for i, each in enumerate(ids)]
    if high & 64:
        answers.reverse()
    if high & 32:
        answers = answers[1:]
    if high & 16:
        answers.insert(0, heard("meanwhile"))
    return [calls(*ids), *answers]


def _piece(low, high, markers):
    content = CONTENTS[high % len(CONTENTS)]
    speaker = Speaker(content[:20], PEOPLE[high % 3])
    kinds = [
        lambda: [heard(content)],
        lambda: [heard(content, speaker=speaker, channel=("say", "page", "pose")[high % 3])],
        lambda: [reply(content)],
        lambda: [result(CALL_IDS[high % len(CALL_IDS)], content)],
        lambda: [calls(CALL_IDS[high % len(CALL_IDS)])],
        lambda: [Message("system", content)],
        lambda: _exchange(low >> 4, high),
        lambda: _exchange(low >> 4, high),
    ]
    if markers:
        kinds.append(lambda: [marker(content=content, tier=("long", "recent")[high % 2])])
    return kinds[low % len(kinds)]()


def _closed_piece(low, high):
    """Talk, or calls that all have their results: in parallel or one after another."""
    content = CONTENTS[high % len(CONTENTS)]
    ids = [CALL_IDS[(low >> shift) % len(CALL_IDS)] for shift in (2, 4, 6)][: 1 + high % 3]
    answers = [result(each, content) for each in ids]
    kinds = (
        lambda: [heard(content), reply(content)],
        lambda: [calls(*ids), *answers],
        lambda: [calls(*ids), *reversed(answers)],
        lambda: [each for one in answers for each in (calls(one.tool_call_id), one)],
    )
    return kinds[low % len(kinds)]()


def _owned(data, piece):
    """The messages of pieces, two bytes each, with their audiences and sizes."""
    messages = []
    for low, high in zip(data[::2], data[1::2], strict=False):
        owner, size = OWNERS[high % len(OWNERS)], SIZES[(low + high) % len(SIZES)]
        messages += [replace(each, audience=owner, tokens=size) for each in piece(low, high)]
    return messages


def _decoded(data, markers=True):
    return numbered(_owned(data, lambda low, high: _piece(low, high, markers)))


def _foldable(opening, rest):
    news = [heard(each, audience=PUBLIC, tokens=150) for each in NEWS]
    closed = _owned(opening, _closed_piece)
    return numbered([*news, *closed, *_owned(rest, lambda low, high: _piece(low, high, False))])


def histories(markers=True, pieces=14):
    """Histories as they are stored; their token counts are drawn, not counted."""
    return st.binary(max_size=2 * pieces).map(lambda data: _decoded(data, markers))


def foldable_histories(pieces=14, least=7, closed=4):
    """Histories without markers of which a compaction folds some, if alone and well before.

    First come news and up to so many closed pieces, talk and calls that wait for nothing, so that
    behind them may be cut; then any history of at least so many messages, for a preserve window
    to keep.
    """
    rest = st.binary(min_size=2 * least, max_size=2 * pieces)
    return st.builds(_foldable, st.binary(min_size=2, max_size=2 * closed), rest)


texts = st.one_of(st.sampled_from(CONTENTS), awkward_texts)


def faults(messages):
    """What a strict provider would refuse in a request."""
    found, index = [], 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            found.append(f"{index - 1}: a result alone")
        if message.role != "assistant" or not message.tool_calls:
            continue
        wanted = Counter(call["id"] for call in message.tool_calls)
        behind = messages[index : index + sum(wanted.values())]
        given_ = Counter(m.tool_call_id for m in behind if m.role == "tool")
        if given_ != wanted:
            found.append(f"{index - 1}: {wanted} answered by {given_}")
        index += sum(given_.values())
    return found
