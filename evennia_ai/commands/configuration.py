"""`aiconfig`: an assistant's options, shown, explained and changed."""

from collections.abc import Callable
from functools import partial

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.commands.base import AssistantCommand, named
from evennia_ai.kinds import shown
from evennia_ai.options import OPTIONS
from evennia_ai.staff.configuration import (
    change_option,
    option_called,
    take_preset,
    undo_options,
)
from evennia_ai.staff.show import escaped, short
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
        script = self.own_assistant()
        self._report(script, partial(undo_options, script, self.caller.key, self.is_admin))

    def do(self) -> None:
        name, option = self._names()
        script, by = self.own_assistant(name), self.caller.key
        if not option:
            self._show_all(script)
        elif option == "preset":
            self._report(script, partial(take_preset, script, self.rhs or "", by))
        elif self.rhs is None:
            self._explain(script, option_called(option)[0])
        else:
            change = partial(change_option, script, option, self.rhs, by, self.is_admin)
            self._report(script, change)

    def _names(self) -> tuple[str, str]:
        """Names of the assistant and the option; an assistant's own name may hold spaces.

        ``aiconfig option = value`` means the only assistant here.
        """
        name, _, option = self.lhs.rpartition(" ")
        if self.rhs is None and (not name or named(self.lhs)):
            return self.lhs, ""
        return name.strip(), option

    def _explain(self, script: AssistantScript, name: str) -> None:
        option, value = OPTIONS[name], getattr(script.config, name)
        unit, source = (
            option.facts["unit"],
            script.state.configuration.sources.get(name, "the default"),
        )
        lines = [
            f"{name}: {option.help}",
            f"Takes {option.kind.says}" + (f", in {unit}." if unit else "."),
            f"Default: {shown(option.default)}",
            f"Now, for {script.obj.key}: {shown(value)} ({source})",
            *(
                problem.says
                for problem in script.state.configuration.problems
                if problem.name == name
            ),
        ]
        self.tell("\n".join(lines))

    def _show_all(self, script: AssistantScript) -> None:
        groups: dict[str, list[str]] = {}
        config, sources = script.config, script.state.configuration.sources
        for name, option in OPTIONS.items():
            value, source = short(shown(getattr(config, name)), _LONG), "default"
            if option.facts["unit"] and value != "None":
                value += f" {option.facts['unit']}"
            if name in sources:
                source = f"{sources[name]}; default {short(shown(option.default), _LONG)}"
            line = f"  {name} = {value} ({source})\n      {option.help}"
            groups.setdefault(option.facts["group"], []).append(escaped(line))
        parts = [f"Options of {escaped(script.obj.key)}:"]
        for group, lines in groups.items():
            parts += [f"|w{group}|n", *lines]
        problems = [
            f"Wrong setting: {escaped(problem)}" for problem in script.state.configuration.problems
        ]
        self.page("\n".join([*parts, *problems]))

    def _report(self, script: AssistantScript, change: Callable[[], list[str]]) -> None:
        """Change something; show what came of it, and the warnings that were not there before."""
        before = warnings(script)
        lines = change()
        notes = [f"Warning: {each}" for each in warnings(script) if each not in before]
        self.tell("\n".join([*lines, *notes]))
