"""The offline model: a request in, words or tool calls out. It keeps nothing.

A turn is answered first by the tool calls it needs, then by words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import regex

from evennia_ai.errors import BoundError, NotObeyedError, UnaskedError
from evennia_ai.history.frames import MESSAGES_LABEL
from evennia_ai.language.tables import DEFAULT, code_of, language_of, speaking, spoken, table_of
from evennia_ai.language.times import read_time, told_time
from evennia_ai.language.words import content_words, words
from evennia_ai.llm_interaction.contexts import fixed_language
from evennia_ai.llm_interaction.offline import answers
from evennia_ai.llm_interaction.offline.acts import Act, journal_text, read_acts
from evennia_ai.llm_interaction.offline.answers import Answer, read_question
from evennia_ai.llm_interaction.offline.prose import (
    LINES,
    holds_word,
    line_for,
    listed,
    root_set,
    sentences,
)
from evennia_ai.llm_interaction.offline.summary import summarise
from evennia_ai.llm_interaction.offline.transcript import Line, Talk, ToolCall, read_talk

MAX_LINES_READ = 60  # for the language of a talk
MIN_SPOKEN = 5  # words that show a language
MAX_FRESH, MAX_QUESTIONS = 12, 3  # lines and questions that one turn answers
MAX_NOTES = 16  # that are written down at once before a compaction
_EXTRACTION = regex.compile(r"pre[-_ ]compaction", regex.I)
# Lines after a tool, where they are not those for any tool.
_DONE, _FAILED = {"give": "given", "emote": ""}, {"give": "nothing_to_give"}
_DISOBEYED = {"move": "follow"}
OWN_SHARE = 0.75  # of a question's words that the persona must hold to answer it


@dataclass(frozen=True, slots=True)
class Reply:
    """Text, or tool calls, or neither (silence)."""

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


def respond(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Reply:
    """Answer a chat request by rules alone; equal requests get equal answers.

    `messages` are chat messages, as `history.messages.rendered` makes them; all but the system
    message is data, never an order. `tools` are function schemas in OpenAI's form; no other tool is
    called. Returns text or tool calls, empty text if there is nothing to say.
    """
    offered = frozenset(tool["function"]["name"] for tool in tools)
    if not offered and [message["role"] for message in messages] == ["system", "user"]:
        asked = str(messages[1]["content"])
        if asked.lstrip().startswith(MESSAGES_LABEL):
            with speaking(language_of(asked)):
                return Reply(summarise(asked))
    talk = read_talk(messages)
    with speaking(_language(talk), *talk.replies[-1:]):
        if "add_journal_entry" in offered and _EXTRACTION.search(talk.system):
            return _notes_of(talk, offered)
        # First the tool calls that the turn needs, then the words.
        acts = [_answer(act, talk, offered) for act in _acts(talk)]
        if calls := [each.call for each in acts if each.call]:
            return Reply(None, tuple(call for n, call in enumerate(calls) if call not in calls[:n]))
        said = list(dict.fromkeys(each.text for each in acts if each.text))
        if not said and "noop" in offered:
            return Reply(None, (ToolCall("noop"),))
        return Reply(" ".join(said) or (line_for("chatter") if acts else ""))


def _language(talk: Talk) -> str:
    """The language to speak: the one the rules name, else that of the newest line.

    Where it does not show one, it is in that of the lines before it, first of the same speaker's,
    or of the notes.
    """
    if fixed := code_of(fixed_language(talk.system)):
        return fixed
    lines = [*talk.heard, *talk.fresh][:-MAX_LINES_READ:-1] or [Line("", "")]
    own_first = sorted(lines, key=lambda line: line.who != lines[0].who)
    texts = (line.text.replace(talk.me, "") for line in [*own_first, *talk.notes[:MAX_LINES_READ]])
    newest, *others = texts
    likely = next(filter(None, map(language_of, others)), "")
    return language_of(newest, likely) or likely


def _acts(talk: Talk) -> Iterator[Act]:
    """What the turn's lines want of the assistant."""
    questions = 0
    for line in talk.fresh[-MAX_FRESH:]:
        for act in read_acts(line, talk.me) if line.who != talk.me else ():
            if act.kind == "leads":
                # It may be about the room; `where does the coach go?` is mostly not.
                seen = f"{talk.moment.get('exits', '')} {talk.moment.get('description', '')}"
                act = replace(act, kind="ways" if _share(act.text, seen) > 0 else "question")
            questions += act.kind == "question"
            if act.kind != "question" or questions <= MAX_QUESTIONS:
                yield act


def _answer(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """What to say to an act, or the tool call that it needs before words."""
    match act.kind:
        case "source":
            return answers.source(act, talk, tools)
        case "recall":
            return answers.recall(act, talk, tools)
        case "question":
            told = answers.answer(act.text, act.who, talk, tools)
            if told.call or told.sure:
                return told
            own = _own_knowledge(act.text, talk)
            return Answer(own) if own else answers.seen(act, talk, tools) or told
        case "place" | "ways":
            call = None if talk.moment.get("place") else ToolCall("look")
        case _:
            name, arguments_of = _TOOLS.get(act.kind, ("", lambda act: {}))
            arguments = arguments_of(act)
            call = ToolCall(name, arguments) if name and all(arguments.values()) else None
    done = talk.result_of(call) if call else None
    if call and call.name in tools and not done:
        return Answer(call=call)
    return Answer(_said(act, talk, done))


def _way(act: Act) -> dict[str, Any]:
    way = table_of(act.text).expression("speech", "direction").search(act.text)
    return {"direction": way[0].lower() if way else act.text}


def _gesture(act: Act) -> dict[str, Any]:
    """A gesture that was asked for, as it is done: `waves to Alice`."""
    text, table = act.text.rstrip(".!?"), table_of(act.text)
    gestures: dict[str, str] = table.data["gestures"]
    verb = next(each for each in gestures if text.lower().startswith(each))
    me = table.expression("speech", "me")
    rest = me.sub(lambda _: act.who or line_for("you"), text[len(verb) :])
    return {"text": gestures[verb] + rest}


_TOOLS: dict[str, tuple[str, Callable[[Act], dict[str, Any]]]] = {
    "fact": ("add_journal_entry", lambda act: {"content": journal_text(act), "importance": 5}),
    "remember": ("add_journal_entry", lambda act: {"content": journal_text(act), "importance": 8}),
    "tell": ("tell_later", lambda act: {"to": act.target, "text": act.text}),
    "remind": ("tell_later", lambda act: {"when": act.target, "text": act.text}),
    "whisper": ("whisper", lambda act: {"target": act.target, "text": act.text}),
    "move": ("move", _way),
    "give": ("give", lambda act: {"thing": act.text, "to": act.who}),
    "get": ("get", lambda act: {"thing": act.text}),
    "look": ("look", lambda act: {"target": act.text}),
    "gesture": ("emote", lambda act: {"text": line_for("nod", who=act.who)}),
    "emote": ("emote", _gesture),
    "fullness": ("context_snapshot", lambda act: {}),
}


def _said(act: Act, talk: Talk, done: ToolCall | None) -> str:
    """What to say to an act whose tool call, if it needs one, is `done`."""
    if act.kind in ("fact", "remember"):
        writing = [done for done in talk.done if done.name == "add_journal_entry"]
        is_lost = bool(writing) and all(done.failed for done in writing)
        is_enough = any(BoundError.SAYS in done.result for done in writing)
        kind = "unwritten" if is_lost else "as_talk" if is_enough else act.kind
        return line_for(kind, act.text, act.who)
    looks = [done.result for done in talk.done if done.name == "look" and not done.failed]
    if act.kind in ("place", "ways", "look") and looks:
        return looks[-1].strip()[: answers.MAX_SEEN]
    own = _surroundings(act, talk)
    if own is not None:
        return own
    kind = act.kind if act.kind in LINES else _outcome(done)
    return line_for(kind, act.text, act.who) if kind else ""


def _outcome(done: ToolCall | None) -> str:
    """The line that tells what came of a call; none where the game itself told it."""
    if done is None:
        return "unable"
    if BoundError.SAYS in done.result:
        return "enough"
    if not done.failed:
        return _DONE.get(done.name, "done")
    if UnaskedError.SAYS in done.result:
        return ""  # the game has asked whether it is meant
    if NotObeyedError.SAYS in done.result:
        return _DISOBEYED.get(done.name, "disobeyed")
    return _FAILED.get(done.name, "unable")


def _notes_of(talk: Talk, tools: Set[str]) -> Reply:
    """Journal up to `MAX_NOTES` told facts that are not journaled yet; none left: `noop`."""
    calls = (call for call in (*talk.before, *talk.done) if call.name == "add_journal_entry")
    journaled = {tuple(words(str(call.arguments.get("content")))) for call in calls}
    entries: dict[tuple[str, ...], str] = {}
    told = (line for line in talk.heard if line.who not in ("", talk.me) and line.verb != "poses")
    for act in (act for line in told for act in read_acts(line, talk.me)):
        if act.kind in ("fact", "remember") and (key := tuple(words(journal_text(act)))):
            entries.setdefault(key, journal_text(act))
    new = [text for key, text in entries.items() if key not in journaled][:MAX_NOTES]
    if not new and "noop" not in tools:
        return Reply(line_for("extracted"))
    arguments = ({"content": text, "importance": 5} for text in new)
    writing = tuple(ToolCall("add_journal_entry", each) for each in arguments)
    return Reply(None, writing or (ToolCall("noop"),))


def _surroundings(act: Act, talk: Talk) -> str | None:
    """What to say of the room, the time, those here or itself; None where it is something else."""
    moment = talk.moment
    exits = [name.strip() for name in moment.get("exits", "").split(",") if name.strip()]
    ways = line_for("ways", names=listed(exits)) if exits else ""
    place, description = moment.get("place", "").rstrip("."), moment.get("description", "")
    match act.kind:
        case "identity":
            me, opening = line_for("introduction", name=talk.me), _opening(talk)
            return " ".join(
                filter(None, ("" if talk.me in opening else me, opening, line_for("identity")))
            )
        case "fullness":
            seen = [d.result for d in talk.done if d.name == "context_snapshot" and not d.failed]
            if not seen:
                return line_for("unable")
            return _in_first_person(seen[-1].partition("\n")[0])
        case "your_name":
            return line_for("your_name", name=act.who) if act.who else line_for("no_name")
        case "clock" | "day":
            shown, told_as = moment.get("time", ""), spoken().get("times", act.kind)
            time = read_time(shown)[act.kind == "day"]
            time = told_time(shown, **{act.kind: told_as}) if shown and told_as else time
            return line_for("time", time=time) if time else line_for("no_time")
        case "people":
            others = [name for name in talk.people if name != act.who]
            kind = "some_here" if others[1:] else "one_here" if others else "nobody_here"
            return line_for(kind, names=listed(others))
        case "ways":
            parts = [part for part in sentences(description) if _share(act.text, part) > 0]
            parts.append(ways or line_for("no_ways"))
        case "doings":
            parts = [line_for("doings"), ways]
        case "place":
            here = line_for("place", place=place) if place else line_for("no_place")
            parts = [here, description, ways]
        case _:
            return None
    return " ".join(filter(None, parts))


def _opening(talk: Talk) -> str:
    """How the persona begins, in the first person; ``""`` if it is in another language."""
    persona = talk.persona
    is_spoken = (language_of(persona) or DEFAULT) == spoken().code
    return next(map(_in_first_person, sentences(persona)), "") if is_spoken else ""


def _own_knowledge(question: str, talk: Talk) -> str:
    """What the persona or the room itself answers to a question; ``""`` where they do not.

    Most words of the question must stand in one sentence, among them one that tells what it is
    about; of a description two, as the river may be there for the smoothness of a stone.
    """
    asked = read_question(question, "", talk.me, frozenset())
    telling = content_words(question, asked.table)
    mine = map(_in_first_person, sentences(talk.persona)) if telling else ()
    shown = sentences(talk.moment.get("description", "")) if len(telling) > 1 else ()
    near = (part for part in (*mine, *shown) if _share(question, part) >= OWN_SHARE)
    fitting = (part for part in near if table_of(part) is asked.table)
    return next((part for part in fitting if answers.shows(asked, part)), "")


def _in_first_person(sentence: str) -> str:
    """What is said to the assistant, as said by it; ``""`` where it still speaks to somebody."""
    table = table_of(sentence)
    for pattern, instead in table.get("persona", "first_person", ()):
        sentence = regex.sub(pattern, instead, sentence)
    told = sentence[:1].upper() + sentence[1:]
    return "" if holds_word(told, table, "second_person") else told


def _share(question: str, sentence: str) -> float:
    """The share of a question's words that a sentence holds."""
    asked = root_set(question)
    return len(asked & root_set(sentence)) / max(1, len(asked))
