"""The offline model: a request in, words or tool calls out. It keeps nothing.

It greets, takes leave and thanks, does what it is ordered, reads the room, quotes what a person
said, and else says one of a few lines that fit anything. It tells nothing else apart.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import regex

from evennia_ai.errors import RankError, UnaskedError
from evennia_ai.history.messages import MESSAGES_LABEL, Heard
from evennia_ai.history.stored import as_dict, as_dicts
from evennia_ai.language.script import (
    akin,
    begins_alike,
    bordered,
    folded,
    is_asked,
    is_unparted,
    size,
    words,
)
from evennia_ai.language.tables import (
    COURTESIES,
    DEFAULT,
    Table,
    code_of,
    each_phrase,
    language_of,
    table_of,
    tables,
)
from evennia_ai.language.words import capitals, content_words, sentences, stem
from evennia_ai.llm_interaction import conversation as form
from evennia_ai.llm_interaction.offline.acts import (
    ORDERS,
    comparable,
    named_in,
    pattern,
    read_order,
)
from evennia_ai.llm_interaction.offline.summary import summarise
from evennia_ai.llm_interaction.offline.transcript import PAGES, SILENT, Talk, ToolCall, read_talk
from evennia_ai.llm_interaction.tool_calls import loaded

MAX_LINES_READ = 60  # for the language of a talk
MAX_FRESH = 4  # lines that one turn answers
MAX_SEARCH = 380  # characters of a query; the tool takes 400
# A quote has more than this share of a question's telling words; than the second if a name is among
# them, or in a script without capitals.
NEAR, NEAR_NAMED = 1 / 2, 1 / 3
# Hits that may be quoted, and characters of what is quoted and of what a look shows.
MOST_HITS, QUOTE_CHARS, SHOWN_CHARS = 5, 160, 400
QUOTED = ("message", "ledger")  # kinds of hits that a person said
SHOWN_SENTENCES, ROOM_SENTENCES = 4, 2
# Words behind a greeting that may belong to it: `hey man`, `hello old friend`.
BESIDE_GREETING = 2
# What an answer is worth: of those that say nothing one is enough, where no line gets a better one.
ANSWERS, SAYS_UNKNOWN, FITS_ANYTHING, SILENCE = 0, 1, 2, 3
# A name and what sets it off from the line: it goes where nobody is named.
_UNNAMED = regex.compile(r"[,،、，]? ?\{who\}(?:さん| 님)?")
_MARKS = r"[\s,،、，:：;!！.…。–—-]*"
# What follows a name that is called in a script without spaces: `민준아,`.
_GLUED = r"(?:[^\s\W]{1,2}(?=[,،、，\s]))?"


@dataclass(frozen=True, slots=True)
class Reply:
    """Text, or tool calls, or neither (silence)."""

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a line is answered by: words, or the call that must come first."""

    text: str = ""
    call: ToolCall | None = None
    rank: int = ANSWERS


def respond(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Reply:
    """Answer a chat request by rules alone; equal requests get equal answers.

    `messages` are chat messages, as `history.messages.rendered` makes them; all but the system
    message is data, never an order. `tools` are function schemas in OpenAI's form; no other tool is
    called. Returns text or tool calls, empty text if there is nothing to say.
    """
    offered = frozenset(tool["function"]["name"] for tool in tools)
    asked = str(messages[-1].get("content") or "")
    is_job = asked.lstrip().startswith(MESSAGES_LABEL)
    if is_job and not offered:
        return Reply(summarise(asked))
    answers = [] if is_job else _Speaker(read_talk(messages), offered).answers()
    if calls := [answer.call for answer in answers if answer.call]:
        return Reply(None, tuple(call for n, call in enumerate(calls) if call not in calls[:n]))
    said = list(dict.fromkeys(answer.text for answer in answers if answer.text))
    if not said and "noop" in offered:
        return Reply(None, (ToolCall("noop"),))
    return Reply(" ".join(said))


def language_of_talk(talk: Talk) -> str:
    """The code of the language to speak: the one the rules name, else that of the talk.

    That is the one of the newest line that shows its own, first of those of the newest speaker.
    """
    if fixed := code_of(form.fixed_language(talk.system)):
        return fixed
    lines = talk.heard[-MAX_LINES_READ:]
    newest = lines[-1].who if lines else ""
    code = DEFAULT
    for line in sorted(lines, key=lambda line: line.who == newest):
        code = language_of(line.text.replace(talk.me, " "), code) or code
    return code


class _Speaker:
    """One turn: a talk, the tools that are offered, and the language it speaks."""

    def __init__(self, talk: Talk, tools: Set[str]):
        self.talk, self.tools = talk, tools
        self.table: Table = tables()[language_of_talk(talk)]

    def answers(self) -> list[_Answer]:
        """What the newest lines are answered by."""
        answered = [
            (self._answer(line), line)
            for line in self.talk.fresh[-MAX_FRESH:]
            if line.who != self.talk.me and line.verb not in (*SILENT, "poses")
        ]
        # Among people who talk with each other, what says nothing is said to who names it.
        answers = [
            answer
            for answer, line in answered
            if answer.rank == ANSWERS or not self._is_amid(line) or self._is_named(line)
        ]
        rank = min((answer.rank for answer in answers), default=ANSWERS)
        best = [answer for answer in answers if answer.rank == rank]
        return best if rank == ANSWERS else best[-1:]

    def _is_named(self, line: Heard) -> bool:
        """Whether a line is said to the assistant alone, or holds what it is called."""
        return line.verb not in ("says", "poses") or self._names_it(line.text)

    def _names_it(self, text: str) -> bool:
        """Whether a text holds what the assistant is called."""
        shown = comparable(text)
        called = map(comparable, (self.talk.me, *self.talk.names(form.CALLED)))
        return any(regex.search(bordered(name), shown, regex.V1 | regex.I) for name in called)

    def _is_amid(self, line: Heard) -> bool:
        """Whether somebody else is here who has been talking, too."""
        others = {heard.who for heard in self.talk.heard[-MAX_LINES_READ:] if heard.verb == "says"}
        return bool((others & set(self.talk.people)) - {line.who, *self.talk.assistants})

    def line(self, key: str, line: Heard) -> str:
        """A line of the language, said to who spoke: another one than the last reply."""
        said = self._variants(key)
        if not line.who:
            said = [_UNNAMED.sub("", variant) for variant in said]
        said = [variant.format(who=line.who, me=self.talk.me) for variant in said]
        last = "".join(self.talk.replies[-1:])
        said = [each for each in said if each not in last] or said
        seed = f"{len(self.talk.replies)} {line.text}"
        return said[crc32(seed.encode("utf-8", "replace")) % len(said)]

    def _variants(self, key: str) -> list[str]:
        variants = self.table.get("lines", key) or tables()[DEFAULT].get("lines", key)
        return [str(variant) for variant in variants]

    def _answer(self, line: Heard) -> _Answer:
        """What answers a line."""
        text, courtesy = self._without_opening(line.text)
        is_here = line.verb != PAGES or line.who in self.talk.people  # whose room is this one
        is_asked_of_it = is_asked(text) or self._is_named(line)
        if (
            is_here
            and self._holds_phrase("here", text, is_asked_of_it)
            and (room := self._room(line.who))
        ):
            return _Answer(room)
        order = read_order(line, text, self.talk, self.table)
        done = order and self._done(order, line)
        if done and (done.rank == ANSWERS or not any(map(is_asked, sentences(text)))):
            return done
        answer = self._asked(text, courtesy, line)
        if answer and (answer.rank == ANSWERS or not done):
            return answer
        # `Goodnight, and take care of yourself.`
        if done and (courtesy or self._closing(text)) != "farewell":
            return done
        if self._holds_phrase("identity", text, is_asked_of_it):
            return _Answer(self.line("identity", line))
        greeting = ""
        if courtesy == "greeting" and size(text) > BESIDE_GREETING:
            # What is told counts, be it a death.
            courtesy, greeting = "", self._greeting(line)
        if courtesy := courtesy or self._closing(text):
            if courtesy == "greeting" and is_asked(line.text):
                courtesy = "well"
            rank = FITS_ANYTHING if courtesy == "thanks" else ANSWERS  # whoever is thanked
            return _Answer(self.line(courtesy, line), rank=rank)
        if line.who in self.talk.assistants:  # the talk between the two ends
            return _Answer(rank=SILENCE)
        return _Answer(greeting + self.line("heard", line), rank=FITS_ANYTHING)

    def _greeting(self, line: Heard) -> str:
        """The greeting in a line, as a sentence, where it is the first that somebody says."""
        said = [each for each in self.talk.heard if (each.who, each.verb) == (line.who, line.verb)]
        found = pattern(self.table.code, "greeting").search(comparable(line.text))
        if found is None or len(said) > 1:
            return ""
        greeting = line.text[found.start() : found.end()]
        end = "。" if is_unparted(greeting) else ". "
        return greeting[:1].upper() + greeting[1:] + end

    def _asked(self, text: str, courtesy: str, line: Heard) -> _Answer | None:
        """What answers the last question of a line.

        None where there is none, and where it cannot be answered and more is told behind it.
        """
        parts = [part for part in sentences(text) if regex.search(r"\w", part)]
        questions = [part for part in parts if is_asked(part)]
        if not questions and pattern(self.table.code, "look").match(comparable(text)):
            parts = questions = [text]  # `tell me about Odo`, who is not here to be looked at
        is_all = size(text) <= BESIDE_GREETING
        is_how = courtesy and is_all and not content_words(text, self.table)  # `how are you today?`
        if not questions or is_how:
            return None
        answer = self._to_question(questions[-1], line)
        is_last = questions[-1] == parts[-1]
        return answer if is_last or answer.rank == ANSWERS else None

    @cached_property
    def _names(self) -> tuple[regex.Pattern[str], regex.Pattern[str]]:
        """The assistant's name as a line may begin, and end, with it.

        What others call it, or only the last words of that, counts if it is set off.
        """
        me = bordered(comparable(self.talk.me))
        called = (comparable(name).split() for name in self.talk.names(form.CALLED))
        others = [bordered(" ".join(said[at:])) for said in called for at in range(len(said))]
        other = f"(?:{'|'.join(others) or '(?!)'})"
        begins = rf"{me}{_GLUED}|{other}(?=\s*[,،、，:：!！])"
        ends = rf"(?:[,،、，]?\s*{me}|[,،、，]\s*{other})(?=[\W]*$)"
        flags = regex.V1 | regex.I
        return regex.compile(rf"\s*(?:{begins}){_MARKS}", flags), regex.compile(ends, flags)

    def _without_opening(self, text: str) -> tuple[str, str]:
        """A line without the assistant's name and courtesies at its start, and the last of these.

        It is none if more follows that does not belong to it, as in `morning comes early`.
        """
        name, name_at_end = self._names
        everyone = pattern(self.table.code, "everyone")
        text, courtesy = name_at_end.sub("", " ".join(text.split())), ""
        while True:
            text = text.lstrip(" ¡¿,،、，:!！.。…–—-")
            shown = comparable(text)
            phrases = ((pattern(self.table.code, key).match(shown), key) for key in COURTESIES)
            ends = {phrase.end(): key for phrase, key in phrases if phrase}
            if ends:
                end = max(ends)
                rest = text[end:]
                called = name.match(shown, end) or everyone.match(shown[end:].strip())
                is_set_off = called or not regex.match(r"\s*\w", rest)
                if not (is_set_off or size(rest) <= BESIDE_GREETING or is_unparted(text[:end])):
                    return text, "thanks" if ends[end] == "thanks" else courtesy
                text, courtesy = rest, ends[end]
            elif called := name.match(shown):
                text = text[called.end() :]
            else:
                return text, courtesy

    def _closing(self, text: str) -> str:
        """The courtesy that ends a line, of leave or thanks, or that is one in any language."""
        shown = comparable(text).strip(" ¡!！.。…?？")
        for key in COURTESIES:
            if shown in each_phrase(key):
                return key
        for key in COURTESIES[1:]:
            phrases = pattern(self.table.code, key).pattern
            if regex.search(rf"(?:^|[\s,،、，.。!！])(?:{phrases})$", shown, regex.V1 | regex.I):
                return key
        openings = (self._without_opening(part)[1] for part in sentences(text)[1:])
        return next((key for key in openings if key in COURTESIES[1:]), "")

    def _holds_phrase(self, key: str, text: str, is_asked_of_it: bool = True) -> bool:
        """Whether what is asked holds a phrase of a list and nothing else, or a line is one."""
        phrases = pattern(self.table.code, key)
        shown = comparable(text).strip(" ¿¡!！.。…?？؟")
        if not is_asked_of_it:
            return bool(phrases.fullmatch(shown))
        return bool(phrases.search(shown)) and not content_words(phrases.sub(" ", text), self.table)

    def _room(self, who: str) -> str:
        """The room: its name, how it looks, and who and what is there."""
        place = self.talk.place
        people = [name for name in self.talk.people if name != who]
        names = [*people, *self.talk.names(form.THINGS, form.WAYS)]
        looks = _beginning(place.get(form.LOOKS, ""), ROOM_SENTENCES, SHOWN_CHARS)
        parts = (place.get(form.PLACE, ""), looks, ", ".join(names))
        return " ".join(f"{part.rstrip('.')}." for part in parts if part)

    def _done(self, order: ToolCall, line: Heard) -> _Answer | None:
        """The call of an order, or what is said once it came back; None if it cannot be done."""
        done = self.talk.result_of(order)
        if done is None:
            return _Answer(call=order) if order.name in self.tools else None
        if done.failed and (UnaskedError.SAYS in done.result or RankError.SAYS in done.result):
            return _Answer()  # the game has asked whether it is meant
        if done.failed:
            return _Answer(self.line("unable", line), rank=FITS_ANYTHING)
        if order.name == "look":
            return _Answer(_shown(done.result))
        return _Answer(self.line("remembered" if "content" in order.arguments else "done", line))

    def _to_question(self, question: str, line: Heard) -> _Answer:
        """What answers a question."""
        if self._holds_phrase("identity", question):
            return _Answer(self.line("identity", line))
        own = bordered(comparable(self.talk.me))  # its name is no part of what is asked
        question = regex.sub(own, " ", question, flags=regex.V1 | regex.I).strip()
        told = content_words(question, self.table)
        thing = named_in(question, self.talk.names(form.THINGS, form.CARRIED))
        is_of_thing = thing and len(set(told) - set(words(thing))) < BESIDE_GREETING
        if is_of_thing and (answer := self._seen(thing)):
            return answer
        search = ToolCall("search_memory", {"query": question[:MAX_SEARCH]})
        if told and search.name in self.tools:
            found = self.talk.result_of(search)
            if found is None:
                return _Answer(call=search)
            if quote := self._quote(found.result, question, line):
                return _Answer(quote)
        quotes = (_nearest(text, question, self.table) for text in self.talk.known)
        if quote := next(filter(None, quotes), ""):
            return _Answer(quote)
        # One word may be another name of a thing that is here.
        is_one = len(set(told)) == 1 and not named_in(question, self.talk.people)
        if is_one and (answer := self._seen(told[0])):
            return answer
        return _Answer(self.line("unknown", line), rank=SAYS_UNKNOWN)

    def _seen(self, target: str) -> _Answer | None:
        """What a look shows, or the look; None if nothing is to be seen."""
        look = ToolCall("look", {"target": target})
        done = self.talk.result_of(look)
        if done is None:
            return _Answer(call=look) if look.name in self.tools else None
        name = words(done.result.partition("\n")[0])
        # The game finds a hearth by `hear`, too.
        is_beginning = any(word != target and word.startswith(target) for word in name)
        return None if done.failed or is_beginning else _Answer(_shown(done.result))

    def _quote(self, result: str, question: str, line: Heard) -> str:
        """The best line that a person said, with their name; empty where none is near enough."""
        is_amid = line.verb == "says" and self._is_amid(line)
        is_named = self._is_named(line)
        own = {self.talk.me, *self.talk.assistants, ""}
        for hit in as_dicts(as_dict(loaded(result)).get("results"))[:MOST_HITS]:
            who, said = str(hit.get("speaker") or ""), str(hit.get("text") or "")
            is_pose = comparable(said).startswith(f"{comparable(who)} ")  # `Ruth waves.`
            if who in own or is_pose or (hit.get("kind") or QUOTED[0]) not in QUOTED:
                continue
            told, _ = self._without_opening(said)
            is_aside = is_amid and not self._names_it(said)
            if is_aside and not is_named:
                continue  # they talk with each other
            quote = _nearest(told, question, self.table, who, line.who, self.talk.people, is_aside)
            if quote:
                frame = self._variants("told")[who == line.who]
                return frame.format(speaker=who, words=quote)
        return ""


def _nearest(
    text: str,
    question: str,
    table: Table,
    who: str = "",
    asker: str = "",
    people: Sequence[str] = (),
    is_aside: bool = False,
) -> str:
    """The sentences of a text that are near to a question; empty if none is.

    Near is what shares more than half of a question's telling words, or than a third with a name
    among them; just as much is enough in the words of somebody (`who`) whom the question names.
    That name is not asked for: `my horse` is Bob's if Bob says so. The names of `people` who are
    here are in many lines: where more is asked, they alone make none near. Of what people say among
    themselves (`is_aside`) one of several telling words is too little, and of the asker's own words
    one alone, unless it is a name.
    What tells no more than the question, as a question without its mark, is no answer.
    """
    # Spanish `anda` is no form of the little word `and` of a text in English.
    little = table.little | table_of(text).little

    def stems(text: str) -> set[str]:
        return {stem(word, table.code) for word in content_words(text, table, little)}

    has_stems = "stemmer" in table.data

    # `Bob, an ale!` tells nothing of Bob.
    names = "|".join(bordered(comparable(name)) for name in people) or "(?!)"
    called = regex.compile(
        rf"^\W*(?:{names})\s*[,،、，:!]|[,،、，]\s*(?:{names})\W*$", regex.V1 | regex.I
    )

    def shared(part: str) -> set[str]:
        told = stems(called.sub(" ", part))
        alike = begins_alike if has_stems else akin
        return {word for word in asked if any(alike(word, other) for other in told)}

    # `Do you remember` is no part of what is asked.
    phrases = map(words, table.phrases("remember"))
    reminds = {stem(phrase[0], table.code) for phrase in phrases if len(phrase) == 1}
    asked = stems(called.sub(" ", question))
    speaker = {stem(word, table.code) for word in words(who)}
    asked = asked - reminds or asked
    is_of_speaker = not asked.isdisjoint(speaker)
    asked -= speaker
    named = {stem(folded(word), table.code) for word in capitals(question)}
    told = sentences(text)
    parts = [part for part in told if not is_asked(part) and len(part) <= QUOTE_CHARS]
    best = max(parts, key=lambda part: len(shared(part)), default="")
    quoted = parts[parts.index(best) :] if best else []
    is_order = pattern(table.code, *ORDERS).match(comparable(best))
    if is_order or stems(" ".join(quoted)) <= stems(question):
        return ""
    common = shared(best)
    least = NEAR * len(asked)
    if not named.isdisjoint(common) or question.upper() == question.lower():
        least = NEAR_NAMED * len(asked)
    if not common or len(common) < least or (len(common) == least and not is_of_speaker):
        return ""
    fewest = len(asked) if who != asker else 2
    is_of_name = is_of_speaker or not named.isdisjoint(common)
    if is_aside and not is_of_name and len(common) < min(2, fewest):
        return ""
    here = {stem(word, table.code) for name in people for word in words(name)}
    if common <= here and not asked <= here:
        return ""
    before = told[: told.index(best)][-1:]
    if before and is_asked(before[0]) and len(before[0]) + len(best) < QUOTE_CHARS:
        return f"{before[0]} {best}"  # `You know Hobb? Owes forty silver.`
    return _with_most(quoted)


def _with_most(parts: Sequence[str]) -> str:
    """The first of some sentences and the longest of the others, as far as a quote has room."""
    longest = max(parts[1:], key=len, default="")
    joint = " … " if longest in parts[2:] else " "
    quote = joint.join(filter(None, (*parts[:1], longest)))
    return quote if len(quote) <= QUOTE_CHARS else _beginning(parts[0], 1, QUOTE_CHARS)


def _shown(result: str) -> str:
    """What a look showed, without the name of what was looked at."""
    name, _, text = result.strip().partition("\n")
    return _beginning(" ".join((text or name).split()), SHOWN_SENTENCES, SHOWN_CHARS)


def _beginning(text: str, most: int, chars: int) -> str:
    """The first sentences of a text, as many as fit; if none, words with a mark of the cut."""
    parts = sentences(text)[:most]
    while len(parts) > 1 and len(" ".join(parts)) > chars:
        parts.pop()
    said = " ".join(parts)
    if len(said) <= chars:
        return said
    return f"{said[:chars].rpartition(' ')[0] or said[:chars]}…"
