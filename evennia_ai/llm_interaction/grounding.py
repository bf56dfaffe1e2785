"""Whether a summary rests on its source: what nobody said is struck, sentence by sentence.

Small models invent: names, numbers, quotations, and what people are said to have done. Each
rule names what of a sentence the source does not support; a sentence with anything unsupported is
struck. A good summariser's paraphrase must survive: claims are compared by stems and by words that
begin alike, and only a sentence most of whose content words stand nowhere near each other in the
source is an unsupported claim. A claim that is turned round has the words of one clause of the
source, but for one that denies: the tables say which do.

A summary in another language than its source is held to its names and its larger numbers in
digits; one in another script to these numbers alone. But where a part of it is in a language that
was spoken, what is in another one is a model's talk of its own.
"""

import calendar
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property
from itertools import chain

import regex

from evennia_ai.history.frames import read_heard, read_source_line, without_marks
from evennia_ai.language.numbers import with_values
from evennia_ai.language.script import ENDS, akin, folded, is_unparted, meets, size
from evennia_ai.language.tables import DEFAULT, Table, language_of, tables
from evennia_ai.language.words import asks, content_words, stem, telling_stem, words
from evennia_ai.llm_interaction.items import Item, items_of, normal

# Lines of a source that one sentence of a summary may rest on.
NEAR_LINES = 8
# Of a sentence's content words this share must be supported, measured on good summaries.
CLAIM_SHARE = 0.5
# Content words, names, numbers and quotes of the shortest claim: `They met.` is none.
LEAST_CLAIM = 2
# Shorter words say little of what a text is about.
LEAST_LETTERS = 4
# Where more of a summary is struck than this share of its sentences it is none.
MOST_STRUCK = 0.5
# A text of at most so many characters, of whose words less than this share stands in its source in
# any form, says nothing of it.
APART_CHARS, APART_SHARE = 600, 0.1
# Days around the day of a line that `yesterday` or `next week` may mean.
DAYS_AROUND = 8
# A summary of fewer words says nothing of its language, nor does a sentence of fewer.
LANGUAGE_WORDS, SENTENCE_WORDS = 12, 5
SCRIPT_CHARS = 2000

_SENTENCE = re.compile(
    "[^\\s](?:[^\\n.!?\u2026\u3002\uff01\uff1f؟।۔]|[.!?\u2026؟।۔](?![\"'\u201d\u2019)\u00bb]*(?:\\s|$))"
    "|(?<=\\b[MD]r)[.]|(?<=\\bMrs)[.]|(?<=\\bSt)[.])*"
    "(?:[.!?\u2026؟।۔]+[\"'\u201d\u2019)\u00bb]*|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]*|(?=\\n)|$)"
)
_NUMBERED = re.compile(r"^[ \t]*\d{1,2}[.)][ \t]+(?=\D)", re.MULTILINE)
_MONTHS = [name.lower() for name in calendar.month_name[1:]]
_DATE = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({'|'.join(_MONTHS)})\b"
    rf"|\b({'|'.join(_MONTHS)}) (\d{{1,2}})(?:st|nd|rd|th)?\b"
)
_DAY = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_GRAMMAR = regex.compile(r"\p{Hiragana}+")
# A letter of a script without spaces whose letters are no words: it stands in anything.
_SYLLABLE = regex.compile(r"[^\p{Han}]\p{M}*")
# Numbers that people write as words; of a language without a table no such words are known.
_SPELLED_ELSEWHERE = frozenset(map(str, range(13)))
_SPELLED_UNKNOWN = _SPELLED_ELSEWHERE.union(map(str, (*range(20, 101, 10), 1000)))


_MARKS = rf"[,;:،؛\"{regex.escape(ENDS)}]"
_CLAUSE = regex.compile(rf"(?<!{_MARKS}){_MARKS}++(?=\s|$)|[。！？，、；：]+|\n")
_WORD = regex.compile(r"\w[\w\p{M}]*(?:['’-]\w[\w\p{M}]*)*")
# Content words that a clause must hold before it can be turned round.
LEAST_WORDS = 2
# The share of them in a denial.
_DENIED = 0.8
_SIGNS = regex.compile(r"[\p{Han}\p{Katakana}\p{Hangul}]+")


@dataclass(frozen=True, slots=True)
class Struck:
    """A sentence that was struck, the rule that struck it, and what is unsupported in it."""

    sentence: str
    rule: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grounded:
    """What of a summary rests on its source; `sentences` counts all it had."""

    text: str
    struck: tuple[Struck, ...] = ()
    sentences: int = 0


@dataclass(frozen=True)
class Clause:
    """A part of a line, folded: who said it, its words, its stems."""

    speaker: str
    text: str
    stems: frozenset[str]

    def share(self, stems: Collection[str]) -> float:
        """The share of some stems that stand here in some form."""
        held = (
            stem in self.stems
            or any(akin(stem, own) for own in self.stems)
            or (_SIGNS.fullmatch(stem) and {*stem} <= {*self.text})
            for stem in stems
        )
        return sum(map(bool, held)) / max(1, len(stems))


def clauses(text: str) -> Iterator[str]:
    """The clauses of a text."""
    return filter(None, (part.strip() for part in _CLAUSE.split(text)))


class Ground:
    """A source, as the rules read it.

    Args:
        text: The lines a summariser was given, and what else it may rest on.
        known: Names that are known without them.
    """

    def __init__(self, text: str, known: Iterable[str] = ()):
        self.text = text
        self.known = tuple(known)
        lines = text.split("\n")
        heard = ((read_heard(line) or read_source_line(line), line) for line in lines)
        # Frames are English, whatever is spoken.
        self.said = without_marks("\n".join(h.text if h else line for h, line in heard))
        self.script = _script(self.said)
        self.language = language_of(self.said)
        self.languages = {self.language, *map(language_of, self.said.split("\n"))} - {""}
        self.is_english = self.language == DEFAULT
        self.normal = f" {normal(text, self.language)} {normal(', '.join(self.known))} "
        self.forms = frozenset(self.normal.split())
        self.words = [word for line in lines for word in words(line)]
        self.places: dict[str, list[int]] = {}
        for place, line in enumerate(lines):
            for each in set(_telling(line, self.language or DEFAULT)):
                self.places.setdefault(each, []).append(place)

    @cached_property
    def clauses(self) -> list[Clause]:
        """The clauses of what was said, each with its speaker."""
        code = self.language or DEFAULT
        return [
            Clause(
                folded(heard.who),
                folded(part),
                frozenset(_telling(with_values(folded(part), code), code)),
            )
            for line in self.text.split("\n")
            if (heard := read_heard(line)) and not asks(heard.text)
            for part in clauses(heard.text)
        ]

    @cached_property
    def days(self) -> frozenset[date]:
        """The days that words like `yesterday` may mean in these lines."""
        found = set()
        for match in _DAY.finditer(self.text):
            with suppress(ValueError):
                found.add(date(*map(int, match.groups())))
        around = range(-DAYS_AROUND, DAYS_AROUND + 1)
        return frozenset(day + timedelta(days) for day in found for days in around)

    @cached_property
    def date_words(self) -> frozenset[str]:
        """The words of these days, and of the years before and after them."""
        years = {str(day.year + more) for day in self.days for more in (-1, 0, 1)}
        months = {_MONTHS[day.month - 1] for day in self.days}
        whole = {normal(day.isoformat()) for day in self.days}
        return frozenset(years | months | whole)

    def supports(self, words_of: str) -> bool:
        """Whether each of some words stands somewhere, or is of a date that may be meant."""
        return all(
            word in self.forms
            or word in self.date_words
            # in another form, as names have in most languages
            or not (self.is_english or word.isdigit())
            and any(akin(word, form) for form in self.forms if form[:2] == word[:2])
            for word in normal(words_of, self.language).split()
        )

    def forms_of(self, stem: str) -> list[str]:
        """The stems here that are forms of the same word, as `therapi` and `therapeutic`."""
        if self.is_english:
            begin = stem[:LEAST_LETTERS]
            alike = (other for other in self.places if other[:LEAST_LETTERS] == begin)
            return [other for other in alike if len(begin) == LEAST_LETTERS and akin(stem, other)]
        return [
            other for other in self.places if meets(stem, other) and not _SYLLABLE.fullmatch(stem)
        ]


@dataclass(frozen=True)
class Sentence:
    """One sentence of a summary."""

    text: str
    items: tuple[Item, ...]  # the summary's names, numbers and quoted words that stand in it
    same_language: bool  # whether the summary's words can be compared with the source's

    def named(self, kind: str) -> list[str]:
        """The texts of one kind of item."""
        return [item.text for item in self.items if item.kind == kind]


Rule = Callable[[Sentence, Ground], tuple[str, ...]]


def unknown_names(sentence: Sentence, ground: Ground) -> tuple[str, ...]:
    """Names with a word that stands nowhere in the source."""
    names = sentence.named("name")
    if not ground.language:  # where any word may begin a sentence
        names = [name for name in names if not sentence.text.startswith(name)]
    return tuple(name for name in names if not ground.supports(name))


def unknown_numbers(sentence: Sentence, ground: Ground) -> tuple[str, ...]:
    """Numbers, by value, that stand nowhere in the source."""
    numbers = sentence.named("number")
    if not sentence.same_language or not ground.language:
        spelled = _SPELLED_ELSEWHERE if ground.language else _SPELLED_UNKNOWN
        numbers = [n for n in numbers if n[0].isdigit() and normal(n) not in spelled]
    dates = _dates(sentence.text, ground)
    return tuple(n for n in numbers if not ground.supports(n) and normal(n) not in dates)


def unknown_quotes(sentence: Sentence, ground: Ground) -> tuple[str, ...]:
    """Quoted words that nobody said in this order."""
    quotes = {q: {normal(q), normal(q, ground.language)} for q in sentence.named("quote")}
    return tuple(
        q for q, forms in quotes.items() if not any(f" {form} " in ground.normal for form in forms)
    )


def unknown_claims(sentence: Sentence, ground: Ground) -> tuple[str, ...]:
    """The content words without support, where too few of them stand near each other."""
    code = ground.language or DEFAULT
    named = {word for item in sentence.items for word in words(item.text) if item.kind != "quote"}
    left = " ".join(word for word in words(sentence.text) if word not in named)
    stems = _telling(sentence.text if tables()[code].data.get("unparted") else left, code)
    claim = dict.fromkeys(s for s in stems if s not in _narration(code) and not s.isdigit())
    is_heading = not sentence.items and sentence.text.rstrip("*").endswith((":", "："))
    if is_heading or len(claim) + len(sentence.items) < LEAST_CLAIM:
        return ()
    best = _found_near(claim, ground)
    if len(best) >= CLAIM_SHARE * len(claim):
        return ()
    return tuple(stem for stem in claim if stem not in best)


def turned_claims(sentence: Sentence, ground: Ground) -> tuple[str, ...]:
    """What somebody said, denied."""
    code = ground.language
    if not code or len(list(clauses(sentence.text))) > 1:
        return ()
    table, names = tables()[code], [*map(folded, sentence.named("name"))]
    text = folded(sentence.text)
    for name in names:
        text = text.replace(name, " ")
    claim = frozenset(_telling(with_values(text, code), code)) - _narration(code)
    is_turned = is_denied(claim, text, " ".join(names), ground.clauses, table)
    return tuple(claim) if is_turned else ()


# In this order; the names stand in the audit log.
RULES: Mapping[str, Rule] = {
    "name": unknown_names,
    "number": unknown_numbers,
    "quote": unknown_quotes,
    "claim": unknown_claims,
    "turned": turned_claims,
}


def grounded_in(text: str, source: str, known: Iterable[str] = ()) -> Grounded:
    """A summary without the sentences that a source, or names known besides, do not support."""
    ground = Ground(source, known)
    if len(_NUMBERED.findall(text)) > 1:  # the numbers of a list are nobody's
        text = _NUMBERED.sub("- ", text)
    found = list(_SENTENCE.finditer(text))
    if stands_apart(text, ground):
        return Grounded("", (Struck(text, "refusal", ("every word",)),) * len(found), len(found))
    foreign = _foreign([match[0] for match in found], ground)
    own = " ".join(match[0] for match in found if match[0] not in foreign)
    held = {"number"} | ({"name"} if _script(own) == ground.script else set())
    same_language = "name" in held and _same_language(own, ground)
    rules = {rule: of for rule, of in RULES.items() if same_language or rule in held}
    items = [(i, f" {normal(i.text, i.language)} ") for i in items_of(text, ground.known)]
    struck: list[Struck] = []
    kept: list[str] = []
    at = 0
    for match in found:
        gap, at = text[at : match.start()], match.end()
        words_in = f" {normal(match[0], ground.language)} "
        inside = tuple(item for item, form in items if form in words_in)
        sentence = Sentence(match[0], inside, same_language)
        wrong = ((rule, what) for rule, of in rules.items() if (what := of(sentence, ground)))
        rule, what = next(wrong, ("", ())) if match[0] not in foreign else ("language", ("all",))
        if what:
            struck.append(Struck(sentence.text, rule, what))
        kept.append("\n" * ("\n" in gap) if what else gap + sentence.text)
    if not struck:
        return Grounded(text, (), len(found))
    lines = (line.strip() for line in "".join(kept).split("\n"))
    return Grounded("\n".join(filter(None, lines)), tuple(struck), len(found))


def _foreign(sentences: Sequence[str], ground: Ground) -> frozenset[str]:
    """The sentences in a language that was not spoken, where others are in one that was."""
    likely = language_of(" ".join(sentences))
    told = {each: language_of(each, likely) for each in sentences}
    foreign = {
        each
        for each, code in told.items()
        if code and code not in ground.languages and size(each) >= SENTENCE_WORDS
    }
    own = [each for each, code in told.items() if code in ground.languages]
    return frozenset(foreign if len(own) >= len(foreign) else ())


def stands_apart(text: str, ground: Ground) -> bool:
    """Whether a short text has next to no word of its source, as a refusal in any language."""
    if len(text) > APART_CHARS or _script(text) != ground.script:
        return False
    if language_of(text) == DEFAULT:  # whose refusals are known by their words
        return False
    telling = {word for word in words(text) if len(word) >= LEAST_LETTERS or is_unparted(word)}
    known = set(ground.words)
    found = sum(word in known or any(akin(word, each) for each in known) for word in telling)
    return len(telling) >= LEAST_CLAIM and found < APART_SHARE * len(telling)


def _telling(text: str, code: str) -> list[str]:
    """The stems of the words of a text that say something of a subject."""
    if code == DEFAULT:
        return [each for word in words(text) if (each := telling_stem(word))]
    table = tables()[code]
    if table.data.get("unparted"):  # what stands in hiragana is grammar
        text = _GRAMMAR.sub(" ", text)
    return [stem(word, code) for word in content_words(text, table)]


@cache
def _narration(code: str) -> frozenset[str]:
    """How summaries tell that something was said or done; no claims by themselves."""
    return frozenset(_telling(tables()[code].get("lists", "narration"), code))


def _found_near(stems: Iterable[str], ground: Ground) -> frozenset[str]:
    """The most of some stems that stand together within `NEAR_LINES` lines."""
    begins = {
        stem: {
            place - back
            for other in {stem, *ground.forms_of(stem)}
            for place in ground.places.get(other, ())
            for back in range(NEAR_LINES)
        }
        for stem in stems
    }
    most = Counter(chain.from_iterable(begins.values())).most_common(1)
    return frozenset(stem for stem, places in begins.items() if most and most[0][0] in places)


def _dates(text: str, ground: Ground) -> frozenset[str]:
    """The numbers, as they are compared, of the days in a text that the source may mean."""
    found = ((a or d, b or c) for a, b, c, d in _DATE.findall(text.lower()))
    days = {(str(day.day), _MONTHS[day.month - 1]) for day in ground.days}
    return frozenset(n for day, month in found if (day, month) in days for n in (day, f"{day}th"))


def _script(text: str) -> str:
    """The script of most letters of a text, as Unicode names it."""
    letters = [char for char in text[:SCRIPT_CHARS] if char.isalpha()]
    scripts = Counter(unicodedata.name(char, "").partition(" ")[0] for char in letters)
    found = max(scripts, key=lambda script: scripts[script], default="LATIN")
    return "CJK" if found in ("HIRAGANA", "KATAKANA") else found


def _same_language(text: str, ground: Ground) -> bool:
    """Whether a summary seems to be written in the language of its source, by its little words."""
    found, code = words(text), language_of(text)
    if code and ground.language:
        return code == ground.language
    if len(found) < LANGUAGE_WORDS:
        return True
    little, known = [word for word in found if len(word) <= 4], set(ground.words)
    return sum(word in known for word in little) >= 0.4 * len(little)


def is_denied(
    stems: Collection[str], text: str, names: str, told: Iterable[Clause], table: Table
) -> bool:
    """Whether a sentence says the contrary of all clauses that hold its words.

    One of them has the same words, but for one that denies: `not only`, `never forget that` and
    `not until` leave a word over. The text is folded and without its names, which come apart.
    """
    if len(stems) < LEAST_WORDS or not table.get("speech", "not"):
        return False
    denies = table.expression("speech", "not")
    alike = [clause for clause in told if clause.share(stems) >= _DENIED]
    denied = {bool(denies.search(clause.text)) for clause in alike}
    if denied != {not denies.search(text)}:
        return False
    for clause in alike:  # they differ in one denial; one that affirms may tell more
        count = len(denies.findall(clause.text))
        plain = table.words("beside_not").union(_WORD.findall(clause.speaker))
        own, said = denies.sub(" ", text), denies.sub(" ", clause.text)
        is_same = _holds(said, own, plain) and (not count or _holds(f"{own} {names}", said, plain))
        if is_same and count + len(denies.findall(text)) == 1:
            return True
    return False


def _holds(text: str, other: str, plain: Collection[str]) -> bool:
    """Whether all words of another text stand in a text in some form, but for plain ones."""
    words = _WORD.findall(text)
    return all(
        word in plain
        or (word in text if is_unparted(word) else any(akin(word, each) for each in words))
        for word in _WORD.findall(other)
    )
