"""Typing commands as a player does, through Evennia's own parser, locks and pager."""

from django.test import override_settings
from evennia.utils.ansi import strip_ansi

from evennia_ai.commands import AssistantCmdSet
from tests.base import AssistantTest, events
from tests.waiting import pump_until


class CommandLineTest(AssistantTest):
    """`self.char1` is an admin, no superuser, and has the assistants' commands."""

    def setUp(self):
        super().setUp()
        self.enterContext(override_settings(GAME_DIR=self.folder.name))
        self.told = []
        self.account.is_superuser = False
        self.char1.cmdset.add(AssistantCmdSet)
        self.be("Admin")
        self.char1.msg = self._record
        self.account.msg = self._record

    def tearDown(self):
        del self.char1.msg
        del self.account.msg
        super().tearDown()

    def _record(self, text=None, *args, **kwargs):
        self.told.append(str(text[0] if isinstance(text, tuple) else text))

    def be(self, permission):
        """Give the caller one rank."""
        for somebody in (self.account, self.char1):
            somebody.permissions.clear()
            somebody.permissions.add(permission)

    def typed(self, line, until=None):
        """What the caller is told; where `until` is given, once that was told.

        Args:
            line: What is typed.
            until: Words that come last, after some work.
        """
        self.told.clear()
        self.char1.execute_cmd(line, session=self.session)
        if until is not None:
            pump_until(lambda: until in self.shown())
        return self.shown()

    def shown(self):
        """What was told since the last line was typed, as a client without colours shows it."""
        return strip_ansi("\n".join(self.told))

    def assertTold(self, line, *words, until=None):  # noqa: N802 - unittest's own form
        """Typing a line tells all these words."""
        shown = self.typed(line, until)
        for word in words:
            self.assertIn(word, shown)
        return shown

    def logged(self, kind):
        """Facts of the events of one kind, oldest first."""
        return [event.facts for event in events(kind) if event.assistant == "Aria"]


class WholePagesTest(CommandLineTest):
    """Every page is shown whole."""

    def setUp(self):
        super().setUp()
        self.session.protocol_flags["SCREENHEIGHT"] = {0: 4000}

    def status(self, head):
        """The line of `aistatus` that begins so."""
        lines = self.typed("aistatus Aria").split("\n")
        return next(line for line in lines if line.startswith(head))
