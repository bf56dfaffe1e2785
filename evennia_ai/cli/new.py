"""Make a new game folder: Evennia's own template, overlaid with this package's.

The installed Evennia supplies every module that its version needs; our template holds only the
differences, so it serves several versions of Evennia.
"""

import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

from evennia_ai.errors import ConfigError

TEMPLATE = "game_template"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RESERVED = {"evennia", "evennia_ai", "django", "twisted", "server", "typeclasses", "world"}
_SERVERNAME = 'SERVERNAME = "The Gilded Lantern"'


def create_game(folder: str | os.PathLike[str]) -> Path:
    """Make a game folder that is ready to be migrated and started; returns its absolute path.

    The last part of the path becomes the game's name. The folder must not exist, or be empty;
    otherwise `ConfigError`. It is filled under another name and then renamed, so an interrupted run
    leaves no incomplete game.
    """
    target = Path(os.path.abspath(folder))
    if not _NAME.fullmatch(target.name) or target.name.lower() in _RESERVED:
        raise ConfigError(
            f"`{target.name}` cannot be a game's name: start with a letter, use only letters, "
            "digits, `_` and `-`, and avoid names of Python packages the game needs."
        )
    is_other = target.is_file() or target.is_symlink()
    if is_other or (target.is_dir() and any(target.iterdir())):
        what = "is not a folder" if is_other else "is not empty"
        start = f", or type: evennia-ai start {folder}" if is_game(target) else "."
        raise ConfigError(f"`{folder}` already exists and {what}: choose another name{start}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as base:
            draft = Path(base, target.name)
            _fill(draft, target.name)
            if target.exists():
                target.rmdir()
            draft.rename(target)
    except OSError as error:
        raise ConfigError(f"`{target}` cannot be written: {error.strerror}.") from error
    return target


def is_game(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is an Evennia game."""
    return (Path(folder) / "server" / "conf" / "settings.py").is_file()


def game_folder(folder: str | os.PathLike[str]) -> Path:
    """The absolute path of a game's folder; `ConfigError` if there is no game in it."""
    if not is_game(folder):
        what = f"`{folder}` is not a game folder (it has no server/conf/settings.py)"
        raise ConfigError(f"{what}: name one, or make one with `evennia-ai new <folder>`.")
    return Path(folder).resolve()


def _fill(draft: Path, name: str) -> None:
    import evennia

    # Ours is inside an installed package, next to it in a source tree.
    package = Path(__file__).resolve().parents[1]
    ours = next(filter(is_game, (package / TEMPLATE, package.parent / TEMPLATE)))
    # Where Evennia runs without a game, as in tests, it and we write into its own template.
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", "*.log*", "*.db3*", "ai_*")
    for source in (Path(evennia.__file__).parent / TEMPLATE, ours):
        shutil.copytree(source, draft, ignore=unwanted, dirs_exist_ok=True)
    (draft / "gitignore").rename(draft / ".gitignore")
    settings = draft / "server" / "conf" / "settings.py"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace(_SERVERNAME, f'SERVERNAME = "{name}"'), encoding="utf-8")
    secret = draft / "server" / "conf" / "secret_settings.py"
    secret.write_text(_SECRET.format(key=secrets.token_urlsafe(48)), encoding="utf-8")
    secret.chmod(0o600)


_SECRET = '''"""Settings that must not be shared: they override those in settings.py."""

# Signs cookies and sessions. Generated for this game; a new key logs everybody out.
SECRET_KEY = "{key}"
'''
