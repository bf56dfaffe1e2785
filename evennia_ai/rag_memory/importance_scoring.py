"""Importance of a text for an assistant's memory: a heuristic from 1 (chatter) to 10 (vital).

The score is a base plus capped signals of what people ask of a memory later: who, how many, where,
when, promises, what to keep in mind, what moved somebody. The weights were set by hand for talk in
a text game. Cue words are English; other languages are judged by names, numbers and length.
"""

import re
from collections.abc import Iterable, Iterator

from evennia_ai.language.numbers import numbers_in
from evennia_ai.language.words import STARTERS, bare
from evennia_ai.rag_memory.journal_entry import LEAST_IMPORTANCE, bounded

# A plain statement: below the journal's default of 5; from 4 on it stays in the episodic index.
BASE = 3
# Words below which a text hardly holds a fact, and above which it probably holds several.
SHORT_WORDS, LONG_WORDS = 3, 25
# Only this many characters are read, to bound the time a long text takes.
MAX_CHARACTERS = 4000


def _any_of(text: str) -> re.Pattern[str]:
    """A pattern that finds any of these words or phrases (separated by ``|``) as whole words."""
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)", re.IGNORECASE)


_REMEMBER = _any_of(
    r"remember|don'?t (?:ever )?forget|never forget|keep in mind|note that|take note"
    r"|make a note|for the record|memori[sz]e|mark my words|bear in mind"
)
_IMPORTANT = _any_of(
    r"important|crucial|vital|urgent(?:ly)?|essential|critical|secret(?:ly)?|confidential"
    r"|beware|danger(?:ous)?|warning|password|passphrase|emergency"
)
_PROMISE = _any_of(
    r"promise[ds]?|swear|swore|vow(?:ed)?|oath|i owe|owes?|pledge[ds]?|deadline"
    r"|you have my word|i'?ll (?:bring|give|pay|return|meet|help|come back|be back|deliver)"
    r"|i will (?:bring|give|pay|return|meet|help|come back|be back|deliver)|agreed to"
)
_PREFERENCE = _any_of(
    r"favou?rites?|(?:i|he|she|they|we) (?:really )?(?:loves?|hates?|prefers?|likes?|dislikes?"
    r"|enjoys?|adores?|detests?|can'?t stand)|allerg(?:y|ic)|afraid of|fears?"
)
_RELATION = _any_of(
    r"(?:my|his|her|their|our|your) (?:name|wife|husband|mother|father|sister|brother|son"
    r"|daughter|friend|enemy|master|uncle|aunt|cousin|partner|boss|home|birthday|job)"
    r"|married|betrothed|engaged|named|known as|i am called|call me|lives? (?:in|at|near|by)"
    r"|works? (?:as|at|for|in)|born (?:in|on|at)|comes? from|belongs? to|moved to"
)
_EMOTION = _any_of(
    r"died|dead|death|killed|murder(?:ed)?|dying|grief|griev(?:e|ing)|mourn(?:s|ing)?|cried"
    r"|crying|weep(?:s|ing)?|heartbroken|in love|furious|terrified|desperate|ashamed"
    r"|betray(?:ed|al)?|devastated|overjoyed|so happy|forgive|sorry for"
    r"|thank you for (?:saving|helping)|saved my life|miss (?:him|her|them|you)"
)
_WHEN = _any_of(
    r"tomorrow|yesterday|tonight|next (?:week|month|year|moon|spring|summer|autumn|fall|winter)"
    r"|last (?:week|month|year|night)|midnight|noon|at dawn|at dusk|(?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)day|january|february|april|june|july|august|september|october|november|december"
    r"|birthday|anniversary"
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
)


def score_importance(text: str) -> int:
    """How important a text is for memory, from 1 to 10; 1 for an empty text."""
    if not text[:MAX_CHARACTERS].strip():
        return LEAST_IMPORTANCE
    return bounded(BASE + sum(importance_signals(text).values()))


def importance_signals(text: str) -> dict[str, int]:
    """The reasons for a text's score, and what each adds to `BASE`."""
    plain = text[:MAX_CHARACTERS].replace("’", "'").strip()
    if not plain:
        return {}
    found: list[tuple[str, Iterable[str], int, int]] = [
        *((name, map(str.lower, cue.findall(plain)), a, b) for name, cue, a, b in _CUES),
        ("number", numbers_in(plain), 1, 2),
        # Names beyond the second add nothing: a list of guests is not vital.
        ("name", _names(plain), 1, 2),
    ]
    signals = {}
    for name, words, first, cap in found:
        # The first find counts `first` points, each further one a point, up to the cap.
        if different := set(words):
            signals[name] = min(cap, first + len(different) - 1)
    if set(re.findall(r"[\w']+", plain.lower())) <= _CHATTER_WORDS:
        signals["greeting"] = -3
    elif (
        # A question asks for a fact instead of giving one.
        plain.rstrip("\"') ").endswith("?")
        and "." not in plain
        and not (_REMEMBER.search(plain) or _PROMISE.search(plain))
    ):
        signals["question"] = -2
    size = len(plain.split())
    if size < SHORT_WORDS:
        signals["short"] = -1
    elif size > LONG_WORDS:
        signals["long"] = 1
    return signals


def _names(text: str) -> Iterator[str]:
    merely_first = {
        match.start(1) for match in _SENTENCE_START.finditer(text) if match.end() == match.end(1)
    }
    for match in _CAPITALISED.finditer(text):
        word = match.group().removesuffix("'s")
        is_common = bare(word.lower()) in STARTERS or _WHEN.fullmatch(word)
        if match.start() not in merely_first and not is_common:
            yield word
