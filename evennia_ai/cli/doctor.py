"""Say what is wrong with an installation, and how to mend it, in one line each.

The same checks run from a shell (`evennia ai doctor`) and in the game (`ai/doctor`). A check is a
function of a `Patient` that returns a `Check` or a Deferred of one; nothing blocks the reactor.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks, maybeDeferred

from evennia_ai import checks, conf
from evennia_ai.background import Worker
from evennia_ai.cli import processes as game_processes
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL

SUPPORTED_PYTHON = ((3, 11), (3, 13))
SUPPORTED_EVENNIA = ((5, 0, 1), (7,))


@dataclass(frozen=True)
class Check:
    """What a check found.

    Args:
        name: What was looked at.
        ok: True if it works, False if it must be mended, None if it is worth knowing.
        detail: What was found, one line, keys masked.
        remedy: What to do about it; empty if nothing.
    """

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""

    def line(self) -> str:
        """The finding as one line of plain text."""
        mark = {True: "ok  ", False: "BAD ", None: "note"}[self.ok]
        remedy = f" -> {self.remedy}" if self.remedy else ""
        return " ".join(f"{mark} {self.name}: {self.detail}{remedy}".split("\n"))


class Patient:
    """What the checks look at. What is not given is made when a check first needs it.

    Args:
        game_dir: The game's folder.
        client: A `ModelClient`.
        store: A `MemoryBackend`; in the running game its own, as that holds the files' lock.
        worker: A thread for slow work.
    """

    def __init__(
        self,
        game_dir: str | os.PathLike[str],
        client: Any = None,
        store: Any = None,
        worker: Worker | None = None,
    ):
        self.game_dir = Path(game_dir)
        self.worker = worker or Worker("evennia-ai-doctor")
        self._client = client
        self._store = store

    @classmethod
    def this_game(cls) -> "Patient":
        """The running game, from within, with the services its assistants use."""
        from django.conf import settings

        from evennia_ai import services

        return cls(settings.GAME_DIR, services.mind(), services.mind().memories)

    @property
    def model(self) -> str:
        """The model assistants use where they name none."""
        return conf.model_name()

    @property
    def client(self) -> Any:
        """The client that talks to models."""
        if self._client is None:
            from evennia_ai import services

            self._client = services.mind()
        return self._client

    @property
    def owns_store(self) -> bool:
        """Whether the store is made for the checks and is to be closed after them."""
        return self._store is None

    @property
    def store(self) -> Any:
        """The semantic memory store."""
        if self._store is not None:
            return self._store
        from evennia_ai import services

        return services.memory_backend(self.worker)


def check_versions(patient: Patient) -> Check:
    """Python and Evennia in the supported range."""
    import evennia

    python = sys.version_info[:2]
    found = tuple(int(part) for part in re.findall(r"\d+", evennia.__version__)[:3])
    detail = f"Python {python[0]}.{python[1]}, Evennia {evennia.__version__}"
    low, high = SUPPORTED_PYTHON
    if not low <= python <= high:
        return Check("versions", False, detail, "Use Python 3.11, 3.12 or 3.13.")
    if not SUPPORTED_EVENNIA[0] <= found < SUPPORTED_EVENNIA[1]:
        return Check(
            "versions",
            False,
            detail,
            "Install Evennia 5.0.1 to 6: `pip install 'evennia>=5.0.1,<7'`.",
        )
    return Check("versions", True, detail)


def check_settings(patient: Patient) -> Check:
    """The settings by Django's system checks."""
    problems = checks.check_settings()
    if not problems:
        return Check("settings", True, f"model `{patient.model}`, {_address()}, {_key()}")
    worst = max(problems, key=lambda problem: problem.level)
    more = f" (and {len(problems) - 1} more: `evennia check`)" if len(problems) > 1 else ""
    is_error = worst.level >= 40
    return Check(
        "settings", False if is_error else None, f"{worst.id}: {worst.msg}{more}", worst.hint or ""
    )


def check_wiring(patient: Patient) -> Check:
    """The three lines: app, command set, pages."""
    from django.conf import settings
    from django.utils.module_loading import import_string

    if "evennia_ai" not in str(settings.INSTALLED_APPS):
        return Check("wiring", False, "`evennia_ai` is not in `INSTALLED_APPS`", _INSTALL)
    ours = import_string("evennia_ai.commands.AssistantCmdSet")()
    theirs = import_string(settings.CMDSET_CHARACTER)()
    missing = {command.key for command in ours} - {command.key for command in theirs}
    if missing:
        return Check(
            "wiring",
            False,
            f"the assistants' commands are not in `{settings.CMDSET_CHARACTER}`",
            _INSTALL,
        )
    if not _has_pages():
        return Check("wiring", None, "the pages under `ai/` are not in `web/urls.py`", _INSTALL)
    return Check("wiring", True, "app, commands and pages are in place")


def check_tools(patient: Patient) -> Check:
    """The game's own tools can be loaded, made and described."""
    broken: list[str] = []
    tools = conf.usable_tools(lambda error: broken.append(str(error)))
    if not broken:
        return Check("tools", True, f"{len(tools)} tools can be used")
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return Check(
        "tools",
        False,
        f"{broken[0]}{more}",
        f"Mend it or take it out of `{checks.TOOLS}`; until then assistants do without it.",
    )


@inlineCallbacks
def check_database(patient: Patient) -> Any:
    """Tables up to date; how many assistants there are. The files are read on a thread."""
    from django.db.migrations.loader import MigrationLoader

    loader = yield patient.worker.submit(MigrationLoader, None)
    return _tables(loader)


def _tables(loader: Any) -> Check:
    from django.db import DatabaseError, connection
    from django.db.migrations.recorder import MigrationRecorder
    from evennia.scripts.models import ScriptDB

    try:
        done = set(MigrationRecorder(connection).applied_migrations())
        missing = [key for key in loader.graph.nodes if not _applied(key, loader, done)]
        if missing:
            return Check(
                "database",
                False,
                f"{len(missing)} migrations were never run",
                "Run `evennia migrate`.",
            )
        paths = Counter(ScriptDB.objects.values_list("db_typeclass_path", flat=True))
        count = sum(number for path, number in paths.items() if _is_assistant(path))
    except DatabaseError as error:
        return Check(
            "database",
            False,
            f"{type(error).__name__}: {error}",
            "Check `DATABASES` in the settings, then run `evennia migrate`.",
        )
    if not count:
        return Check(
            "database",
            None,
            f"{connection.vendor}, no assistant yet",
            "Make one in the game: ai/create Aria",
        )
    return Check("database", True, f"{connection.vendor}, {count} assistant(s)")


def _is_assistant(path: str) -> bool:
    """Whether a typeclass is the assistant's script or one a game derived from it."""
    from django.utils.module_loading import import_string

    from evennia_ai.assistant_script import AssistantScript

    try:
        return issubclass(import_string(path), AssistantScript)
    except (ImportError, TypeError):
        return False


def _applied(key: Any, loader: Any, done: set[Any]) -> bool:
    """Whether a migration ran, itself or all those it stands for."""
    replaces = loader.graph.nodes[key].replaces
    return key in done or bool(replaces and done.issuperset(replaces))


def check_tokenizer(patient: Patient) -> Any:
    """A real tokenizer for the model."""
    from evennia_ai.llm_interaction.tokens import counter_name

    def found(name: str) -> Check:
        if name == "estimate":
            return Check(
                "tokenizer",
                None,
                "tokens are estimated from bytes, on the safe side",
                "Install it again: `pip install --force-reinstall tiktoken litellm`.",
            )
        return Check("tokenizer", True, name)

    return patient.worker.submit(counter_name, patient.model).addCallback(found)


def check_embedder(patient: Patient) -> Any:
    """The embedder shipped with the package."""

    def embed() -> Check:
        from evennia_ai.recall.embedding import default_embedder

        vectors = default_embedder().embed(["a lantern in the window"])
        return Check("embedder", True, f"{vectors.shape[1]} dimensions")

    return patient.worker.submit(embed)


@inlineCallbacks
def check_memory(patient: Patient) -> Any:
    """The semantic memory store can be opened. Fires with a Check."""
    if patient.owns_store and game_processes.is_running(patient.game_dir):
        return Check(
            "memory",
            None,
            "the game is running and holds the memory store, as it should",
            "For its state type ai/doctor in the game.",
        )
    store = patient.store
    status = yield store.status()
    if patient.owns_store:
        yield store.close()
    detail = str(status["detail"]).rstrip(".")
    if status["ok"]:
        return Check("memory", True, detail)
    return Check(
        "memory",
        False,
        detail,
        f"Check `{checks.MEMORY_BACKEND}`, `{checks.MEM0_CONFIG}` and {conf.data_dir()}.",
    )


@inlineCallbacks
def check_index(patient: Patient) -> Any:
    """The search index of each assistant is whole. Fires with a Check."""
    from evennia_ai.cli.startstop import assistants
    from evennia_ai.rag_memory.indexing import missing_oldest

    lacking, mended = [], True
    for script in assistants():
        if script.obj is None:
            continue
        missing = yield missing_oldest(script)
        if missing is None:
            return Check("index", False, "the search index cannot be read", _INDEX_FILE)
        if missing:
            lacking.append(script.obj.key)
            mended = mended and script.memory.restoring
    if not lacking:
        return Check("index", True, "holds what is stored")
    detail = f"lacks older talk of {', '.join(lacking)}"
    if mended:
        return Check("index", None, f"{detail}; it is being put in")
    return Check("index", False, detail, f"Type in the game: aimemory/rebuild {lacking[0]}")


@inlineCallbacks
def check_model(patient: Patient) -> Any:
    """The model answers. Fires with a Check."""
    report = yield patient.client.probe(patient.model)
    if not report.ok:
        return Check(
            "model",
            False,
            f"`{report.model}`: {report.detail}",
            _REMEDIES.get(report.kind, f"Check `{checks.MODEL}`."),
        )
    if patient.model == OFFLINE_MODEL:
        return Check(
            "model",
            None,
            "the offline model speaks: rules, no network, no key",
            f"For more wit set `{checks.MODEL}`.",
        )
    return Check("model", True, f"`{report.model}` answered in {report.seconds:.1f} s")


CHECKS: tuple[Callable[[Patient], Any], ...] = (
    check_versions,
    check_settings,
    check_wiring,
    check_tools,
    check_database,
    check_tokenizer,
    check_embedder,
    check_memory,
    check_index,
    check_model,
)

_INDEX_FILE = (
    "The log says why: the disk may be full, or `recall.sqlite3` in the game's data folder belong "
    "to another user. A damaged file is made anew by itself."
)
_INSTALL = "Run `evennia-ai install`: it shows the lines."
_REMEDIES = {
    "auth": f"Set `{checks.API_KEY}` to a valid key.",
    "connection": f"Start the model's server, or correct `{checks.API_BASE}`.",
    "timeout": f"See whether the server at `{checks.API_BASE}` is overloaded.",
    "not_found": f"Correct `{checks.MODEL}`: LiteLLM's name, as openai/gpt-4o.",
    "rate_limit": "Wait, or ask the provider for a higher limit.",
}


@inlineCallbacks
def run_checks(patient: Patient, which: Iterable[Callable[[Patient], Any]] = CHECKS) -> Any:
    """Run the checks one after the other; a check that breaks is a finding, not an error.

    Returns:
        A Deferred that fires with a list of `Check`, in order.
    """
    found = []
    for check in which:
        name = check.__name__.removeprefix("check_")
        result = yield maybeDeferred(check, patient).addErrback(_as_check, name)
        found.append(result)
    return found


def report(found: Iterable[Check]) -> str:
    """The findings as text, a line each, and a last line that sums up."""
    found = list(found)
    bad = sum(check.ok is False for check in found)
    verdict = f"{bad} of {len(found)} checks found a fault." if bad else "All is well."
    return "\n".join([*(check.line() for check in found), verdict])


def doctor(patient: Patient) -> "Deferred[list[Check]]":
    """All checks on a game; fires with a list of `Check`."""
    return run_checks(patient)


def _as_check(failure: Any, name: str) -> Check:
    detail = f"{failure.type.__name__}: {_without_keys(failure.getErrorMessage())}"
    return Check(name, False, detail.split("\n")[0], "Install the package again, or report this.")


def _without_keys(text: str) -> str:
    """Text with the configured key, wherever it stands, replaced."""
    key = conf.setting("LLM_API_KEY")
    return text.replace(key, "***") if isinstance(key, str) and key else text


def _address() -> str:
    base = conf.setting("LLM_API_BASE")
    return f"at {re.sub('//[^/@]*@', '//***@', base)}" if base else "at its provider's address"


def _key() -> str:
    return "key set (***)" if conf.setting("LLM_API_KEY") else "no key"


def _has_pages() -> bool:
    """Whether the game's URLs include ours."""
    from django.urls import get_resolver

    parts = list(get_resolver().url_patterns)
    modules = [getattr(part, "urlconf_name", None) for part in parts]
    names = {
        getattr(module, "__name__", module) for module in modules if not isinstance(module, list)
    }
    return "evennia_ai.web.urls" in names
