"""Importance of a text for an assistant's memory: a heuristic from 1 (chatter) to 10 (vital).

It runs on every entry and needs no model. The score is a base and a sum of signals, each capped
so that no single one decides. The signals follow what people ask of a memory later: who, how
many, where, when, what was promised, what was asked to be kept in mind, and what moved somebody.
The weights were set by hand for talk in a text game; they are relative, and the scale is the
journal's. English cue words; a text in another language is judged by its names, numbers and
length alone.
"""

import re
from dataclasses import dataclass

LOWEST, HIGHEST = 1, 10
# A plain statement with nothing special in it: below the journal's default of 5, and above
# what the episodic index lets go (4 and up stays).
BASE = 3
# Words below which a text hardly holds a fact, and above which it probably holds several.
SHORT_WORDS, LONG_WORDS = 3, 25
# Characters that are looked at: a wall of text is judged by its beginning, in bounded time.
MAX_CHARACTERS = 4000


@dataclass(frozen=True)
class Signal:
    """One reason for a score.

    Args:
        name: What was found, as ``promise``.
        points: What it adds to the score; negative for chatter.
        found: The words that gave it away.
    """

    name: str
    points: int
    found: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As a plain dict."""
        return {"name": self.name, "points": self.points, "found": list(self.found)}


def _words(text: str) -> re.Pattern[str]:
    """A pattern for any of some words or phrases, parted by ``|``, as whole words."""
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)", re.IGNORECASE)


_REMEMBER = _words(
    r"remember|don'?t (?:ever )?forget|never forget|keep in mind|note that|take note"
    r"|make a note|for the record|memori[sz]e|mark my words|bear in mind"
)
_IMPORTANT = _words(
    r"important|crucial|vital|urgent(?:ly)?|essential|critical|secret(?:ly)?|confidential"
    r"|beware|danger(?:ous)?|warning|password|passphrase|emergency"
)
_PROMISE = _words(
    r"promise[ds]?|swear|swore|vow(?:ed)?|oath|i owe|owes?|pledge[ds]?|deadline"
    r"|you have my word|i'?ll (?:bring|give|pay|return|meet|help|come back|be back|deliver)"
    r"|i will (?:bring|give|pay|return|meet|help|come back|be back|deliver)|agreed to"
)
_PREFERENCE = _words(
    r"favou?rites?|(?:i|he|she|they|we) (?:really )?(?:loves?|hates?|prefers?|likes?|dislikes?"
    r"|enjoys?|adores?|detests?|can'?t stand)|allerg(?:y|ic)|afraid of|fears?"
)
_RELATION = _words(
    r"(?:my|his|her|their|our|your) (?:name|wife|husband|mother|father|sister|brother|son"
    r"|daughter|friend|enemy|master|uncle|aunt|cousin|partner|boss|home|birthday|job)"
    r"|married|betrothed|engaged|named|known as|i am called|call me|lives? (?:in|at|near|by)"
    r"|works? (?:as|at|for|in)|born (?:in|on|at)|comes? from|belongs? to|moved to"
)
_EMOTION = _words(
    r"died|dead|death|killed|murder(?:ed)?|dying|grief|griev(?:e|ing)|mourn(?:s|ing)?|cried"
    r"|crying|weep(?:s|ing)?|heartbroken|in love|furious|terrified|desperate|ashamed"
    r"|betray(?:ed|al)?|devastated|overjoyed|so happy|forgive|sorry for"
    r"|thank you for (?:saving|helping)|saved my life|miss (?:him|her|them|you)"
)
_WHEN = _words(
    r"tomorrow|yesterday|tonight|next (?:week|month|year|moon|spring|summer|autumn|fall|winter)"
    r"|last (?:week|month|year|night)|midnight|noon|at dawn|at dusk|(?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)day|january|february|april|june|july|august|september|october|november|december"
    r"|birthday|anniversary"
)
_NUMBER = re.compile(
    r"\d+(?:[.,:]\d+)*|(?<!\w)(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|dozen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million)(?!\w)",
    re.IGNORECASE,
)
# A text made of these words alone is a greeting, thanks or assent, and holds no fact.
_CHATTER = """
    hi hello hey greetings welcome good morning day evening afternoon night bye goodbye
    farewell see you later soon how are what's up thanks thank cheers ok okay yes no sure lol
    haha hm hmm oh ah well nice cool great there everyone all again friend today so very much
    and to it is
"""
_CHATTER_WORDS = frozenset(_CHATTER.split())
# The first word of a sentence has a capital anyway: it is a name where a verb follows it.
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:\"“])\W{0,3}(\w+)(?:'s| (?:is|was|has|had|will|and|\w+(?:s|ed)))?\b"
)
_CAPITALISED = re.compile(r"(?<!\w)[A-Z][\w'-]*[a-z][\w'-]*")
_CAPITALISED_ANYWAY = """
    I I'm I'll I've I'd Monday Tuesday Wednesday Thursday Friday Saturday Sunday The A An This
    That These Those There Here He She It We They You My Your His Her Its Our Their What Who When
    Where Why How Which If And But Or So Then Not No Yes Please Hello Hi Some Someone Everyone
    Everything Nothing Nobody Today Tomorrow Yesterday Tonight It's He's She's That's There's
    What's Who's
"""
_NOT_NAMES = frozenset(_CAPITALISED_ANYWAY.split())

# Cue words, what they add at the first find, and the most they add in all.
_CUES: tuple[tuple[str, re.Pattern[str], int, int], ...] = (
    # Somebody said in words that this is to be kept: nothing else says so as plainly.
    ("remember", _REMEMBER, 4, 4),
    ("important", _IMPORTANT, 2, 3),
    # A broken promise is what a character is blamed for.
    ("promise", _PROMISE, 3, 3),
    ("preference", _PREFERENCE, 2, 3),
    ("relation", _RELATION, 2, 3),
    ("emotion", _EMOTION, 2, 3),
    ("time", _WHEN, 1, 1),
    ("number", _NUMBER, 1, 2),
)
# Names beyond the second add nothing: a list of guests is not vital.
_NAME_POINTS, _NAME_CAP = 1, 2
_GREETING_POINTS, _QUESTION_POINTS, _SHORT_POINTS, _LONG_POINTS = -3, -2, -1, 1


def score_importance(text: str) -> int:
    """How important a text is for memory.

    Args:
        text: One entry, in prose.

    Returns:
        An int from 1 to 10; 1 for an empty text.
    """
    if not text[:MAX_CHARACTERS].strip():
        return LOWEST
    total = BASE + sum(signal.points for signal in importance_signals(text))
    return max(LOWEST, min(HIGHEST, total))


def importance_signals(text: str) -> tuple[Signal, ...]:
    """The reasons for a text's score: `score_importance` is `BASE` and their sum, kept in scale.

    Args:
        text: One entry, in prose.

    Returns:
        Signals, those that add first.
    """
    plain = text[:MAX_CHARACTERS].replace("’", "'").strip()
    if not plain:
        return ()
    signals = [
        *(_cue(name, pattern, plain, points, cap) for name, pattern, points, cap in _CUES),
        _names(plain),
        _chatter(plain),
        _length(plain),
    ]
    return tuple(signal for signal in signals if signal is not None)


def _cue(name: str, pattern: re.Pattern[str], text: str, first: int, cap: int) -> Signal | None:
    """The first kind of word counts fully, each further one a point, up to the cap."""
    found = tuple(dict.fromkeys(match.lower() for match in pattern.findall(text)))
    if not found:
        return None
    return Signal(name, min(cap, first + len(found) - 1), found)


def _names(text: str) -> Signal | None:
    """Capitalised words, but not those that merely begin a sentence."""
    merely_first = {
        match.start(1) for match in _SENTENCE_START.finditer(text) if match.end() == match.end(1)
    }
    found = tuple(
        dict.fromkeys(
            match.group().removesuffix("'s")
            for match in _CAPITALISED.finditer(text)
            if match.start() not in merely_first and match.group() not in _NOT_NAMES
        )
    )
    if not found:
        return None
    return Signal("name", min(_NAME_CAP, _NAME_POINTS * len(found)), found)


def _chatter(text: str) -> Signal | None:
    """A greeting holds no fact; a question asks for one instead of giving it."""
    if set(re.findall(r"[\w']+", text.lower())) <= _CHATTER_WORDS:
        return Signal("greeting", _GREETING_POINTS, (text.lower()[:40],))
    asks_to_keep = _REMEMBER.search(text) or _PROMISE.search(text)
    if text.rstrip("\"') ").endswith("?") and "." not in text and not asks_to_keep:
        return Signal("question", _QUESTION_POINTS, ("?",))
    return None


def _length(text: str) -> Signal | None:
    words = len(text.split())
    if words < SHORT_WORDS:
        return Signal("short", _SHORT_POINTS, (f"{words} words",))
    if words > LONG_WORDS:
        return Signal("long", _LONG_POINTS, (f"{words} words",))
    return None
