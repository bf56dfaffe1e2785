"""A model's process with `LoopbackServer` in place of llama.cpp: ``python -m tests.fake_engine``.

It takes the same arguments as `evennia_ai.llm_interaction.local_models.process`.
"""

import os
import sys
import time

from evennia_ai.llm_interaction.local_models import process
from tests.loopback import LoopbackServer, failure, text

GREETING = text("Good evening.", usage={"prompt_tokens": 9, "completion_tokens": 3})


def serve(job, weights):
    """Answer every request with a greeting."""
    if "broken" in job.model:
        raise ValueError("this model cannot be loaded")

    def answer(body):
        is_known = server.requests[-1].headers.get("authorization") == f"Bearer {job.key}"
        return GREETING if is_known else failure(401, "no key")

    server = LoopbackServer(answer).start()
    print("llama_model_loader: loaded", flush=True)
    return server.port


if __name__ == "__main__":
    if "mute" in sys.argv[2]:
        os._exit(9)
    code = process.main(engine=serve)
    time.sleep(0.1)
    os._exit(code)
