"""A model's text made fit for a game: cleaned, split to size, poses and refusals told apart.

>>> told_apart("*smiles at Bob* Well met.", ["Aria"])
('Well met.', 'smiles at Bob')
"""

import re
from collections.abc import Iterable

from evennia_ai.history.frames import without_speaker
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.dialects import replacements
from evennia_ai.llm_interaction.tool_calls import loaded

# A telnet screen is 80 columns by about 24 lines; four of these are a screen and a half.
REPLY_CHARS = 600
REPLY_PIECES = 4

# Longer replies are cut before they are cleaned: a runaway must not block the reactor.
CLEANED_CHARS = 20_000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# All control characters but newline, then the ones that reorder or hide text.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# A sentence that nothing comes behind, as where a call was written.
_OPEN_END = re.compile(r"(?<=\w)\s*[,;]\s*\Z")

_QUOTED = re.compile(
    r"\"([^\"]+)\"|'([^']+)'|\u201c([^\u201c\u201d]+)\u201d|\u2018([^\u2018\u2019]+)\u2019"
    r"|\u00ab([^\u00ab\u00bb]+)\u00bb|„([^„“]+)“|„([^„”]+)”|»([^«»]+)«|「([^「」]+)」|『([^『』]+)』"
)


def clean_reply(text: str, names: Iterable[str] = ()) -> str:
    """A reply as it may be spoken in a game.

    The first `CLEANED_CHARS` characters as plain text without labels with one of the assistant's
    `names`, markup, control characters, outer quotes and blank lines; may be empty. Thoughts and
    marks were taken out before, see `dialects`.
    """
    body, own = text[:CLEANED_CHARS].replace("\r\n", "\n").replace("\r", "\n"), [*names]
    body = _CONTROL.sub("", _ANSI.sub("", body).replace("\t", " "))
    if called := "|".join(map(re.escape, filter(None, own))):  # Aria (smiling): …
        aside = r"\([^()\n]{1,40}\)"
        label = rf"\A\W*(?:{called})\s*(?:{aside}\s*:|\n\s*{aside}\s*\n)\s*"
        body = re.sub(label, "", body, flags=re.I)
    plain = strip_quotes(without_speaker(strip_markup(body), own))
    return _OPEN_END.sub(".", unaddressed(plain, own))


def unaddressed(text: str, names: Iterable[str]) -> str:
    """A line without one of the names as a call to somebody, at its beginning or end.

    A small model calls itself by its name, as others called it: ``Aria, your boat is the Heron.``
    """
    called = "|".join(re.escape(name) for name in names if name)
    if not called:
        return text
    call = rf"^(?:{called})\s*[,،、，]\s*|(?<!\s)\s*+[,،、，][^\S\n]*(?:{called})(?=\W*$|[.!?]\s)"
    rest = re.sub(call, "", text, flags=re.IGNORECASE)
    greeting = re.sub(rf"(?<=\w)\s+(?:{called})(?=\W*$)", "", text, flags=re.IGNORECASE)
    if greeting != text and table_of(text).words("small").issuperset(
        words(greeting)
    ):  # `Good evening Aria!`
        rest = greeting
    is_said = rest != text and any(map(str.isalnum, rest))
    return rest[0].upper() + rest[1:] if is_said else text


def strip_quotes(text: str) -> str:
    """Text without one pair of quote marks around all of it; a JSON string is decoded.

    A mark that stands alone at the beginning or the end goes, too.
    """
    body = text.strip()
    if body.count('"') == 1 and len(body) > 1:
        body = body.removeprefix('"').removesuffix('"').strip()
    if _QUOTED.fullmatch(body):
        return body[1:-1].strip()
    decoded = loaded(body) if body.startswith('"') else None
    return body if decoded is None else str(decoded).strip()


# Each rule reduces one kind of markup to the words inside it, in this order.
_MARKUP = replacements(
    r"^[ \t]*(?:```|~~~)[^\n]*$",
    (r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,500}(?:\([^()\n]{0,99}\))?[^()\n]{0,99}\)", r"\1"),
    (r"<((?:https?|mailto):[^\s<>]{1,500})>", r"\1"),
    r"^[ \t]*#{1,6}[ \t]+",
    r"^[ \t]*(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})[ \t]*$",
    r"^[ \t]*(?:[-*+\u2022\u2013\u2014][ \t]+|>[ \t]?)",
    r"\*\*|~~|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)",
    (r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,500})(?<=\S)\*(?![\w*])", r"\1"),
    (r"(?<!\w)_(?=[^\s_])([^_\n]{1,500})(?<=\S)_(?!\w)", r"\1"),
    r"`+",
    (r"\\(?:boxed|text)\{([^{}\n]*)\}", r"\1"),
    r"</?(?:b|i|u|em|strong|code|pre|p|br|div|span|ul|ol|li)\s?/?>",
)


def strip_markup(text: str) -> str:
    """Markdown and simple HTML as plain text, without blank lines and double spaces."""
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    lines = (re.sub(r" {2,}", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def speakable(
    text: str, names: Iterable[str] = (), limit: int = REPLY_CHARS, most_pieces: int = REPLY_PIECES
) -> tuple[list[str], int]:
    """A model's reply of any length, cleaned (see `clean_reply`) and split for a game's screen.

    A piece has at most `limit` characters and ends at a paragraph, a sentence or a word. Returns
    the pieces and how many characters are in none of them: those after `most_pieces` pieces, and
    of a runaway reply what was not cleaned.
    """
    pieces: list[str] = []
    rest = clean_reply(text, names)
    while rest and len(pieces) < most_pieces:
        at = _border(rest, limit)
        pieces.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return pieces, len(rest) + max(0, len(text) - CLEANED_CHARS)


def _border(text: str, limit: int) -> int:
    """Where the next piece ends: the last border of the best kind within `limit`."""
    if len(text) <= limit:
        return len(text)
    head = text[: limit + 1]
    for pattern, least in (
        (r"\n", 0.5),
        (r"[.!?\u2026؟।۔][\"'\u201d\u2019)»]*(?=\s)|[。！？][」』”]*", 0.4),
        (r"\s", 0),
    ):
        ends = [found.end() for found in re.finditer(pattern, head)]
        good = [end for end in ends if limit * least < end and len(head[:end].rstrip()) <= limit]
        if good:
            return good[-1]
    return limit


# A refusal is short; a long text that begins with "I'm sorry" tells a story.
_REFUSAL_CHARS = 600
_LEAD = re.compile(r"^\W+")


def is_refusal(text: str) -> bool:
    """Whether a text is a model's refusal instead of an answer. A guess from its beginning."""
    if len(text) > _REFUSAL_CHARS:
        return False
    refusal = table_of(text).expression("speech", "refusal")
    return refusal.match(_LEAD.sub("", text)) is not None


# Narration: models that learned from novels and chats write `*smiles* Well met.` or `Aria looks up.
# "Well met."`. What stands in stars, or beside a quoted line, is a pose; the rest is speech.

_PRONOUNS = ("she", "he", "they")
_THEIRS = ("her", "his", "their", "i", "my", "you", "your", "we")
# Stars or underscores around words; brackets only at the beginning.
_STARRED = re.compile(
    r"(?<![\w*])(\*{1,3}|_)(?=[^\s*_])(?P<inner>[^*\n]{1,400}?)(?<=\S)\1(?![a-zA-Z0-9_*])"
)
_BRACKETED = re.compile(r"\A\s*\((?P<inner>[^()\n]{2,200})\)\s*(?=\S)")
_SAID = re.compile(
    r"[\"\u201c„](?P<inner>[^\"\u201c\u201d„]*)(?:[\"\u201c\u201d]|\Z)"
    r"|«\s?(?P<within>[^«»]*?)\s?(?:»|\Z)"
    r"|(?m:^)'(?P<line>[^\n]+)'(?m:$)"
)
# What one does who tells of oneself and quotes what one says: `I nod. "Well met."`
_I_DO = re.compile(
    r"I (?:(?:say|answer|reply|ask|add),|(?:smile|nod|grin|look|lean|laugh|sigh|shrug|chuckle|wink"
    r"|bow|wave|pour|turn|wipe|lift|raise|glance|gesture|pause)\b(?! .*\bsays\b)[^.,:;!?]{0,60}\.)"
)
# A sentence that is said ends before the closing mark; a word that is quoted does not.
_SENTENCE_ENDS = ".!?,\u2026\u2014-"
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\"\u201d*:]\s*\Z")
_SAYS = r"(?:says?|said|asks?|asked|replies|replied|answers|answered|adds|whispers|murmurs)"
_SAYING = re.compile(rf"(?:\A{_SAYS}\b|\b{_SAYS}\W*\Z)", re.I)
# A line of its own, as `*Bram sits down and eats.*`.
_THEIR_DEED = re.compile(
    r"\*{1,3}(?!She\b|He\b|They\b|The\b)(?P<who>[A-Z][\w'-]+) "
    r"(?!is\b|was\b|has\b|does\b|says\b)[a-z]{2,}s [^*]+\*{1,3}\Z"
)
# What is to be seen, as `*The fire crackles.*` on a line of its own beside what is said.
_SCENE = re.compile(r"(?:The|An?|Outside|Behind|Around) (?:[a-z]+ ){1,4}?[a-z]+s\b[^!?]*\.\Z")
_POSE_CHARS = 400


def told_apart(text: str, names: Iterable[str]) -> tuple[str, str]:
    """What a reply with marks of stars and quotes says, and its pose; both may be empty.

    The pose is in the third person without a name; `names` are those of the assistant.
    """
    own = tuple(name.lower() for name in names)
    poses: list[str] = []

    def leave(found: re.Match[str]) -> str:
        before, after = text_now[: found.start()], text_now[found.end() :]
        theirs = _THEIR_DEED.match(found[0])
        is_line = not {before[-1:], after[:1]} - {"", "\n"}
        who = theirs["who"].lower() if theirs and is_line else ""
        if who and not any(who.startswith(name) or name.startswith(who) for name in own):
            return ""  # what somebody else does is theirs to tell
        is_seen = bool(_SCENE.match(found["inner"])) and not before.rstrip().endswith(":")
        if is_line and before + after and is_seen:
            return ""
        if not _is_deed(found["inner"], before, after, own):
            return found[0]
        poses.append(found["inner"])
        return " "

    text_now = text
    speech = _STARRED.sub(leave, text_now)
    text_now = speech
    speech = _BRACKETED.sub(leave, text_now)
    speech, beside = _beside_quotes(speech.strip(), own, bool(poses))
    poses += beside
    pose = ", ".join(filter(None, (_as_pose(each, own) for each in poses)))
    said = "\n".join(" ".join(line.split()) for line in speech.split("\n"))
    return said, pose[:_POSE_CHARS]


def _is_deed(inner: str, before: str, after: str, own: tuple[str, ...]) -> bool:
    """Whether marked words tell what is done, rather than stress what is said.

    They stand apart, between sentences, and do not begin as one.
    """
    line = before.rsplit("\n", 1)[-1]
    behind = after.split("\n", 1)[0].strip()
    is_apart = not line.strip() or bool(_ENDED.search(line))
    is_apart &= not behind or not (behind[0].islower() or behind[0] in ",;.!?:")
    words = inner.split()
    first = words[0].strip(",.").lower()
    if first.removesuffix("'s").removesuffix("\u2019s") in (*own, *_PRONOUNS, *_THEIRS):
        return is_apart
    is_verb = len(words) > 1 and len(first) > 3 and first.endswith(("s", "ing"))
    return is_apart and inner[-1] not in "!?" and (not inner[0].isupper() or is_verb)


def _beside_quotes(text: str, own: tuple[str, ...], is_told: bool) -> tuple[str, list[str]]:
    """What is quoted in a reply written like a novel, and what stands beside it.

    Nobody begins a line of their own with what was said and goes on about ``she``, or begins with
    their own name and quotes whole sentences, unless they tell a story.
    """
    quotes = list(_SAID.finditer(text))
    if not quotes:
        return text, []
    edges = [0, *(edge for quote in quotes for edge in quote.span()), len(text)]
    beside = [text[a:b].strip() for a, b in zip(edges[::2], edges[1::2], strict=True)]
    said = [" ".join(quote[quote.lastgroup or "inner"].split()) for quote in quotes]
    is_said = said[0][-1:] in tuple(_SENTENCE_ENDS)
    first = next((part.split()[0].lower().strip(",") for part in beside if part), "")
    if re.match(_SAYS, first) and any(
        name in re.findall(r"\w+", beside[1].lower()) for name in own
    ):
        first = own[0]  # `"Aye," says Aria`
    tellers = own if beside[0] else (*own, *_PRONOUNS, *_THEIRS[:3])
    is_own = bool(beside[0]) and all(map(_I_DO.fullmatch, filter(None, beside)))
    is_novel = is_said and (first in tellers or is_own)
    if not is_novel and not (is_told and is_said and not beside[0]):
        return text, []
    speech = " ".join(filter(None, said))
    if not is_novel:  # `*smiles* "Well met." And more.`
        return " ".join(filter(None, (speech, *beside))), []
    return speech, [part for part in beside if part]


def _as_pose(told: str, own: tuple[str, ...]) -> str:
    """What was told, as a pose; empty for what cannot be one."""
    told = " ".join(told.split()).strip(" ,;:").rstrip(".")
    first, _, rest = told.partition(" ")
    word = first.lower().strip(",")
    if _SAYING.search(told) or word in _THEIRS or not re.search(r"\w", told):
        return ""
    if word in own or word in _PRONOUNS:
        return rest
    for name in own:
        if told.lower().startswith((f"{name} ", f"{name}'s ", f"{name}\u2019s ")):
            return told[len(name) :].strip()
    return told[0].lower() + told[1:]
