"""Add the package to an existing game, or take it out: three edits, made with ``--apply``.

The files belong to the user, so they are parsed. If one cannot be understood, the installer names
the line to add by hand and changes no file. A line that stands in another of the game's modules
counts as added.
"""

import ast
import difflib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
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
_IMPORT = re.compile(rf"\s*(from|import)\s+{APP}\b")
_ANY_USE = re.compile(rf"[^#]*\b{APP}\b")
# Where Evennia's template has them.
CMDSET, URLS = "commands.default_cmdsets.CharacterCmdSet", "web.urls"


@dataclass(frozen=True)
class Edit:
    """A file's text before and after; the two are equal if there is nothing to do."""

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
        if not _is_elsewhere(folder, path, mark)
    ]
    edits = [edit for edit in edits if edit.before != edit.after]
    if not edits:
        say(
            "evennia_ai is already installed in this game: nothing to do. After an update run "
            "`evennia migrate`."
        )
    elif _shown(edits, folder, "install", apply, say):
        for edit in edits:
            shutil.copy2(edit.path, backup := _backup_of(edit.path))
            _replace(edit)
            say(f"Changed {edit.path.relative_to(folder)}; the old text is in {backup.name}")
        say(
            "Now run `evennia migrate`, then `evennia reload` (`evennia start` if the game does not"
        )
        say("run), and `evennia ai doctor`. Then, in the game: ai/new")


def _shown(
    edits: list[Edit], folder: Path, command: str, apply: bool, say: Callable[[str], None]
) -> bool:
    """Show edits; returns whether to make them. `ConfigError` for a file that cannot be written."""
    for edit in edits:
        name = edit.path.relative_to(folder).as_posix()
        names = (f"{name} (now)", f"{name} (after {command})")
        before, after = edit.before.splitlines(), edit.after.splitlines()
        say("\n".join(difflib.unified_diff(before, after, *names, lineterm="")) + "\n")
    if not apply:
        where = os.path.relpath(folder)
        say(f"Nothing was changed. To make these edits: evennia-ai {command} {where} --apply")
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
    are taken out. Raises `ConfigError`, with every line, if the game uses the package elsewhere.
    """
    folder = Path(game_dir)
    edits = []
    for path, change, line, _ in _places(folder):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if APP in text:
            edits.append(Edit(path, text, _without_us(path, text, change, line)))
    if by_hand := _left_over(folder, {edit.path: edit.after for edit in edits}):
        rows = "\n  ".join(by_hand)
        raise ConfigError(f"take `{APP}` out by hand here, then run this again:\n  {rows}")
    if not edits:
        say("evennia_ai is not in this game's files.")
    elif _shown(edits, folder, "uninstall", apply, say):
        for edit in edits:
            _replace(edit)
            _backup_of(edit.path).unlink(missing_ok=True)
            say(f"Changed {edit.path.relative_to(folder)}")


def _left_over(folder: Path, edited: Mapping[Path, str]) -> list[str]:
    """The lines of a game that would still use the package once its files are edited."""
    lines = []
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts:  # of a virtual environment in the game's folder
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        rest, use = edited.get(path, text).splitlines(), _ANY_USE if path in edited else _IMPORT
        for number, row in enumerate(text.splitlines(), 1):
            if use.match(row) and row in rest:
                lines.append(f"{path.relative_to(folder)}, line {number}: {row.strip()}")
    return lines


def is_installed(folder: Path) -> bool:
    """Whether the settings of a game name the app."""
    path = folder / "server" / "conf" / "settings.py"
    text = path.read_text(encoding="utf-8")
    return with_app(text) == text or _is_elsewhere(folder, path, APP)


def _places(folder: Path) -> list[tuple[Path, Callable[[str], str], str, str]]:
    """The files to edit, as the settings name them; how; the line to add, and a mark of it."""
    cmdset = _setting(folder, "CMDSET_CHARACTER", CMDSET)
    urls = _setting(folder, "ROOT_URLCONF", URLS)
    module, _, name = cmdset.rpartition(".")
    module, name = _definition(folder, module, name)
    return [
        (folder / "server" / "conf" / "settings.py", with_app, APP_LINE, APP),
        (
            _file(folder, module),
            lambda text: with_cmdset(text, name),
            CMDSET_LINE,
            "AssistantCmdSet",
        ),
        (_file(folder, urls), with_url, URL_LINE, "evennia_ai.web.urls"),
    ]


def _definition(folder: Path, module: str, name: str) -> tuple[str, str]:
    """The game's module that defines a class, and its name there, by way of what is imported."""
    for node in _body(folder, module):
        if not isinstance(node, ast.ImportFrom):
            continue
        inner = _source(folder, module, node)
        for alias in node.names if inner != module else ():
            if alias.name == "*" or (alias.asname or alias.name) == name:
                place = _definition(folder, inner, name if alias.name == "*" else alias.name)
                if any(getattr(part, "name", "") == place[1] for part in _body(folder, place[0])):
                    return place
    return module, name


def _body(folder: Path, module: str) -> list[ast.stmt]:
    """The statements of a module of the game; none if it has no such module, or cannot read it."""
    try:
        return ast.parse(_file(folder, module).read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []


def _source(folder: Path, module: str, node: ast.ImportFrom) -> str:
    """The module that an import of a module names."""
    above = module.split(".")
    if _file(folder, module).name == "__init__.py":
        above.append("")
    return ".".join([*(above[: -node.level] if node.level else ()), *filter(None, [node.module])])


def _file(folder: Path, module: str) -> Path:
    """The file of a module of the game, or of a package's own."""
    path = folder.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _setting(folder: Path, name: str, default: str, module: str = "server.conf.settings") -> str:
    """A setting's text, if the settings or what they take `*` from assign one; else `default`."""
    for part in ast.walk(ast.Module(_body(folder, module), [])):
        if isinstance(part, ast.ImportFrom) and _imported(part) == ["*"]:
            inner = _source(folder, module, part)
            default = default if inner == module else _setting(folder, name, default, inner)
        elif isinstance(part, ast.Assign) and _names(part, name):
            value = getattr(part.value, "value", None)
            default = value if isinstance(value, str) else default
    return default


def _is_elsewhere(folder: Path, file: Path, mark: str) -> bool:
    """Whether another of the game's modules has what an edit would add."""
    within = folder / "server" / "conf" if mark == APP else folder
    for path in within.rglob("*.py"):
        if "site-packages" in path.parts:  # of a virtual environment in the game's folder
            continue
        if path != file and not path.name.startswith("test"):
            text = path.read_text(encoding="utf-8", errors="replace")
            if re.search(rf"^[^#\n]*[\"'.\s(]{re.escape(mark)}[\"'\s(),]", text, re.M):
                return True
    return False


def _without_us(path: Path, text: str, change: Callable[[str], str], line: str) -> str:
    if (backup := _backup_of(path)).exists():
        before = backup.read_text(encoding="utf-8")
        if change(before.replace("\r\n", "\n")) == text.replace("\r\n", "\n"):
            return before
    ours = {APP_LINE, APPS_LINE, IMPORT_LINE, CMDSET_LINE, INCLUDE_LINE, f"{URL_LINE},", URLS_LINE}
    rows = text.splitlines(keepends=True)
    return "".join(row for row in rows if not {row.strip(), row.partition("  #")[0].strip()} & ours)


def _backup_of(path: Path) -> Path:
    path = path.resolve()
    return path.with_name(path.name + BACKUP)


def with_app(text: str) -> str:
    """Settings with the app in `INSTALLED_APPS`."""
    tree = ast.parse(text)
    uses = [node for node in tree.body if _names(node, "INSTALLED_APPS")]
    if any(_holds_text(node, APP) for node in uses):
        return text
    if not uses and not any(_imported(node) == ["*"] for node in tree.body):
        raise ValueError("it neither takes Evennia's defaults nor sets `INSTALLED_APPS`")
    line = APPS_LINE if any(isinstance(node, ast.Assign) for node in uses) else APP_LINE
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
    used = {getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(method)}
    if "AssistantCmdSet" in used:
        return text
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
    tree = ast.parse(text)
    if _holds_text(tree, "evennia_ai.web.urls"):
        return text
    if not any(
        _names(node, "urlpatterns") or {"*", "urlpatterns"} & {*_imported(node)}
        for node in tree.body
    ):
        raise ValueError("it sets no `urlpatterns`")
    known = {name for node in tree.body for name in _imported(node)}
    rows = [URLS_LINE] if {"include", "path"} <= known else [INCLUDE_LINE, URLS_LINE]
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


def _names(node: ast.stmt, name: str) -> bool:
    """Whether a statement assigns to a name, or calls a method of it."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [getattr(node.value.func, "value", node.value)]  # as `NAME.append(...)`
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _holds_text(node: ast.AST, text: str) -> bool:
    """Whether a string constant is `text`, or a path that begins with it."""
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and (part.value == text or part.value.startswith(f"{text}.apps."))
        for part in ast.walk(node)
    )


def _imported(node: ast.AST) -> list[str]:
    """The names that a `from ... import` binds."""
    if not isinstance(node, ast.ImportFrom):
        return []
    return [alias.asname or alias.name for alias in node.names]
