"""One turn of talk: who is to be answered, which tools it takes, what is said in the end."""

import re
from collections.abc import Iterator, Set

from evennia_ai.offline import answers, surroundings
from evennia_ai.offline.acts import Act, journal_text, read_acts
from evennia_ai.offline.answers import Answer
from evennia_ai.offline.reply import LINES, Reply, ToolCall, line_for
from evennia_ai.offline.transcript import Line, Talk

MAX_FRESH, MAX_QUESTIONS = 12, 3  # lines and questions that one turn answers
MAX_SEEN = 800  # characters of what a look showed
TOLD_IMPORTANCE, ASKED_IMPORTANCE = 5, 8
_DIRECTIONS = re.compile(
    r"\b(north|south|east|west|northeast|northwest|southeast|southwest|up|down|in|out)\b", re.I
)
_LOOKED_UP = ("question", "source", "recall")


def take_turn(talk: Talk, tools: Set[str]) -> Reply:
    """Answer what was heard last: first the tool calls it needs, then the words."""
    wanted = list(_wanted(talk))
    if not wanted:
        return Reply(None, (ToolCall("noop"),)) if "noop" in tools else Reply("")
    calls: list[ToolCall] = []
    for act in wanted:
        call = _call_for(act, talk, tools)
        made = call and any((d.name, d.arguments) == (call.name, call.arguments) for d in talk.done)
        if call and call.name in tools and call not in calls and not made:
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
        for act in acts if is_for_me(line, acts, talk) else ():
            if act.kind == "ways" and not surroundings.shows_way(act, talk):
                act = Act("question", act.text, act.who)
            questions += act.kind == "question"
            if act.kind != "question" or questions <= MAX_QUESTIONS:
                yield act


def is_for_me(line: Line, acts: list[Act], talk: Talk) -> bool:
    """Whether a line asks for an answer from the assistant."""
    if not acts:
        return False
    named = bool(re.search(rf"\b{re.escape(talk.me)}\b", line.text, re.IGNORECASE))
    if named or line.verb in ("whispers to you", "pages you"):
        return True
    if line.verb == "poses":
        return False
    others = [name for name in talk.present() if name != line.who]
    if not others or not line.who:
        return True
    for name in others:
        first = re.escape(name.split()[0])
        called = rf"^(?:\w+,? )?{first}\b\s*[,:!?]|,\s*{first}\b\s*[.!?]*$"
        if re.search(called, line.text, re.IGNORECASE):
            return False
    if any(act.kind not in ("fact", "chatter", "nonsense") for act in acts):
        return True
    asked = talk.replies[-1].rstrip() if talk.replies else ""  # it may answer her question
    return asked.endswith("?") and line.who in asked


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
    if act.kind == "gesture":
        return ToolCall("emote", {"text": f"nods to {act.who}"})
    if act.kind == "emote":
        verb, _, rest = act.text.rstrip(".!?").partition(" ")
        ending = "es" if verb.endswith(("s", "sh", "ch", "x")) else "s"
        rest = re.sub(r"\b(me|us)\b", act.who or "you", rest)
        return ToolCall("emote", {"text": f"{verb.lower()}{ending} {rest}".strip()})
    if act.kind == "look":
        return ToolCall("look", {"target": act.text})
    if act.kind in ("place", "ways") and not talk.moment.get("place"):
        return ToolCall("look")
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
    name = "emote" if act.kind in ("follow", "gesture") else act.kind
    done = [done for done in talk.done if done.name == name]
    if not done or done[-1].failed:
        return line_for("unable", act.text)
    return "" if act.kind in ("emote", "gesture") else line_for("moved", act.text)
