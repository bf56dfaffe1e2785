"""`ai/new`: a new assistant in a minute, question by question. Nothing exists before the last."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evennia.utils.evmenu import EvMenu
from evennia.utils.utils import wrap

from evennia_ai.errors import AssistantError
from evennia_ai.kinds import parsed, shown
from evennia_ai.staff.show import escaped
from evennia_ai.turns.options import OPTIONS

if TYPE_CHECKING:
    from evennia import DefaultObject

Answers = dict[str, Any]
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

    def value(self, typed: str) -> Any:
        """The answer in its stored form, None for the option's default; or `AssistantError`."""
        text = typed.strip() or self.default
        if text.isdecimal() and 0 < int(text) <= len(self.numbered):
            text = self.numbered[int(text) - 1]
        return None if text == "none" else parsed(self.name, OPTIONS[self.name].kind, text)


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


def begin(
    caller: "DefaultObject",
    session: Any,
    check_name: Callable[[str], str],
    free_name: str,
    make: Callable[[str, Answers], str],
) -> None:
    """Ask a builder all questions, then make an assistant.

    Args:
        caller: Who asked.
        session: Their session.
        check_name: Returns a name as it may be used; raises `AssistantError`.
        free_name: The name that is taken where none is typed.
        make: Makes it of its name and options; returns what the caller is told.
    """
    answers: Answers = {"name": free_name}
    names = ["name", *(step.name for step in STEPS), "end"]

    def node_of(place: int) -> Callable[..., Any]:
        def node(caller: "DefaultObject", raw_string: str, **kwargs: Any) -> Any:
            error = kwargs.get("error", "")
            back = {"key": ("back", "b"), "goto": names[max(0, place - 1)]}
            text = _text(place, names, answers, free_name)
            shown_text = "\n\n".join(filter(None, (error, text)))
            return _wrapped(shown_text), (back, {"key": "_default", "goto": (take, {})})

        def take(caller: "DefaultObject", raw_string: str, **kwargs: Any) -> Any:
            try:
                if names[place] == "end":
                    if raw_string.strip().lower() not in ("", "y", "yes"):
                        raise AssistantError("Type 'yes' to make it, 'back' or 'quit'.")
                    caller.msg(make(answers["name"], _options(answers)))
                    return "made"
                if names[place] == "name":
                    answers["name"] = check_name(raw_string.strip() or free_name)
                else:
                    answers[names[place]] = STEPS[place - 1].value(raw_string)
            except AssistantError as error:
                return names[place], {"error": str(error)}
            return names[place + 1]

        return node

    def made(caller: "DefaultObject", raw_string: str, **kwargs: Any) -> Any:
        return "", None

    tree = {name: node_of(place) for place, name in enumerate(names)}
    EvMenu(
        caller,
        {**tree, "made": made},
        startnode="name",
        session=session,
        cmd_on_exit=None,
        auto_look=False,
        auto_help=False,
    )


def _options(answers: Answers) -> Answers:
    """The answers that are not the options' defaults."""
    values = {name: value for name, value in answers.items() if name != "name"}
    return {
        name: value for name, value in values.items() if value not in (None, OPTIONS[name].default)
    }


def _text(place: int, names: list[str], answers: Answers, free_name: str) -> str:
    """The question of a step, or the summary at the end."""
    head = f"New assistant, {place + 1} of {len(names)}: {names[place]}"
    if names[place] == "end":
        lines = [f"{name}: {shown(answers[name])}" for name in names[:-1]]
        return "\n".join([head, *lines, "", "Make it, here? Enter or 'yes' does."])
    if names[place] == "name":
        asks = f"What is it called?\n{_HELP.format(default=free_name)}"
        return f"{head}\n{asks}"
    step = STEPS[place - 1]
    numbered = [f"{n}: {text}" for n, text in enumerate(step.numbered, 1) if " " in text]
    return "\n".join([head, step.asks, *numbered, _HELP.format(default=step.default)])


def _wrapped(text: str) -> str:
    return escaped("\n".join(wrap(line, WIDTH) if line else "" for line in text.split("\n")))
