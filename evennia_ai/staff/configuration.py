"""Changes of an assistant's options, as `aiconfig` and the options page make them."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.errors import ConfigError
from evennia_ai.history.records import as_dict
from evennia_ai.kinds import parsed, shown
from evennia_ai.staff.show import ago
from evennia_ai.turns.options import OPTIONS, PRESETS, check_option
from evennia_ai.turns.spend_book import OWN_LIMITS, lifts

# Category of the Attributes that hold what an option was, and by whom and when it was changed.
FORMER = "ai_former"


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
    unset = (name,) if is_default and not value else ()
    set_options(script, {} if unset else {name: value}, by, is_admin, unset)
    now, was = (each.get(key) if key else each for each in (getattr(script.config, name), before))
    says = f"is {shown(now)} again, the default" if is_default else f"is now {shown(now)}"
    script.log(f"{by} sets {label}: {says}")
    script.audit("configured", act="set", option=label, was=shown(was), now=shown(now), by=by)
    lines = [f"{script.obj.key}: {label} {says.removesuffix('.')}."]
    if was != now:
        lines.append(f"It was: {shown(was)}")
    return lines + [str(p) for p in script.state.problems if p.name == name or p not in problems]


def set_options(
    script: AssistantScript,
    values: Mapping[str, Any],
    by: str,
    is_admin: bool,
    unset: Collection[str] = (),
) -> None:
    """Set options in their stored form, and keep what each of them was for `undo_options`.

    A `ConfigError` if that would lift a spend limit and whoever sets them is no admin.
    """
    if not is_admin and "spend_caps" in {*values, *unset}:
        caps, new = script.config.spend_caps, as_dict(values.get("spend_caps"))
        if lifted := [name for name in OWN_LIMITS if lifts(caps.get(name), new.get(name))]:
            raise ConfigError(f"Only admins raise or remove spend limits, as `{lifted[0]}`.")
    store, now = script.store, script.now()
    with store.transaction():
        for name in (*values, *unset):
            was = None if store.stamp(name) is None else {"value": store.get(name)}
            if was != ({"value": values[name]} if name in values else None):
                store.set(name, {"was": was, "by": by, "at": now}, FORMER)
        script.state.configure(values, unset)


def undo_options(script: AssistantScript, called: str, by: str, is_admin: bool) -> list[str]:
    """Bring back what an option was before its last change; without a name, all of the newest one.

    To do it twice brings the change back. Returns lines on what they are now.
    """
    store, name = script.store, script.obj.key
    stored = {each: as_dict(store.get(each, FORMER)) for each in store.keys(FORMER)}
    former = {each: was for each, was in stored.items() if each in OPTIONS and was.get("at")}
    if called:
        wanted = option_called(called)[0]
        former = {wanted: former[wanted]} if wanted in former else {}
    else:
        newest = max((was["at"] for was in former.values()), default=0.0)
        former = {each: was for each, was in former.items() if was["at"] == newest}
    if not former:
        raise ConfigError(f"No change of {f'{name} {called}'.strip()} can be undone.")
    values = {
        option: check_option(option, was["value"], script.allowed)
        for option, each in former.items()
        if "value" in (was := as_dict(each.get("was")))
    }
    set_options(script, values, by, is_admin, former.keys() - values.keys())
    script.log(f"{by} undoes the change of {', '.join(former)}")
    script.audit("configured", act="undo", option=", ".join(former), by=by)
    return [
        f"{name}: {option} is {shown(getattr(script.config, option))} again, as before "
        f"{each['by']} changed it {ago(script.now() - each['at'])}."
        for option, each in former.items()
    ]


def take_preset(script: AssistantScript, name: str, by: str) -> list[str]:
    """Set the options of a preset; `ConfigError` if there is none of this name."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset `{name}`. Presets: {', '.join(PRESETS)}.")
    set_options(script, PRESETS[name], by, is_admin=False)
    script.log(f"{by} takes the preset {name}")
    script.audit("configured", act="preset", option=name, by=by)
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
