"""A game's own function for moderation, as `EVENNIA_AI_MODERATE` names it."""

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
    if "number" in text:
        return 5
    if "forbidden" in text:
        return None
    return text.replace("rude", "gentle")
