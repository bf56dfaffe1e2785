"""The timer of an assistant's script, where Evennia's own falls short."""

from django.db import transaction

from evennia_ai.protocol import Assistant


def retime(script: Assistant, interval_s: int) -> None:
    """Tick at another interval from now on; nothing happens to a timer that is stopped.

    Evennia stops a running timer to give it new values and leaves the script noted as stopped.
    Neither a reload nor a start after a crash would run its timer again, nor save what it heard.
    """
    if not script.pk or not script.is_active or script.interval == interval_s:
        return
    with transaction.atomic():
        script.start(interval=interval_s, start_delay=interval_s)
        script.is_active = True


def restart_timer(script: Assistant) -> None:
    """Start a timer that a crash left standing, though the script counts as active.

    One that was paused by hand stays paused.
    """
    running = script.ndb._task is not None and script.ndb._task.running
    if script.is_active and not running and not script.db._manually_paused:
        script.start()
