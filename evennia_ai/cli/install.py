"""Add the package to an existing game, or take it out: three edits, made with ``--apply``.

The files belong to the user, so they are parsed. If one cannot be understood, the installer names
the line to add by hand and changes no file. What stands in any of the game's modules counts as
added.
"""

import ast
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.errors import ConfigError

APP = "evennia_ai"
APP_LINE = 'INSTALLED_APPS += ["evennia_ai"]'
APPS_LINE = 'INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]'
IMPORT_LINE = "import evennia_ai.commands"
CMDSET_LINE = "self.add(evennia_ai.commands.AssistantCmdSet)"
URL_LINE = 'path("ai/", include("evennia_ai.web.urls"))'
URLS_LINE = f"urlpatterns = [{URL_LINE}, *urlpatterns]"
INCLUDE_LINE = "from django.urls import include, path  # for evennia_ai"
BACKUP = ".before-evennia-ai"
# Where Evennia's template has them.
CMDSET, URLS = "commands.default_cmdsets.CharacterCmdSet", "web.urls"


@dataclass(frozen=True)
class Edit:
    """A file's text before and after."""

    path: Path
    before: str
    after: str


def install(
    game_dir: str | os.PathLike[str], apply: bool = False, say: Callable[[str], None] = print
) -> None:
    """Show the edits a game needs, or make them. Idempotent.

    Raises `ConfigError` if a file is missing or cannot be understood; none was changed then.
    """
    folder = Path(game_dir)
    for setting, usual in (("CMDSET_CHARACTER", CMDSET), ("ROOT_URLCONF", URLS)):
        value = _setting(folder, setting, usual)
        if value.startswith("evennia."):
            remedy = f'Set {setting} = "{usual}", or another one of the game, in the settings.'
            raise ConfigError(f"`{setting}` is Evennia's own `{value}`; nothing changed. {remedy}")
    edits = [
        _edit(path, change, line)
        for path, change, line, mark in _places(folder)
        if not _is_added(folder, mark)
    ]
    if not edits:
        say("evennia_ai is already installed in this game: nothing to do.")
    elif _shown(edits, folder, "install", apply, say):
        for edit in edits:
            backup = _backup(edit)
            _replace(edit)
            say(f"Changed {edit.path.relative_to(folder)}; the old text is in {backup.name}")
        say("Now run `evennia migrate` and `evennia reload`, then `evennia ai doctor`.")


def _shown(
    edits: list[Edit], folder: Path, command: str, apply: bool, say: Callable[[str], None]
) -> bool:
    """Show edits; returns whether to make them. `ConfigError` for a file that cannot be written."""
    for edit in edits:
        name = edit.path.relative_to(folder).as_posix()
        names = (f"{name} (now)", f"{name} (with evennia_ai)")
        before, after = edit.before.splitlines(), edit.after.splitlines()
        say("\n".join(difflib.unified_diff(before, after, *names, lineterm="")) + "\n")
    if not apply:
        say(f"Nothing was changed. To make these edits: evennia-ai {command} --apply")
    for path in (edit.path.resolve() for edit in edits if apply or command == "uninstall"):
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            hint = "Make it writable, or make the edits by hand."
            raise ConfigError(f"`{path}` cannot be written; nothing was changed. {hint}")
    return apply


def uninstall(
    game_dir: str | os.PathLike[str], apply: bool = False, say: Callable[[str], None] = print
) -> None:
    """Show the edits that take the package out of a game, or make them. Idempotent.

    A file that is as the installer left it becomes what it was before; of others the added lines
    are taken out. Raises `ConfigError` if more of the package is left in one of the files.
    """
    folder = Path(game_dir)
    edits = []
    for path, change, line, _ in _places(folder):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if APP in text:
            edits.append(Edit(path, text, _without_us(path, text, change, line)))
    if not edits:
        say("evennia_ai is not in this game's files.")
    elif _shown(edits, folder, "uninstall", apply, say):
        for edit in edits:
            _replace(edit)
            for backup in _backups(edit.path):
                backup.unlink()
            say(f"Changed {edit.path.relative_to(folder)}")


def is_installed(folder: Path) -> bool:
    """Whether the settings of a game name the app."""
    return _is_added(folder, APP)


def _places(folder: Path) -> list[tuple[Path, Callable[[str], str], str, str]]:
    """The files to edit, as the settings name them; how; the line to add, and a mark of it."""
    module, _, name = _setting(folder, "CMDSET_CHARACTER", CMDSET).rpartition(".")
    cmdset = _with_class(folder, _file(folder, module), name)
    urls = _file(folder, _setting(folder, "ROOT_URLCONF", URLS))
    return [
        (folder / "server" / "conf" / "settings.py", with_app, APP_LINE, APP),
        (cmdset, lambda text: with_cmdset(text, name), CMDSET_LINE, "AssistantCmdSet"),
        (urls, with_url, URL_LINE, "evennia_ai.web.urls"),
    ]


def _with_class(folder: Path, path: Path, name: str) -> Path:
    """The file that defines a class: this one, or another of the game if this one imports it."""
    imports = re.search(rf"\b{name}\b|import \*", _text(path))
    paths = (path, *sorted(folder.rglob("*.py"))) if imports else ()
    defining = (each for each in paths if re.search(rf"^class {name}\b", _text(each), re.M))
    return next(defining, path)


def _text(path: Path) -> str:
    """What a file holds, as far as it can be read."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _file(folder: Path, module: str) -> Path:
    """The file of a module of the game, or of a package's own."""
    path = folder.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _setting(folder: Path, name: str, default: str) -> str:
    """A setting's text, as the settings assign it, or a module beside them; else `default`."""
    conf = folder / "server" / "conf"
    for path in (conf / "settings.py", *sorted(conf.rglob("*.py"))):
        if values := re.findall(rf"^{name} *= *[\"']([\w.]+)[\"']", _text(path), re.M):
            return values[-1]
    return default


def _is_added(folder: Path, mark: str) -> bool:
    """Whether one of the game's modules has what an edit would add, not only as an import."""
    within = folder / "server" / "conf" if mark == APP else folder
    added = rf"^(?!\s*(?:from|import)\b)[^#\n]*[\"'.\s(]{re.escape(mark)}(\.apps\.\w+)?[\"'\s(),]"
    paths = (path for path in within.rglob("*.py") if not path.name.startswith("test"))
    return any(re.search(added, _text(path), re.M) for path in paths)


def _without_us(path: Path, text: str, change: Callable[[str], str], line: str) -> str:
    for backup in _backups(path):
        before = backup.read_text(encoding="utf-8")
        if change(before.replace("\r\n", "\n")) == text.replace("\r\n", "\n"):
            return before
    ours = {APP_LINE, APPS_LINE, IMPORT_LINE, CMDSET_LINE, INCLUDE_LINE, f"{URL_LINE},", URLS_LINE}
    after = "".join(row for row in text.splitlines(keepends=True) if row.strip() not in ours)
    if APP in re.sub(r"#.*", "", after):
        number = next(n for n, row in enumerate(text.splitlines(), 1) if APP in row)
        raise ConfigError(
            f"`{path}`, line {number}: take `{APP}` out by hand, then run this again."
        )
    return after


def _backups(path: Path) -> list[Path]:
    return sorted(path.resolve().parent.glob(f"{path.name}{BACKUP}*"))


def with_app(text: str) -> str:
    """Settings with the app in `INSTALLED_APPS`."""
    if not re.search(r"^(INSTALLED_APPS\b|\s*from .* import \*)", text, re.M):
        raise ValueError("it neither takes Evennia's defaults nor sets `INSTALLED_APPS`")
    line = APPS_LINE if re.search(r"^INSTALLED_APPS\s*=", text, re.M) else APP_LINE
    return _with_lines(text, len(text.splitlines()), ["", line])


def with_cmdset(text: str, name: str = "CharacterCmdSet") -> str:
    """Command sets with the assistants' added to what characters can do."""
    tree = ast.parse(text)
    cmdsets = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name]
    if not cmdsets:
        raise ValueError(f"it has no class `{name}`")
    methods = [
        part
        for part in cmdsets[0].body
        if isinstance(part, ast.FunctionDef) and part.name == "at_cmdset_creation"
    ]
    if not methods:  # it has its parent's
        start, last = cmdsets[0].body[0], cmdsets[0].body[-1]
        if start.lineno == cmdsets[0].lineno:
            raise ValueError(f"`{name}` is written on one line")
        indent = " " * start.col_offset
        rows = ["", "def at_cmdset_creation(self):", "    super().at_cmdset_creation()"]
        rows = [f"{indent}{row}".rstrip() for row in rows]
        return with_cmdset(_with_lines(text, last.end_lineno or 0, rows), name)
    method = methods[0]
    first = method.body[0]
    if first.lineno == method.lineno:
        raise ValueError(f"`{name}.at_cmdset_creation` is written on one line")
    indent = " " * first.col_offset
    end, lines = method.end_lineno, text.splitlines()
    while end < len(lines) and lines[end].startswith(indent + "#"):  # comments of its body
        end += 1
    return _with_lines(text, end, [indent + IMPORT_LINE, indent + CMDSET_LINE])


def with_url(text: str) -> str:
    """URL patterns with the assistants' pages under ``ai/``."""
    if not re.search(r"^(urlpatterns\b|from .* import .*(\*|\burlpatterns\b))", text, re.M):
        raise ValueError("it sets no `urlpatterns`")
    has_both = re.search(r"^from django\.urls import (?=.*\binclude\b).*\bpath\b", text, re.M)
    rows = [URLS_LINE] if has_both else [INCLUDE_LINE, URLS_LINE]
    return _with_lines(text, len(text.splitlines()), ["", *rows])


def _edit(path: Path, change: Callable[[str], str], line: str) -> Edit:
    """The planned edit of one file; its line ends stay as they are."""
    try:
        raw = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = f"`{path}` cannot be read ({error}): add this line by hand: {line}"
        raise ConfigError(why) from error
    text = raw.replace("\r\n", "\n")
    try:
        after = change(text)
        ast.parse(after)
    except (SyntaxError, ValueError) as error:
        why = f"`{path}` cannot be understood ({error}); nothing was changed."
        raise ConfigError(f"{why} Add this line by hand: {line}") from error
    return Edit(path, raw, after.replace("\n", "\r\n") if "\r\n" in raw else after)


def _backup(edit: Edit) -> Path:
    """Copy the old file; returns the copy's path."""
    path = edit.path.resolve()
    backup, number = path.with_name(path.name + BACKUP), 2
    while backup.exists():
        backup, number = path.with_name(f"{path.name}{BACKUP}-{number}"), number + 1
    shutil.copy2(path, backup)
    return backup


def _replace(edit: Edit) -> None:
    """Put the new text in place by a rename."""
    path = edit.path.resolve()
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with open(handle, "w", encoding="utf-8", newline="") as file:
        file.write(edit.after)
    shutil.copymode(path, draft)
    os.replace(draft, path)


def _with_lines(text: str, after_line: int, new: list[str]) -> str:
    """Text with lines put in after line number `after_line` (0 for the top)."""
    lines = text.splitlines()
    return "\n".join([*lines[:after_line], *new, *lines[after_line:]]) + "\n"
