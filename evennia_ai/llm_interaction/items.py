"""What a summary must not lose of its source: names, numbers and quoted words.

They may survive in the summary, in the journal or in the ledger. What is found in none of them is
appended in one capped line, without asking a model again; the rest becomes a journal entry.

An item is found in a text if its words stand there in a row, whatever their case, accents,
possessives and plurals; numbers are compared by value, so that ``1,200`` is ``1200`` and
``three`` is ``3``.

What counts as a name is decided without a dictionary: capitals amid a sentence, and capitals at
its start where the word is not one that sentences start with. All patterns are linear: texts
come from players.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import regex

from evennia_ai.history.frames import one_line, without_marks
from evennia_ai.history.messages import Counter, Message, tool_calls
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.language.numbers import numbers_in, with_values
from evennia_ai.language.script import bordered, folded, holds, words_of
from evennia_ai.language.tables import DEFAULT, Table, table_of, tables
from evennia_ai.language.words import singular
from evennia_ai.llm_interaction.budget import capped
from evennia_ai.llm_interaction.tool_calls import loaded

# Longer ones are speech, whose names and numbers count by themselves.
QUOTE_WORDS = 8
_QUOTE_CHARS = 120
# Of what a tool was called with only the beginning: a long listing is not what a talk was about.
TOOL_CHARS = 2000
_ACRONYM_LETTERS = 5
APPENDIX_TITLE = "Also mentioned:"
# Most of a summary's cap the line of missing things may take.
APPENDIX_SHARE = 0.25
# So many names of a source are kept, by which it is found again.
NAMED = 3

# `I` is never a name; a letter alone is, as an initial.
_CAPITAL = r"(?!I\b)\p{Lu}\w*(?:['-][^\W\d_]\w*)*"
_RUN = regex.compile(
    rf"(?<![\w'-]){_CAPITAL}(?: (?:(?:of the|of|de|von|van|der|du|la) )?{_CAPITAL}){{0,5}}"
)
_GLUED = regex.compile(r"(?<=\w{3})'.*")
_SENTENCE_ENDS = frozenset('.!?:;¿¡؟।。！？\u2026"\u201c\u201d\u201e\u00ab\u00bb(*\u2014\n')
_LOWER_WORD = regex.compile(r"\b\p{Ll}+")
_LINKS = regex.compile(r"https?://\S+")
_WITH_DIGITS = regex.compile(r"(?<!\w)(?=[a-zA-Z-]{0,40}[0-9])[a-zA-Z0-9][\w.:+-]{5,}", regex.A)
_IDS = regex.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}[0-9:.]*(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[a-z][0-9]{1,12}\.[0-9a-z]{3,40}"
    r"|(?=[a-zA-Z]*[0-9])(?=[0-9]*[a-zA-Z])[0-9a-zA-Z]{12,}"
)
_BLANKS = regex.compile(r" {2,}|[^\S\n ]+")
# A first character is matched before what must not stand in front of it: patterns that begin with
# letters, not with a condition, are looked for at the speed of a plain search.
_QUOTED = regex.compile(
    rf'"(?<![\w"]")(?=[^\s"])([^"\n]{{1,{_QUOTE_CHARS}}})(?<=\S)"(?![\w:]| :)'
    rf"|[\u201c\u201e]([^\u201c-\u201e\n]{{1,{_QUOTE_CHARS}}})[\u201c\u201d]"
    rf"|\u00ab([^\u00ab\u00bb\n]{{1,{_QUOTE_CHARS}}})\u00bb"
    rf"|[「『]([^「-』\n]{{1,{_QUOTE_CHARS}}})[」』]"
)
_WORDS = regex.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class Item:
    """One thing a summary must keep."""

    # ``name`` (people, places, things called by name), ``number`` or ``quote``.
    kind: Literal["name", "number", "quote"]
    text: str  # as the source has it, without quote marks
    language: str = DEFAULT  # the code of the language it stands in


def items_of(text: str, known_names: Iterable[str] = ()) -> tuple[Item, ...]:
    """What of a text must survive, in order of its first mention, each item once.

    A line is a sentence at least. `known_names` count wherever they stand, in any case.
    """
    text = without_marks(_LINKS.sub(" ", text) if "://" in text else text)
    text = _WITH_DIGITS.sub(
        lambda word: " " if _IDS.fullmatch(word[0].rstrip(".:+-")) else word[0],
        text.replace("\u2019", "'"),
    )
    text = _BLANKS.sub(" ", text)
    known = list(dict.fromkeys(name.strip() for name in known_names if name.strip()))
    marked = ((match.start(), _quoted_words(match)) for match in _QUOTED.finditer(text))
    quotes = [(at, Item("quote", body)) for at, body in marked if body]
    # Quote marks in place of short quotations, so that their words count once.
    bare = _QUOTED.sub(lambda m: '"' * len(m[0]) if _quoted_words(m) else m[0], text)
    table = table_of(text)
    named = (*_known(bare, known, table), *_names(bare, known, table))
    names = [(at, Item("name", name)) for at, name in named]
    numbers = [(at, Item("number", number)) for number, at in numbers_in(bare).items()]
    items: dict[str, Item] = {}
    for _, item in sorted([*quotes, *names, *numbers], key=lambda pair: pair[0]):
        item = replace(item, language=table.code)
        if key := _key(item):
            items.setdefault(key, item)
    return tuple(items.values())


def source_items(
    messages: Sequence[Message], traits: ToolTraits, known_names: Iterable[str] = ()
) -> tuple[Item, ...]:
    """What of raw messages must survive: what was said and by whom.

    Of tool calls the values of arguments count, from the first `TOOL_CHARS` characters of each;
    of tools that tell nothing new only the texts among them, as their numbers say how weighty a
    note is. Results do not count: nobody said them. Names and result are as for `items_of`.
    """
    parts, names = list[str](), list(known_names)
    for message in messages:
        if message.role == "tool":
            continue
        speaker = one_line(message.speaker_name)
        names.append(speaker)
        parts += [speaker, *map(_unwrapped, message.content.split("\n"))]
        for call in tool_calls(message):
            function = call.get("function") or {}
            kinds = (
                (str,) if function.get("name") in traits.tells_nothing_new else (str, int, float)
            )
            text = _arguments_text(str(function.get("arguments") or ""), kinds)
            parts.append(text[:TOOL_CHARS])
    return items_of("\n".join(parts), names)


def missing(items: Iterable[Item], *texts: str) -> tuple[Item, ...]:
    """The items that stand in none of the texts, in their order."""
    wanted, found = tuple(items), set[Item]()
    for code in {item.language for item in wanted}:
        # Both in the item's language and in the text's own, as a text may tell of foreign words.
        normals = [form for text in texts for form in {normal(text), normal(text, code)}]
        whole = "\n".join(f" {form} " for form in normals)
        found |= {
            item
            for item in wanted
            if item.language == code and (f" {_key(item)} " in whole or _inflected(item, normals))
        }
    return tuple(item for item in wanted if item not in found)


@dataclass(frozen=True)
class Covered:
    """A summary with what it must not lose."""

    text: str  # the summary with its appended line
    # Share of the source's items kept in summary, journal or ledger before anything was appended.
    share: float = 1.0
    lost: tuple[Item, ...] = ()  # what was kept nowhere
    overflow: tuple[Item, ...] = ()  # what of that had no room in the line either
    named: tuple[str, ...] = ()  # some names in the source, by which it is found again


def covered(
    items: Sequence[Item], text: str, elsewhere: Sequence[str], cap: int, count: Counter
) -> Covered:
    """A summary's text with a line of what it lost, under the cap.

    Where text and line are too long together the text is cut first, and what stood in the part
    that was cut off counts as lost too.

    Args:
        items: Those of what was summarised.
        text: The summary.
        elsewhere: Texts in which a thing is kept besides.
        cap: Most tokens of the text with its line.
        count: Counts tokens.
    """
    lost, room = missing(items, text, *elsewhere), int(cap * APPENDIX_SHARE)
    line, overflow = appendix(lost, room, count)
    if line and count(text) + count(line) + 1 > cap:
        text = capped(text, cap - room - 1, count)
        lost = missing(items, text, *elsewhere)
        line, overflow = appendix(lost, room, count)
    names = dict.fromkeys(item.text for item in items if item.kind == "name")
    share = 1.0 - len(lost) / len(items) if items else 1.0
    text = f"{text}\n{line}" if line else text
    return Covered(text, share, lost, overflow, tuple(names)[:NAMED])


def appendix(
    items: Sequence[Item], cap_tokens: int, count: Counter
) -> tuple[str, tuple[Item, ...]]:
    """As many items, in order, as the cap allows as one line, and those that did not fit."""

    def line(of: Sequence[Item]) -> str:
        texts = (f'"{one_line(i.text)}"' if i.kind == "quote" else one_line(i.text) for i in of)
        return f"{APPENDIX_TITLE} {', '.join(texts)}." if of else ""

    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(line(items[:middle])) <= cap_tokens
        low, high = (middle, high) if fits else (low, middle - 1)
    return line(items[:low]), tuple(items[low:])


def _inflected(item: Item, normals: Iterable[str]) -> bool:
    """Whether a name stands in another form in a text, as names do in most languages."""
    is_other = item.kind == "name" and not tables()[item.language].data.get("exact_stems")
    return is_other and any(holds(text.split(), _key(item).split()) for text in normals)


def normal(text: str, code: str = "") -> str:
    """A text as words that compare equal, with a space between; numbers by their value.

    `code` is that of its language, where the text is too short to show it.
    """
    code = code or table_of(text).code
    text = with_values(folded(text), code)
    if not tables()[code].data.get("exact_stems"):
        return " ".join(words_of(text))
    return " ".join(singular(word.removesuffix("'s")) for word in _WORDS.findall(text))


@lru_cache(maxsize=4096)
def _key(item: Item) -> str:
    """What of an item is looked for: its normal form, a name without its titles."""
    words = normal(item.text, item.language).split(" ")
    titles = tables()[item.language].words("titles")
    while item.kind == "name" and len(words) > 1 and words[0] in titles:
        del words[0]
    return " ".join(words)


def _unwrapped(line: str) -> str:
    """A line without quote marks around the whole of it: they are how somebody typed."""
    body = line.strip()
    whole = len(body) > 1 and body[0] == body[-1] == '"' and '"' not in body[1:-1]
    return body[1:-1] if whole else body


def _arguments_text(arguments: str, kinds: Collection[type]) -> str:
    """The values a tool was called with, one a line; of JSON that was cut off, what is there."""
    values = loaded(arguments)
    if values is None:
        return arguments.replace('"', " ") if arguments.lstrip()[:1] in ("{", "[") else arguments
    values = values.values() if isinstance(values, Mapping) else [values]
    return "\n".join(str(value) for value in values if type(value) in kinds)


def _quoted_words(match: regex.Match[str]) -> str:
    """The words of a short quotation; empty for a longer one."""
    body = next(filter(None, match.groups())).strip(" .,;:!?-")
    return body if 0 < len(body.split()) <= QUOTE_WORDS else ""


def _known(text: str, names: Iterable[str], table: Table) -> Iterator[tuple[int, str]]:
    """Known names wherever they stand; a common word only with a capital."""
    lower = text.lower()
    for name in names:
        if name.lower() in lower:
            flags = regex.V1 if name.lower() in table.starters else regex.V1 | regex.I
            if place := regex.search(bordered(name), text, flags):
                yield int(place.start()), name


def _names(text: str, known: Iterable[str], table: Table) -> Iterator[tuple[int, str]]:
    """Names by their capitals; in languages whose nouns have some, those behind another noun."""
    runs = []
    for run in _RUN.finditer(text):
        before = text[max(0, run.start() - 2) : run.start()].rstrip(" ")
        starts = not before or before[-1] in _SENTENCE_ENDS
        runs.append((run[0].split(" "), run.start(), starts))
    not_amid = table.starters - table.words("capitals")
    bare = partial(table.expression("speech", "possessive").sub, "")
    amid = {bare(words[0]).lower() for words, _, starts in runs if not starts} - not_amid
    # Of a known name of several words the common ones are no names by themselves.
    sure = amid | {word for name in known for word in name.lower().split()} - table.starters
    sure.update(name.lower() for name in known)
    if not table.words("starters"):
        yield from _names_elsewhere(runs, sure - table.words("stop"), table)
        return
    as_verb = table.expression("speech", "as_verb")
    ordinary = (table.starters | set(_LOWER_WORD.findall(text))) - sure
    for words, at, starts in runs:
        first = bare(words[0]).lower()
        if "".join(words).isupper():  # one short word amid a sentence; others are shouting
            short = len(words) == 1 and 1 < len(words[0]) <= _ACRONYM_LETTERS
            if starts or not short or first in not_amid:
                continue
        elif first not in sure:
            second = bare(words[1]).lower() if len(words) > 1 else ""
            is_verb = second in sure if second else as_verb.match(text, at)
            if starts and (is_verb or first.partition("-")[0] in ordinary):
                words = words[1:]
            elif not starts and len(words) == 1 and first in not_amid:
                continue
        for name in _split(words, table.words("never_names"), bare):
            yield at, name


def _names_elsewhere(
    runs: Iterable[tuple[list[str], int, bool]], sure: Collection[str], table: Table
) -> Iterator[tuple[int, str]]:
    """Names in a language without a list of starters: what begins a sentence is none by itself."""
    runs = list(runs)
    capitals = {*sure, *(word.lower() for words, _, _ in runs for word in words)}
    for words, at, starts in runs:
        first = folded(words[0])
        may_begin = table.data.get("subject_first") and first not in table.vocabulary
        if starts and words[0].lower() not in sure and not may_begin:
            words = words[1:]
        if table.data.get("nouns_have_capitals"):
            words = _behind_noun(words, capitals, table)
        # Without what is glued on behind an apostrophe: `Oskar'ın`, but not `O'Brien`.
        bare = (_GLUED.sub("", word) for word in words)
        name = " ".join(word for word in bare if folded(word) not in table.words("stop"))
        if len(name) > 1 and not (name.isupper() and len(words) > 1):
            yield at, name


def _behind_noun(words: list[str], capitals: Collection[str], table: Table) -> list[str]:
    """The name behind a noun, as in ``Bäcker Konrad``; what belongs to a name is a noun."""
    places = [at for at, word in enumerate(words) if word.islower() and word not in ("von", "van")]
    words = words[places[-1] + 1 :] if places else words
    owner = words[-2].lower() if words[1:] else ""
    is_owned = owner.endswith("s") and owner[:-1] in capitals
    is_noun = not owner or is_owned or folded(owner) in table.words("calendar")
    return [] if is_noun else words[-1:]


def _split(
    words: Sequence[str], never: Collection[str], bare: Callable[[str], str]
) -> Iterator[str]:
    """Words as names: parted behind a possessive and at words that are never in a name."""
    name = list[str]()
    for word in (*words, ""):
        is_end = not word or word.lower() in never or word.lower().endswith("n't")
        name += [] if is_end else [bare(word)]
        if is_end or bare(word) != word:
            capitals = [index for index, part in enumerate(name) if not part.islower()]
            text = " ".join(name[capitals[0] : capitals[-1] + 1]) if capitals else ""
            if len(text) > 1:
                yield text
            name = []
