"""A talk with a real model: our prompt in a started game beside the plainest prompt.

    python -m benchmarks.conversation http://127.0.0.1:8080/v1 [--lines FILE] [--runs 5] [--pairs F]

The server must speak OpenAI's protocol; the model is its first one. The path of a GGUF file in its
place is served for the run, with the extra `bench`. Two players say the lines of
`conversation.txt` (or FILE: rows `Alice: text`) in a started demo, each as soon as the one before
is answered. The same lines go to the same model twice in the plainest form: persona and room, four
example exchanges, the talk as turns. Printed are seconds by form, the ratio of their medians, and
the rows. With `--pairs` a file for readers is written: for each line two answers, unmarked and in
random order (ours beside plain, plain beside plain); the key is in the printed rows.
"""

import argparse
import json
import random
import re
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.figures import show, spread
from benchmarks.local_server import serving
from evennia_ai.language.tables import DEFAULT, tables
from tests.e2e.game import Game
from tests.e2e.telnet import Telnet

LINES = Path(__file__).with_name("conversation.txt")
WAIT_S, QUIET_S = 75.0, 1.5
PERSONA = "You are the keeper of a tavern, warm, a little dry, fond of old stories."
RULE = (
    "Several guests talk with you; each line begins with the guest's name. Answer the last line in "
    "one or two short sentences, as Aria."
)
EXAMPLES = (
    ("Wendel: Evening, Aria. What a storm!", "Evening, Wendel. Hang your cloak by the fire."),
    ("Wendel: Aria, my goat ran off again.", "Again? Up to the chapel, I suppose?"),
    ("Ottilie: Aria, what is the matter with Wendel?", "His goat ran off, Ottilie. He told me."),
    ("Ottilie: Aria, has Wendel any children?", "I couldn't say. He never told me."),
)
THINKING = tables()[DEFAULT].get("notices", "thinking")  # an emote that is no answer
OWN = re.compile(r"(?m)^Aria (?:says(?: to \w+)?, \"(?P<said>[^\"]*)\"|(?P<posed>.*))$")


def answer(base: str, model: str, messages: list[dict[str, str]]) -> tuple[str, float]:
    """One answer of the model, and the seconds it took."""
    body = {"model": model, "messages": messages, "max_tokens": 120, "temperature": 0.5}
    request = urllib.request.Request(
        f"{base}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer x"},
    )
    begun = time.monotonic()
    with urllib.request.urlopen(request, timeout=300) as response:
        reply = json.load(response)
    text = reply["choices"][0]["message"]["content"] or ""
    return text.strip(), time.monotonic() - begun


def play_plain(base: str, model: str, lines: list[str], room: str) -> list[tuple[str, float]]:
    """The answers to the lines in the plainest form."""
    system = f"You are Aria. {PERSONA}\n\nThe room: {room}\n\n{RULE}"
    messages = [{"role": "system", "content": system}]
    for asked, said in EXAMPLES:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    answers = []
    for line in lines:
        messages.append({"role": "user", "content": line})
        said, seconds = answer(base, model, messages)
        answers.append((said, seconds))
        messages.append({"role": "assistant", "content": said.removeprefix("Aria:").strip()})
    return answers


def answers_in(shown: str) -> list[str]:
    """What Aria says and poses in what a player saw, but for the sign that she thinks."""
    found = [(match["said"], match["posed"]) for match in OWN.finditer(shown)]
    return [said or f"*{posed}*" for said, posed in found if said or posed != THINKING]


def play_ours(game: Game, lines: list[str]) -> list[tuple[str, float]]:
    """What Aria says and poses to each line in the game."""
    players: dict[str, Telnet] = {}
    for name in dict.fromkeys(line.partition(": ")[0] for line in lines):
        players[name] = game.player(name, timeout_s=WAIT_S)
    answers = []
    for line in lines:
        name, _, text = line.partition(": ")
        player = players[name]
        player.drain(0.2)
        begun = time.monotonic()
        player.send(f"say {text}")
        shown, first, ends = "", 0.0, begun + WAIT_S
        while time.monotonic() < ends:
            shown += player.drain(0.05)
            if answers_in(shown):
                first = first or time.monotonic() - begun
                shown += player.drain(QUIET_S)
                break
        answers.append((" ".join(answers_in(shown)), first or WAIT_S))
    for player in players.values():
        player.close()
    return answers


def first_model(base: str) -> str:
    """The name of the server's first model."""
    with urllib.request.urlopen(f"{base}/models", timeout=30) as response:
        return str(json.load(response)["data"][0]["id"])


def measure(base: str, lines: list[str], seed: int) -> list[dict[str, Any]]:
    """One run: a row for each line."""
    model = first_model(base)
    env = {"MODEL": f"openai/{model}", "API_BASE": base, "API_KEY": "x"}
    with Game(env={f"EVENNIA_AI_LLM_{name}": value for name, value in env.items()}) as game:
        persona = PERSONA.replace('"', "'")
        admin = game.admin(60)
        admin.ask(f"aiconfig Aria persona = {persona}", "persona")
        room = admin.ask("look", r"Exits|You see").splitlines()[1]
        admin.ask("home", r"Limbo|Gilded|home")
        admin.close()
        ours = play_ours(game, lines)
        game.stop()
    plain, again = (play_plain(base, model, lines, room) for _ in range(2))
    rng, rows = random.Random(seed), []
    for at, line in enumerate(lines):
        row = {"line": line, "ours": ours[at][0], "plain": plain[at][0], "again": again[at][0]}
        row |= {"ours_s": round(ours[at][1], 1), "plain_s": round(plain[at][1], 1)}
        row["pairs"] = [rng.sample(pair, 2) for pair in (("ours", "plain"), ("plain", "again"))]
        rows.append(row)
    return rows


def pairs_text(rows: list[dict[str, Any]]) -> str:
    """The pairs for readers: the lines so far, then two answers, A and B, by whom is not said."""
    shown = []
    for number, row in enumerate(rows):
        for part, (first, second) in enumerate(row["pairs"]):
            shown.append(f"{number}.{part} {row['line']}\n  A: {row[first]}\n  B: {row[second]}")
    return "\n\n".join(shown) + "\n"


def main() -> None:
    """Read the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="its address, or a GGUF file")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=Path)
    asked = parser.parse_args()
    lines = [row.strip() for row in asked.lines.read_text("utf-8").splitlines() if row.strip()]
    with serving(asked.server) as base:
        rows = [row for n in range(asked.runs) for row in measure(base, lines, asked.seed + n)]
    if asked.pairs:
        asked.pairs.write_text(pairs_text(rows), "utf-8")
    seconds = {key: spread([row[f"{key}_s"] for row in rows], 1) for key in ("ours", "plain")}
    silent = sum(not row["ours"] for row in rows)
    ratio = round(seconds["ours"]["median"] / max(0.1, seconds["plain"]["median"]), 2)
    show({"seconds": seconds, "ratio": ratio, "silent": silent, "rows": rows})


if __name__ == "__main__":
    main()
