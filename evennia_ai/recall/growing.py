"""Arrays that grow, in memory or mapped from a file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST_ROWS = 1_024


class Growing:
    """A numpy array that grows; of one dimension without a `width`."""

    def __init__(self, dtype: Any, width: int = 0):
        self._shape = (width,) if width else ()
        self._data: NDArray[Any] = np.zeros((_FIRST_ROWS, *self._shape), dtype=dtype)
        self._size = 0
        self._path: Path | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """The rows so far; a view, valid until the next `grow`."""
        return self._data[: self._size]

    @property
    def memory(self) -> int:
        """Bytes that the operating system cannot take back."""
        return 0 if self._path else self._data.nbytes

    def grow(self, count: int) -> NDArray[Any]:
        """Append rows of zeros and return them, to be filled; `OSError` if the disk is full."""
        end = self._size + count
        if end > len(self._data):
            self._enlarge(max(end, len(self._data) * 9 // 8 if self._path else 2 * end))
        fresh = self._data[self._size : end]
        fresh[:] = 0
        self._size = end
        return fresh

    def extend(self, values: Any) -> None:
        """Append rows."""
        self.grow(len(values))[:] = values

    def _enlarge(self, rows: int) -> None:
        if self._path:
            try:
                self._data = _mapped(self._path, self._data.dtype, (rows, *self._shape))
                return
            except OSError:
                self._path = None  # the disk is full: in memory until the next `write_to`
        grown = np.zeros((rows, *self._shape), dtype=self._data.dtype)
        grown[: self._size] = self.values
        self._data = grown

    def write_to(self, path: Path) -> None:
        """Write the rows to the disk, and keep them in this file from now on.

        `OSError` if the disk is full; the rows are in memory then.
        """
        if self._path != path:
            path.unlink(missing_ok=True)
            data = _mapped(path, self._data.dtype, (max(1, self._size), *self._shape))
            data[: self._size] = self.values
            self._data, self._path = data, path
        base: Any = self._data
        while not isinstance(base, np.memmap):
            base = base.base
        base.flush()

    def read_from(self, path: Path, size: int) -> None:
        """Take the first rows of a file; `OSError` or `ValueError` if it has not so many."""
        data: NDArray[Any] = np.memmap(path, dtype=self._data.dtype, mode="r+")
        data = data[: len(data) // _width(self._shape) * _width(self._shape)]
        rows = np.asarray(data.reshape(-1, *self._shape))
        if len(rows) < size:
            raise ValueError(f"`{path}` has {len(rows)} rows instead of {size}.")
        self._data, self._size, self._path = rows, size, path


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(f"{path.name}.new")
    with open(fresh, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _mapped(path: Path, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """A file mapped into memory, enlarged if need be."""
    _reserve(path, int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r+", shape=shape))  # faster to slice


def _reserve(path: Path, size: int) -> None:
    """Give a file its bytes on the disk: a write to a page that has none would kill the process."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        missing = size - os.fstat(handle).st_size
        if missing <= 0:
            return
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, size - missing, missing)
        else:
            os.lseek(handle, 0, os.SEEK_END)
            while missing > 0:
                missing -= os.write(handle, bytes(min(missing, 1 << 20)))
        os.fsync(handle)
    finally:
        os.close(handle)


def _width(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1
