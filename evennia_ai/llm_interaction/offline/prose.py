"""English prose: sentences, questions, nonsense, word stems, and statements in the third person."""

import re
from functools import lru_cache

from evennia_ai.language.words import STOP_WORDS, spoken_words, stem, words

MAX_CHARS = 600  # of a statement that is put into the third person
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_ABBREVIATION = re.compile(r"\b(mr|mrs|ms|dr|st|capt|sgt|no|vs)\.$", re.IGNORECASE)
LEADS = re.compile(
    r"(?i)^(?:(?:well|so|oh|ah|by the way|truth be told|to be honest|mind you|as it happens|"
    r"i tell you|let me tell you|did i say|listen|look|you know|actually|also|and|hey|hi|hello|ok|"
    r"okay|aye|yes|no|please|excuse me|sorry|say|now|then|tell me|good evening)\b[,!.?:]+\s+"
    r"|(?:well|so|and|also|please)\s+)+"
)
_ASKS = re.compile(
    r"(?i)^\W*(?:(?:who|whom|whose|what|which|where|when|why|how)(?:['’]s|['’]re|['’]d)?\s+(?:do|"
    r"does|did|is|are|was|were|has|have|had|can|could|will|would|should|many|much|old|far|long|"
    r"often|colou?r|kind|sort)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|would|will|have|has) (?:you|i|we|anyone|anybody|"
    r"he|she|it|they|there|the|my|your)\b"
    r"|(?:tell|remind|ask|show) (?:me|us)\b|i (?:wonder|forget|forgot|can(?:['’]t|not) (?:remember|"
    r"recall))\b|any (?:idea|clue)\b|let me know\b)"
)
# Who is spoken to, as in `Wren, have you heard?`
_CALLED = re.compile(r"^\W*(?:(?:[Hh]i|[Hh]ey|[Hh]ello) )?[A-Z][\w'’-]+,\s+")
# `It's cold, isn't it?` and `Would you believe it, ...?` tell; they ask nothing.
_TAG = re.compile(
    r"(?i),\s+(?:(?:have|has|would|could|can|did|do|does|is|are|was|were|will)(?:n['’]t)? (?:you|i|"
    r"it|he|she|we|they|that)\b[\w' ]{0,24}|you know|eh|right|see|you see)\?$"
)
NUMBERS = (
    r"\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|hundred|thousand|dozen|half|once|twice|one|both|couple"
)
NUMBER = re.compile(rf"\b(?:{NUMBERS})\b", re.IGNORECASE)
_NO_NAMES = STOP_WORDS.union(
    spoken_words("i'm i've i'd i'll old mount captain everybody nobody somebody")
)
_THIRD_PERSON_VERB = re.compile(r"is|was|has|had|and|will|can|[a-z]{2,}(?:s|ed)")
_WORDLIKE = re.compile(
    r"^[\"'“”‘’(*]*[^\W\d_]+(?:['’./-][^\W\d_]+|\d{0,3})*[\"'“”‘’).,;:!?…*]*$"
    r"|^[\"'(£$€#]*\d[\d.,:/-]*(?:st|nd|rd|th|[ap]m|h|%)?[\"').,;:!?…]*$|^[-–—&+]+$"
)
_HELD = re.compile(
    r"([^\W\d_])\1{4}|\S{41}|asdf|sdfg|dfgh|fghj|ghjk|hjkl|qwer|tyui|uiop|zxcv|xcvb|cvbn|vbnm", re.I
)
# The plain form of common irregular verbs, then their other forms.
_IRREGULAR = """
be am is are was were been|bear born bore|begin began begun|break broke broken|bring brought|build
built|buy bought|catch caught|choose chose chosen|come came|die died dying|do did done|drink drank
drunk|eat ate eaten|fall fell fallen|feel felt|fight fought|find found|fly flew|forget forgot|get
got|give gave given|go went gone|grow grew grown|have has had|hear heard|hide hid hidden|hold held|
keep kept|know knew known|leave left|lend lent|lose lost|make made|marry married|meet met|owe owed|
pay paid|ride rode|run ran|say said|see saw seen|sell sold|send sent|sing sang|sleep slept|speak
spoke spoken|spend spent|stand stood|steal stole stolen|swear swore sworn|swim swam|take took taken|
teach taught|tell told|think thought|throw threw thrown|wear wore worn|win won|write wrote written|
child children|man men|woman women|wife wives|knife knives|goose geese|mouse mice
"""
_PLAIN = {
    other: forms[0]
    for forms in (group.split() for group in _IRREGULAR.split("|"))
    for other in forms[1:]
}
_SUBJECT = re.compile(
    r"\b[Ii](?:['’](m|ve|d|ll))?\b(?:\s+((?:never|always|often|also|still|only|just|once|really|"
    r"usually|sometimes|rarely|seldom|already|now|even|recently|finally|secretly)\b))?"
    r"(?:\s+([A-Za-z]+(?:['’]t)?))?"
)
# `Mine` is also where ore is dug: it is a pronoun at a clause's end or before `is`.
_MINE = re.compile(
    r"(?i)(?<!\bthe )(?<!\ba )\b(?:mine|ours)\b(?=\s*(?:[.,;!?]|$|is\b|was\b|are\b|too\b))"
)
_FORMS = {"am": "is", "have": "has", "do": "does", "don't": "does not", "haven't": "has not"}
_UNCHANGED = spoken_words(
    "will would shall should can could may might must ought and or who cannot he she it they "
    "can't won't wouldn't couldn't didn't wasn't hadn't"
)
_CONTRACTION = {"m": "is", "ve": "has", "d": "would", "ll": "will"}


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, empty ones left out."""
    parts: list[str] = []
    for piece in _ENDS.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += " " + piece
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def is_question(sentence: str) -> bool:
    """Whether a sentence asks rather than tells."""
    sentence = LEADS.sub("", sentence)
    if _ASKS.match(_CALLED.sub("", sentence)):
        return True
    return sentence.rstrip(" \"'”’)").endswith("?") and not _TAG.search(sentence)


def is_nonsense(sentence: str) -> bool:
    """Whether a sentence is mostly no words: symbols, codes, one letter held down."""
    parts = sentence.split()
    odd = sum(not _WORDLIKE.match(part) or bool(_HELD.search(part)) for part in parts)
    return bool(parts) and odd * 2 > len(parts)


@lru_cache(maxsize=16_384)
def root(word: str) -> str:
    """A lower-case word's stem, irregular forms included, so that `kept` meets `keep`."""
    return stem(_PLAIN.get(word, word))


def names_in(text: str) -> frozenset[str]:
    """Lower-case words that a text writes as names.

    A sentence's first word counts where a verb in the third person follows it.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        tokens = [re.sub(r"['’]s?$", "", token) for token in spoken_words(sentence)]
        for i, token in enumerate(tokens):
            lower = token.lower().replace("’", "'")
            named = token[:1].isupper() and len(token) > 1 and not token.isupper()
            after = tokens[i + 1] if i + 1 < len(tokens) else ""
            if named and lower not in _NO_NAMES and (i or _THIRD_PERSON_VERB.fullmatch(after)):
                found.add(lower)
    return frozenset(found)


def root_set(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    return frozenset(root(word) for word in words(text) if word not in STOP_WORDS)


# Words that only frame a question, as in `do you remember`.
FRAME = root_set(
    "know remember recall tell remind say mention hear idea clue forget wonder please again "
    "ever think find guess exactly still sort kind"
)


def third_person(text: str, who: str) -> str:
    """A statement by `who`, with ``I``, ``me`` and ``my`` replaced by the name.

    ``We``, ``us`` and ``you`` cannot be resolved from the words alone: such a statement comes back
    as ``who: text``, and so does one that names no speaker.
    """
    text = LEADS.sub("", " ".join(text.split()))[:MAX_CHARS].strip()
    if not who or not text:
        return text
    if re.search(r"\b(we|us|you|your)\b", text, re.IGNORECASE):
        return f"{who}: {text}"

    def subject(found: re.Match[str]) -> str:
        contraction, adverb, verb = found.groups()
        if verb and not contraction:
            verb = _conjugated(verb)
        return " ".join(filter(None, (who, _CONTRACTION.get(contraction), adverb, verb)))

    changed = _SUBJECT.sub(subject, text)
    changed = re.sub(r"\b(my|our)\b", lambda _: f"{who}'s", changed, flags=re.IGNORECASE)
    changed = _MINE.sub(lambda _: f"{who}'s", changed)
    changed = re.sub(r"\b(me|myself)\b", lambda _: who, changed, flags=re.IGNORECASE)
    return changed if who.lower() in changed.lower() else f"{who}: {text}"


def _conjugated(verb: str) -> str:
    """A verb as it stands behind a name: past forms and auxiliaries do not change."""
    lower = verb.lower().replace("’", "'")
    if lower in _FORMS:
        return _FORMS[lower]
    if lower in _UNCHANGED or lower in _PLAIN or lower.endswith("ed"):
        return verb
    if lower.endswith(("s", "x", "ch", "sh", "o")):
        return verb + "es"
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
