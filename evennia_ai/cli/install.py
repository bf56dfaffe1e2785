"""Add the package to an existing game: three edits, shown as a diff, made with ``--apply``.

The files belong to the user, so they are parsed. If one cannot be understood, the installer names
the line to add by hand and changes no file.
"""

import ast
import difflib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.errors import ConfigError

APP = "evennia_ai"
APP_LINE = 'INSTALLED_APPS += ["evennia_ai"]'
CMDSET_LINE = "self.add(evennia_ai.commands.AssistantCmdSet)"
URL_LINE = 'path("ai/", include("evennia_ai.web.urls"))'
BACKUP = ".before-evennia-ai"


@dataclass(frozen=True)
class Edit:
    """A file's text before and after; the two are equal if there is nothing to do."""

    path: Path
    before: str
    after: str

    def diff(self, base: Path) -> str:
        """The change as a unified diff, with paths relative to `base`."""
        name = self.path.relative_to(base).as_posix()
        lines = difflib.unified_diff(
            self.before.splitlines(),
            self.after.splitlines(),
            f"{name} (now)",
            f"{name} (with evennia_ai)",
            lineterm="",
        )
        return "\n".join(lines)


def install(
    game_dir: str | os.PathLike[str], apply: bool = False, say: Callable[[str], None] = print
) -> int:
    """Show the edits a game needs, or make them. Idempotent.

    Args:
        game_dir: The game's folder.
        apply: Make the edits; each old file is kept next to the new one.
        say: Called with each text to show.

    Returns:
        Exit code, 0.

    Raises:
        ConfigError: A file is missing or cannot be understood; none was changed.
    """
    folder = Path(game_dir)
    edits = [edit for edit in planned_edits(folder) if edit.before != edit.after]
    if not edits:
        say("evennia_ai is already installed in this game: nothing to do.")
        return 0
    for edit in edits:
        say(edit.diff(folder) + "\n")
    if not apply:
        say("Nothing was changed. To make these edits: evennia-ai install --apply")
        return 0
    _check_writable(edits)
    for edit in edits:
        backup = _write(edit)
        say(f"Changed {edit.path.relative_to(folder)}; the old text is in {backup.name}")
    say("Now run `evennia migrate` and `evennia reload`, then `evennia ai doctor`.")
    return 0


def planned_edits(folder: Path) -> list[Edit]:
    """The edits of the three files, including those that change nothing.

    Raises:
        ConfigError: A file is missing or cannot be understood.
    """
    return [
        _edit(folder / "server" / "conf" / "settings.py", with_app, APP_LINE),
        _edit(folder / "commands" / "default_cmdsets.py", with_cmdset, CMDSET_LINE),
        _edit(folder / "web" / "urls.py", with_url, URL_LINE),
    ]


def with_app(text: str) -> str:
    """Settings with the app in `INSTALLED_APPS`, before the secret settings are read."""
    tree = ast.parse(text)
    uses = [node for node in tree.body if _names(node, "INSTALLED_APPS")]
    if any(_holds_text(node, APP) for node in uses):
        return text
    defaults = [node for node in tree.body if _imports_all_of(node, "evennia.settings_default")]
    if not uses and not defaults:
        raise ValueError("it neither takes Evennia's defaults nor sets `INSTALLED_APPS`")
    reassigned = any(isinstance(node, ast.Assign) for node in uses)
    line = 'INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]' if reassigned else APP_LINE
    earliest = max(_end(node) for node in uses + defaults)
    secrets = [node.lineno for node in tree.body if _mentions_secrets(node)]
    later = [line for line in secrets if line > earliest]
    if not later:
        return _with_lines(text, len(text.splitlines()), ["", line])
    return _with_lines(text, _above_comments(text, later[0] - 1), [line, ""])


def with_cmdset(text: str) -> str:
    """Command sets with the assistants' added to what characters can do."""
    tree = ast.parse(text)
    method = _creation_method(tree)
    if _calls_with(method, "AssistantCmdSet"):
        return text
    first = method.body[0]
    if first.lineno == method.lineno:
        raise ValueError("`CharacterCmdSet.at_cmdset_creation` is written on one line")
    indent = " " * first.col_offset
    end = _past_comments(text, _end(method), indent)
    text = _with_lines(text, end, [indent + CMDSET_LINE])
    if _imports(tree, "evennia_ai.commands"):
        return text
    return _with_lines(text, _end_of_imports(tree), ["import evennia_ai.commands"])


def with_url(text: str) -> str:
    """URL patterns with the assistants' pages under ``ai/``."""
    tree = ast.parse(text)
    if _holds_text(tree, "evennia_ai.web.urls"):
        return text
    pattern_list = next(
        (
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and _names(node, "urlpatterns")
            and isinstance(node.value, ast.List)
        ),
        None,
    )
    if pattern_list is None:
        raise ValueError("it sets no `urlpatterns = [...]`")
    lines = text.splitlines(keepends=True)
    row, column = pattern_list.lineno - 1, _column(lines[pattern_list.lineno - 1], pattern_list)
    head, tail = lines[row][: column + 1], lines[row][column + 1 :]
    lines[row] = f"{head}\n    {URL_LINE},{tail}"
    text = "".join(lines)
    missing = [name for name in ("include", "path") if not _has_name(tree, name)]
    if not missing:
        return text
    line = f"from django.urls import {', '.join(missing)}"
    return _with_lines(text, _end_of_imports(tree), [line])


def _edit(path: Path, change: Callable[[str], str], line: str) -> Edit:
    """The planned edit of one file; its line ends stay as they are."""
    try:
        raw = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"`{path}` cannot be read ({error}): add this line by hand: {line}"
        ) from error
    text = raw.replace("\r\n", "\n")
    try:
        after = change(text)
        ast.parse(after)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(
            f"`{path}` cannot be understood ({error}); nothing was changed. "
            f"Add this line by hand: {line}"
        ) from error
    return Edit(path, raw, after.replace("\n", "\r\n") if "\r\n" in raw else after)


def _check_writable(edits: list[Edit]) -> None:
    """Refuse before the first file is changed if the last one cannot be."""
    for edit in edits:
        path = edit.path.resolve()
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise ConfigError(
                f"`{path}` cannot be written; nothing was changed. "
                "Make it writable, or make the edits by hand."
            )


def _write(edit: Edit) -> Path:
    """Copy the old file, put the new text in place by a rename; returns the copy's path."""
    path = edit.path.resolve()
    backup = path.with_name(path.name + BACKUP)
    number = 1
    while backup.exists():
        number += 1
        backup = path.with_name(f"{path.name}{BACKUP}-{number}")
    try:
        shutil.copy2(path, backup)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(edit.after)
        shutil.copymode(path, draft)
        os.replace(draft, path)
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be written: {error.strerror}.") from error
    return backup


def _with_lines(text: str, after_line: int, new: list[str]) -> str:
    """Text with lines put in after line number `after_line` (0 for the top)."""
    lines = text.splitlines()
    return "\n".join([*lines[:after_line], *new, *lines[after_line:]]) + "\n"


def _above_comments(text: str, line: int) -> int:
    """Line number above the comments that stand right over a statement."""
    lines = text.splitlines()
    while line > 0 and lines[line - 1].startswith("#"):
        line -= 1
    return line


def _past_comments(text: str, line: int, indent: str) -> int:
    """Line number below the comments that belong to a body ending at `line`."""
    lines = text.splitlines()
    while line < len(lines) and lines[line].startswith(indent + "#"):
        line += 1
    return line


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _column(line: str, node: ast.expr) -> int:
    """A node's column in characters; `ast` counts bytes."""
    return len(line.encode("utf-8")[: node.col_offset].decode("utf-8"))


def _names(node: ast.stmt, name: str) -> bool:
    """Whether a statement assigns to a name."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        targets = [function.value] if isinstance(function, ast.Attribute) else []
    else:
        targets = []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _holds_text(node: ast.AST, text: str) -> bool:
    """Whether a string constant is `text`, or a path that begins with it."""
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and (part.value == text or part.value.startswith(f"{text}.apps."))
        for part in ast.walk(node)
    )


def _imports_all_of(node: ast.stmt, module: str) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == module
        and any(alias.name == "*" for alias in node.names)
    )


def _mentions_secrets(node: ast.stmt) -> bool:
    return any(
        isinstance(part, ast.ImportFrom) and (part.module or "").endswith("secret_settings")
        for part in ast.walk(node)
    )


def _creation_method(tree: ast.Module) -> ast.FunctionDef:
    """`CharacterCmdSet.at_cmdset_creation`; `ValueError` if there is none."""
    for cmdset in tree.body:
        if isinstance(cmdset, ast.ClassDef) and cmdset.name == "CharacterCmdSet":
            for method in cmdset.body:
                if isinstance(method, ast.FunctionDef) and method.name == "at_cmdset_creation":
                    return method
    raise ValueError("it has no `CharacterCmdSet` with a method `at_cmdset_creation`")


def _calls_with(method: ast.FunctionDef, name: str) -> bool:
    """Whether a name is used anywhere in a method, alone or after a dot."""
    return any(
        getattr(part, "id", None) == name or getattr(part, "attr", None) == name
        for part in ast.walk(method)
    )


def _imports(tree: ast.Module, module: str) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name == module for alias in node.names)
        for node in tree.body
    )


def _has_name(tree: ast.Module, name: str) -> bool:
    """Whether some top-level import binds a name."""
    return any(
        isinstance(node, ast.ImportFrom)
        and any((alias.asname or alias.name) == name for alias in node.names)
        for node in tree.body
    )


def _end_of_imports(tree: ast.Module) -> int:
    """Line of the last import at the head of a module, or of its docstring, or 0."""
    end = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        end = _end(node)
    return end
