"""Whether a text is news or only repeats what was found in memory.

A model that writes down what it was shown from memory makes a memory of a memory; one repeated text
has filled whole stores. Such texts are marked, and never searched or consolidated.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from evennia_ai.history.frames import read_row
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import MEMORIES, ToolTraits
from evennia_ai.language import words as language
from evennia_ai.language.names import names_among
from evennia_ai.language.sentences import MOST_WORDS, sentences
from evennia_ai.language.words import bare, singular, spoken_words
from evennia_ai.recall.values import Hit

# Share of a text's words that a memory must hold, in their order, to be the same.
SAME_SHARE = 0.85
# Share of the memory's part between its first and last such word that they make up.
SPAN_SHARE = 0.6
# Telling words, at least, of a sentence that is compared by those alone.
LEAST_TELLING = 3
# Share of them that a paraphrase has from the memory, and how many beside the speaker's name.
PARAPHRASE_SHARE, PARAPHRASE_WORDS = 0.6, 2
# Newest results and replies looked at; older ones have left the prompt or will soon.
_RESULTS = 40
_VOCATIVE = re.compile(r"^\W*[A-Z][\w'’-]+,\s|,\s+[A-Z][\w'’-]+(?=\W*$)")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that frame a report and say nothing of its content.
_FRAME = _set("a an the that said say tell told me recall remember memory")
_REPORTS = _set("said says tells told mentioned mentions")
_FIRST_PERSON = _set("i i'm i've i'd i'll my me mine myself we we're our ours us")
_NEGATIONS = _set("no not never none nobody nothing without cannot")
# Words for a value that came back, and for one that changed.
_RETURNED = _set("again anymore back instead longer")
_CHANGED = _RETURNED | _set(
    "now stop stopped quit used former formerly changed switched left lost sold gave gone died "
    "dead broke paid moved hates dislikes prefers became becomes new"
)
# When and how surely something is so.
_MOODS = tuple(
    _set(words)
    for words in ("is are am i'm we're has have", "was were had", "will would", "may might could")
)


def is_recalled(text: str, memories: Iterable[Hit], heard: Iterable[str] | None = None) -> bool:
    """Whether a text says what one of these memories says, and nothing new.

    It does if it has nearly all its words in their order from one memory, or if each of its
    sentences has all its telling words from a sentence of one: other forms, pronouns and names for
    each other, and, where something is said to be something, another order. Numbers, denials, the
    order of names, and tense must agree: ``owes 4 coins`` does not repeat ``owes 3 coins``.

    With `heard`, texts that may have told something new, a paraphrase is recalled too: most telling
    words from a memory and the others from nothing heard; in any order if nothing was heard.
    """
    row = read_row(text)
    text = row.text if row and row.id else text  # copied from a prompt with its id and day
    notes = [note for note in map(_Sentence, sentences(text)) if note.telling]
    known = [memory for memory in memories if _is_near(notes, memory)]
    words = _words(text)
    if words and any(_repeats(words, memory.line) for memory in known):
        return True
    new = None if heard is None else frozenset(w for each in heard for w in _Sentence(each).telling)
    pieces = [
        (memory.speaker, _Sentence(piece)) for memory in known for piece in sentences(memory.text)
    ]
    return bool(notes) and all(
        any(_retells(note, who, piece, new) for who, piece in pieces) for note in notes
    )


def _is_near(notes: Sequence["_Sentence"], memory: Hit) -> bool:
    """Whether a memory may say what one of these sentences says; cheap, so that few remain."""
    lowered = memory.line.lower()
    return not notes or any(
        sum(part in lowered for part in note.parts) >= PARAPHRASE_SHARE * len(note.parts)
        for note in notes
    )


def _repeats(words: Sequence[str], memory: str) -> bool:
    known = _words(memory)
    held = set(known)
    least = SAME_SHARE * len(words)
    if sum(word in held for word in words) < least:
        return False
    matcher = SequenceMatcher(None, known, words, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    same = sum(block.size for block in blocks)
    if not blocks or same < least:
        return False
    span = known[blocks[0].a : blocks[-1].a + blocks[-1].size]
    if same < SPAN_SHARE * len(span):
        return False
    # What tells most must agree: no new word of content, and no number, denial or name.
    fresh = {word for word in words if word not in held and telling_stem(word)}
    if fresh or not _weighty(words) <= _weighty(known) or not _denials(span) <= _denials(words):
        return False
    return not (_named(memory) & set(span)) - set(words)


def _named(text: str) -> set[str]:
    """Words with a capital that do not begin a text, as `_words` gives them."""
    found = (word.lower() for word in spoken_words(text)[1:] if word[0].isupper())
    return {singular(bare(word)) for word in found if telling_stem(word)} | names_among(text)


def _weighty(words: Iterable[str]) -> set[str]:
    """Words that change all: numbers, denials, and that a former value is back."""
    changing = {word for word in words if word.isdigit() or word in _RETURNED}
    return changing | _denials(words)


def _denials(words: Iterable[str]) -> set[str]:
    return {word for word in words if bare(word) in _NEGATIONS}


def _words(text: str) -> list[str]:
    found = (singular(bare(word)) for word in spoken_words(text.lower())[:MOST_WORDS])
    return [word for word in found if word not in _FRAME]


class _Sentence:
    """A sentence and what of it is compared; `names` are always names if they have a capital."""

    def __init__(self, text: str, names: frozenset[str] = frozenset()):
        said = _VOCATIVE.sub(" ", text)
        self._names = names | names_among(said)
        self._found = spoken_words(said)
        self.words = frozenset(word.lower().replace("’", "'") for word in self._found)

    @cached_property
    def order(self) -> list[str]:
        """The stems of its telling words, each once, in their order."""
        return list(dict.fromkeys(filter(None, map(self._stem, self._found))))

    def _stem(self, word: str) -> str:
        """A word's stem; the word itself for a name that would tell nothing."""
        lowered = word.lower()
        named = word[0].isupper() and bare(lowered) in self._names
        return telling_stem(lowered) or (bare(lowered) if named else "")

    @cached_property
    def telling(self) -> frozenset[str]:
        return frozenset(self.order)

    @cached_property
    def parts(self) -> list[str]:
        """What any form of each telling word holds, in lower case."""
        return [stem[:-1] if len(stem) > 3 else stem for stem in self.order]

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems of its words with a capital that do not begin it."""
        named = (word for word in self._found[1:] if word[0].isupper())
        return frozenset(filter(None, map(self._stem, named)))

    @cached_property
    def moods(self) -> frozenset[int]:
        return frozenset(n for n, mood in enumerate(_MOODS) if mood & (self.words - self._names))


def telling_stem(word: str) -> str:
    """As `language.words.telling_stem`; what is liked counts, what frames a report does not."""
    plain = bare(word)
    if plain in ("like", "likes"):  # here it is a verb, not the word for a likeness
        return "like"
    return "" if plain in _FRAME or plain in _REPORTS else language.telling_stem(word)


def telling_stems(text: str, names: frozenset[str] = frozenset()) -> frozenset[str]:
    """The stems by which texts are compared here; `names` as for `_Sentence`."""
    return _Sentence(text, names).telling


def _retells(note: _Sentence, who: str, piece: _Sentence, new: frozenset[str] | None) -> bool:
    """Whether a sentence says what a sentence of a memory, by `who`, says."""
    if len(note.telling) < LEAST_TELLING or _denials(note.words) or _denials(piece.words):
        return False
    # Who spoke is part of what was said where it was said of themselves.
    own = bool(_FIRST_PERSON & piece.words or _REPORTS & note.words)
    head = _Sentence(who).order if own else []
    fresh = note.telling - {*head, *piece.telling}
    if any(word.isdigit() for word in fresh) or not note.moods <= (piece.moods or note.moods):
        return False
    if (_RETURNED & note.words) - piece.words:
        return False
    order = [*head, *piece.order]
    if new is not None and not new:
        return _paraphrases(note, piece, fresh, new)
    if fresh:
        return _paraphrases(note, piece, fresh, new) and _same_order(note, order)
    states = _MOODS[0] | _MOODS[1]
    free = states & note.words and states & piece.words and "than" not in note.words
    if not free and _common(note.order, order) != _common(order, note.order):
        return False
    return piece.names <= note.telling and _same_order(note, order, {*piece.names, *head})


def _paraphrases(
    note: _Sentence, piece: _Sentence, fresh: frozenset[str], new: frozenset[str] | None
) -> bool:
    """Whether the words that a memory lacks are only other words for what it says."""
    if new is None or fresh & new or (_CHANGED & note.words) - piece.words:
        return False
    if len(note.telling & piece.telling) < PARAPHRASE_WORDS:
        return False
    return len(note.telling - fresh) >= PARAPHRASE_SHARE * len(note.telling)


def _same_order(note: _Sentence, order: Sequence[str], names: Iterable[str] = ()) -> bool:
    """Whether names and numbers follow each other alike: who does what to whom."""
    anchors = {*names, *note.names, *(word for word in order if word.isdigit())}
    ours, theirs = _common(note.order, order), _common(order, note.order)
    return [w for w in ours if w in anchors] == [w for w in theirs if w in anchors]


def _common(words: Sequence[str], others: Sequence[str]) -> list[str]:
    held = set(others)
    return [word for word in dict.fromkeys(words) if word in held]


def drawn_on(memories: Iterable[Hit], reply: str) -> list[Hit]:
    """The shown memories that share two telling words with a reply, which may repeat them."""
    said = telling_stems(reply)
    return [hit for hit in memories if len(telling_stems(hit.text) & said) >= 2]


def shown_memories(messages: Sequence[Message], traits: ToolTraits) -> list[Hit]:
    """Memories in results of searches and drawn on by replies, newest first."""
    results = [m for m in reversed(messages) if m.name in traits.recalls]
    replies = [m for m in reversed(messages) if m.metadata.get(MEMORIES)]
    found = [hit for message in results[:_RESULTS] for hit in hits_in(message.content)]
    drawn = (item for m in replies[:_RESULTS] for item in m.metadata[MEMORIES])
    return [*found, *(Hit.from_dict(item) for item in drawn if isinstance(item, dict))]


def hits_in(result: str) -> Iterator[Hit]:
    """The hits in a result of searching or opening memory."""
    try:
        loaded = json.loads(result)
    except ValueError:
        loaded = {"text": result}
    if not isinstance(loaded, dict):
        return
    items = (loaded, *(loaded.get("results") or ()), *(loaded.get("around") or ()))
    for hit in (Hit.from_dict(item) for item in items if isinstance(item, dict)):
        if hit.text:
            yield hit
