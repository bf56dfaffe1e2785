"""Print free TCP ports of this machine: `python .ci/free_ports.py 3`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.e2e.ports import free_ports  # noqa: E402

print(*free_ports(int(sys.argv[1])))
