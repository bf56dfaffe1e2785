"""Paging assistants, besides whatever `page` the game has."""

from typing import Any

from evennia import AccountDB

from evennia_ai.commands.base import MuxCommand, named
from evennia_ai.game.hearing import is_ignored
from evennia_ai.game.seeing import name_of
from evennia_ai.staff.show import escaped

_WORDS = ("page", "tell")


class CmdAIPage(MuxCommand):  # type: ignore[misc]
    """
    write to an assistant in private, wherever you both are

    Usage:
      page <assistant> <message>
      page <name>, <name>, ... = <message>

    Use the equal sign for more than one name, or for a name with a space in
    it. `tell` and `aipage` do the same. What is paged stays between you and
    the assistant: it tells nobody else. It answers by a page.

    All other pages go to the game's own `page`.
    """

    key = "aipage"
    help_category = "AI assistants"
    locks = "cmd:not pperm(page_banned)"
    account_caller = True

    def match(self, cmdname: str, include_prefixes: bool = True) -> Any:
        """Take ``page`` and ``tell`` only where an assistant is named.

        The name with its space is longer than the game's own command, so Evennia's parser prefers
        it; no command of the game is replaced.
        """
        word, space, rest = cmdname.partition(" ")
        if space and word in _WORDS and _addressed(rest)[0]:
            return word + space, word + space
        return super().match(cmdname, include_prefixes)

    def func(self) -> None:
        """Page the assistants among the targets; leave the others to the game."""
        scripts, rest, message = _addressed(self.args.strip())
        if not scripts or not message:
            return self.msg("Usage: page <assistant> = <message>")
        puppet = getattr(self.session, "puppet", None)
        speaker = puppet or self.caller
        for script in scripts:
            body, text = script.obj, message
            name = escaped(name_of(body, speaker))
            if text.startswith(":"):
                text = f"{name_of(speaker, body)} {text[1:].strip()}"
            heard = body.hear_page(self.caller, text, puppet)
            if is_ignored(self.caller):
                self.msg(
                    f"{name} does not hear you: you want assistants to ignore you. "
                    "Type ai/ignore to change that."
                )
                continue
            if not heard or script.db.enabled is False:
                self.msg(f"{name} is switched off and will not answer for now.")
            self.msg(f"You paged |c{name}|n with: '{escaped(message)}'.")
        if rest:
            word = self.cmdstring.strip()
            if word not in _WORDS:
                word = _WORDS[0]
            self.caller.execute_cmd(f"{word} {', '.join(rest)} = {message}", session=self.session)


def _addressed(text: str) -> tuple[list[Any], list[str], str]:
    """The assistants that a page names, its other names, and its message.

    People come before assistants: an account of the same name gets its pages.
    """
    listed, equals, message = text.partition("=")
    if not equals:
        listed, _, message = text.partition(" ")
    names = [name.strip() for name in listed.split(",") if name.strip()]
    scripts, rest, message = [], [], message.strip()
    if not message:
        return scripts, rest, message
    for name in names:
        is_account = AccountDB.objects.filter(username__iexact=name.lstrip("*")).exists()
        if is_account or (script := named(name)) is None:
            rest.append(name)
        else:
            scripts.append(script)
    return scripts, rest, message
