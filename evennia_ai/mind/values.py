"""What a mind is told of the game, and what it tells of itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class MindSettings:
    """What a mind must know of the game.

    Args:
        data_dir: Folder of derived data.
        model: The game's model.
        values: The package's settings that are set, by their names without ``EVENNIA_AI_``. They
            hold keys.
        game_dir: The game's folder, where its local models lie.
        log_dir: Where their log is written.
    """

    data_dir: str
    model: str
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    game_dir: str = ""
    log_dir: str = ""

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting, or the default."""
        return self.values.get(name, default)


@dataclass(frozen=True)
class MindStatus:
    """How a mind is.

    Args:
        mode: ``inline`` or ``process``.
        pid: The process it runs in; 0 if there is none.
        memory_mb: Resident memory of that process when it last answered.
        in_flight: Requests that wait for an answer.
        restarts: How often the process was started again after it died.
        trouble: What is wrong; empty if nothing is.
    """

    mode: str
    pid: int
    memory_mb: int
    in_flight: int
    restarts: int = 0
    trouble: str = ""

    def __str__(self) -> str:
        where = "in the Server" if self.mode == "inline" else f"process {self.pid or 'not running'}"
        parts = [where, f"{self.memory_mb} MB" if self.pid else ""]
        parts.append(f"{self.in_flight} requests in flight")
        if self.restarts:
            parts.append(f"restarted {self.restarts} times")
        return ", ".join(filter(None, (*parts, self.trouble)))


def memory_mb() -> int:
    """Resident memory of this process in MB; 0 where the system does not show it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
