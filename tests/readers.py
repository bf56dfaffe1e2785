"""The readers of the package: what looks at texts that players, models and files bring.

A reader is a function of a module with a parameter that is text; what else it needs is filled in by
type. Those that need more stand in `SPECIAL`. Hostile texts are units that are repeated.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import types
from contextlib import suppress
from datetime import datetime

import regex

import evennia_ai
from evennia_ai.cards.chats import read_chat
from evennia_ai.cards.cleaning import Cleaner
from evennia_ai.cards.container import parsed
from evennia_ai.errors import Refusal
from evennia_ai.game.spoken import spoken
from evennia_ai.llm_interaction.conversation import read_prompt
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.reply import clean_reply, fault, pieces
from evennia_ai.turns.turn_taking import Line, Person, Talk, answerers

# What reads no foreign text, or does more than read.
_LEFT_OUT = (
    *("apps", "background", "checks", "cli", "commands", "processes", "startstop", "testing"),
    *("conf", "game.evennia_internals", "mind", "services"),
    *("privacy.secure_erase", "staff", "tests", "web"),
)
# Parameters that are texts of the package, of its owner or of the database: names and the like.
_OWN = (
    *("code", "key", "kind", "language", "likely", "me", "model", "name", "names", "own", "path"),
    *("pattern", "purpose", "scope", "section", "word"),
)
_FILLINGS = (
    (r"str( \| None)?", "Aria"),
    ("int", 200),
    ("float", 1.0),
    ("bool", False),
    (r"(Iterable|Sequence|Collection|Container|list)\[str\]", ["Aria", "Bob"]),
    (r"tuple\[str, \.\.\.\]", ("Aria", "Bob")),
    (r"(frozenset|set)\[str\]", frozenset({"aria", "bob"})),
    (r"(Mapping|dict)\[.*", {}),
    ("datetime", datetime(2026, 1, 1)),
)
_PEOPLE = (
    Person("o1", ("Bob",)),
    Person("o2", ("Aria", "Aria the Bold"), "assistant"),
    Person("o3", ("Bram Two",)),
)
_TOOLS = {"say": {"text": {"type": "string"}}, "noop": {}}

UNITS = (
    *("1 ", "No. ", ";", "? ", "*a* ", '"', "'", "(", "[", "{", "<", "|", "\\", "`", "*", "_"),
    *("9", "1,", "1:", "0.", "-", "- ", ":", ": ", "/", "=", ".", ",", "a,", "a-", "A-", " ", "\t"),
    *("\n", "a\n", "\n\n", "a", "a ", "A ", "I ", "the ", "not ", "two ", "Aria ", "Aria, ", "x."),
    *("e\u0301", "\u0301", "\u0301\u0323", "我", "我。", "你好，", "「", "か\u3099", "ก", "가"),
    *("[a] ", "[a1] ", "<a ", "<a>", '"a" ', "{a", "Bob: ", "Bob said: ", "http://a ", "a@b.c "),
)
# What stands before a mass, where some readers begin.
FORMS = (
    "{}",
    "x{}x",
    "Aria says {}!",
    "[Present moment]\nPresent: {}",
    '{{"text": "{}"}}',
    "- (m1) 2026-01-01 Aria: {}",
)


def modules():
    """Names without that of the package, and the modules, of all that may read foreign text."""
    for found in pkgutil.walk_packages(evennia_ai.__path__, "evennia_ai."):
        short = found.name.removeprefix("evennia_ai.")
        if not any(short == each or short.startswith(f"{each}.") for each in _LEFT_OUT):
            yield short, importlib.import_module(found.name)


def functions():
    """Each reader's name, and it as a function of a text."""
    for short, module in modules():
        for name, value in vars(module).items():
            function = inspect.unwrap(value) if callable(value) else None
            is_reader = inspect.isfunction(function) and not inspect.iscoroutinefunction(function)
            if is_reader and function.__module__ == module.__name__:
                for parameter, work in _of_texts(value, inspect.signature(function)):
                    yield f"{short}.{name}({parameter})", work
    yield from SPECIAL.items()


def patterns():
    """Each pattern of a module by its name, and what it is asked by the module."""
    for short, module in modules():
        asked = {}
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                asked.setdefault(node.value.id, set()).add(node.attr)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern | regex.Pattern):
                yield f"{short}.{name}", _asked(value, asked.get(name, ()))


def mass(form, unit):
    """A function of a size: the text of about that size that a unit fills."""
    before, after = form.format("\0").split("\0")
    return lambda size: before + (unit * (size // len(unit) + 1))[:size] + after


def _asked(pattern, methods):
    def work(text):
        for method in methods:
            if method in ("search", "match", "fullmatch"):
                getattr(pattern, method)(text)
            elif method in ("sub", "subn", "findall", "finditer", "split"):
                for _ in pattern.finditer(text):
                    pass

    return work


def _of_texts(function, signature):
    """The name of each parameter that is foreign text, and the function of that text."""
    parameters = signature.parameters.values()
    for wanted in parameters:
        kind = _name(wanted.annotation)
        if kind not in ("str", "bytes", "str | None", "object") or wanted.name in _OWN:
            continue
        needed = [each for each in parameters if each is not wanted and _is_needed(each)]
        rest = {each.name: _filling(each) for each in needed}
        if None not in rest.values():
            yield wanted.name, _work(function, wanted, rest, kind == "bytes")


def _work(function, parameter, rest, is_bytes):
    clear = getattr(function, "cache_clear", lambda: None)

    def work(text):
        clear()
        value = text.encode() if is_bytes else text
        by_place = parameter.kind is parameter.POSITIONAL_ONLY
        with suppress(Exception):  # it may want another kind of text; what it did until then counts
            result = function(value) if by_place else function(**{parameter.name: value, **rest})
            if isinstance(result, types.GeneratorType):
                list(result)

    return work


def _is_needed(parameter):
    is_many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not is_many


def _filling(parameter):
    kind = _name(parameter.annotation)
    return next((value for form, value in _FILLINGS if re.fullmatch(form, kind)), None)


def _name(annotation):
    is_class = isinstance(annotation, type) and not hasattr(annotation, "__args__")
    name = annotation.__name__ if is_class else str(annotation)
    return name.replace("collections.abc.", "").replace("typing.", "").strip("'\"")


def _chat(row):
    with suppress(Refusal):
        read_chat(row.encode(), 1.8e9).speakers("Aria", "Bob")


def _file(text):
    with suppress(Refusal):
        parsed(text.encode())


SPECIAL = {
    "a line heard": lambda text: answerers(Line("o1", text), _PEOPLE, Talk()),
    "a line shown": lambda text: spoken(f'Bob says, "{text}"', ["Bob"], [text]),
    "a line shown plainly": lambda text: spoken(text, ["Bob"], [text[2:]], is_speech=False),
    "a reply with tools": lambda text: read(text, _TOOLS),
    "a reply heard": lambda text: pieces(clean_reply(text, ["Aria"]), "Aria"),
    "a reply judged": lambda text: fault(clean_reply(text, ["Aria"]), "", [text], ["Bob"]),
    "a prompt": lambda text: read_prompt([{"role": "user", "content": text}]),
    "a card's text": lambda text: Cleaner("Aria").clean(text, 8_000),
    "a chat's time": lambda text: _chat(json.dumps({"mes": "Hm.", "send_date": text})),
    "a chat's number": lambda text: _chat(f'{{"mes": "Hm.", "send_date": {text}}}'),
    "a chat's line": lambda text: _chat(f"Aria: {text}"),
    "a file's number": lambda text: _file(f'{{"a": {text}}}'),
}
