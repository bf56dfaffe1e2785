"""One turn of talk: who is to be answered, which tools it takes, what is said in the end."""

import re
from collections.abc import Iterator, Set

from evennia_ai.offline import acts, answers, sources
from evennia_ai.offline.acts import Act
from evennia_ai.offline.lines import Line
from evennia_ai.offline.reply import Reply, ToolCall
from evennia_ai.offline.smalltalk import LINES, line_for
from evennia_ai.offline.transcript import Done, Talk

MAX_FRESH = 12
MAX_QUESTIONS = 3
MAX_RECALLED = 5
MAX_TOPICS = 2
_KEPT = ("remember please remember note don't forget", "I my")
TOLD_IMPORTANCE, ASKED_IMPORTANCE = 5, 8
_DIRECTIONS = re.compile(
    r"\b(north|south|east|west|northeast|northwest|southeast|southwest|up|down|in|out)\b", re.I
)
_PLAIN = (
    "greeting",
    "farewell",
    "thanks",
    "wellbeing",
    "abilities",
    "staff",
    "identity",
    "chatter",
    "insult",
    "kindness",
    "apology",
    "unforgotten",
    "foreign",
    "attention",
    "presence",
    "pastime",
    "nonsense",
)
_TOOL_OF = {"move": "move", "emote": "emote", "look": "look", "follow": "emote"}


def take_turn(talk: Talk, tools: Set[str]) -> Reply:
    """Answer what was heard last: first the tool calls it needs, then the words."""
    wanted = list(_wanted(talk))
    if not wanted:
        return _silent(tools)
    calls = _pending(wanted, talk, tools)
    if calls:
        return Reply(None, calls)
    said = [text for act in wanted if (text := _said(act, talk, tools))]
    return Reply(" ".join(dict.fromkeys(said)) or line_for("chatter", "", "", talk.me))


def _silent(tools: Set[str]) -> Reply:
    if "noop" in tools:
        return Reply(None, (ToolCall("noop", {}),))
    return Reply("")


def _wanted(talk: Talk) -> Iterator[Act]:
    questions = 0
    for line in talk.fresh[-MAX_FRESH:]:
        if line.who == talk.me:
            continue
        found = acts.read_acts(line, talk.me)
        if not is_for_me(line, found, talk):
            continue
        for act in found:
            questions += act.kind == "question"
            if act.kind != "question" or questions <= MAX_QUESTIONS:
                yield act


def is_for_me(line: Line, found: list[Act], talk: Talk) -> bool:
    """Whether a line asks for an answer from the assistant."""
    if not found or line.verb == "poses":
        return bool(found) and _names(line.text, talk.me)
    if line.verb in ("whispers to you", "pages you") or _names(line.text, talk.me):
        return True
    others = [name for name in talk.present() if name != line.who]
    if not others or not line.who:
        return True
    if _calls_another(line.text, others):
        return False
    return any(act.kind not in ("fact", "chatter", "nonsense") for act in found) or _in_reply(
        line, talk
    )


def _names(text: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))


def _calls_another(text: str, others: list[str]) -> bool:
    for name in others:
        first = re.escape(name.split()[0])
        if re.search(rf"^(?:\w+,? )?{first}\b\s*[,:!?]|,\s*{first}\b\s*[.!?]*$", text, re.I):
            return True
    return False


def _in_reply(line: Line, talk: Talk) -> bool:
    """Whether the assistant's last words were a question to this speaker."""
    return (
        bool(talk.replies)
        and talk.replies[-1].rstrip().endswith("?")
        and bool(line.who)
        and (line.who in talk.replies[-1])
    )


def _pending(wanted: list[Act], talk: Talk, tools: Set[str]) -> tuple[ToolCall, ...]:
    found: list[ToolCall] = []
    for act in wanted:
        for call in _calls_for(act, talk, tools):
            if call.name in tools and call not in found and not _was_done(call, talk.done):
                found.append(call)
    return tuple(found)


def _was_done(call: ToolCall, done: list[Done]) -> bool:
    return any(d.name == call.name and dict(d.arguments) == call.arguments for d in done)


def _calls_for(act: Act, talk: Talk, tools: Set[str]) -> list[ToolCall]:
    if act.kind in ("question", "source"):
        searches = _answer(act, talk, tools).searches
        return [ToolCall("search_memory", {"query": search}) for search in searches]
    if act.kind == "recall" and "search_memory" in tools:
        return [
            ToolCall("search_memory", {"query": f"{act.who} {words}".strip()}) for words in _KEPT
        ]
    call = _call_for(act, talk)
    return [call] if call else []


def _asked_to_keep(act: Act, talk: Talk) -> str:
    """What this speaker asked to have remembered, or told, the latest last."""
    told = [line for line in answers.lines_in(talk) if line.who and line.who == act.who]
    kept: dict[str, list[str]] = {"remember": [], "fact": []}
    for line in sorted(told, key=lambda line: (line.order >= 0, line.at, line.order)):
        for found in acts.read_acts(line, talk.me):
            if found.kind in kept and found.text.strip():
                kept[found.kind].append(found.text.strip())
    only = "remember" if re.search(r"remember|note|keep|write", act.text, re.I) else "fact"
    about = re.search(r"\b(?:about|of) me\b", act.text, re.I)
    listed = kept["remember"] if only == "remember" and not about else []
    listed = listed or [*kept["fact"], *kept["remember"]]
    quoted = list(dict.fromkeys(f'"{text[:200]}"' for text in listed))[-MAX_RECALLED:]
    if not quoted:
        return line_for("unknown", act.text, act.who, talk.me)
    return f"You told me: {' '.join(quoted)}"


def _talked_of(act: Act, talk: Talk) -> str:
    """The last things said before somebody asked what the talk was about."""
    asked = next((i for i, line in enumerate(talk.heard) if line in talk.fresh), len(talk.heard))
    said: list[str] = []
    for line in talk.heard[:asked][-MAX_FRESH:]:
        kinds = {found.kind for found in acts.read_acts(line, talk.me)}
        if line.who and line.who != talk.me and kinds & {"fact", "question", "remember"}:
            who = "you" if line.who == act.who else line.who
            told = acts.vocative(line.text, talk.me)[:200]
            said.append(f'{who} said "{told}"')
    if not said:
        return "Nothing in particular that I recall. What would you like to talk about?"
    latest = ", then ".join(said[-MAX_TOPICS:])
    return f"Just now {latest}"[:600] + "."


def _call_for(act: Act, talk: Talk) -> ToolCall | None:
    if act.kind in ("fact", "remember") and act.text.strip():
        importance = ASKED_IMPORTANCE if act.kind == "remember" else TOLD_IMPORTANCE
        return _journal(act, importance)
    if act.kind == "whisper":
        return ToolCall("whisper", {"target": act.target, "text": act.text})
    if act.kind == "move":
        found = _DIRECTIONS.search(act.text)
        return ToolCall("move", {"direction": found.group(1).lower() if found else act.text})
    if act.kind == "emote":
        return ToolCall("emote", {"text": _posed(act.text)})
    if act.kind == "look" or (act.kind == "place" and not talk.moment.get("place")):
        return ToolCall("look", {"target": act.text} if act.kind == "look" else {})
    return None


def _journal(act: Act, importance: int) -> ToolCall:
    content = {"content": acts.journal_text(act), "importance": importance}
    return ToolCall("add_journal_entry", content)


def _posed(order: str) -> str:
    verb, _, rest = order.rstrip(".!?").partition(" ")
    ending = "es" if verb.endswith(("s", "sh", "ch", "x")) else "s"
    rest = re.sub(r"\b(me|us)\b", "you", rest)
    return f"{verb.lower()}{ending} {rest}".strip()


def _answer(act: Act, talk: Talk, tools: Set[str]) -> answers.Answer:
    if act.kind == "question":
        return answers.answer(act.text, act.who, talk, tools)
    if reply := sources.last_answer(act, talk):
        return sources.source_of(reply, act.who, talk, tools)
    asked = _asked_before(act, talk)
    if not asked:
        return answers.Answer("I only know what I was told here, and what I keep in my journal.")
    return answers.answer(asked, act.who, talk, tools, cite=True)


def _asked_before(act: Act, talk: Talk) -> str:
    """The last question before this one, by the same speaker where there is one."""
    for line in reversed(talk.heard):
        if line.who and act.who and line.who != act.who:
            continue
        for other in reversed(acts.read_acts(line, talk.me)):
            if other.kind == "question":
                return other.text
    return ""


def _said(act: Act, talk: Talk, tools: Set[str]) -> str:
    if act.kind in ("question", "source"):
        return _answer(act, talk, tools).text
    if act.kind == "recall":
        return _asked_to_keep(act, talk)
    if act.kind == "topic":
        return _talked_of(act, talk)
    if act.kind in ("fact", "remember"):
        return _acknowledged(act, talk)
    if act.kind in _PLAIN and act.kind in LINES:
        return line_for(act.kind, act.text, act.who, talk.me)
    if act.kind in ("place", "people", "clock", "look"):
        return _seen(act, talk)
    if act.kind == "whoami":
        return f"You're {act.who}." if act.who else "I don't know your name."
    return _acted(act, talk, tools)


def _acknowledged(act: Act, talk: Talk) -> str:
    writing = [done for done in talk.done if done.name == "add_journal_entry"]
    if writing and all('"error"' in done.result for done in writing):
        return line_for("failed", act.text)
    return line_for("kept" if act.kind == "remember" else "heard", act.text, act.who, talk.me)


def _seen(act: Act, talk: Talk) -> str:
    for done in reversed(talk.done):
        if done.name == "look" and '"error"' not in done.result:
            return done.result.strip()[:800] or line_for("unable", act.text)
    moment = talk.moment
    if act.kind == "people":
        here = talk.present()
        return f"Here now: {', '.join(here)}." if here else "I see nobody but you."
    if act.kind == "clock":
        return f"It is {moment['time']}." if moment.get("time") else "I don't know the hour."
    if moment.get("place"):
        return f"This is {moment['place'].rstrip('.')}."
    return "I don't know; I can't see it from here."


def _acted(act: Act, talk: Talk, tools: Set[str]) -> str:
    name = _TOOL_OF.get(act.kind, act.kind)
    results = [done.result for done in talk.done if done.name == name]
    if not results or '"error"' in results[-1]:
        return line_for("unable", act.text)
    return "" if act.kind == "emote" and len(talk.done) > 1 else line_for("moved", act.text)
