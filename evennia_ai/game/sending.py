"""Who sends the line that is heard now, and to whom: what Evennia's hooks leave out.

Evennia hands each listener a line of its own. Whether others got it too, and who caused a line
without a sender, stands on the call stack alone: the command that runs, and what it sends to. To
compare what others get would need a hook that Evennia lacks, fails where each gets other words
(`rpsystem`, languages), and makes all that is said to the assistant alone private: of fourteen ways
to speak aloud it took nine for private ones, the stack two. In doubt a line is private.
"""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from django.db.models import QuerySet
from evennia import Command, ObjectDB

from evennia_ai.game.seeing import is_person, plain

if TYPE_CHECKING:
    from evennia import DefaultObject
    from evennia.typeclasses.models import TypedObject

_DEPTH = 60
_SEPARATORS = re.compile(r"[,;&\s]+")
# Hooks in which Evennia tells a room who enters and leaves the game.
_COMING = ("at_post_puppet", "at_post_unpuppet")
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<setcomp>")
# What a loop asks of everybody whom it speaks to; anything else it asks picks some of them.
_OF_ALL = ("msg", "has_account", "account", "sessions", "location", "destination", "is_typeclass")
_ASKS = ("LOAD_ATTR", "LOAD_METHOD")
# Instructions between a call and the jump that its result decides.
_BETWEEN = ("CACHE", "NOP", "PRECALL", "TO_BOOL", "UNARY_NOT")


@dataclass(frozen=True)
class Origin:
    """Where a line comes from."""

    # Who typed the command that sends it; None if no command does.
    caller: "TypedObject | None" = None
    # The arguments of that command, and what of them stands behind an equals sign.
    typed: tuple[str, ...] = ()
    # To whom it is sent; None if to everything in the room.
    receivers: "tuple[DefaultObject, ...] | None" = None
    is_coming: bool = False  # whether Evennia tells that somebody enters or leaves the game


def origin_of_line(listener: "DefaultObject") -> Origin:
    """The origin of the line that a listener's `at_msg_receive` was called with."""
    frame: FrameType | None = sys._getframe(1)
    receivers: tuple[DefaultObject, ...] | None = (listener,)  # called by the reactor itself
    is_read = is_coming = False
    for _ in range(_DEPTH):
        if frame is None or frame.f_globals.get("__name__", "").startswith("twisted."):
            break
        owner = frame.f_locals.get("self")
        is_coming |= frame.f_code.co_name in _COMING
        if owner is not listener:
            if not is_read and frame.f_globals.get("__name__") != "evennia_ai.game.hearing":
                is_read, receivers = True, _receivers(frame, listener)
            if isinstance(owner, Command):
                caller, session = owner.caller, getattr(owner, "session", None)
                if not isinstance(caller, ObjectDB):
                    caller = getattr(session, "puppet", None) or caller
                parts = [getattr(owner, name, None) for name in ("args", "rhs")]
                typed = tuple(filter(None, (plain(p) for p in parts if isinstance(p, str))))
                return Origin(caller, typed, receivers, is_coming)
        frame = frame.f_back
    return Origin(receivers=receivers, is_coming=is_coming)


@contextmanager
def overheard(body: "DefaultObject") -> Iterator[list[tuple[str, object]] | None]:
    """What others than a body are sent meanwhile: lines and Evennia's types of them.

    What is overheard within this is not part of it. Evennia has no hook for what somebody else is
    sent, so Python's profiler looks on; None while another one runs. It slows all that happens.
    """
    if sys.getprofile() not in (None, _note):
        yield None
        return
    lines: list[tuple[str, object]] = []
    _overheard.append((body, lines))
    sys.setprofile(_note)
    try:
        yield lines
    finally:
        _overheard.pop()
        sys.setprofile(_note if _overheard else None)


_overheard: "list[tuple[DefaultObject, list[tuple[str, object]]]]" = []


def _note(frame: FrameType, event: str, _: object) -> None:
    if event == "call" and frame.f_code.co_name == "msg":
        listener, text = map(frame.f_locals.get, ("self", "text"))
        body, lines = _overheard[-1]
        if isinstance(listener, ObjectDB) and listener is not body:
            lines.append(line_and_type(text))


def line_and_type(text: object) -> tuple[str, object]:
    """A message's plain line and Evennia's type of it: it is a text, or a text and its options."""
    parts = list(text) if isinstance(text, tuple | list) else [text]
    options = parts[1] if len(parts) > 1 and isinstance(parts[1], dict) else {}
    return plain(parts[0] if parts else ""), options.get("type")


def _receivers(frame: FrameType, listener: "DefaultObject") -> "tuple[DefaultObject, ...] | None":
    """Whom a function sends to that calls `msg` of a listener; None if everybody in the room."""
    local, room = frame.f_locals, listener.location
    here = set(room.contents) if room is not None else set()
    if frame.f_code.co_name == "msg_contents":
        return _not_excluded(frame, listener, here)
    if frame.f_code.co_name == "at_say" and "whisper" in local and not local["whisper"]:
        return None  # Evennia shows the room what it says to somebody
    sender = _Sender(frame)
    groups = [
        value
        for value in sender.values
        if (
            isinstance(value, list | tuple | set | frozenset)
            # A query that nobody has run yet is not what is looped over.
            or (isinstance(value, QuerySet) and value._result_cache is not None)
        )
        and any(item is listener for item in value)
    ]
    group = min(groups, key=len, default=())
    if len(group) > 1:
        return tuple(obj for obj in group if isinstance(obj, ObjectDB))
    is_alone = bool(group) and sum(map(is_person, here)) > 2
    return None if sender.is_for_all(listener) and not is_alone else (listener,)


def _not_excluded(
    frame: FrameType, listener: "DefaultObject", here: "set[DefaultObject]"
) -> "tuple[DefaultObject, ...] | None":
    """Whom `msg_contents` sends to, if it leaves so many out that they are few; else None."""
    excluded, sender = frame.f_locals.get("exclude") or (), _Sender(frame.f_back)
    excluded = {*(excluded if isinstance(excluded, Collection) else (excluded,))}
    left, left_out, is_meant = here - excluded, here & excluded, sender.means(listener)
    # That a speaker is left out means nothing, nor that a thing stays.
    most = min(len(left_out), sum(map(is_person, left_out)) + (left == {listener}))
    command, from_obj = sender.command.get("caller"), frame.f_locals.get("from_obj")
    speakers = (sender.local.get("self"), sender.local.get("caller"), command, from_obj)
    few = tuple(obj for obj in left if is_person(obj) and obj not in speakers)
    # Where it holds two who are left out, they act on each other, and whoever it does not hold
    # looks on.
    actors = {obj for obj in sender.values if isinstance(obj, ObjectDB) and obj in excluded}
    is_bystander = sum(map(is_person, actors)) > 1 and not is_meant
    is_few = listener in left and len(few) < most and not is_bystander
    is_apart = any(obj not in speakers for obj in left_out)
    return few if is_few or (is_apart and is_meant) else None


class _Sender:
    """What a function holds that sends a line, and the command that it is of."""

    def __init__(self, frame: FrameType):
        is_part = frame.f_code.co_name in _COMPREHENSIONS
        self._frames = [frame, frame.f_back] if is_part else [frame]
        owner, self.local = frame.f_locals.get("self"), frame.f_locals
        self.command: Mapping[str, object] = vars(owner) if isinstance(owner, Command) else {}
        self._here = [value for each in self._frames for value in each.f_locals.values()]
        self.values = [*self._here, *self.command.values()]

    def means(self, listener: "DefaultObject") -> bool:
        """Whether it holds a listener or their name."""
        return any(value is listener for value in self.values) or self._names_it(listener)

    def is_for_all(self, listener: "DefaultObject") -> bool:
        """Whether it loops over all that is there, which it keeps in no variable, and picks none.

        To pick a listener it holds what to pick by, or tests what they are like.
        """
        names = {name for each in self._frames for name in each.f_code.co_names}
        is_loop = "search" not in names and any(name.startswith("contents") for name in names)
        caller = self._frames[0].f_back
        is_loop |= caller is not None and caller.f_code.co_name == "for_contents"
        fixed = [value for each in self._frames for value in each.f_code.co_consts]
        fixed += [each.f_globals.get(name) for each in self._frames for name in names]
        is_held = sum(value is listener for value in (*self.values, *fixed)) > 1
        if not is_loop or is_held or self._names_it(listener, fixed):
            return False
        return not any(
            "filter" in names or _sifts(each.f_code, name)
            for each in self._frames
            for name, value in each.f_locals.items()
            if value is listener
        )

    def _names_it(self, listener: "DefaultObject", fixed: Iterable[object] = ()) -> bool:
        """Whether it holds a listener's name, or its beginning.

        Of `fixed` values only whole names count: these are also the words that it shows. All that
        was typed, such as the words of a say, is none; what stands before an equals sign is.
        """
        typed = plain(self.command.get("args")).lower()
        heads = _SEPARATORS.split(typed.partition("=")[0]) if "=" in typed else []
        texts = {*heads, *_texts(self._here)} - {typed}
        names = {plain(name).lower() for name in (listener.key, *listener.aliases.all())}
        words = names.union(*(name.split() for name in names))
        begun = tuple(text for text in texts if len(text) > 1)
        whole = (texts | _texts((*self.command.values(), *fixed))) - {typed}
        return any(word.startswith(begun) for word in words) or bool(names & whole)


@lru_cache(maxsize=1_000)
def _sifts(code: CodeType, name: str) -> bool:
    """Whether code picks by what the object in a variable is like, or by a test of a generator."""
    tests = [const for const in code.co_consts if getattr(const, "co_name", "") == "<genexpr>"]
    if any(step.opname.startswith("POP_JUMP") for test in tests for step in get_instructions(test)):
        return True
    steps = [step for step in get_instructions(code) if step.opname not in _BETWEEN]
    for held, used, then in zip(steps, steps[1:], steps[2:], strict=False):
        loaded = held.argval if isinstance(held.argval, tuple) else (held.argval,)
        is_held = "LOAD_" in held.opname and held.opname not in (*_ASKS, "LOAD_CONST")
        is_asked = used.opname in _ASKS and used.argval not in _OF_ALL
        is_tested = used.opname == "CALL" and then.opname.startswith("POP_JUMP")
        if is_held and name in loaded[-1:] and (is_asked or is_tested):
            return True
    return False


def _texts(values: Iterable[object]) -> set[str]:
    """The texts among some values, and in collections among them."""
    groups = (v if isinstance(v, list | tuple | set | frozenset) else (v,) for v in values)
    return {plain(value).lower() for group in groups for value in group if isinstance(value, str)}
