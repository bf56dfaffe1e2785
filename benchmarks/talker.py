"""A model for benchmarks that costs next to nothing: an OpenAI-compatible local server.

After half a second it answers as a model would: with a reply, sometimes with a journal entry first;
with facts when asked to extract; with a shortened text when asked to summarise.

    python -m benchmarks.talker    # prints its port first
"""

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from evennia_ai.history.messages import MESSAGES_LABEL
from tests.loopback import Answer, LoopbackServer, call, calls, text

EXTRACTING = {"noop", "add_journal_entry", "update_entity_observation"}
# One reply in this many writes to the journal first.
JOURNALS_EVERY = 4
FACTS = 3
DELAY_S = 0.5
SUMMARY_WORDS = 300
# About so many characters are a token; an exact count would take time from what is measured.
TOKEN_CHARS = 4


def respond(body: Mapping[str, Any], number: int) -> Answer:
    """Return the answer to a request.

    Args:
        body: The request.
        number: Number of earlier requests.
    """
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    last = body["messages"][-1]
    if MESSAGES_LABEL in str(last["content"]):
        return text(" ".join(str(last["content"]).split()[-SUMMARY_WORDS:]))
    if tools and tools <= EXTRACTING:
        return calls(call("noop")) if last["role"] == "tool" else calls(*_facts(number))
    if not tools or last["role"] == "tool" or number % JOURNALS_EVERY:
        return text(f"That is good to know, I shall remember it: it is the {number}th thing today.")
    return calls(_facts(number)[0])


def _facts(number: int) -> list[dict[str, Any]]:
    fact = "Fact {}-{}: Tamsin owes Osric silver coins and they meet at the Mill Bridge."
    return [
        call("add_journal_entry", {"content": fact.format(number, part)}) for part in range(FACTS)
    ]


def counted(body: Mapping[str, Any], number: int) -> Answer:
    """The answer to a request, after a while, with about so many tokens as it had."""
    usage = {"prompt_tokens": len(str(body)) // TOKEN_CHARS, "completion_tokens": 40}
    return replace(respond(body, number), usage=usage, delay_s=DELAY_S)


@contextmanager
def running() -> Iterator[str]:
    """The server in a process of its own; gives its address."""
    command = [sys.executable, "-m", "benchmarks.talker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.kill()


def main() -> None:
    """Serve until killed."""
    numbers = itertools.count()
    server = LoopbackServer(lambda body: counted(body, next(numbers)))
    print(server.start().port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
