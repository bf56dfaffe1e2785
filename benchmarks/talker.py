"""A model for benchmarks that costs next to nothing: an OpenAI-compatible local server.

After half a second it answers as a model would: with a reply, sometimes with a journal entry first;
with facts when asked to extract; with a shortened text when asked to summarise. A reply repeats the
marks, such as ``(0-7)``, of the lines that it answers.

    python -m benchmarks.talker    # prints its port first

With `--slots` it answers so many requests at a time, as a server of a model does. With `--exact`
it counts tokens as OpenAI does, those that its cache would hold among them: prompts that begin as
one of the last few of the same character and tools did, in steps of 128 tokens, from 1,024 on.
`/figures` tells how many requests it answered and how many waited for a slot.
"""

import argparse
import json
import os.path
import re
import subprocess
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.figures import asked_lines
from evennia_ai.history.messages import MESSAGES_LABEL
from tests.loopback import Answer, LoopbackServer, call, calls, count_tokens, text

EXTRACTING = {"noop", "add_journal_entry", "update_entity_observation"}
# One reply in this many writes to the journal first.
JOURNALS_EVERY = 4
FACTS = 3
DELAY_S = 0.5
SUMMARY_WORDS = 300
# About so many characters are a token; an exact count would take time from what is measured.
TOKEN_CHARS = 4
MARK = re.compile(r"\(\d+-\d+\)")
# A cache holds prompts from a length on, in steps; each new one is compared with so many.
CACHED_FROM, CACHED_STEP, COMPARED = 1024, 128, 4


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
        asked = [*body["messages"]]
        while asked[-1]["role"] != "user":  # calls of this turn, and what they gave
            asked.pop()
        marks = " ".join(mark for _, said in asked_lines(asked) for mark in MARK.findall(said))
        said = f"That is good to know, I shall remember it: it is the {number}th thing today."
        return text(f"{said} {marks}".strip())
    return calls(_facts(number)[0])


def _facts(number: int) -> list[dict[str, Any]]:
    fact = "Fact {}-{}: Tamsin owes Osric silver coins and they meet at the Mill Bridge."
    return [
        call("add_journal_entry", {"content": fact.format(number, part)}) for part in range(FACTS)
    ]


class Talker:
    """The server, its slots, and what its cache would hold.

    Args:
        slots: How many requests it answers at a time; 0 for any number.
        exact: Whether tokens are counted, not estimated.
    """

    def __init__(self, slots: int = 0, exact: bool = False, port: int = 0):
        self._slots = threading.Semaphore(slots) if slots else None
        self._exact = exact
        self._prompts = defaultdict[str, deque[str]](lambda: deque(maxlen=COMPARED))
        self.figures = {"requests": 0, "waited": 0}
        self.server = LoopbackServer(self.answer, port)
        self.server.pages["/figures"] = self.figures

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """Answer a request once a slot is free."""
        self.figures["requests"] += 1
        answer = replace(respond(body, len(self.server.requests)), usage=self._usage(body))
        if self._slots is None:
            return replace(answer, delay_s=DELAY_S)
        if not self._slots.acquire(blocking=False):
            self.figures["waited"] += 1
            self._slots.acquire()
        threading.Timer(DELAY_S, self._slots.release).start()
        return replace(answer, delay_s=DELAY_S)

    def _usage(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if not self._exact:
            return {"prompt_tokens": len(str(body)) // TOKEN_CHARS, "completion_tokens": 40}
        tokens = count_tokens(body)
        first, *rest = body["messages"]
        prompts = self._prompts[json.dumps([first, body.get("tools")])[:2000]]
        prompt = json.dumps([body.get("tools"), first, *rest])
        same = max((len(os.path.commonprefix((p, prompt))) for p in prompts), default=0)
        prompts.append(prompt)
        cached = int(tokens * same / len(prompt)) // CACHED_STEP * CACHED_STEP
        cached = cached if cached >= CACHED_FROM else 0
        return {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=0)
    parser.add_argument("--exact", action="store_true")
    talker = Talker(**vars(parser.parse_args()))
    print(talker.server.start().port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
