"""The services all assistants of a game share: model client, memory store, recall index.

They are made at first use and closed when the server stops. `use` puts others in their place,
for tests and for games that bring their own.
"""

import threading
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed

from evennia_ai import conf
from evennia_ai.background import Worker
from evennia_ai.errors import StoreError
from evennia_ai.llm_interaction.tokens import counter_for, counter_name

_made: dict[str, Any] = {}
_index_lock = threading.Lock()


def use(**services: Any) -> None:
    """Put services in place: `model`, `semantic`, `worker`, `index`; `ready` as True."""
    _made.update(services)


def reset() -> None:
    """Forget all services, without closing them."""
    _made.clear()


def model() -> Any:
    """The model client."""
    if "model" not in _made:
        from evennia_ai.llm_interaction.client import ModelClient

        _made["model"] = ModelClient(
            api_base=conf.setting("LLM_API_BASE"),
            api_key=conf.setting("LLM_API_KEY"),
            home_model=conf.model_name(),
        )
    return _made["model"]


def semantic() -> Any:
    """The memory back end; `ConfigError` if the one in the settings cannot be used."""
    if "semantic" not in _made:
        _made["semantic"] = conf.memory_backend()
    return _made["semantic"]


def worker() -> Worker:
    """The daemon thread that owns the recall index."""
    if "worker" not in _made:
        _made["worker"] = Worker("evennia-ai-recall")
    return _made["worker"]


def workshop() -> Worker:
    """The daemon thread for long work on plain values, as counting and comparing."""
    if "workshop" not in _made:
        _made["workshop"] = Worker("evennia-ai-work")
    return _made["workshop"]


def index() -> Any:
    """The recall index; on the worker's thread only.

    It is opened anew if its file was deleted. A damaged one is renamed, and an empty one, which the
    assistants fill from what they have stored, takes its place.
    """
    with _index_lock:
        if "index" in _made and _is_useless(_made["index"]):
            _close_useless(_made.pop("index"))
        if "index" not in _made:
            folder = _made.get("data_dir") or conf.data_dir()
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "recall.sqlite3"
            _made["index"] = _opened_index(path)
            _made["index_file"] = (_made["index"], path, path.stat().st_ino)
        return _made["index"]


def _close_useless(index: Any) -> None:
    from evennia_ai.recall.store import set_aside

    index.close()
    if index.damaged:
        set_aside(_made["index_file"][1])


def _opened_index(path: Path) -> Any:
    from evennia_ai.recall import RecallIndex
    from evennia_ai.recall.store import is_damage, set_aside

    try:
        return RecallIndex(path)
    except StoreError as error:
        if not is_damage(error.__cause__):
            raise
    set_aside(path)
    return RecallIndex(path)


def _is_useless(opened: Any) -> bool:
    """Whether the file of an index made here is damaged or no longer the one under its name."""
    made, path, inode = _made.get("index_file", (None, None, 0))
    if made is not opened:
        return False  # put in place by a test or a game
    try:
        return made.damaged or bool(path.stat().st_ino != inode)
    except FileNotFoundError:
        return True


def ready() -> bool:
    """Whether everything slow was loaded and the assistants mended, so that ticks may think."""
    return bool(_made.get("ready"))


def warm_up() -> "Deferred[Any]":
    """Load what is slow on background threads; fires when it is there."""
    if ready():
        return succeed(None)
    _made["data_dir"] = conf.data_dir()
    name = conf.model_name()

    def load() -> None:
        index()
        counter_name(name)
        counter_for(name)
        counter_for("gpt-4")  # both vocabularies: an assistant may be given another model
        counter_for("gpt-4o")

    waiting = DeferredList([model().warm_up(), worker().submit(load)], consumeErrors=True)
    return waiting.addCallback(_warm)


def _warm(results: Any) -> None:
    from evennia.utils import logger

    for good, result in results:
        if not good and not result.check(CancelledError):
            logger.log_err(f"[ai] warming up: {result.getErrorMessage()}")


def cancel_calls() -> int:
    """Cancel all model calls in flight; returns how many there were."""
    return _made["model"].cancel_all() if "model" in _made else 0


def close() -> "Deferred[Any]":
    """Cancel calls and release files; fires when the memory store let go of its lock."""
    cancel_calls()
    waiting = []
    if "semantic" in _made:
        waiting.append(_made["semantic"].close())
    if "index" in _made:
        waiting.append(worker().submit(_made["index"].close))
    _made.pop("index", None)
    _made.pop("semantic", None)
    return DeferredList(waiting, consumeErrors=True)
