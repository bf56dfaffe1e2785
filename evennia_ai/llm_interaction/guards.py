"""Guards on what a model says: small rules, each of which cuts a reply to its sound beginning.

Small models go on with the prompt instead of answering, speak for others, fall into a loop, or give
out their rules. A reply that a guard cut keeps what stood before; one that keeps nothing is not
said.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix
from typing import NamedTuple

import regex

from evennia_ai.history.frames import PROMPT_FORM
from evennia_ai.language.script import folded, is_unparted, places, size, words
from evennia_ai.language.tables import DEFAULT, each_words, says, table_of, tables

# A shorter stretch may be rhythm until it was said three times; one so long said twice is a loop.
RHYTHM_WORDS = 12
# Stretches of up to so many words are looked for; loops of small models are a sentence or two.
LOOP_WORDS = 60
# A sentence of so many words is not said again; only a song's, on lines of its own, twice.
REFRAIN_WORDS = 4
# Small models are told to say one or two sentences; nobody reads what they say behind so many
# sentences or lines.
SMALL_SENTENCES, SMALL_LINES = 4, 3
# Anybody says `Aye, that may be so.` twice; a longer line said again is a model in a loop.
REPEATABLE_WORDS = 7
# A sentence of so many words is held against others in any order; a share of those of the sentence
# that it is nearly may be missing from it.
NEAR_WORDS, NEAR_SHARE = 5, 0.25
# Longer ones are held against none, and each against so many of those before it: guards run while
# all players wait, and a model may write for pages.
NEAR_MOST_WORDS, NEAR_SENTENCES = 100, 16
# Forms of one word begin alike for so many letters, and this share of the longer one.
FORM_LETTERS, FORM_SHARE = 4, 0.75
# Of a sentence that recites, at least so many telling words, and this share of them, stand near
# each other in what the model was told. With so many it told more than an answer holds.
RECITED_WORDS, RECITED_SHARE, RECITAL_WORDS = 4, 0.8, 15
# A sentence about itself as `you` or by its name has more than so many of them.
OWN_WORDS = 5
# So many words of the rules in a row are no accident.
RULE_WORDS = 8

_FORM = re.compile(
    r"\[[^\W\d_][^\]\n]{1,60}\]|^(?:Time|Place|Present|Exits|Description):", re.MULTILINE
)
# Ids of things as games and prompts write them: `Bram(#12)`, `o12.abc`.
_ID = re.compile(r"\(#\d+\)|\bo\d+\.[0-9a-z]{3,}\b")
_HIRAGANA = regex.compile(r"\p{Hiragana}+")
_PART = regex.compile(r"[^\W_]+")
_ENDS = ".!?\u2026\u3002\uff01\uff1f؟।۔"
_CLOSED = re.compile(
    r"[.!?\u2026؟।۔][\"'\u201d\u2019)]*(?=\s|$)|[\u3002\uff01\uff1f][\u300d\u300f\u201d]*"
)
_EMPTY = re.compile(r"[\s{}\[\]()<>\"'`:;,|/\\_=#+*-]*")
_QUESTION = re.compile(r"[?\uff1f\u061f\u037e]")
_QUOTES = ('"', "\u201c")
_SENTENCE = re.compile(rf"[^{_ENDS}\n]+(?:[{_ENDS}]+[\"'\u201d\u2019)]*|\n|$)")
_CALL = re.compile(
    r"(?<![$\w])[a-z_]{3,30}\((?:[\"'{)]|\w+\s*=)|</?(?:tool|function)_?(?:call|response)?s?\b"
    r"|<\|?(?:im_start|im_end|endoftext|eot_id)\b|\{\s*\"\w{1,40}\"\s*:",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Around:
    """What a reply is held against."""

    others: tuple[str, ...] = ()  # names of the other people present
    # Lines that are not said again, as `known_lines` gives them.
    known: frozenset[str] = frozenset()
    rules: str = ""  # what the model is told before all else, without the persona
    # What it was told of itself and of the place: facts to use, not to recite.
    told: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()  # names of the tools it has
    is_cut_off: bool = False  # whether the reply ended because it had become too long
    own: str = ""  # the assistant's own name
    is_small: bool = False  # whether a small model speaks: it must be brief, and sings no songs


class Guarded(NamedTuple):
    """The sound beginning of a reply, and the names of the guards that cut it."""

    text: str
    cuts: tuple[str, ...] = ()


def guarded(text: str, around: Around) -> Guarded:
    """A cleaned reply as it may be said; its text is empty if nothing of it is sound."""
    cuts, length = dict[str, None](), len(text) + 1
    while 0 < len(text) < length:  # what one guard leaves may be what another one takes
        length = len(text)
        for name, guard in GUARDS.items():
            kept = guard(text, around)
            if kept != text:
                text, cuts[name] = kept, None
            if not text:
                break
    return Guarded(text, tuple(cuts))


def with_words(text: str, around: Around) -> str:
    """Nothing, of a reply that is brackets and quotes alone, as the beginning of a call is."""
    return "" if _EMPTY.fullmatch(text) else text


def without_prompt(text: str, around: Around) -> str:
    """Without what goes on with the prompt: ids of people, labels, notices.

    Small models invent labels of their own, leave gaps to be filled in: ``[Your name]``, and read
    out single rows of what is around them.
    """
    forms = (PROMPT_FORM, _ID, _FORM) if around.is_small else (PROMPT_FORM, _ID)
    return _before(text, (form.search(text) for form in forms))


# Who speaks in the talks that models learned from.
_ROLES = ("User", "Human", "Player", "System", "You", "{{user}}", "DM", "GM", "Narrator")


def without_others(text: str, around: Around) -> str:
    """Without lines of other people: ``Bob: "..."``, behind a line of its own also ``Bob: ...``.

    ``Bob: two ales`` stays where it is part of a list, below a line that ends with a colon.
    """
    here, roles = ("|".join(map(re.escape, each)) or "(?!)" for each in (around.others, _ROLES))
    here, anybody = f"(?i:{here})", f"(?i:{here}|{roles})"
    verbs = "says|asks|answers|replies|whispers(?: to you)?|poses|pages(?: you)?"
    first = "|".join(map(re.escape, sorted(table_of(text).words("first_person")))) or "(?!)"
    theirs = regex.compile(
        rf"\A(?:{here})(?: (?:{verbs}))?(?:[:：](?=[\s「『])|：)|\A(?:{anybody}): [\"\u201c]"
        rf"|\n[<\[](?:{anybody})[>\]]|\n[\"\u201c][^\n\"\u201d]+[\"\u201d] (?:{here}) (?:{verbs})"
        rf"|\n(?:{anybody})(?P<says>| (?:{verbs}),?)[:：]?(?<=[:：,])"
        r"(?:(?=[\s「『\p{Lu}])|(?<=：))"
        # in any language: `Bram sagt: „…“`
        rf"|\n(?:{here})(?: \p{{Ll}}+){{1,2}}[:：] ?(?=[„«「『\u201c\"])"
        # `Bram (hungry): I'll have some.`, `Bram - "Some."`, `Bram nods. "Some," he says.`
        rf"|\n(?:{here}) ?(?:\([^()\n]{{1,40}}\):|[-–—] ?(?=[\"\u201c]))"
        rf"|\n(?:{here}) \p{{Ll}}+s\b[^\n\"\u201c]{{0,99}}[.!?] "
        r"[\"\u201c][^\n\"\u201d]*[.,!?…][\"\u201d]"
        rf"|(?<=[{_ENDS}])\s?(?:{here})(?: (?:{verbs})|\p{{Lo}}{{1,3}})?"
        r"[:：]\s?(?=[„«「『\u201c\"])"
        # `Bob: I want an ale.`; others than he say no `I` behind his name
        rf"|(?<=[{_ENDS}])\s(?:{here}): (?=(?i:{first})\b)"
        rf"|(?:\n|(?<=[{_ENDS}])\s)(?:{here})(?: [^\n\"\u201c]{{1,60}})? (?:{verbs})"
        rf"(?: [\w ]{{1,30}})?[:,] (?=[\"\u201c])"
    )
    listed = -1  # end of the newest line of a list
    for found in theirs.finditer(text):
        line_end = text.find("\n", found.end())
        line_end = len(text) if line_end < 0 else line_end
        above = text[: found.start()].rstrip()
        is_item = found["says"] == "" and text[found.end() : line_end].lstrip()[:1] not in _QUOTES
        if not (is_item and (above.endswith(":") or len(above) == listed)):
            return above
        listed = len(text[:line_end].rstrip())
    return text


# What is no part of a character's line in any language: rules between scenes, choices to pick
# from, the makers of models, and ``as an AI`` in languages without a table. Notes, figures, menus
# and talk of models in others are in their tables.
_ASIDES = re.compile(
    r"^(?:-{3,}|={3,}|\*{3,})[ \t]*$|(?<!#)#{3,}[ \t]*$"
    r"|(?<!:\n)^[ >]{0,9}(?:1\)|\[?A[\])])[^\n]+\n[ >]{0,9}(?:2\)|\[?B[\])])"
    r"|\b(?:ChatGPT|OpenAI|Anthropic|Alibaba Cloud|Mistral AI|Google DeepMind)\b"
    r"|\u901a\u4e49\u5343\u95ee|\u963f\u91cc\u4e91"
    r"|\b(?i:als|som|ca|mint|\u03c9\u03c2|ako|jako|kot|l\u00e0|sebagai)(?: \w{1,5})? AI\b"
    r"|(?i:\b\u044f\u043a (?:\u043c\u043e\u0432\u043d\u0430 \u043c\u043e\u0434\u0435\u043b\u044c"
    r"|\u0448\u0442\u0443\u0447\u043d\w+ \u0456\u043d\u0442\u0435\u043b\u0435\u043a\u0442))"
    # a refusal of a request
    r"|\bkann (?:diese|Ihre|deine) Anfrage nicht (?:erf\u00fcllen|beantworten|bearbeiten)"
    r"|\u65e0\u6cd5(?:\u6ee1\u8db3|\u5904\u7406|\u56de\u7b54)[\u8be5\u6b64]\u8bf7\u6c42",
    re.MULTILINE,
)


def without_asides(text: str, around: Around) -> str:
    """Without what the model says as a model: notes, menus, figures, ``as an AI``."""
    # Models write notes in English behind words of any language.
    tables_here = {table.code: table for table in (tables()[DEFAULT], table_of(text))}
    rules = [_ASIDES, *(table.expression("speech", "aside") for table in tables_here.values())]
    return _before(text, (rule.search(text) for rule in rules))


def without_own_label(text: str, around: Around) -> str:
    """Without what begins anew with its own name, or is signed: ``Aria: "..."``, ``Yours, Aria``.

    A label at the very beginning was taken off before.
    """
    if not around.own:
        return text
    own = re.escape(around.own)
    label = regex.compile(
        rf"(?:^|[{_ENDS}\"\u201d)]\s{{1,3}})(?P<at>[\"\u201c(\[]{{0,3}}{own}\]?(?: ?\[[^\]\n]*\])?"
        rf"(?::(?=\s|[\"\u201c])|：|\s{{1,3}}\p{{Ll}}+\s{{0,3}}[:,]?\s{{0,3}}[\"\u201c„«「]))"
        rf"|(?:\n|(?<=[{_ENDS}])\s)(?P<at>(?:[^\n]{{1,30}},\n)?[—–-]{{0,3}}[ \t]{{0,3}}"
        rf"{own}\W*(?:(?<=,\n.*\n)[^\n]{{1,60}})?)\Z",
        regex.MULTILINE,
    )
    found = label.search(text)
    return _before(text, [found.start("at")] if found else ())


def without_calls(text: str, around: Around) -> str:
    """Without tool calls written as text, and sentences that name a tool."""
    names = [re.escape(name) for name in around.tools]
    plain = [name for name in names if "_" in name or name == "noop"]
    of_all, of_plain = ("|".join(each) or "(?!)" for each in (names, plain))
    named = re.compile(rf"\b(?:{of_plain})\b|\b(?:{of_all})(?:\(| (?:function|tool)\b)")
    return _before(text, (_CALL.search(text), named.search(text)))


def without_rules(text: str, around: Around) -> str:
    """Without sentences that give out the rules, in any order of their words."""
    rules, found = f" {line_key(around.rules)} ", places(text)
    runs = (found[at : at + RULE_WORDS] for at in range(len(found) - RULE_WORDS + 1))
    starts = [run[0][0] for run in runs if f" {' '.join(word for _, word in run)} " in rules]
    lines = _told(tuple(around.rules.splitlines()), 9)
    starts += [at for at, said, _ in _recited(text, lines) if len(said) > RECITED_WORDS]
    return _before(text, starts)


def without_recital(text: str, around: Around) -> str:
    """Without sentences that recite what the model was told of itself or of the place.

    An answer may use them: what speaks of itself as ``you`` or by its name does not, nor what tells
    much of it at once, of which the first sentence is kept.
    """
    found = _recited(text, _told(around.told, 3))
    own, second = set(words(around.own)), each_words("second_person")
    starts = [at for at, said, first in found if first in own | second and len(said) > OWN_WORDS]
    for sentence in _SENTENCE.finditer(text):  # `You are Aria`
        first = _words(sentence.group())[:4]
        if second.issuperset(first[:1]) and own.intersection(first) and first:
            starts += [] if _QUESTION.search(sentence.group()) else [sentence.start()]
    if len({word for _, said, _ in found for word in said}) >= RECITAL_WORDS:
        starts += [at for at, *_ in found[1:2] or found]
    return _before(text, starts)


@lru_cache(maxsize=32)
def _told(texts: tuple[str, ...], together: int) -> tuple[frozenset[str], ...]:
    """The telling words of the sentences of some texts, so many sentences in a row together."""
    parts = [_SENTENCE.findall(text) for text in texts]
    return tuple(
        frozenset(_telling(" ".join(of[at : at + together])))
        for of in parts
        for at in range(max(1, len(of) - together + 1))
    )


def _recited(text: str, told: Iterable[frozenset[str]]) -> list[tuple[int, list[str], str]]:
    """The sentences that recite what was told: place, telling words, first word."""
    found = []
    for sentence in _SENTENCE.finditer(text):
        said = _telling(sentence.group())
        least = max(RECITED_WORDS, RECITED_SHARE * len(said))
        is_asked = _QUESTION.search(sentence.group())
        if not is_asked and any(len(source.intersection(said)) >= least for source in told):
            found.append((sentence.start(), said, _words(sentence.group())[0]))
    return found


def _telling(text: str) -> list[str]:
    """The words of a text that say something of a subject."""
    stop = table_of(text).words("stop")
    return [word for word in _words(text) if word not in stop]


@lru_cache(maxsize=4_096)
def _words(sentence: str) -> tuple[str, ...]:
    """The words of a sentence, which several guards read."""
    return tuple(words(sentence))


def without_loops(text: str, around: Around) -> str:
    """Without what says the same again and again: the first time is kept."""
    starts = [at for at in (_loop(text), _said_again(text, around.is_small)) if at is not None]
    # without an opening mark that is left at the end
    return text[: min(starts)].rstrip().rstrip("\"'\u201c\u2018(*-").rstrip() if starts else text


def without_repeats(text: str) -> str:
    """A summary without sentences that it tells again; all others stay."""
    told: set[tuple[str, ...]] = set()
    kept, at = "", 0
    for sentence in _SENTENCE.finditer(text):
        said = tuple(words(sentence.group()))
        if len(said) >= REFRAIN_WORDS and said in told:
            kept += text[at : sentence.start()] + "\n" * sentence.group().endswith("\n")
            at = sentence.end()
        told.add(said)
    lines = (line.strip() for line in (kept + text[at:]).split("\n"))
    return "\n".join(filter(None, lines)) if at else text


def without_excess(text: str, around: Around) -> str:
    """Without what a small model says behind its first sentences."""
    if not around.is_small:
        return text
    lines = [end.start() for end in re.finditer("\n", text)][SMALL_LINES - 1 :]
    ends = [end.end() for end in _CLOSED.finditer(text)][SMALL_SENTENCES - 1 :]
    return text[: min((*lines[:1], *ends[:1]), default=len(text))].rstrip()


def without_torn_end(text: str, around: Around) -> str:
    """Without a last sentence that was broken off; an only one loses its last word."""
    if not around.is_cut_off or text.endswith(tuple(_ENDS)):
        return text
    ends = [end.end() for end in _CLOSED.finditer(text)]
    return text[: ends[-1]] if ends else text.rpartition(" ")[0].rstrip() or text


def without_echo(text: str, around: Around) -> str:
    """Nothing, if each sentence was just said, or nearly, by the assistant or by somebody else.

    A small model that begins with what was said goes on with it: nothing is kept; of another reply
    of it the last sentences are cut that were said. It also answers with the words of the one who
    asks: ``I sell rye``, where Mira sells rye.
    """
    names = frozenset(word for name in (*around.others, around.own) for word in words(name))
    table, known, asks = table_of(text), around.known, bool(_QUESTION.search(text))
    little, first = table.words("small") | names, table.words("first_person")
    padded = [f" {key} " for key in known]

    def was_said(key: str) -> bool:
        is_theirs = around.is_small and key.count(" ") > 1 and not first.isdisjoint(key.split())
        return (
            key in known
            or any(is_near(key, each, names, asks) for each in known)
            or (is_theirs and any(f" {key} " in each for each in padded))
        )

    whole, parts = line_key(text), list[tuple[int, bool]]()
    for sentence in _SENTENCE.finditer(text):
        key = line_key(sentence.group())
        if _QUESTION.search(sentence.group()) or not little.issuperset(key.split()):
            parts.append((sentence.end(), was_said(key)))
    new = [end for end, said in parts if not said]
    begins_again = around.is_small and parts and parts[0][1]
    if was_said(whole) or begins_again or (parts and not new):
        return "" if whole else text
    return text[: new[-1]].rstrip() if around.is_small and new and parts[-1][1] else text


def is_near(key: str, other: str, names: Collection[str] = (), asks: bool = False) -> bool:
    """Whether two lines (`line_key`) say the same in nearly the same words.

    They differ only in words that say nothing of a subject, and in `names`; not in a denial, nor
    in a word of place, time or tense instead of another, and in who speaks of whom only in a
    question. What they share stands in the same order but for one part.
    """
    first, second = key.count(" ") + 1, other.count(" ") + 1
    most = NEAR_SHARE * second  # words that may be missing
    if min(first, second) < NEAR_WORDS or max(first, second) > NEAR_MOST_WORDS:
        return False
    if not -most <= first - second <= 2 * most:
        return False
    one, two = Counter(key.split()), Counter(other.split())
    more, less = list((one - two).elements()), list((two - one).elements())
    if max(len(less), len(more) / 2) > most:
        return False
    if not _is_in_order(key.split(), other.split(), {*more, *less}):
        return False
    for word in [*more]:
        if form := next((each for each in less if _is_form(word, each)), ""):
            more.remove(word)
            less.remove(form)
    table = table_of(other)
    if not any(table.words("opposites").isdisjoint(each) for each in (more, less)):
        return False  # `up` instead of `down`
    little = table.words("stop") | table.words("small") | set(names)
    telling = table.words("negations")
    if not asks:
        telling |= table.words("first_person") | table.words("second_person")
    return all(
        word not in telling and (word in little or _HIRAGANA.fullmatch(word))
        for word in (*more, *less)
    )


def _is_in_order(one: list[str], two: list[str], others: Collection[str]) -> bool:
    """Whether the words of two lines but for others need the move of one part to be the same.

    ``Mira owes Bob`` is not ``Bob owes Mira``.
    """
    one, two = ([word for word in each if word not in others] for each in (one, two))
    for _ in range(2):  # without the same beginning, then without the same end
        start = len(commonprefix((one, two)))
        one, two = one[start:][::-1], two[start:][::-1]
    return one == two or any(one[at:] + one[:at] == two for at in range(1, len(one)))


def _is_form(word: str, other: str) -> bool:
    """Whether two words differ in no more than an ending: ``rings`` and ``ring``."""
    alike, longest = len(commonprefix((word, other))), max(len(word), len(other))
    return alike >= max(FORM_LETTERS, FORM_SHARE * longest) and not word.isdigit()


Guard = Callable[[str, Around], str]
# In this order; the names are shown by `ai/why` and stand in the audit log.
GUARDS: Mapping[str, Guard] = {
    "goes on with the prompt": without_prompt,
    "steps out of character": without_asides,
    "speaks for others": without_others,
    "begins anew with its name": without_own_label,
    "writes calls as text": without_calls,
    "gives out its rules": without_rules,
    "recites what it was told": without_recital,
    "repeats itself": without_loops,
    "is too long": without_excess,
    "is broken off": without_torn_end,
    "says what was just said": without_echo,
    "says nothing": with_words,
}


def _before(text: str, unsound: Iterable[int | re.Match[str] | regex.Match[str] | None]) -> str:
    """The whole sentences of a text before the first of some places; all of it without any."""
    starts = [at if isinstance(at, int) else at.start() for at in unsound if at is not None]
    if not starts:
        return text
    first = min(starts)
    ends = [end.end() for end in _CLOSED.finditer(text, 0, first + 1) if end.end() <= first]
    return text[: ends[-1]] if ends else ""


def _loop(text: str) -> int | None:
    """Where the second of like stretches that follow each other begins, the earliest such."""
    words_at, found = places(text), list[int]()
    said = [word for _, word in words_at]
    for length in range(1, min(LOOP_WORDS, len(said) // 2) + 1):
        run, least = 0, length if length >= RHYTHM_WORDS else max(2 * length - 1, RHYTHM_WORDS)
        for place in range(length, len(said)):
            run = run + 1 if said[place] == said[place - length] else 0
            if run >= least:
                found.append(words_at[place - run + 1][0])
                break
    return min(found, default=None)


def _said_again(text: str, is_small: bool) -> int | None:
    """Where a sentence is said again; a short one for the third time.

    Nearly the same is the same, but for the lines of a song.
    """
    times: Counter[tuple[str, ...]] = Counter()
    before, prose = tuple[str, ...](), list[str]()
    lines = text.split("\n") if "\n" in text else []
    for sentence in _SENTENCE.finditer(text):
        said = _words(sentence.group())
        is_refrain = not is_small and said != before and sentence.group().strip("\n") in lines
        times[said] += 1
        is_short = size(" ".join(_PART.findall(sentence.group()))) < REFRAIN_WORDS
        key = " ".join(said)
        is_near_another = not is_refrain and any(
            is_near(key, each) for each in prose[-NEAR_SENTENCES:]
        )
        if is_near_another or (len(said) > 1 and times[said] > 1 + (is_short or is_refrain)):
            return sentence.start()
        prose += [] if is_refrain or len(said) < NEAR_WORDS else [key]
        before = said or before
    return None


def line_key(text: str) -> str:
    """The words of a line, by which it is known again."""
    return " ".join(_words(text))


def known_lines(
    own: Sequence[tuple[str, bool]],
    heard: Iterable[str],
    answered: Iterable[str],
    is_small: bool = False,
) -> frozenset[str]:
    """The keys of lines that are not said again.

    Anybody says `Aye, that may be so.` twice, `Aye.` three times, tells two people the same, and
    returns a greeting.

    Args:
        own: The assistant's newest lines, and whether each was said to the same person.
        heard: The newest lines of others.
        answered: Those of them that the reply answers.
        is_small: Whether a small model speaks, which says nothing else once it has begun: none of
            its longer sentences is said again to anybody, nor its newest line.
    """
    long = {line_key(text) for text, same in own if same and size(text) > REPEATABLE_WORDS}
    if is_small:
        sentences = (part for text, _ in own for part in (text, *_SENTENCE.findall(text)))
        long |= {key for key in map(line_key, sentences) if key.count(" ") >= REFRAIN_WORDS - 1}
        newest = (line_key(text) for text, _ in own[-1:])
        long |= {key for key in newest if " " in key or says("greeting", key, "kinds")}
    times = Counter(line_key(text) for text, _ in own if size(text) <= REPEATABLE_WORDS)
    often = {key for key, count in times.items() if count > (1 if " " in key else 2)}
    greetings = (text for text in answered if not _QUESTION.search(text))
    returned = {key for key in map(line_key, greetings) if key.count(" ") < REFRAIN_WORDS}
    heard, answered = [*heard], [*answered]
    if any(_QUESTION.search(text) for text in answered):
        # What others told is an answer to a question, unless it is about themselves.
        heard = [text for text in heard if text in answered or _speaks_of_itself(text)]
    lines = [part for text in heard for part in (text, *_SENTENCE.findall(text))]
    echoes = {key for key in map(line_key, lines) if key.count(" ") > 1} - returned
    return frozenset(long | often | echoes)


def _speaks_of_itself(text: str) -> bool:
    first, line = table_of(text).words("first_person"), folded(text)
    has_one = not first.isdisjoint(words(text))
    return has_one or (is_unparted(line) and any(word in line for word in first))
