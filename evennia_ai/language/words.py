"""Words of a text: folding, stop words, a light English stemmer, and what a text is about.

The package has no other stemmer and no other list of common words.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from evennia_ai.language.names import names_among

# A question is short; what is beyond this is not looked at.
MAX_QUERY_CHARACTERS = 2_000

_STOP_WORDS = """
a an the and or but if of to in on at for with from by as is are was were be been being do does
did doing have has had having i you he she it we they me him her us them my your his its our
their mine yours this that these those what which who whom whose when where why how will would
can could shall should may might must not no nor so than too very s t re ve ll d m am just about
into over after before between out up down again then there here all any both each more most
other some such only own same also like get got go going went kind type thing many much
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# Greetings, thanks, the weather: said all day, about nothing.
_SMALL_TALK = """
afternoon ah another ask away back bye came cheers come cool day dear evening every everybody
everyone farewell fine friend friends funny give good goodbye great greetings haha hello help hey
hi hm hmm know later let lol long lot lovely maybe morning need nice night now off oh ok okay one
please quite really right round say says see something soon sure tell thank thanks things think
time today told tomorrow tonight want weather welcome well yes
"""
SMALL_TALK = frozenset(_SMALL_TALK.split())
# Other ordinary words that begin sentences, and have a capital only there.
_STARTERS = """
about above accept across actually add against ago aha allow almost alone along already alright
although always amid among answer anybody anyone anything anyway anywhere apart around aside aye
because begin behind below beneath beside besides better beware beyond bring buy call carry cast
cease certainly check choose clean clearly climb close congratulations consider count cross cut damn
describe done drink drop during earlier early eat either else empty enough even eventually ever
everything everywhere exactly except excuse explain fare few fill finally find finish first follow
forget forgive further gather gets goes gone grab greet ha hail half hand hang happy hardly hate heh
hence herself hide himself hit hold hopefully however hurry imagine indeed inside instead itself
join jump keep kill knock last lead learn least leave less lest lets lift likewise listen little
lock look looks love make mark meanwhile meet moreover mostly move much myself name nay near noted
nearly neither never nevertheless new next nobody nod none nonetheless nope note nothing nowhere
obviously often old once onto open order others otherwise ouch ours outside pack pardon pass past
pay per perhaps pick place play pour press presumably probably promise pull push put quick quickly
quiet rather reach read ready recently regarding remember remind repeat reply rest return roger run
sadly said save search second seek seems sell send serve set several shut similarly since sing sir
sit slowly smile somebody somehow someone sometimes somewhat somewhere sorry speak stand start stay
still stop strange study suddenly suppose surely surprisingly swear take talk teach theirs
themselves therefore thing third though through throughout throw thus till together touch toward
towards travel trust try turn under understood unfortunately unless unlike until upon use usually
visit wait wake walk watch whatever whenever whereas wherever whether while whisper whoever wish
within without wonderful wow write yea yeah yep yesterday yet yours yourself mr mrs ms dr st
midnight noon zero two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand million fourth fifth sixth seventh eighth ninth tenth march spring summer autumn
winter
"""
STARTERS = STOP_WORDS | SMALL_TALK | frozenset(_STARTERS.split())

_WORD = re.compile(r"[^\W_]+")
_SPOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def storable(text: str) -> str:
    """A text every database, tokenizer and network takes: no lone surrogates, no NULs."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")


def words(text: str) -> list[str]:
    """Words of a text in order, folded as SQLite's `unicode61` tokenizer folds them."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return _WORD.findall(text.lower())


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without its English endings, so that `dances`, `danced`, `dancing` meet.

    Lighter than Porter's: one plural, one verb ending and one derivation; for matching only.
    """
    if len(word) <= 3 or not word.isascii():
        return word
    word = _without_verb_ending(singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending in ("ation", "ment", "ness"):
        if word.endswith(ending) and len(word) > 7:
            word = word[: -len(ending)]
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def singular(word: str) -> str:
    """A word in lower case without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")) and len(word) > 4:
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and re.search("[aeiouy]", base):
            doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    return word


def spoken_words(text: str) -> list[str]:
    """Words of a text as they stand, a contraction or possessive being one word."""
    return _SPOKEN.findall(text)


def bare(word: str) -> str:
    """A word in lower case without a possessive or contracted ending; ``not`` for ``don't``."""
    head, mark, ending = word.replace("’", "'").partition("'")
    return "not" if ending == "t" and head.endswith("n") else head if mark else word


def is_common(word: str) -> bool:
    """Whether a bare word in lower case, or its singular, says nothing of a subject."""
    return any(each in STOP_WORDS or each in SMALL_TALK for each in (word, singular(word)))


@lru_cache(maxsize=8_192)
def telling_stem(word: str) -> str:
    """The stem of a word in lower case; empty for one that says nothing of a subject."""
    word = bare(word)
    tells = word.isdigit() or (len(word) > 1 and not is_common(word))
    return stem(word) if tells else ""


def telling_words(text: str, heard: Collection[str] = ()) -> frozenset[str]:
    """Stems of the words that say what a text is about.

    `heard` are names that everybody here hears all the time, as the assistant's own.
    """
    meant = names_among(text)
    common = {bare(word) for name in heard for word in spoken_words(name.lower())}
    found = {bare(word) for word in spoken_words(text.lower())} - common
    return frozenset(filter(None, (telling_stem(word) for word in found - meant))) | meant - common


def plain(text: str) -> str:
    """A text for comparing: without case and surrounding space."""
    return text.strip().casefold()
