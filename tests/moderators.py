"""A game's own function for moderation, as `EVENNIA_AI_MODERATE` names it."""

import asyncio
import threading

# What the function was called with, and on which threads.
asked, threads = [], set()
# While it is clear, the function waits.
may_answer = threading.Event()
may_answer.set()


def moderate(text, about):
    """Refuses `forbidden`, replaces `rude`, and breaks at `broken`."""
    asked.append((text, about))
    threads.add(threading.current_thread())
    may_answer.wait(10)
    if "broken" in text:
        raise ValueError(text)
    if "cancelled" in text:
        raise asyncio.CancelledError
    if "stock" in text:
        return "Let us not speak of that here, there is no good in it."
    if "number" in text:
        return 5
    if "forbidden" in text:
        return None
    return text.replace("rude", "gentle")
