"""Open a game of an earlier version of the package with this one, and compare. Prints JSON.

    python -m benchmarks.upgrade --old ../earlier --keep ../kept-game
    python -m benchmarks.upgrade --kept ../kept-game

With `--old`, a checkout of the earlier version makes a game with its own `evennia-ai new` and
`start`, and players live in it for some minutes (`upgrade_life.py`): talk aloud and in private,
notes, compactions, rollbacks, a night. The game is stopped, and everything stored is read without
the code of either version (`upgrade_record.py`). `--keep` copies the game into a folder, which
`--kept` opens again without the earlier version. Then this version starts the game, and everything
stored is read again and compared. The players come back, ask for what they told, compact and roll
back. After that, nothing stored before may be changed or missing.

The result is one JSON object: counts of what is stored, the results of verification, and what is
wrong: `differences`, `wrong` answers, `tracebacks` in the logs, and paths of the package that the
game's files and database name but that are no longer `importable`. The exit code is 1 if anything
is wrong.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import upgrade_record
from benchmarks.long_life import SETTINGS, Tavern
from benchmarks.upgrade_life import PLAYERS, SEED, Staff, Stay
from benchmarks.upgrade_record import Record, parts, recorded
from tests.e2e.game import REPOSITORY, Game

# Evennia's Attributes for a paused timer, from a stop to the next start.
PAUSED = ("_paused_time", "_paused_callcount", "_manually_paused")
# Fields of a summary that no later compaction changes; status and absorber may change.
LASTING = ("id", "tier", "created_at", "audience", "text", "source_ids", "segment")
SHOWN = 50
RESOLVE = """
import importlib, json, sys
def found(path):
    names = path.split(".")
    for end in range(len(names), 0, -1):
        try:
            value = importlib.import_module(".".join(names[:end]))
        except ModuleNotFoundError:
            continue
        for name in names[end:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False
print("\\n" + json.dumps([path for path in {paths!r} if not found(path)]))
"""


class Upgraded(Game):
    """A game that one version of the package makes and another opens.

    Args:
        checkout: The version that makes the game.
    """

    def __init__(self, checkout: Path):
        super().__init__(settings=SETTINGS, start=False)
        self.use(checkout)

    def use(self, checkout: Path) -> None:
        """Use another version from now on. The game must be stopped."""
        self.checkout = checkout
        self.environ["PYTHONPATH"] = os.pathsep.join([str(self.base), str(checkout)])

    def _make(self) -> None:
        self.command("new", str(self.folder), "--no-start")

    def start(self, timeout_s: float = 300.0) -> None:
        """Start the game with the command that a user types."""
        self.command("start", str(self.folder), timeout_s=timeout_s)

    def stop(self) -> None:
        """Stop the game with the command that a user types."""
        if self.folder.exists():
            self.command("stop", str(self.folder))

    def command(self, *words: str, timeout_s: float = 120.0) -> str:
        """Run `evennia-ai` of the version in use; return its output."""
        project = tomllib.loads((self.checkout / "pyproject.toml").read_text(encoding="utf-8"))
        module, _, function = project["project"]["scripts"]["evennia-ai"].partition(":")
        code = f"import sys; from {module} import {function}; sys.exit({function}())"
        with tempfile.TemporaryFile("w+") as output:  # the daemons would keep a pipe open
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code, *words],
                cwd=self.base,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
            output.seek(0)
            shown = output.read()
        if done.returncode:
            raise AssertionError(f"`evennia-ai {' '.join(words)}`: {shown}\n{self.logs()}")
        return shown

    def faults(self) -> list[str]:
        """Return what `evennia-ai doctor` reports as wrong."""
        try:
            self.command("doctor", str(self.folder))
        except AssertionError as error:
            return [str(error)]
        return []

    def web_status(self) -> int:
        """Return the HTTP status of the package's page, which is for staff."""
        url = f"http://127.0.0.1:{self.ports.webserver}/ai/status/"
        try:
            with urllib.request.urlopen(url, timeout=20) as page:
                return int(page.status)
        except urllib.error.HTTPError as error:
            return error.code

    def tracebacks(self) -> int:
        """Count the tracebacks in the logs."""
        folder = self.folder / "server" / "logs"
        paths = [*folder.glob("server.log*"), *folder.glob("portal.log*")]
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in paths)
        return sum(text.count("Traceback") for text in texts)


def lived(game: Upgraded) -> dict[str, Any]:
    """Live in a new game and stop it.

    Returns:
        ``{"record", "export", "proof", "wrong"}``: what was stored at the end, what the assistant
        exported, the result of verification, and which answers were already wrong.
    """
    game.start()
    stay = Stay(Tavern(game, SEED, PLAYERS))
    _see_package(game, stay)
    stay.live()
    for player in stay.tavern.players.values():
        player.close()
    stay.admin.drain(5)
    export, proof = _exported(stay), stay.proof()
    stay.tavern.leave()
    game.stop()
    return {"record": recorded(game), "export": export, "proof": proof, "wrong": stay.wrong}


def keep(game: Upgraded, told: dict[str, Any], folder: Path) -> None:
    """Copy a stopped game and its results into a new folder."""
    shutil.copytree(game.folder, folder / "game")
    (folder / "told.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def take(game: Upgraded, folder: Path) -> dict[str, Any]:
    """Copy a kept game to the place of this one; return its results."""
    shutil.rmtree(game.folder)
    shutil.copytree(folder / "game", game.folder)
    told: dict[str, Any] = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    return told


def opened(game: Upgraded, told: dict[str, Any]) -> dict[str, Any]:
    """Open a game with this version, compare, and continue to live in it; return the figures."""
    in_files = upgrade_record.paths_in_files(game.folder)
    in_database = upgrade_record.paths_in_database(game.folder)
    game.use(REPOSITORY)
    game.start()
    with game.admin(60) as admin:  # log in where no assistant hears it
        after, differences, proof = _at_start(game, Staff(admin), told)
    stay = _lived_on(game)
    proofs = [told["proof"], proof, stay.proof()]
    stay.tavern.leave()
    game.stop()
    before, at_last = told["record"], recorded(game)
    differences += _lost(before, at_last)
    wrong = [*told["wrong"], *stay.wrong]
    wrong += [f"{proof!r} is no proof" for proof in proofs if not proof.startswith("Aria: proven")]
    wrong += [f"proof {proofs[1]!r} was {proofs[0]!r}"] if proofs[0] != proofs[1] else []
    pickled = [name for name, places in in_database.items() if any(map(_is_pickled, places))]
    return {
        "stored": _counts(before),
        "after_start": _counts(after),
        "after_living_on": _counts(at_last),
        "proofs": proofs,
        "differences": differences[:SHOWN],
        "wrong": wrong,
        "tracebacks": game.tracebacks(),
        "not_importable": _not_importable(game, {*in_files, *in_database}),
        "pickled_classes_of_the_package": pickled,
        "paths_in_files": in_files,
        "paths_in_database": in_database,
    }


def _at_start(game: Upgraded, staff: Staff, told: dict[str, Any]) -> tuple[Record, list[str], str]:
    """Return what is stored after the start, how it differs, and the verification."""
    _see_package(game, staff)
    staff.until_idle()
    after, before = recorded(game), told["record"]
    differences = [
        *_different_records(before, after),
        *_different("export", told["export"], _exported(staff)),
        *_different("web page", 403, game.web_status()),  # which is for staff
        *game.faults(),
    ]
    return after, differences, staff.proof()


def _see_package(game: Upgraded, staff: Staff) -> None:
    if staff.package() != game.checkout:
        raise AssertionError(f"The Server's package is from {staff.package()}.")


def _lived_on(game: Upgraded) -> Stay:
    """Let the players come back, ask for everything, compact and roll back."""
    stay = Stay(Tavern(game, SEED, PLAYERS, made=True))
    stay.ask_all()
    stay.compact()
    stay.roll_back()
    stay.compact()
    stay.ask_all()
    return stay


def _exported(staff: Staff) -> dict[str, Any]:
    """Return what the assistant exports, without the time and the Attributes (see `recorded`)."""
    data: dict[str, Any] = json.loads(Path(staff.export()).read_text(encoding="utf-8"))
    return {key: value for key, value in data.items() if key not in ("exported_at", "attributes")}


def _counts(record: Record) -> dict[str, Any]:
    """Count what is stored, for each assistant and for the whole game."""
    found: dict[str, Any] = {
        name: {part: len(items) for part, items in parts(record, name).items()}
        for name in sorted(upgrade_record.assistants(record))
    }
    memories = {"memories": record["memories"]["points"], "index_items": record["index"]}
    whole = {**memories, "objects": record["objects"], "attributes": record["attributes"]}
    return {**found, "game": {part: len(items) for part, items in whole.items()}}


# -- comparing -------------------------------------------------------------------------------------


def _different_records(before: Record, after: Record) -> Iterator[str]:
    """Return what is missing or changed, apart from what a start adds."""
    for part in ("objects", "attributes", "memories", "index"):
        yield from _different(part, _at_rest(part, before), _at_rest(part, after))


def _at_rest(part: str, record: Record) -> dict[str, Any]:
    """Return a part of a record without what changes with starts and logins of the admin."""
    looker = ("AccountDB 1", "ObjectDB 1")
    kept = {name: each for name, each in record[part].items() if name.split(":")[0] not in looker}
    return {name: each for name, each in kept.items() if not name.endswith(PAUSED)}


def _different(path: str, before: Any, after: Any) -> Iterator[str]:
    """Return each place where two plain values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            inner = f"{path} / {key}"
            if key not in after:
                yield f"{inner}: gone, was {_short(before[key])}"
            elif key not in before:
                yield f"{inner}: new, {_short(after[key])}"
            else:
                yield from _different(inner, before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from _different(f"{path} / {number}", *pair)
    elif before != after:
        yield f"{path}: was {_short(before)}, is {_short(after)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _lost(before: Record, after: Record) -> Iterator[str]:
    """Return what is missing or changed of an earlier record, after much was added."""
    for name in upgrade_record.assistants(before):
        was, now = _lasting(parts(before, name)), _lasting(parts(after, name))
        for part, items in was.items():
            kept = {key: now[part][key] for key in items if key in now[part]}
            yield from _different(f"{name} at last / {part}", items, kept)


def _lasting(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the parts of an assistant that no later life changes."""
    messages = {**found["archived_messages"], **found["live_messages"]}.items()
    summaries = found["summaries"].items()
    return {
        "messages": {key: _unmasked(each) for key, each in messages if each["role"] != "system"},
        "summaries": {key: {k: each.get(k) for k in LASTING} for key, each in summaries},
        **{part: found[part] for part in ("archive_segments", "journal_entries", "ledger_notes")},
    }


def _unmasked(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the mark that a large output in it is masked."""
    noted = {key: each for key, each in message["metadata"].items() if key != "masked"}
    return {**message, "metadata": noted, "tokens": 0}


def _is_pickled(place: str) -> bool:
    return place.startswith("pickled ")


def _not_importable(game: Upgraded, paths: set[str]) -> list[str]:
    """Return the paths that the version in use does not have."""
    source = RESOLVE.replace("{paths!r}", repr(sorted(paths)))
    missing: list[str] = json.loads(game.python(source).splitlines()[-1])
    return missing


def measure(old: Path | None, kept: Path | None, keep_in: Path | None) -> dict[str, Any]:
    """Make or take a game of the earlier version and open it with this one."""
    began = time.monotonic()
    with Upgraded(old or REPOSITORY) as game:
        if kept:
            told = take(game, kept)
        else:
            told = lived(game)
            if keep_in:
                keep(game, told, keep_in)
        return {**opened(game, told), "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    """Print the figures. The exit code says whether anything changed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    game = parser.add_mutually_exclusive_group(required=True)
    game.add_argument("--old", type=Path, help="a checkout of the earlier version")
    game.add_argument("--kept", type=Path, help="a folder that --keep made")
    parser.add_argument("--keep", type=Path, help="a new folder for the earlier version's game")
    options = parser.parse_args()
    old = options.old and options.old.resolve()
    figures = measure(old, options.kept, options.keep)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    faults = ("differences", "wrong", "tracebacks", "not_importable")
    sys.exit(any(figures[name] for name in (*faults, "pickled_classes_of_the_package")))


if __name__ == "__main__":
    main()
