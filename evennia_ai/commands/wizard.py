"""The questions of `ai/new`."""

from dataclasses import dataclass
from typing import Any

from evennia.utils.evmenu import EvMenu
from evennia.utils.utils import wrap

from evennia_ai.assistant_character import BODY
from evennia_ai.errors import AssistantError
from evennia_ai.kinds import shown
from evennia_ai.options import OPTIONS, AssistantConfig
from evennia_ai.staff.bodies import bearer_of, good_name, new_body
from evennia_ai.staff.show import escaped

# None is the beginning of another: both would hear a call.
NAMES = ("Aria", "Cora", "Finn", "Greta", "Odo", "Tilda")
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
        if self.name == "name":
            return good_name(text)
        if text == "none":
            return None
        return AssistantConfig.parsed(self.name, text)


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
    free_name = next((name for name in NAMES if not bearer_of(name)), "")
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
                answers[steps[place].name] = steps[place].value(typed)
                return "ask", {"place": place + 1}
            if typed.lower() not in ("", "y", "yes"):
                raise AssistantError("Type 'yes' to make it, 'back' or 'quit'.")
            body = new_body(maker, good_name(answers["name"]), BODY)
            chosen = ((step.name, answers[step.name]) for step in STEPS)
            options = {n: v for n, v in chosen if v not in (None, OPTIONS[n].default)}
            body.assistant.state.configure(options)
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
