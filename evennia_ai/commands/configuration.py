"""`aiconfig`: an assistant's options, shown, explained and changed."""

import difflib
from collections.abc import Mapping

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.commands.base import AssistantCommand, Refusal, named, only_one
from evennia_ai.staff.show import escaped
from evennia_ai.staff.status import warnings
from evennia_ai.turns.options import CAPS, OPTIONS, PRESETS, default_of, parsed
from evennia_ai.turns.spend_book import lifts

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

    The first form lists all options with their values, the second explains one,
    the third changes it at once, and the fourth restores the default. A preset
    sets several options together; 'fewshot' is for base models. An invalid
    value is refused and changes nothing. You can shorten an option's name as
    long as only one option begins that way. Each change shows the value that
    it replaces. The switch undo takes back the last change, then the one
    before it, up to 20.

    Models must be among those of the game's setting EVENNIA_AI_MODELS. This
    holds for admins too. Only admins raise or remove spend caps.

    Options are Attributes of the assistant's script, so Evennia's own command
    'set/script' changes them as well; spend caps for admins alone.

    See also: ai, aistatus
    """

    key = "aiconfig"
    locks = "cmd:perm(Builder);admin:perm(Admin)"
    switches_known = ("undo",)

    def do(self) -> None:
        """Show all, explain one, or change one."""
        name, option = self._names()
        script = self.own_assistant(name)
        if not option:
            self._show_all(script)
        elif option == "preset":
            self._preset(script, (self.rhs or "").strip())
        elif self.rhs is None:
            option = option_called(option)
            meta, now = OPTIONS[option].metadata, shown(getattr(script.config, option))
            lines = [
                f"{option}: {meta['help']}",
                f"Takes {meta['kind'].says}" + (f", in {meta['unit']}." if meta["unit"] else "."),
                f"Default: {shown(default_of(option))}",
                f"Now, for {script.obj.key}: {now}",
                *(p.says for p in script.state.problems if p.name == option),
            ]
            self.viewer.tell("\n".join(lines))
        else:
            self._change(script, option_called(option), self.rhs)

    def _names(self) -> tuple[str, str]:
        """Names of the assistant and the option; an assistant's own name may hold spaces.

        ``aiconfig option = value`` means the only assistant here.
        """
        name, _, option = self.lhs.rpartition(" ")
        if self.rhs is None and (not name or named(self.lhs)):
            return self.lhs, ""
        return name.strip(), option

    def _show_all(self, script: AssistantScript) -> None:
        groups: dict[str, list[str]] = {}
        for name, item in OPTIONS.items():
            value, default, meta = getattr(script.config, name), default_of(name), item.metadata
            unit = f" {meta['unit']}" if meta["unit"] and value is not None else ""
            mark = "default" if value == default else f"changed; default {_short(default)}"
            line = f"  {name} = {_short(value)}{unit} ({mark})\n      {meta['help']}"
            groups.setdefault(meta["group"], []).append(escaped(line))
        parts = [f"Options of {escaped(script.obj.key)}:"]
        for group, lines in groups.items():
            parts += [f"|w{group}|n", *lines]
        problems = [f"Wrong setting: {escaped(problem)}" for problem in script.state.problems]
        self.viewer.page("\n".join([*parts, *problems]))

    def _preset(self, script: AssistantScript, name: str) -> None:
        self._report(script, take_preset(script, name, self.caller.key))

    def _change(self, script: AssistantScript, name: str, text: str) -> None:
        was = getattr(script.config, name)
        lines = change_option(script, name, text, self.caller.key, self._is_admin)
        if was != getattr(script.config, name):
            lines.append(f"`aiconfig/undo {script.obj.key}` restores what it was.")
        self._report(script, lines)

    def do_undo(self) -> None:
        """Take back the last change."""
        script = self.own_assistant()
        self._report(script, undo_option(script, self.caller.key, self._is_admin))

    @property
    def _is_admin(self) -> bool:
        return bool(self.access(self.caller, "admin"))

    def _report(self, script: AssistantScript, lines: list[str]) -> None:
        notes = [f"Warning: {warning}" for warning in warnings(script)]
        self.viewer.tell("\n".join([*lines, *notes]))


def change_option(
    script: AssistantScript, name: str, text: str, by: str, is_admin: bool
) -> list[str]:
    """Set an option to what was typed, `default` or nothing for its default.

    Returns lines on what it is now, what it was, and what is wrong with it. Raises `AssistantError`
    for a value that cannot be, and for a spend cap that only admins lift.
    """
    was, before = getattr(script.config, name), set(script.state.problems)
    is_default = text.strip().lower() in ("", "default")
    value = default_of(name) if is_default else parsed(name, text, script.known)
    _guard(script, {name: value}, is_admin)
    if is_default:
        script.state.configure({}, unset=[name])
        says = f"is {shown(getattr(script.config, name))} again, the default"
    else:
        script.state.configure({name: value})
        says = f"is now {shown(getattr(script.config, name))}"
    script.log(f"{by} sets {name}: {says}")
    now = getattr(script.config, name)
    script.audit("configured", act="set", option=name, was=shown(was), now=shown(now), by=by)
    lines = [f"{script.obj.key}: {name} {says.removesuffix('.')}."]
    if was != getattr(script.config, name):
        lines.append(f"It was: {shown(was)}")
    return lines + [str(p) for p in script.state.problems if p.name == name or p not in before]


def take_preset(script: AssistantScript, name: str, by: str) -> list[str]:
    """Set the options of a preset; `Refusal` if there is none of this name."""
    if name not in PRESETS:
        raise Refusal(f"There is no preset `{name}`. Presets: {', '.join(PRESETS)}.")
    script.state.configure(PRESETS[name])
    script.log(f"{by} takes the preset {name}")
    script.audit("configured", act="preset", option=name, by=by)
    return [f"{script.obj.key} takes the preset {name}, which sets {', '.join(PRESETS[name])}."]


def undo_option(script: AssistantScript, by: str, is_admin: bool) -> list[str]:
    """Take back the last change; lines and errors as of `change_option`."""
    was, before = script.config, set(script.state.problems)
    values, unset = script.state.last_change()
    _guard(script, {**values, **{name: default_of(name) for name in unset}}, is_admin)
    names = script.state.undo()
    if not names:
        raise Refusal(f"There is no change of {script.obj.key}'s options to undo.")
    script.log(f"{by} takes back a change of {', '.join(names)}")
    script.audit("configured", act="undo", option=", ".join(names), by=by)
    lines = [
        f"{script.obj.key}: {name} is {shown(getattr(script.config, name)).removesuffix('.')} "
        f"again. It was: {shown(getattr(was, name))}"
        for name in names
    ]
    return lines + [str(problem) for problem in script.state.problems if problem not in before]


def _guard(script: AssistantScript, values: Mapping[str, object], is_admin: bool) -> None:
    """A `Refusal` if values would lift a spend cap and whoever sets them is no admin."""
    lifted = [n for n in CAPS if n in values and lifts(getattr(script.config, n), values[n])]
    if lifted and not is_admin:
        raise Refusal(f"Only admins raise or remove spend caps, as `{lifted[0]}`.")


def option_called(text: str) -> str:
    """The option of this name, or the only one that begins with it; `Refusal` if none does."""
    wanted = text.strip().lower()
    if wanted in OPTIONS:
        return wanted
    found = [name for name in OPTIONS if name.startswith(wanted)]
    close = difflib.get_close_matches(wanted, OPTIONS, n=3)
    hint = f" Do you mean {' or '.join(close)}?" if close else ""
    return only_one(
        found,
        f"There is no option `{text}`.{hint} `aiconfig <assistant>` lists them all.",
        f"`{text}` may be {', '.join(found)}. Say which.",
    )


def shown(value: object) -> str:
    """A value as it may be typed: texts bare, lists separated by commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return repr(value)


def _short(value: object) -> str:
    """The beginning of a value, on one line."""
    text = " ".join(shown(value).splitlines())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
