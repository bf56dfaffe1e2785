"""What the assistants' commands share: their base class, and finding the assistant meant."""

import difflib
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from django.core.paginator import Paginator
from evennia import default_cmds
from evennia.typeclasses.models import TypedObject
from evennia.utils import logger
from evennia.utils.evmore import EvMore
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript, all_assistants
from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError, Refusal, only_one
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.language.script import folded
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.staff.acts import Acts, check_owner
from evennia_ai.staff.show import as_records, cell, escaped, phrase

T = TypeVar("T")
PAGE_ITEMS = 10
# Columns that a table needs.
_NARROWEST = 40
# Seconds in which a question of `AssistantCommand.confirms` can be answered.
CONFIRM_S = 60
MuxCommand: Any = default_cmds.MuxCommand


class AssistantCommand(MuxCommand):
    """A command about assistants.

    A subclass has a method `do_<switch>` for each switch, and `do` for the command without one;
    they may yield Deferreds. The caller sees the text of their `AssistantError`. An unknown switch
    is refused; Evennia would ignore it.
    """

    # Not just "AI": `help ai` would show that category's index, not the command.
    help_category = "AI assistants"
    arg_regex = r"\s|/|$"
    locks = "cmd:perm(Admin);admin:perm(Admin)"
    # Those that need the command's `admin` lock, too; an empty name stands for no switch.
    admin_switches: tuple[str, ...] = ()
    switch = ""  # the full name of the one that was typed

    def func(self) -> None:
        """Run what the switch says; Evennia does not wait for it."""
        self._run()

    @inlineCallbacks
    def _run(self) -> Steps[None]:
        try:
            self.switch = self.full_switch()
            steps = getattr(self, f"do_{self.switch}".rstrip("_"))()
            if steps is not None:
                yield from steps
        except AssistantError as error:
            self.tell(str(error))
        except Exception as error:  # noqa: BLE001 - logged, and told to the caller
            logger.log_trace(f"[ai] {self.key}")
            hint = "Staff find more in the server log."
            if self.is_admin:
                hint = "The server log says more; `ai/doctor` looks for damaged assistants."
            what = f"{type(error).__name__}: {error}".removesuffix(": ")
            self.tell(f"`{self.key}` failed: {what}. {hint}")

    def act(self) -> Steps[None]:
        """Do what the switch says to what stands right of the equals sign."""
        wanted = self.words()
        self.tell((yield self.acts().do(self.switch, wanted)))

    @property
    def is_admin(self) -> bool:
        """Whether the caller passes the command's `admin` lock."""
        return bool(self.access(self.caller, "admin"))

    @property
    def audience(self) -> str:
        """What the caller may see: private talk stays private if a game opens a command."""
        if self.is_admin:
            return STAFF
        return PUBLIC

    @classmethod
    def known_switches(cls) -> list[str]:
        """Its switches, which are named like their methods."""
        return [name[3:] for name in dir(cls) if name.startswith("do_")]

    def full_switch(self) -> str:
        """The full name of the switch, or an empty text, if the caller may use it."""
        typed = "/".join(filter(None, self.switches)).lower()
        known = self.known_switches()
        found = [name for name in known if name.startswith(typed)]
        if typed in ("", *known):
            found = [typed]
        if len(found) != 1:
            listed = ", ".join(f"/{name}" for name in known) or "none"
            raise Refusal(f"`{self.key}` has no switch `/{typed}`. Its switches: {listed}.")
        if found[0] in self.admin_switches and not self.is_admin:
            raise Refusal(f"`{f'{self.key}/{found[0]}'.rstrip('/')}` is for admins.")
        return found[0]

    def assistant(self, name: str | None = None) -> AssistantScript:
        """The script of the assistant named left of the equals sign; the only one here if none."""
        return find_assistant(self.caller, self.lhs if name is None else name)

    def view(self) -> tuple[AssistantScript, Seen, str]:
        """The assistant named, what the caller may see of it, and its name."""
        script = self.assistant()
        return script, script.seen(self.audience), script.own_name

    def assistants(self) -> list[AssistantScript]:
        """The assistant named left of the equals sign; all if none is."""
        if self.lhs:
            return [self.assistant()]
        return all_assistants()

    def own_assistant(self, name: str | None = None) -> AssistantScript:
        """The same, if the caller may change this assistant; otherwise `Refusal`."""
        script = self.assistant(name)
        check_owner(script, self.caller)
        return script

    def acts(self, is_own: bool = False) -> Acts:
        """What the caller may do to the assistant named, which must be theirs to change if so."""
        script = self.own_assistant() if is_own else self.assistant()
        return Acts(script, script.seen(self.audience), self.caller)

    def confirms(self, act: str, question: str, subject: str) -> bool:
        """Whether the caller was asked this within the last minute and now types ``= yes``.

        Otherwise asks; nothing waits for an answer, so that other commands work meanwhile. `act` is
        what would be done, exactly: a yes to something else does not count. `subject` is what it is
        about, as it is typed.
        """
        says_yes = (self.rhs or "").lower() == "yes"
        if says_yes and self.repeats(act):
            return True
        command = f"{self._form} {subject}"
        if self.rhs is not None and not says_yes:
            raise Refusal(f"Only `yes` may stand behind the equals sign. Type: {command}")
        self.caller.ndb.evennia_ai_asked = (act, time.time())
        self.tell(f"{question} To confirm, type within a minute: {command} = yes")
        return False

    def repeats(self, act: str) -> bool:
        """Whether the caller typed the same within the last minute; if not, the next time counts.

        For acts that have something else behind the equals sign than a yes.
        """
        asked, now = self.caller.ndb.evennia_ai_asked, time.time()
        is_again = bool(asked) and asked[0] == act and now - asked[1] <= CONFIRM_S
        self.caller.ndb.evennia_ai_asked = None if is_again else (act, now)
        return is_again

    @property
    def _form(self) -> str:
        return f"{self.key}/{self.switch}".rstrip("/")

    @property
    def usage(self) -> str:
        """How the switch is typed, as the help says."""
        usage = re.findall(rf"^ *({re.escape(self._form)} .*)", self.__doc__ or "", re.M)[-1]
        return f"Usage: {usage.partition('  - ')[0]}"

    def words(self) -> str:
        """The text right of the equals sign; a `Refusal` with the usage if there is none."""
        if not self.rhs:
            raise Refusal(self.usage)
        return str(self.rhs)

    def tell(self, text: str) -> None:
        """Send a text, escaped."""
        self.caller.msg(escaped(text))

    def show(self, records: Iterable[object], empty: str = "") -> None:
        """Show records, escaped, page by page; `empty` if there are none."""
        self.page(as_records(records) or escaped(empty))

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        """Rows under heads; for a screen reader a line each, ``Name: Aria. Mode: awake``."""
        flags = self.session.protocol_flags if self.session else {}
        if flags.get("SCREENREADER"):
            pairs = ([f"{h}: {cell(v)}." for h, v in zip(heads, row, strict=True)] for row in rows)
            return "\n".join(" ".join(line) for line in pairs)
        table = self.styled_table(
            *heads, border="header", maxwidth=max(_NARROWEST, self.client_width())
        )
        for row in rows:
            table.add_row(*map(cell, row))
        return str(table)

    def page(self, text: str) -> None:
        """Show a text that is escaped already, page by page."""
        EvMore(self.caller, text, session=self.session)

    def listing(self, items: Sequence[T], line: Callable[[T], str], head: str, empty: str) -> None:
        """Show items under a head; each is read, and formatted by `line`, as pages are turned.

        `line` returns escaped text; `empty` is shown if there are no items.
        """
        if not len(items):
            return self.tell(empty)

        class Pager(EvMore):
            def page_formatter(self, page: Iterable[T]) -> str:
                return "\n".join([escaped(head), *map(line, page)])

        Pager(self.caller, Paginator(items, PAGE_ITEMS), session=self.session)


def find_assistant(caller: TypedObject, name: str = "") -> AssistantScript:
    """The assistant a name means: whole names before beginnings, those here before others.

    `name` may be an alias, the beginning of a name, or ``#dbref``. Empty, it means the only one
    here. Raises `Refusal` if there is none, or more than one.
    """
    known, name, where = all_assistants(), name.strip(), "here"
    place = getattr(caller, "location", None)
    found = here = [each for each in known if place is not None and each.obj.location is place]
    none = "There is no assistant here. Name the one you mean."
    if name:
        close = difflib.get_close_matches(name, [script.own_name for script in known], n=1)
        hint = phrase(" Do you mean {}?", "".join(close))
        none, where = f"There is no assistant called `{name}`.{hint}", f"called `{name}`"
        found = [script for script in known if _is_called(script.obj, name)] or [
            script for script in known if folded(script.own_name).startswith(folded(name))
        ]
        found = [script for script in found if script in here] or found
    if not known:
        none = "There are no assistants yet. See: help ai"
    listed = ", ".join(f"{script.own_name} (#{script.obj.pk})" for script in found)
    return only_one(found, none, f"There is more than one assistant {where}: {listed}. Say which.")


def named(name: str) -> AssistantScript | None:
    """The first assistant of exactly this name or alias, in any case and normal form, or None."""
    return next((each for each in all_assistants() if _is_called(each.obj, name.strip())), None)


def _is_called(body: TypedObject, name: str) -> bool:
    names = [folded(each) for each in (body.key, *body.aliases.all())]
    return folded(name) in names or name == f"#{body.pk}"
