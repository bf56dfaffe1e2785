"""Changes of an assistant's options, as `aiconfig` and the options page make them."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.errors import ConfigError
from evennia_ai.history.stored import as_dict, as_text, as_time
from evennia_ai.kinds import shown
from evennia_ai.options import OPTIONS, OWN_LIMITS, PRESETS, check_option
from evennia_ai.staff.show import ago, phrase
from evennia_ai.turns.spend_book import lifts

# The Attribute with what the newest change replaced, by whom and when; None stands for a default.
FORMER, CATEGORY = "options", "ai_former"


@dataclass(frozen=True)
class Tuning:
    """Changes of an assistant's options by somebody; each returns lines on what they are now."""

    script: AssistantScript
    by: str  # the name of who makes them
    is_admin: bool

    def change(self, called: str, text: str) -> list[str]:
        """Set an option, or one value of it, to what was typed; `default` or nothing restores it.

        The lines say, too, what it was, and what is wrong with it. Raises `AssistantError` for a
        value that cannot be, and for a spend limit that only admins lift.
        """
        script, (name, key) = self.script, option_called(called)
        before, problems = script.config, set(script.state.configuration.problems)
        is_default, model = text.strip().lower() in ("", "default"), OPTIONS[name].model
        values: dict[str, Any] = {}
        if key:
            own = dict(script.state.own(name) or {})
            own.pop(key, None)
            if not is_default:
                own[key] = model.parsed(name, text, key=key)
            if own:
                values[name] = check_option(name, own, script.allowed)
        elif not is_default:
            values[name] = model.parsed(name, text, script.allowed)
        self.set(values, {name} - values.keys())
        now, was = (getattr(config, name) for config in (script.config, before))
        label, says = name, "is now"
        if key:
            label, now, was = f"{name}.{key}", now.get(key), was.get(key)
        if is_default:
            says = "is the default again:"
        lines = [f"{script.own_name}: {label} {says} {shown(now).removesuffix('.')}."]
        if was != now:
            lines.append(f"It was: {shown(was)}")
        news = script.state.configuration.problems
        return lines + [str(each) for each in news if each.name == name or each not in problems]

    def set(self, values: Mapping[str, Any], unset: Collection[str] = ()) -> None:
        """Set options in their stored form, and keep what they were for `undo`.

        A `ConfigError` if that would lift a spend limit and whoever sets them is no admin.
        """
        script, store = self.script, self.script.store
        if not self.is_admin and "spend_caps" in {*values, *unset}:
            caps, new = script.config.spend_caps, as_dict(values.get("spend_caps"))
            if lifted := [name for name in OWN_LIMITS if lifts(caps.get(name), new.get(name))]:
                raise ConfigError(f"Only admins raise or remove spend limits, as `{lifted[0]}`.")
        was = {name: store.get(name) for name in (*values, *unset)}
        with store.transaction():
            if any(before != values.get(name) for name, before in was.items()):
                store.set(FORMER, {"by": self.by, "at": script.now(), "was": was}, CATEGORY)
                script.log(f"{self.by} sets {', '.join(was)}")
                script.audit("configured", act="set", options=list(was), by=self.by)
            script.state.configure(values, unset)

    def undo(self) -> list[str]:
        """Bring back what options were before the newest change; done twice, that comes back."""
        script, name = self.script, self.script.own_name
        last = as_dict(script.store.get(FORMER, CATEGORY))
        was = {option: old for option, old in as_dict(last.get("was")).items() if option in OPTIONS}
        if not was:
            raise ConfigError(f"No change of {name} can be undone.")
        values = {
            option: check_option(option, old, script.allowed)
            for option, old in was.items()
            if old is not None
        }
        self.set(values, was.keys() - values.keys())
        who, when = as_text(last.get("by")), ago(script.now() - as_time(last.get("at")))
        says = f"is again as it was before {who} changed it {when}"
        return [f"{name}: {each} {says}: {shown(getattr(script.config, each))}" for each in was]

    def take_preset(self, name: str) -> list[str]:
        """Set the options of a preset; `ConfigError` if there is none of this name."""
        if name not in PRESETS:
            raise ConfigError(f"There is no preset `{name}`. Presets: {', '.join(PRESETS)}.")
        self.set(PRESETS[name])
        sets = ", ".join(PRESETS[name])
        return [f"{self.script.own_name} takes the preset {name}, which sets {sets}."]


def option_called(text: str) -> tuple[str, str]:
    """The option of this name, or the only one that begins with it, and the name of one value.

    The latter stands behind a dot, as in ``emotes.wake``; else it is empty. `ConfigError` if there
    is no such option.
    """
    wanted, _, key = text.strip().partition(".")
    wanted = wanted.lower()
    names = [wanted] if wanted in OPTIONS else [n for n in OPTIONS if n.startswith(wanted)]
    if not names:
        close = " or ".join(difflib.get_close_matches(wanted, OPTIONS, n=3))
        hint = phrase(" Do you mean {}?", close)
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
