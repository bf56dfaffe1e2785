"""The header of a GGUF file: what a model needs to run.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import functools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evennia_ai.errors import LocalModelError

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
