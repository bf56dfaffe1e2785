"""Called by Evennia when the server starts and stops.

Evennia imports this module in each of its commands as well, which call nothing of it: hence most
imports stand in the functions.
"""

import gc
from collections.abc import Iterator
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

# The imports take seconds and delay everything else: let players reconnect first.
WARM_UP_AFTER_S = 1.0
# How often what happened is stored, for the log that staff read.
WRITE_EVERY_S = 5.0
_warm_up: Any = None
_writing: Any = None


def at_server_init() -> None:
    """Note that this process is the Server."""
    from evennia_ai import services

    services.use(server=True)


def at_server_start() -> None:
    """Prepare the process and schedule `warm_up`; scripts repair themselves in their own hook."""
    import evennia
    from evennia.server.signals import SIGNAL_ACCOUNT_POST_LOGIN
    from twisted.internet import reactor
    from twisted.internet.task import LoopingCall

    global _warm_up, _writing
    # By default the connection with the Portal holds a small message back until the one before is
    # acknowledged: up to 40 ms, as much as a player feels when many talk.
    portal = getattr(evennia.EVENNIA_SERVER_SERVICE, "amp_protocol", None)
    if portal is not None and portal.transport is not None:
        portal.transport.setTcpNoDelay(True)
    SIGNAL_ACCOUNT_POST_LOGIN.connect(tell_of_listening, dispatch_uid="evennia_ai")
    _writing = LoopingCall(_write_events)
    writing = _writing.start(WRITE_EVERY_S, now=False)
    writing.addErrback(_log_failure, "storing what happened")
    _warm_up = reactor.callLater(WARM_UP_AFTER_S, warm_up)  # type: ignore[attr-defined]


def _write_events() -> None:
    from evennia_ai.assistant_script import write_events

    write_events()


def tell_of_listening(sender: Any, session: Any = None, **kwargs: Any) -> None:
    """Tell an account that logs in that assistants listen, unless the game does not want it."""
    from evennia_ai import conf

    if notice := conf.listening_notice():
        sender.msg(notice, session=session)


def warm_up() -> None:
    """Load slow libraries, then repair the assistants one after the other; ticks wait for it."""
    from evennia.utils import logger
    from twisted.internet.task import cooperate

    from evennia_ai import services
    from evennia_ai.assistant_script import all_scripts
    from evennia_ai.models import missing_tables
    from evennia_ai.privacy.requests import forget_queued

    if missing := ", ".join(missing_tables()):
        logger.log_err(f"[ai] the database lacks tables: run `evennia migrate` ({missing})")
    done = services.warm_up().addCallback(lambda _: cooperate(_repair_all()).whenDone())
    done.addErrback(_log_failure, "loading and repairs after the start")
    # What is loaded now stays. Python need not look through all of it again and again for garbage,
    # which takes a tenth of a second each time.
    done.addCallback(lambda _: gc.freeze())
    done.addCallback(lambda _: services.use(ready=True))
    done.addCallback(lambda _: forget_queued(all_scripts))
    done.addErrback(_log_failure, "forgetting players who asked for it")


def _log_failure(failure: Failure, what: str) -> None:
    from evennia.utils import logger

    if not failure.check(CancelledError):
        logger.log_err(f"[ai] {what}: {failure.getTraceback()}")


def _repair_all() -> Iterator[None]:
    """Repair all assistants, with a turn of the reactor between steps."""
    from evennia_ai.assistant_script import all_assistants
    from evennia_ai.language import tables

    yield from tables.warm()
    is_first = True  # a model's server keeps few prompts: others are read when a player comes
    for script in all_assistants():
        try:
            yield from script.history.warm()
            yield from script.obj.entities.warm()
            script.repair_when_ready()
            if script.enabled:
                trying = script.spend.try_out()
                if trying is None and is_first:
                    trying = script.read_ahead()
                if trying is not None:
                    trying.addErrback(_log_failure, "trying out a model")
                is_first = False
        except Exception as error:  # noqa: BLE001 - one broken assistant must not stop the others
            script.log_error("repairs after the start", error)
        yield


def at_server_stop() -> None:
    """Cancel calls and close files, however the server stops."""
    from evennia_ai import services
    from evennia_ai.assistant_script import all_assistants

    if _writing is not None and _writing.running:
        _writing.stop()
    if _warm_up is not None and _warm_up.active():
        _warm_up.cancel()
    for script in all_assistants():
        script.stop_thinking()
    _write_events()
    services.close()


def at_server_reload_stop() -> None:
    """Let calls to models go on while the Server restarts, if the mind is a process of its own."""
    from evennia_ai import services

    services.leave()


def at_server_cold_stop() -> None:
    """End the mind's process with the game."""
    from evennia_ai import services

    services.end()
