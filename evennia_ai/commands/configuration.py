"""`aiconfig`: an assistant's options, shown, explained and changed."""

from collections.abc import Callable

from evennia_ai.commands.base import AssistantCommand, named
from evennia_ai.kinds import shown
from evennia_ai.options import OPTIONS
from evennia_ai.staff.configuration import Tuning, option_called
from evennia_ai.staff.show import escaped, phrase, short
from evennia_ai.staff.status import warnings

_LONG = 40


class CmdAIConfig(AssistantCommand):
    """
    show or change an assistant's options

    Usage:
      aiconfig <assistant>
      aiconfig <assistant> <option>
      aiconfig <assistant> <option> = <value>
      aiconfig <assistant> <option> = default
      aiconfig <assistant> preset = <name>
      aiconfig/undo <assistant>

    The first form lists all options with their values and where they come from,
    the second explains one, the third changes it at once, and the fourth
    restores the default. Options that hold several values are changed one by
    one: 'emotes.wake', 'spend_caps.tokens_day', 'llm_extra.temperature',
    'tool_levels.say'. A preset sets several options together; 'fewshot' is for
    base models. An invalid value is refused and changes nothing. You can
    shorten an option's name as long as only one option begins that way. Each
    change shows the value that it replaces, and 'undo' brings back what the
    newest change replaced. Typed again it undoes this.

    Models must be among those of the game's setting EVENNIA_AI_MODELS. This
    holds for admins too. Only admins raise or remove spend limits. The setting
    EVENNIA_AI_OPTIONS gives options to groups of assistants, by typeclass, tag
    or prototype; an assistant's own value wins.

    Options are Attributes of the assistant's script, so Evennia's own command
    'set/script' changes them as well; spend limits for admins alone.

    See also: ai, aistatus
    """

    key = "aiconfig"
    locks = "cmd:perm(Builder);admin:perm(Admin)"

    def do_undo(self) -> None:
        self._report(self._tuning(self.lhs).undo)

    def do(self) -> None:
        """Show or change an option; ``aiconfig option = value`` means the only assistant here."""
        name, _, option = self.lhs.rpartition(" ")  # an assistant's own name may hold spaces
        if self.rhs is None and (not name or named(self.lhs)):
            name, option = self.lhs, ""
        tuning = self._tuning(name.strip())
        if not option:
            self._show_all()
        elif option == "preset":
            self._report(tuning.take_preset, self.rhs or "")
        elif self.rhs is None:
            name, _ = option_called(option)
            about, source = OPTIONS[name], self.current.sources.get(name, "the default")
            lines = [
                f"{name}: {about.help}",
                f"Takes {about.kind.says}{phrase(', in {}', about.facts['unit'])}.",
                f"Default: {shown(about.default)}",
                f"Now, for {self.script.own_name}: {shown(getattr(self.config, name))} ({source})",
                *(each.says for each in self.current.problems if each.name == name),
            ]
            self.tell("\n".join(lines))
        else:
            self._report(tuning.change, option, self.rhs)

    def _tuning(self, name: str) -> Tuning:
        self.script = self.own_assistant(name)
        self.config, self.current = self.script.config, self.script.state.configuration
        return Tuning(self.script, self.caller.key, self.is_admin)

    def _show_all(self) -> None:
        groups: dict[str, list[str]] = {}
        for name, option in OPTIONS.items():
            value, source = short(shown(getattr(self.config, name)), _LONG), "default"
            if option.facts["unit"] and value != "None":
                value += f" {option.facts['unit']}"
            if name in self.current.sources:
                default = short(shown(option.default), _LONG)
                source = f"{self.current.sources[name]}; default {default}"
            line = f"  {name} = {value} ({source})\n      {option.help}"
            groups.setdefault(option.facts["group"], []).append(escaped(line))
        parts = [f"Options of {escaped(self.script.own_name)}:"]
        for group, lines in groups.items():
            parts += [f"|w{group}|n", *lines]
        parts += [f"Wrong setting: {escaped(problem)}" for problem in self.current.problems]
        self.page("\n".join(parts))

    def _report(self, change: Callable[..., list[str]], *typed: str) -> None:
        """Change something; show what came of it, and the warnings that were not there before."""
        before = warnings(self.script)
        lines = change(*typed)
        notes = [f"Warning: {each}" for each in warnings(self.script) if each not in before]
        self.tell("\n".join([*lines, *notes]))
