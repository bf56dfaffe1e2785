"""Evennia's `page` and `whisper`, which also reach assistants."""

from typing import Any

from evennia import AccountDB, default_cmds

from evennia_ai.assistant_character import LINE_CHARS
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.commands.base import named
from evennia_ai.game.world import is_ignored
from evennia_ai.staff.show import escaped

EvenniaPage: Any = default_cmds.CmdPage
EvenniaWhisper: Any = default_cmds.CmdWhisper


class CmdPage(EvenniaPage):
    """
    write to an account or an assistant in private

    Usage:
      page <name> <message>
      page <name>, <name>, ... = <message>
      page [<number>]
      page/last

    Switches:
      last - the last one you paged
      list - your latest pages, as without a message

    Use the equal sign for more than one name, or for a name with a space in
    it. A number shows that many of your latest pages. `tell` does the same.

    An assistant hears a page wherever you both are. What is paged stays
    between you and the assistant: it tells nobody else. It answers by a page.
    """

    def func(self) -> None:
        """Page the assistants among the targets; leave the others to Evennia."""
        names, message = self._addressed()
        scripts = {
            name: script
            for name in names
            if (script := named(name)) is not None
            # People come before assistants.
            and not AccountDB.objects.filter(username__iexact=name.strip().lstrip("*")).exists()
        }
        if not scripts or not message:
            return super().func()
        for script in scripts.values():
            self._page(script, message)
        rest = [name for name in names if name not in scripts]
        if rest:
            self.lhslist, self.lhs = rest, ", ".join(rest)
            self.args = f"{self.lhs} = {self.rhs}"
            super().func()

    def _addressed(self) -> tuple[list[str], str]:
        """Names and message as they were typed; no names if it is not a new message."""
        if self.switches or not self.args:
            return [], ""
        if self.rhs is not None:
            return [name for name in self.lhslist if name], self.rhs
        first, _, rest = self.args.partition(" ")
        return [first], rest.strip()

    def _page(self, script: AssistantScript, message: str) -> None:
        text, body = message, script.obj
        if text.startswith(":"):
            text = f"{self.caller.key} {text[1:].strip()}"
        puppet = getattr(self.session, "puppet", None)
        heard = body.hear_page(self.caller, text[:LINE_CHARS], puppet)
        if is_ignored(self.caller):
            return self.msg(
                f"{escaped(body.key)} does not hear you: you want assistants to ignore you. "
                "Type ai/ignore to change that."
            )
        if not heard or script.db.enabled is False:
            self.msg(escaped(f"{body.key} is switched off and will not answer for now."))
        self.msg(f"You paged |c{escaped(body.key)}|n with: '{escaped(message)}'.")


class CmdWhisper(EvenniaWhisper):
    """
    say something only some people here hear

    Usage:
      whisper <name> = <message>
      whisper <name>, <name>, ... = <message>

    Nobody else in the room learns of it. What is whispered to an assistant
    stays between it, you and whomever else you whispered to.
    """

    def func(self) -> None:
        """Whisper; meanwhile `ndb.whispers_to` of the caller holds all who hear it."""
        names = {name.strip() for name in (self.lhs or "").split(",")} - {""}
        found = [self.caller.search(name, quiet=True) for name in sorted(names)]
        # Those meant by the names that mean exactly one.
        self.caller.ndb.whispers_to = [people[0] for people in found if len(people) == 1]
        try:
            super().func()
        finally:
            del self.caller.ndb.whispers_to
