"""New assistants: their names, their bodies, and the questions of `ai/new`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evennia import AccountDB, DefaultCharacter, create_object
from evennia.utils.evmenu import EvMenu
from evennia.utils.utils import class_from_module, wrap

from evennia_ai.assistant_character import BODY, OWNER_LOCKS, AssistantMixin
from evennia_ai.assistant_script import all_assistants
from evennia_ai.errors import AssistantError, Refusal
from evennia_ai.kinds import shown
from evennia_ai.language.script import folded, normalized
from evennia_ai.staff.show import escaped
from evennia_ai.turns.options import OPTIONS, AssistantConfig

NAME_CHARS = 40
NAMES = ("Aria", "Cora", "Finn", "Greta", "Odo", "Tilda")
# Marks that commands and prompts are written with stand in no name.
_NAME = re.compile(r"[^\W_][^=:;,/|#*{}\[\]\"<>\\]*")
WIDTH = 76
_HELP = "Enter takes {default}; 'back' goes back, 'quit' leaves. Nothing is made before the end."
_PEOPLE = (
    "An innkeeper who knows everybody. Warm, brisk, and never lost for a story.",
    "A guard of the town watch. Polite, brief, proud of the law, and bored by night.",
    "A travelling scholar. Curious about each stranger, exact with facts, and easily delighted.",
)


@dataclass(frozen=True)
class Step:
    """One question: its option (or ``name``), its text, its default, and what numbers stand for."""

    name: str
    asks: str
    default: str
    numbered: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The question, with its answers and its default."""
        numbered = [f"{n}: {text}" for n, text in enumerate(self.numbered, 1) if " " in text]
        return "\n".join([self.asks, *numbered, _HELP.format(default=self.default)])

    def value(self, typed: str) -> Any:
        """The answer in its stored form, None for the option's default; or `AssistantError`."""
        text = typed or self.default
        if text.isdecimal() and 0 < int(text) <= len(self.numbered):
            text = self.numbered[int(text) - 1]
        return None if text == "none" else AssistantConfig.parsed(self.name, text)


STEPS = (
    Step("persona", "Who is it? Type a number or words of your own.", "1", _PEOPLE),
    Step(
        "language",
        "Which language does it speak? 'auto' is that of whoever speaks to it; or name one.",
        "auto",
    ),
    Step(
        "routine",
        "Where is it when? Type a plan such as 06:00 Kitchen: kneads dough; 20:00 Taproom; 23:00 "
        "sleep (the game's clock, names of rooms), or 'none': it stays here.",
        "none",
    ),
    Step(
        "attention",
        "Whom does it answer? Type a number. 1: who talks with it, 2: only who calls it by name, "
        "3: every line of a player.",
        "1",
        ("room", "addressed", "all"),
    ),
    Step(
        "initiative",
        "How often in an hour may it speak unasked, near players who are not idle? 0 is never; "
        "each time costs a model call.",
        "0",
    ),
)


def ask_builder(asked: Any, maker: Any) -> None:
    """Ask a builder (or a session) all questions, then make an assistant of theirs (`maker`)."""
    # None is the beginning of another: both would hear a call.
    names = (*NAMES, *(f"{name}{n}" for n in range(2, 1_000) for name in NAMES))
    taken = {folded(key) for key, _ in _bearers()}
    free_name = next(name for name in names if folded(name) not in taken)
    answers: dict[str, Any] = {}
    steps = (Step("name", "What is it called?", free_name), *STEPS)

    def ask(caller: Any, raw_string: str, place: int = 0, error: str = "", **_: Any) -> Any:
        summary = [f"{name}: {shown(value)}" for name, value in answers.items()]
        summary += ["", "Make it, here? Enter or 'yes' does."]
        text = steps[place].text if place < len(steps) else "\n".join(summary)
        head = f"New assistant, {place + 1} of {len(steps) + 1}"
        rows = "\n".join(filter(None, (error, head, text))).split("\n")
        text = escaped("\n".join(wrap(row, WIDTH) if row else "" for row in rows))
        back = {"key": ("back", "b"), "goto": ("ask", {"place": max(0, place - 1)})}
        return text, (back, {"key": "_default", "goto": (take, {"place": place})})

    def take(caller: Any, raw_string: str, place: int, **_: Any) -> Any:
        typed = raw_string.strip()
        try:
            if place < len(steps):
                value = steps[place].value(typed) if place else good_name(typed or free_name)
                answers[steps[place].name] = value
                return "ask", {"place": place + 1}
            if typed.lower() not in ("", "y", "yes"):
                raise AssistantError("Type 'yes' to make it, 'back' or 'quit'.")
            body = new_body(maker, good_name(answers["name"]), BODY)
            chosen = {name: answers[name] for name in answers.keys() & OPTIONS.keys()}
            chosen = {n: v for n, v in chosen.items() if v not in (None, OPTIONS[n].default)}
            body.assistant.state.configure(chosen)
            caller.msg(f"{body.key} is here and listens. More options: aiconfig {body.key}")
            return "made"
        except AssistantError as error:
            return "ask", {"place": place, "error": str(error)}

    def leave(caller: Any, menu: EvMenu) -> None:
        if menu.nodename != "made":
            caller.msg("You left the questions; nothing was made.")

    nodes = {"ask": ask, "made": lambda caller, raw_string, **_: ("", None)}
    options = {"cmd_on_exit": leave, "auto_look": False, "auto_help": False}
    EvMenu(asked, nodes, startnode="ask", **options)


def new_body(caller: Any, key: str, typeclass: str) -> AssistantMixin:
    """A new assistant in somebody's room, which is theirs."""
    room, locks = getattr(caller, "location", None), OWNER_LOCKS.format(id=caller.id)
    if room is None:
        raise Refusal("You are nowhere; go into a room first.")
    body = create_object(typeclass, key=key, location=room, home=room, locks=locks)
    body.ensure_assistant().log(f"made by {caller.key}")
    return body


def good_name(text: str) -> str:
    """A valid, free name for an assistant; raises `Refusal` otherwise."""
    name = normalized("NFC", text.strip())
    if not name:
        raise Refusal("Usage: ai/create <name>[:<typeclass>]")
    if len(name) > NAME_CHARS or not _NAME.fullmatch(name) or not name.isprintable():
        raise Refusal(
            f"`{name[:NAME_CHARS]}` cannot be a name: use up to {NAME_CHARS} characters, begin "
            "with a letter or digit, and use none of = : ; , / | # * { } [ ] < > and quotes."
        )
    if bearer := bearer_of(name):
        raise Refusal(f"There is {bearer} already. Choose another name.")
    return name


def bearer_of(name: str) -> str:
    """Who bears a name, in any case and normal form; empty if it is free.

    Neither assistants nor players and other characters may be mistaken for a new assistant.
    """
    wanted = folded(name)
    return next((who for key, who in _bearers() if folded(key) == wanted), "")


def _bearers() -> Iterator[tuple[str, str]]:
    """All names that are borne, each with who bears it, in words."""
    for script in all_assistants():
        where = script.obj.location.key if script.obj.location else "nowhere"
        yield script.obj.key, f"an assistant called {script.obj.key}, in {where},"
    accounts = AccountDB.objects.values_list("username", flat=True)
    characters = DefaultCharacter.objects.all_family().values_list("db_key", flat=True)
    for kind, keys in (("an account", accounts), ("a character", characters)):
        for key in keys.iterator():
            yield key, f"{kind} called {key}"


def body_class(path: str) -> str:
    """The typeclass of a new body, checked; raises `Refusal` if it cannot be an assistant."""
    if not path:
        return BODY
    try:
        found = class_from_module(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise Refusal(f"There is no typeclass `{path}`: {error}") from error
    if not (isinstance(found, type) and issubclass(found, AssistantMixin)):
        raise Refusal(f"`{path}` is no assistant: it must inherit from `AssistantMixin`.")
    return path
