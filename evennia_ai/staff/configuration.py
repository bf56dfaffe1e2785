"""Changes of an assistant's options, as `aiconfig` and the options page make them."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.errors import ConfigError
from evennia_ai.history.stored import as_dict, as_text, as_time
from evennia_ai.kinds import shown
from evennia_ai.options import OPTIONS, OWN_LIMITS, PRESETS, AssistantConfig, check_option
from evennia_ai.staff.show import ago
from evennia_ai.turns.spend_book import lifts

# The Attribute with what the newest change replaced, by whom and when; None stands for a default.
FORMER, CATEGORY = "options", "ai_former"


def change_option(
    script: AssistantScript, called: str, text: str, by: str, is_admin: bool
) -> list[str]:
    """Set an option, or one value of it, to what was typed; `default` or nothing restores it.

    Returns lines on what it is now, what it was, and what is wrong with it. Raises `AssistantError`
    for a value that cannot be, and for a spend limit that only admins lift.
    """
    name, key = option_called(called)
    label = f"{name}.{key}" if key else name
    before, problems = getattr(script.config, name), set(script.state.configuration.problems)
    is_default = text.strip().lower() in ("", "default")
    values: dict[str, Any] = {}
    if key:
        own = dict(script.state.own(name) or {})
        own.pop(key, None)
        if not is_default:
            own[key] = AssistantConfig.parsed(name, text, key=key)
        if own:
            values[name] = check_option(name, own, script.allowed)
    elif not is_default:
        values[name] = AssistantConfig.parsed(name, text, script.allowed)
    set_options(script, values, by, is_admin, unset={name} - values.keys())
    now, was = (each.get(key) if key else each for each in (getattr(script.config, name), before))
    says = f"is the default again: {shown(now)}" if is_default else f"is now {shown(now)}"
    lines = [f"{script.obj.key}: {label} {says.removesuffix('.')}."]
    if was != now:
        lines.append(f"It was: {shown(was)}")
    return lines + [
        str(p) for p in script.state.configuration.problems if p.name == name or p not in problems
    ]


def set_options(
    script: AssistantScript,
    values: Mapping[str, Any],
    by: str,
    is_admin: bool,
    unset: Collection[str] = (),
) -> None:
    """Set options in their stored form, and keep what they were for `undo_options`.

    A `ConfigError` if whoever sets them is no admin, and that would lift a spend limit, or change
    what is deleted.
    """
    if not is_admin and "keep_days" in {*values, *unset}:
        raise ConfigError("Only admins set `keep_days`: it deletes what was said.")
    if not is_admin and "spend_caps" in {*values, *unset}:
        caps, new = script.config.spend_caps, as_dict(values.get("spend_caps"))
        if lifted := [name for name in OWN_LIMITS if lifts(caps.get(name), new.get(name))]:
            raise ConfigError(f"Only admins raise or remove spend limits, as `{lifted[0]}`.")
    store = script.store
    was = {name: store.get(name) for name in (*values, *unset)}
    with store.transaction():
        if any(before != values.get(name) for name, before in was.items()):
            store.set(FORMER, {"by": by, "at": script.now(), "was": was}, CATEGORY)
            script.log(f"{by} sets {', '.join(was)}")
            script.audit("configured", act="set", options=list(was), by=by)
        script.state.configure(values, unset)


def undo_options(script: AssistantScript, by: str, is_admin: bool) -> list[str]:
    """Bring back what the options were before the newest change; done twice, that comes back.

    Returns lines on what they are now.
    """
    name, last = script.obj.key, as_dict(script.store.get(FORMER, CATEGORY))
    was = {option: value for option, value in as_dict(last.get("was")).items() if option in OPTIONS}
    if not was:
        raise ConfigError(f"No change of {name} can be undone.")
    values = {
        option: check_option(option, value, script.allowed)
        for option, value in was.items()
        if value is not None
    }
    set_options(script, values, by, is_admin, was.keys() - values.keys())
    who, when = as_text(last.get("by")), ago(script.now() - as_time(last.get("at")))
    return [
        f"{name}: {option} is again as it was before {who} changed it {when}: "
        f"{shown(getattr(script.config, option))}"
        for option in was
    ]


def take_preset(script: AssistantScript, name: str, by: str) -> list[str]:
    """Set the options of a preset; `ConfigError` if there is none of this name."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset `{name}`. Presets: {', '.join(PRESETS)}.")
    set_options(script, PRESETS[name], by, is_admin=False)
    return [f"{script.obj.key} takes the preset {name}, which sets {', '.join(PRESETS[name])}."]


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
