"""Small GGUF files: a header as real models have it, and no weights."""

import importlib.machinery
import struct
import types
from pathlib import Path

_U32, _TEXT, _LIST = 4, 8, 9


def text(value):
    """A text of the format."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(name, value):
    """A name and its value: text, a number, or a list of numbers."""
    if isinstance(value, str):
        return text(name) + struct.pack("<I", _TEXT) + text(value)
    if isinstance(value, list):
        numbers = b"".join(struct.pack("<I", each) for each in value)
        return text(name) + struct.pack("<IIQ", _LIST, _U32, len(value)) + numbers
    return text(name) + struct.pack("<II", _U32, value)


def header(**changes):
    """The bytes of a small model's header; None leaves an entry out."""
    values = {
        "general.architecture": "llama",
        "llama.context_length": 8192,
        "llama.block_count": 30,
        "llama.embedding_length": 576,
        "llama.attention.head_count": 9,
        "llama.attention.head_count_kv": 3,
        "tokenizer.ggml.model": "gpt2",
        **changes,
    }
    entries = [entry(name, value) for name, value in values.items() if value is not None]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


def write_model(path: Path, **changes):
    """Write a file that can be described but not run; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header(**changes))
    return path


def engine_module():
    """A module that stands for the installed library, where only its presence counts."""
    module = types.ModuleType("xllamacpp")
    module.__spec__ = importlib.machinery.ModuleSpec("xllamacpp", None)
    return module
