"""What is wrong with an installation, and the remedy, in one line each.

The same checks run from a shell (`evennia ai doctor`) and in the game (`ai/doctor`). A check is a
function that takes whether it runs in the game, and returns a `Check` or a Deferred of one; none
blocks the reactor. Its name in the report is the function's, without ``check_``.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import ERROR
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.urls import get_resolver
from django.utils.module_loading import import_string
from twisted.internet.defer import inlineCallbacks, maybeDeferred

from evennia_ai import checks, conf, services
from evennia_ai.assistant_script import shared_spend
from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, SpendError
from evennia_ai.feature import listed_features, usable_tools
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.servers import USABLE_TOKENS, LocalServer, find_servers
from evennia_ai.models import Event
from evennia_ai.processes import NAMES, is_running, pid_file, pids
from evennia_ai.staff.show import counted, phrase
from evennia_ai.staff.status import status_lines, usage_facts, warnings
from evennia_ai.turns.assistant import SCRIPT, is_sound

# Less room than this on a disk is worth a remark.
_ROOM_MB = 100
# Such a share of answers by the offline model in place of another is a fault.
_MANY = 0.1


@dataclass(frozen=True)
class Check:
    """What a check found."""

    ok: bool | None  # True if it works, False if it is broken, None for a remark
    detail: str  # one line, keys masked
    remedy: str = ""
    name: str = ""  # the check's, in a report

    def line(self) -> str:
        """The finding as one line of plain text."""
        mark = {True: "ok  ", False: "BAD ", None: "note"}[self.ok]
        remedy = phrase(" -> {}", self.remedy)
        return " ".join(f"{mark} {self.name}: {self.detail}{remedy}".split("\n"))


_fine, _remark, _fault = (partial(Check, ok) for ok in (True, None, False))


def check_settings(in_game: bool) -> Check:
    """The settings by Django's system checks, and the options that features bring."""
    listed_features()
    settings_found = checks.check_settings(are_loaded=True)
    problems = sorted(settings_found, key=lambda problem: -problem.level)
    if problems:
        worst, more = problems[0], phrase(" (and {} more: `evennia check`)", len(problems) - 1)
        found = _fault if worst.level >= ERROR else _remark
        return found(f"{worst.id}: {worst.msg}{more}", worst.hint or "")
    base = conf.setting("LLM_API_BASE")
    place = f"at {re.sub('//[^/@]*@', '//***@', base)}" if base else "at no address of its own"
    key = "key set (***)" if conf.setting("LLM_API_KEY") else "no key"
    return _fine(f"model `{conf.model_name()}`, {place}, {key}")


def check_game(in_game: bool) -> Check:
    """The game's processes, and whether they run with the settings that hold now."""
    processes, files = pids(settings.GAME_DIR), Path(settings.GAME_DIR, "server", "conf")
    if not processes:
        if in_game:
            return _fine("it runs")
        return _remark("it does not run", "Type: evennia start")
    if missing := [name for name in NAMES if name not in processes]:
        remedy = "Type: evennia start. The end of `server/logs/server.log` may say why it stopped."
        return _fault(f"its {missing[0].title()} does not run", remedy)
    started = pid_file(settings.GAME_DIR, "server").stat().st_mtime
    if changed := [path.name for path in files.glob("*.py") if path.stat().st_mtime > started]:
        detail = f"{', '.join(changed)} changed since its Server started, which does not know that"
        return _remark(detail, "Type: evennia reload")
    if differ := _other_environment(processes["server"]):
        detail = f"it runs with other values of {', '.join(differ)} than this shell has"
        return _remark(detail, "To use this shell's, type: evennia stop, then evennia start")
    return _fine("Portal and Server run, with the settings of now")


def _other_environment(process: int) -> list[str]:
    """The variables of the package that differ from those of a process; none if it hides them."""
    try:
        raw = Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return []
    theirs = dict(entry.partition("=")[::2] for entry in raw.split("\0"))
    names = (f"{conf.PREFIX}{name}" for name in conf.Settings.model_fields)
    return [name for name in names if os.environ.get(name, "") != theirs.get(name, "")]


def check_wiring(in_game: bool) -> Check:
    """The lines in the game's own files: command set and pages."""
    ours = import_string("evennia_ai.commands.AssistantCmdSet")()
    theirs = import_string(settings.CMDSET_CHARACTER)()
    if {command.key for command in ours} - {command.key for command in theirs}:
        detail = f"the assistants' commands are not in `{settings.CMDSET_CHARACTER}`"
        line = "self.add(evennia_ai.commands.AssistantCmdSet)"
        return _fault(detail, f"Add to its `at_cmdset_creation`: {line}")
    modules = [getattr(part, "urlconf_name", None) for part in get_resolver().url_patterns]
    if "evennia_ai.web.urls" not in [getattr(one, "__name__", one) for one in modules]:
        line = 'path("ai/", include("evennia_ai.web.urls"))'
        where = f"`urlpatterns` of `{settings.ROOT_URLCONF}`"
        return _remark(f"the pages under `ai/` are not in {where}", f"Add to it: {line}")
    return _fine("commands and pages are in place")


def check_tools(in_game: bool) -> Check:
    """Features and the game's own tools can be loaded, made and described."""
    broken: list[str] = []
    features = listed_features(lambda error: broken.append(str(error)))
    tools = usable_tools(features, lambda error: broken.append(str(error)))
    if not broken:
        return _fine(f"{len(tools)} tools can be used")
    more = phrase(" (and {} more)", len(broken) - 1)
    remedy = "Repair it or remove it from the setting; assistants do without it."
    return _fault(f"{broken[0]}{more}", remedy)


@inlineCallbacks
def check_database(in_game: bool) -> Any:
    """Tables are up to date, the database can be written, and the game's disk has room.

    Migrations are read on a thread.
    """
    from evennia.server.models import ServerConfig

    nodes = (yield services.on_disk(MigrationLoader, None)).graph.nodes
    try:
        done = MigrationRecorder(connection).applied_migrations()
        if missing := [key for key in nodes if key[0] == "evennia_ai" and key not in done]:
            return _fault(f"{len(missing)} migrations were never run", "Run `evennia migrate`.")
        with transaction.atomic():  # from a shell, SQLite waits for the game that holds it
            ServerConfig.objects.conf("evennia_ai_doctor", "0" * 1000)
            ServerConfig.objects.conf("evennia_ai_doctor", delete=True)
    except DatabaseError as error:
        return unreadable(error)
    free_mb = shutil.disk_usage(settings.GAME_DIR).free // 1_000_000
    if free_mb < _ROOM_MB:
        return _remark(f"only {free_mb:,} MB are left on the disk", "Make room.")
    return _fine(connection.vendor)


@inlineCallbacks
def check_tokenizer(in_game: bool) -> Any:
    """A real tokenizer for the model."""
    from evennia_ai.llm_interaction.tokens import counter_for, encoding_name, estimate

    model = conf.model_name()
    count = yield services.on_disk(counter_for, model)
    if count is estimate:
        remedy = "Install it again: `pip install --force-reinstall tiktoken litellm`."
        return _remark("tokens are estimated from bytes, rather too many than too few", remedy)
    return _fine(f"tiktoken:{encoding_name(model)}")


@inlineCallbacks
def check_embedder(in_game: bool) -> Any:
    """The embedder shipped with the package, where the game's mind is."""
    from evennia_ai.recall.embedding import dimensions

    count: int = yield services.mind().work(dimensions)
    return _fine(f"{count} dimensions")


@inlineCallbacks
def check_memory(in_game: bool) -> Any:
    """The semantic memory store can be opened."""
    if not in_game and is_running(settings.GAME_DIR):
        detail = "the game is running and holds the memory store, as it should"
        return _remark(detail, "For its state type ai/doctor in the game.")
    store = services.mind().memories if in_game else services.memory_backend()
    status = yield store.status()
    if not in_game:
        yield store.close()
    detail = str(status["detail"]).rstrip(".")
    if status["ok"]:
        return _fine(detail)
    remedy = f"Check `EVENNIA_AI_MEMORY_BACKEND`, `EVENNIA_AI_MEM0_CONFIG` and {conf.data_dir()}."
    return _fault(detail, remedy)


def check_suite(in_game: bool) -> Check:
    """When the package's own tests were run in this game, and what they found."""
    try:
        note = json.loads(conf.suite_note().read_text(encoding="utf-8"))
        day = time.strftime("%Y-%m-%d", time.gmtime(note["at"]))
        failed, lines = sorted(set(note["failed"])), note["add"]
    except (OSError, ValueError, TypeError, KeyError):
        detail = "whether this game's commands are heard was never tried"
        return _remark(detail, f"Run `{_SUITE}`.")
    if not failed:
        return _fine(f"this game's commands were tried on {day}")
    add = "".join(f"Add: {line}. " for line in lines)
    return _fault(f"on {day} failed: {', '.join(failed)}", f"{add}Then run `{_SUITE}`.")


def check_assistants(in_game: bool) -> Check:
    """Each assistant's status can be shown; what could not be read of it was put aside."""
    from evennia_ai.assistant_script import all_assistants

    # From a shell, a running game's Attributes are read only: the game has copies in memory.
    reads_all = in_game or not is_running(settings.GAME_DIR)
    found, scripts = [*_without_script()], all_assistants()
    for script in scripts:
        try:
            found += _findings(script, reads_all, script.own_name)
        except Exception as error:  # noqa: BLE001 - a fault of one assistant is a line
            what = f"{script.own_name}: {type(error).__name__}: {error}"
            found.append(_fault(what, "The server log says more."))
    if worst := [each for each in found if each.ok is False] or found:
        remedies = dict.fromkeys(each.remedy for each in worst)
        detail = "; ".join(each.detail for each in worst)
        return replace(worst[0], detail=detail, remedy=" ".join(remedies))
    if not scripts:
        return _remark("there is none yet", "Make one in the game: ai/create Aria")
    return _fine(f"nothing that {counted(len(scripts), 'assistant')} stored was put aside")


def _without_script() -> Iterator[Check]:
    """A fault for each assistant's body that has lost its script."""
    from evennia import ObjectDB

    from evennia_ai.assistant_character import BODY_NAME, CATEGORY, AssistantMixin

    named = {"db_attributes__db_key": BODY_NAME, "db_attributes__db_category": CATEGORY}
    for body in ObjectDB.objects.filter(**named):
        if isinstance(body, AssistantMixin) and body.assistant is None:
            remedy = f"Type: script #{body.pk} = {body.script_typeclass}"
            yield _fault(f"{body.key} (#{body.pk}) has no script and hears nothing", remedy)


def _findings(script: Any, reads_all: bool, name: str) -> Iterator[Check]:
    """What is to be said of an assistant; `reads_all` is whether that may put values aside."""
    if reads_all:
        status_lines(script)  # whatever cannot be read of it raises
        for problem in (*script.state.configuration.problems, *warnings(script)):
            yield _remark(f"{name}: {problem}", f"Type: aistatus {name}")
    places = ((key, reader) for (_, key), reader in SCRIPT.items())
    unread = [key for key, reader in places if not is_sound(reader, script.store.get(key))]
    if unread:
        what = f"{name}: {', '.join(unread)} cannot be read and count as empty"
        yield _remark(what, "They are kept aside when something else is stored there.")


def check_mind(in_game: bool) -> Check:
    """Where models and memory run."""
    if not in_game:
        return _fine("a process of its own while the game runs")
    mind = services.mind()
    if mind.trouble:
        return _fault(mind.status(), "Read `server/logs/mind.log`.")
    return _fine(mind.status())


def check_spend(in_game: bool) -> Check:
    """What model calls may cost in a day or month, and what they did."""
    spent = usage_facts(shared_spend(), time.time())
    limits = ", ".join(spent["caps"]) or "none"
    detail = f"limits: {limits}; today {spent['today']}, this month {spent['this_month']}"
    if conf.runs_here(conf.model_name()):
        detail += "; the model runs on this machine and counts towards no limit by default"
    elif not spent["caps"]:
        return _remark(detail, "Set `EVENNIA_AI_SPEND_CAPS`: docs/providers.md, Spend.")
    return _fine(f"{detail} (`EVENNIA_AI_SPEND_CAPS`)")


@inlineCallbacks
def check_model(in_game: bool) -> Any:
    """The model answers."""
    model, client = conf.model_name(), services.mind().model
    try:
        reply = yield shared_spend().probe(client, model, time.time())
    except SpendError as error:
        return _remark(f"`{model}` was not asked: {error}", "Raise `EVENNIA_AI_SPEND_CAPS`.")
    except ModelError as error:  # it names the model
        remedy = _REMEDIES.get(error.kind, f"Check `{checks.MODEL}`.")
        if error.kind == "auth":
            remedy = _key_remedy(model)
        if error.kind in ("connection", "not_found"):
            remedy += yield _local_choices()
        return _fault(str(error), remedy)
    if model == OFFLINE_MODEL:
        detail = "the offline model speaks: rules, no network, no key"
        remedy = f"For better conversation, set `{checks.MODEL}`: docs/providers.md."
        return _remark(detail, remedy + (yield _local_choices()))
    detail, facts = f"`{model}` answered in {reply.seconds:.1f} s", client.facts(model)
    if facts.window:
        detail += f"; its window: {facts.window}"
        if facts.window.tokens < USABLE_TOKENS:
            return _fault(detail, "Give the model's server a larger window, 8,192 tokens or more.")
    if facts.calls_tools is False:
        detail += "; it speaks and is offered no tools (orders are read from what people say)"
    return _fine(detail)


def _key_remedy(model: str) -> str:
    """Which key was refused, by the name of the place it comes from."""
    ours, usual = checks.API_KEY, f"{model.partition('/')[0].upper()}_API_KEY"
    if os.environ.get(ours):
        return f"Correct `{ours}` in the environment, which overrides the settings."
    if conf.setting("LLM_API_KEY"):
        return f"Correct `{ours}` in the game's settings."
    if os.environ.get(usual):
        return f"The key comes from `{usual}` in the environment: correct it, or set `{ours}`."
    return f"No key is set: set `{ours}`."


@inlineCallbacks
def _local_choices() -> Steps[str]:
    """Fires with the settings for models of servers on this machine; empty without a server."""
    servers: list[LocalServer] = yield services.on_disk(find_servers)
    choices = ""
    for server in servers:
        choices += f" {server.name} on this machine"
        if not server.models:
            choices += " has no model yet."
            continue
        first, *others = server.models
        lines = " and ".join(server.settings(first))
        choices += f": set {lines} in server/conf/secret_settings.py, then restart"
        choices += phrase(" (other models: {})", ", ".join(others)) + "."
    return choices


def check_answers(in_game: bool) -> Check:
    """How many answers the offline model gave lately in place of another."""
    now, shares = time.time(), []
    for period, seconds in (("hour", 3_600.0), ("day", 86_400.0)):
        of_talk = Event.objects.filter(kind="call", at__gt=now - seconds)
        fell_back, others = (
            of_talk.filter(text__contains=f'"fell_back": {value}').count()
            for value in ("true", "false")
        )
        if fell_back:
            shares.append((fell_back / (fell_back + others), period))
    if not shares:
        return _fine("in the last day the offline model answered in place of no other")
    shown = ", ".join(f"{share:.0%} of the last {period}" for share, period in shares)
    found = _fault if max(shares)[0] >= _MANY else _remark
    return found(
        f"the offline model gave {shown}'s answers, as no other did in time",
        "`aistatus` has the last trouble. Check the model's server, or give it less to do.",
    )


# In the order in which they stand here.
CHECKS: tuple[Callable[[bool], Any], ...] = tuple(
    check for name, check in dict(globals()).items() if name.startswith("check_")
)

_DAMAGED = (
    "Stop the game, keep a copy of the damaged file, and put a backup in its place; see "
    "docs/install.md."
)
_SUITE = "evennia test --settings settings.py evennia_ai"
_REMEDIES = {
    "connection": f"Start the model's server, or correct `{checks.API_BASE}`.",
    "timeout": f"Check whether the server at `{checks.API_BASE}` is overloaded.",
    "not_found": f"Correct `{checks.MODEL}`: LiteLLM's name, as openai/gpt-4o.",
    "rate_limit": "Wait, or ask the provider for a higher limit.",
}


@inlineCallbacks
def run_checks(
    in_game: bool,
    which: Iterable[Callable[[bool], Any]] = CHECKS,
    show: Callable[[Check], object] = id,
) -> Any:
    """Run the checks in order; fires with a list of `Check`. One that raises is a fault.

    `show` is called with each finding as soon as it is made.
    """
    found = []
    for check in which:
        try:
            result = yield maybeDeferred(check, in_game)
        except DatabaseError as error:
            result = unreadable(error)
        except Exception as error:  # noqa: BLE001 - a finding, too
            detail = f"{type(error).__name__}: {error}".split("\n")[0]
            if key := conf.setting("LLM_API_KEY"):
                detail = detail.replace(str(key), "***")
            result = _fault(detail, "Install the package again, or report this.")
        found.append(replace(result, name=name_of(check)))
        show(found[-1])
    return found


def name_of(check: Callable[[bool], Any]) -> str:
    """A check's name in the report."""
    return check.__name__.removeprefix("check_")


def unreadable(error: BaseException) -> Check:
    """The finding for an exception of the database."""
    if re.search(r"malformed|not a database|corrupt", str(error), re.IGNORECASE):
        return _fault(f"the database is damaged: {error}", _DAMAGED)
    if re.search(r"no such (table|column)|does not exist|doesn't exist", str(error)):
        return _fault("the database has no up-to-date tables", "Run `evennia migrate`.")
    remedy = "Check `DATABASES` in the settings and the database's disk."
    return _fault(f"{type(error).__name__}: {error}", remedy)


def verdict(found: Iterable[Check]) -> str:
    """The findings in one line."""
    found = list(found)
    bad = sum(check.ok is False for check in found)
    if bad:
        return f"{bad} of {len(found)} checks found a fault."
    return "All is well."
