"""Caches of a process that hold texts which people said.

They belong to functions and are of a bounded size. What the package makes of its own data, as
tables of languages, is kept in unbounded ones, which stay.
"""

import sys
from functools import _lru_cache_wrapper


def clear_caches() -> None:
    """Empty the bounded caches of all modules of the package in this process."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == __name__.partition(".")[0]:
            for value in list(vars(module).values()):
                if type(value) is _lru_cache_wrapper and value.cache_parameters()["maxsize"]:
                    value.cache_clear()
