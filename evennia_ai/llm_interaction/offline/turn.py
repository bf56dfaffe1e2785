"""One turn of talk: who is to be answered, which tools it takes, what is said in the end."""

import re
from collections.abc import Iterator, Set

from evennia_ai.errors import NotObeyedError, UnaskedError
from evennia_ai.llm_interaction.offline import answers, surroundings
from evennia_ai.llm_interaction.offline.acts import Act, journal_text, read_acts
from evennia_ai.llm_interaction.offline.answers import Answer
from evennia_ai.llm_interaction.offline.reply import LINES, Reply, ToolCall, line_for
from evennia_ai.llm_interaction.offline.transcript import Done, Talk

MAX_FRESH, MAX_QUESTIONS = 12, 3  # lines and questions that one turn answers
MAX_SEEN = 800  # characters of what a look showed
TOLD_IMPORTANCE, ASKED_IMPORTANCE = 5, 8
_DIRECTIONS = re.compile(
    r"\b(north|south|east|west|northeast|northwest|southeast|southwest|up|down|in|out)\b", re.I
)
_OBJECT = {"look": "target", "get": "thing"}  # tools with one argument, which the words name
# Fixed lines after a tool, where they are not those for any tool.
_DONE, _FAILED, _DISOBEYED = {"give": "given", "emote": ""}, {"give": "ungiven"}, {"move": "follow"}
_LOOKED_UP = ("question", "source", "recall")


def take_turn(talk: Talk, tools: Set[str]) -> Reply:
    """Answer what was heard last: first the tool calls it needs, then the words."""
    wanted = list(_wanted(talk))
    if not wanted:
        return Reply(None, (ToolCall("noop"),)) if "noop" in tools else Reply("")
    calls: list[ToolCall] = []
    for act in wanted:
        call = _call_for(act, talk, tools)
        if call and call.name in tools and call not in calls and not _done_for(call, talk):
            calls.append(call)
    if calls:
        return Reply(None, tuple(calls))
    said = [text for act in wanted if (text := _said(act, talk, tools))]
    if not said and "noop" in tools:
        return Reply(None, (ToolCall("noop"),))
    return Reply(" ".join(dict.fromkeys(said)) or line_for("chatter", ""))


def _wanted(talk: Talk) -> Iterator[Act]:
    """What the turn's lines want of the assistant."""
    questions = 0
    for line in talk.fresh[-MAX_FRESH:]:
        acts = [] if line.who == talk.me else read_acts(line, talk.me)
        for act in acts:
            if act.kind == "ways" and not surroundings.shows_way(act, talk):
                act = Act("question", act.text, act.who)
            questions += act.kind == "question"
            if act.kind != "question" or questions <= MAX_QUESTIONS:
                yield act


def _call_for(act: Act, talk: Talk, tools: Set[str]) -> ToolCall | None:
    """The tool call that an act needs before words; None where it needs none."""
    if act.kind in _LOOKED_UP:
        search = _looked_up(act, talk, tools).search
        return ToolCall("search_memory", {"query": search}) if search else None
    if act.kind in ("fact", "remember") and act.text.strip():
        importance = ASKED_IMPORTANCE if act.kind == "remember" else TOLD_IMPORTANCE
        entry = {"content": journal_text(act), "importance": importance}
        return ToolCall("add_journal_entry", entry)
    if act.kind == "whisper":
        return ToolCall("whisper", {"target": act.target, "text": act.text})
    if act.kind == "move":
        found = _DIRECTIONS.search(act.text)
        return ToolCall("move", {"direction": found.group(1).lower() if found else act.text})
    if act.kind == "give" and act.who:
        return ToolCall("give", {"thing": act.text, "to": act.who})
    if act.kind == "gesture":
        return ToolCall("emote", {"text": f"nods to {act.who}."})
    if act.kind == "emote":
        verb, _, rest = act.text.rstrip(".!?").partition(" ")
        ending = "es" if verb.endswith(("s", "sh", "ch", "x")) else "s"
        rest = re.sub(r"\b(me|us)\b", act.who or "you", rest)
        return ToolCall("emote", {"text": f"{verb.lower()}{ending} {rest}".strip()})
    if act.kind in _OBJECT:
        return ToolCall(act.kind, {_OBJECT[act.kind]: act.text})
    is_unseen = act.kind in ("place", "ways") and not talk.moment.get("place")
    if is_unseen or act.kind == "fullness":
        return ToolCall("look" if is_unseen else "context_snapshot")
    return None


def _looked_up(act: Act, talk: Talk, tools: Set[str]) -> Answer:
    """The answer to what is looked up, or the search it needs first."""
    if act.kind == "source":
        return answers.source(act, talk, tools)
    if act.kind == "recall":
        return answers.recall(act, talk, tools)
    found = answers.answer(act.text, act.who, talk, tools)
    if not found.search and not found.sure and (own := surroundings.own_knowledge(act.text, talk)):
        return Answer(own)
    return found


def _said(act: Act, talk: Talk, tools: Set[str]) -> str:
    if act.kind in _LOOKED_UP:
        return _looked_up(act, talk, tools).text
    if act.kind in ("fact", "remember"):
        writing = [done for done in talk.done if done.name == "add_journal_entry"]
        if writing and all(done.failed for done in writing):
            return line_for("failed", act.text)
        return line_for("kept" if act.kind == "remember" else "heard", act.text, act.who)
    looks = [done.result for done in talk.done if done.name == "look" and not done.failed]
    if act.kind in ("place", "ways", "look") and looks:
        return looks[-1].strip()[:MAX_SEEN]
    if act.kind in surroundings.KINDS:
        return surroundings.answer(act, talk)
    if act.kind in LINES:
        return line_for(act.kind, act.text, act.who)
    done = _done_for(_call_for(act, talk, tools), talk)
    if done is None:
        kind = "unable"
    elif not done.failed:
        kind = _DONE.get(done.name, "moved")
    else:
        kind = _refused(done)
    return line_for(kind, act.text, act.who) if kind else ""


def _refused(done: Done) -> str:
    """The kind of line that tells of a call that came to nothing."""
    if UnaskedError.SAYS in done.result:
        return ""  # the game has asked whether it is meant
    if NotObeyedError.SAYS in done.result:
        return _DISOBEYED.get(done.name, "disobeyed")
    return _FAILED.get(done.name, "unable")


def _done_for(call: ToolCall | None, talk: Talk) -> Done | None:
    """The call as it was made in this turn, with its result."""
    made = (d for d in talk.done if call and (d.name, d.arguments) == (call.name, call.arguments))
    return next(made, None)
