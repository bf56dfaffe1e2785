"""Add the package to an existing game: a line in three files, made with ``--apply``.

The files belong to the user. If one of them cannot be understood, the installer names the line to
add by hand and changes no file. A line that stands in another of the game's modules counts as
added.
"""

import ast
import difflib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.errors import ConfigError

APP_LINE = 'INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]'
CMDSET_LINE = "self.add(evennia_ai.commands.AssistantCmdSet)"
URL_LINE = 'urlpatterns = [path("ai/", include("evennia_ai.web.urls")), *urlpatterns]'
BACKUP = ".before-evennia-ai"


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
    conf = folder / "server" / "conf"
    cmdset = _setting(conf, "CMDSET_CHARACTER", "commands.default_cmdsets.CharacterCmdSet")
    module, _, name = cmdset.rpartition(".")
    urls = _setting(conf, "ROOT_URLCONF", "web.urls")
    edits = []
    if not _is_in(conf, r"[\"']evennia_ai(?:\.apps\.\w+)?[\"']"):
        edits.append(_edit(conf / "settings.py", APP_LINE, with_app))
    if not _is_in(folder, r"\bAssistantCmdSet\b"):
        path = _file(folder, module)
        edits.append(_edit(path, CMDSET_LINE, lambda text: with_cmdset(text, name)))
    if not _is_in(folder, r"\bevennia_ai\.web\.urls\b"):
        edits.append(_edit(_file(folder, urls), URL_LINE, with_url))
    for edit in edits:
        shown = edit.path.relative_to(folder).as_posix()
        names = (f"{shown} (now)", f"{shown} (after install)")
        before, after = edit.before.splitlines(), edit.after.splitlines()
        say("\n".join(difflib.unified_diff(before, after, *names, lineterm="")) + "\n")
    if not edits:
        say(
            "evennia_ai is already installed in this game: nothing to do. After an update run "
            "`evennia migrate`."
        )
        return
    if not apply:
        where = os.path.relpath(folder)
        say(f"Nothing was changed. To make these edits: evennia-ai install {where} --apply")
        return
    for edit in edits:
        backup = edit.path.with_name(edit.path.name + BACKUP)
        shutil.copy2(edit.path, backup)
        edit.path.write_text(edit.after, encoding="utf-8", newline="")
        say(f"Changed {edit.path.relative_to(folder)}; the old text is in {backup.name}")
    say("Now run `evennia migrate`, then `evennia reload` (`evennia start` if the game does not")
    say("run), and `evennia ai doctor`. Then, in the game: ai/new")


def with_app(text: str) -> str:
    """Settings with the app in `INSTALLED_APPS`, whether that is a list or a tuple."""
    if not re.search(r"^INSTALLED_APPS\b|^from .* import \*", text, re.M):
        raise ValueError("it neither takes Evennia's defaults nor sets `INSTALLED_APPS`")
    return f"{text.rstrip()}\n\n{APP_LINE}\n"


def with_cmdset(text: str, name: str = "CharacterCmdSet") -> str:
    """Command sets with the assistants' added to what characters can do."""
    for cmdset in ast.parse(text).body:
        if not isinstance(cmdset, ast.ClassDef) or cmdset.name != name:
            continue
        for method in cmdset.body:
            if not isinstance(method, ast.FunctionDef) or method.name != "at_cmdset_creation":
                continue
            last = method.body[-1]
            if last.lineno == method.lineno:
                raise ValueError(f"`{name}.at_cmdset_creation` is written on one line")
            indent = " " * last.col_offset
            rows = text.splitlines()
            rows[last.end_lineno : last.end_lineno] = [
                f"{indent}import evennia_ai.commands",
                f"{indent}{CMDSET_LINE}",
            ]
            return "\n".join(rows) + "\n"
    raise ValueError(f"it has no method `{name}.at_cmdset_creation`")


def with_url(text: str) -> str:
    """URL patterns with the assistants' pages under ``ai/``."""
    if not re.search(r"^urlpatterns\b|^from .* import .*(?:\burlpatterns\b|\*)", text, re.M):
        raise ValueError("it sets no `urlpatterns`")
    imports = "from django.urls import include, path  # for evennia_ai"
    return f"{text.rstrip()}\n\n{imports}\n{URL_LINE}\n"


def _setting(conf: Path, name: str, default: str) -> str:
    """The dotted path that the game's settings assign to a name, in whichever module of theirs."""
    values = [default]
    for path in sorted(conf.rglob("*.py"), key=lambda path: path.name == "settings.py"):
        text = path.read_text(encoding="utf-8", errors="replace")
        values += re.findall(rf"^{name}\s*=\s*[\"']([\w.]+)[\"']", text, re.M)
    return values[-1]


def _is_in(folder: Path, pattern: str) -> bool:
    """Whether a module in a folder has a pattern outside comments; tests do not count."""
    return any(
        re.search(rf"^[^#\n]*{pattern}", text, re.M)
        for path, text in _modules(folder)
        if not path.name.startswith("test")
    )


def _modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """The modules in a folder, with their texts."""
    for path in sorted(folder.rglob("*.py")):
        # A virtual environment may stand in the game's folder.
        if "site-packages" not in path.parts:
            yield path, path.read_text(encoding="utf-8", errors="replace")


def lines_left(folder: Path) -> Iterator[str]:
    """The lines of a game's modules that name the package, each with its file and number."""
    for path, text in _modules(folder):
        for number, line in enumerate(text.splitlines(), 1):
            if "evennia_ai" in line:
                yield f"{path.relative_to(folder)}, line {number}: {line.strip()}"


def _file(folder: Path, module: str) -> Path:
    """The file of a module of the game, or of a package's own."""
    path = folder.joinpath(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py")


def _edit(path: Path, line: str, change: Callable[[str], str]) -> Edit:
    """The planned edit of one file; its line ends stay as they are."""
    try:
        before = path.read_bytes().decode("utf-8")
        after = change(before.replace("\r\n", "\n"))
        ast.parse(after)
    except (OSError, SyntaxError, ValueError) as error:
        why = f"`{path}` cannot be read or understood ({error}); nothing was changed."
        raise ConfigError(f"{why} Add this line by hand: {line}") from error
    if "\r\n" in before:
        after = after.replace("\n", "\r\n")
    return Edit(path, before, after)
