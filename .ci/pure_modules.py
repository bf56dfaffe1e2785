"""Print the files of the pure modules, which .importlinter lists, as coverage wants them."""

import configparser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def pure_modules() -> list[str]:
    """Dotted names of the pure modules and packages."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    return contracts["importlinter:contract:pure"]["source_modules"].split()


def pattern(module: str) -> str:
    """Coverage's pattern for a module's file, or for all files of a package."""
    path = module.replace(".", "/")
    return f"{path}/*" if (ROOT / path).is_dir() else f"{path}.py"


if __name__ == "__main__":
    print(",".join(pattern(module) for module in pure_modules()))
