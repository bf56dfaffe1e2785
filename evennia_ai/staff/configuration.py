"""Changes of an assistant's options, as `aiconfig` and the options page make them."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from evennia.locks.lockhandler import get_all_lockfuncs

from evennia_ai import conf
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.errors import ConfigError
from evennia_ai.game.ports import change_group, groups_of, typed_groups
from evennia_ai.kinds import SAMPLING, Allowed, parsed, shown
from evennia_ai.turns.options import OPTIONS, PRESETS, check_option
from evennia_ai.turns.spend_book import OWN_LIMITS, lifts

GROUP_KINDS = ("tag", "prototype", "class")


def change_option(
    script: AssistantScript, called: str, text: str, by: str, is_admin: bool
) -> list[str]:
    """Set an option, or one value of it, to what was typed; `default` or nothing restores it.

    Returns lines on what it is now, what it was, and what is wrong with it. Raises `AssistantError`
    for a value that cannot be, and for a spend limit that only admins lift.
    """
    name, key = option_called(called)
    kind, label = OPTIONS[name].kind, f"{name}.{key}" if key else name
    before, problems = getattr(script.config, name), set(script.state.problems)
    is_default = text.strip().lower() in ("", "default")
    value: Any = None
    if key and kind.of is not None:
        own = script.state.own(name) or {}
        value = {part: own[part] for part in own if part != key}
        if not is_default:
            value[key] = parsed(label, kind.of, text)
        value = check_option(name, value, script.allowed) if value else None
    elif not is_default:
        value = parsed(name, kind, text, script.allowed)
    unsets = is_default and not value
    _guard(script, {name: OPTIONS[name].default if unsets else value}, is_admin)
    if unsets:
        script.state.configure({}, unset=[name])
    else:
        script.state.configure({name: value})
    now, was = (each.get(key) if key else each for each in (getattr(script.config, name), before))
    says = f"is {shown(now)} again, the default" if is_default else f"is now {shown(now)}"
    script.log(f"{by} sets {label}: {says}")
    script.audit("configured", act="set", option=label, was=shown(was), now=shown(now), by=by)
    lines = [f"{script.obj.key}: {label} {says.removesuffix('.')}."]
    if was != now:
        lines.append(f"It was: {shown(was)}")
    return lines + [str(p) for p in script.state.problems if p.name == name or p not in problems]


def change_group_option(
    group: str, called: str, text: str, caller: Any, scripts: Sequence[AssistantScript]
) -> list[str]:
    """Give an option to a group, as ``tag:guard``; `default` or nothing takes it away again.

    `caller` must be an admin, or may change all that are in the group (of `scripts`) now. Spend
    limits of groups are for admins alone. Returns lines on what it is now; raises `AssistantError`.
    """
    kind, _, own = group.partition(":")
    if kind not in GROUP_KINDS or not own:
        raise ConfigError(
            f"A group is one of {', '.join(f'{each}:<name>' for each in GROUP_KINDS)}."
        )
    name, key = option_called(called)
    is_admin = bool(caller.is_superuser or caller.check_permstring("Admin"))
    members = [script for script in scripts if group in groups_of(script.obj)]
    others = [script.obj.key for script in members if not script.may_change(caller)]
    if not is_admin and (name == "spend_caps" or others):
        why = f"it holds {others[0]}, who is not yours" if others else "it is a spend limit"
        raise ConfigError(f"Only admins give `{name}` to {group}: {why}.")
    if key:
        raise ConfigError(f"Give {group} the whole of `{name}`, as a dict.")
    value, allowed = None, Allowed(conf.allowed_models(), None, set(get_all_lockfuncs()), SAMPLING)
    was = typed_groups().get(group, {}).get(name)
    if text.strip().lower() not in ("", "default"):
        value = parsed(name, OPTIONS[name].kind, text, allowed)
    change_group(group, name, value)
    for script in members:
        script.audit("configured", act="group", group=group, option=name, by=caller.key)
    says = "has no value any more" if value is None else f"is now {shown(value)}"
    names = ", ".join(script.obj.key for script in members) or "no assistant"
    lines = [f"{group}: {name} {says}. In the group: {names}. An assistant's own value wins."]
    return lines + ([f"It was: {shown(was)}"] if was not in (None, value) else [])


def take_preset(script: AssistantScript, name: str, by: str) -> list[str]:
    """Set the options of a preset; `ConfigError` if there is none of this name."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset `{name}`. Presets: {', '.join(PRESETS)}.")
    script.state.configure(PRESETS[name])
    script.log(f"{by} takes the preset {name}")
    script.audit("configured", act="preset", option=name, by=by)
    return [f"{script.obj.key} takes the preset {name}, which sets {', '.join(PRESETS[name])}."]


def _guard(script: AssistantScript, values: Mapping[str, Any], is_admin: bool) -> None:
    """A `ConfigError` if values would lift a spend limit and whoever sets them is no admin."""
    if "spend_caps" in values and not is_admin:
        caps, new = script.config.spend_caps, values["spend_caps"]
        new = new if isinstance(new, Mapping) else {}
        if lifted := [name for name in OWN_LIMITS if lifts(caps.get(name), new.get(name))]:
            raise ConfigError(f"Only admins raise or remove spend limits, as `{lifted[0]}`.")


def option_called(text: str) -> tuple[str, str]:
    """The option of this name, or the only one that begins with it, and the name of one value.

    The latter stands behind a dot, as in ``emotes.wake``; else it is empty. `ConfigError` if there
    is no such option.
    """
    wanted, _, key = text.strip().partition(".")
    wanted = wanted.lower()
    names = [wanted] if wanted in OPTIONS else [n for n in OPTIONS if n.startswith(wanted)]
    close = difflib.get_close_matches(wanted, OPTIONS, n=3)
    hint = f" Do you mean {' or '.join(close)}?" if close else ""
    if not names:
        raise ConfigError(
            f"There is no option `{text}`.{hint} `aiconfig <assistant>` lists them all."
        )
    if len(names) > 1:
        raise ConfigError(f"`{text}` may be {', '.join(names)}. Say which.")
    [name] = names
    kind = OPTIONS[name].kind
    if key and (kind.of is None or (kind.keys and key not in kind.keys)):
        raise ConfigError(f"`{name}` takes {kind.says}; it has no `{key}`.")
    return name, key
