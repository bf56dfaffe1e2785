"""What is published: the files of wheel and source distribution, types, and dependencies."""

import ast
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from evennia_ai import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INFO = f"evennia_ai-{__version__}.dist-info"
# Beside what stands in the repository.
IN_WHEEL = {
    f"{INFO}/{name}"
    for name in (
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
        "licenses/NOTICE",
    )
}
BUILD = """
import sys
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
for builder in (SdistBuilder, WheelBuilder):
    print(*builder(sys.argv[1]).build(directory=sys.argv[2]))
"""


def of_repository() -> set[str]:
    """The paths of all files that git has or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = filter(None, done.stdout.decode().split("\0"))
    return {path for path in paths if (ROOT / path).exists()}


def imported() -> set[str]:
    """The names of top-level packages that a module of the package imports, also by a text."""
    names = set[str]()
    for path in (ROOT / "evennia_ai").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                names.update(arg.value for arg in node.args if isinstance(arg, ast.Constant))
    return {name.partition(".")[0] for name in names}


@unittest.skipUnless((ROOT / ".git").exists(), "compares with the files that git knows")
class TestFiles(unittest.TestCase):
    """Built anew from the sources, or those in the folder that `TEST_DIST` names."""

    @classmethod
    def setUpClass(cls):
        folder = os.environ.get("TEST_DIST")
        if not folder:
            folder = cls.enterClassContext(tempfile.TemporaryDirectory())
            command = [sys.executable, "-c", BUILD, str(ROOT), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if "No module named 'hatchling'" in done.stderr:
                raise unittest.SkipTest("hatchling is missing: pip install -e '.[test]'")
            if done.returncode:
                raise AssertionError(done.stderr)
        (wheel,), (sdist,) = (sorted(Path(folder).glob(f"*{end}")) for end in (".whl", ".tar.gz"))
        with zipfile.ZipFile(wheel) as archive:
            cls.wheel = {name for name in archive.namelist() if not name.endswith("/")}
            cls.metadata = archive.read(f"{INFO}/METADATA").decode()
        with tarfile.open(sdist) as archive:
            paths = [PurePosixPath(member.name) for member in archive if member.isfile()]
        cls.sdist = {str(path.relative_to(f"evennia_ai-{__version__}")) for path in paths}

    def test_wheel(self):
        """The package with its types, tables, templates and licences; the game's template in it."""
        moved = {
            path if path.startswith("evennia_ai/") else f"evennia_ai/{path}"
            for path in of_repository()
            if path.startswith(("evennia_ai/", "game_template/"))
        }
        self.assertEqual(self.wheel, moved | IN_WHEEL)
        for path in ("py.typed", "language/tables/en.toml", "templates/evennia_ai/why.html"):
            self.assertIn(f"evennia_ai/{path}", self.wheel)

    def test_source_distribution(self):
        """The repository, from which wheel, documentation and tests can be made."""
        self.assertEqual(self.sdist, of_repository() | {"PKG-INFO"})

    def test_metadata(self):
        """An index shows the version, the Pythons and the licence, and the README as the page."""
        for line in (
            f"Version: {__version__}",
            f"Requires-Python: {PROJECT['requires-python']}",
            "License-Expression: BSD-3-Clause",
            "Classifier: Typing :: Typed",
            "Description-Content-Type: text/markdown",
        ):
            self.assertIn(f"\n{line}\n", self.metadata)


class TestDependencies(unittest.TestCase):
    """What is declared is what is imported."""

    def test_what_is_imported_is_declared(self):
        """Each package that is imported is a direct dependency, or of the one extra that is."""
        third = imported() - sys.stdlib_module_names - {"evennia_ai"}
        self.assertGreater(len(third), 10)
        # A folder of plugins makes a distribution the owner of a name that is another's, too.
        owners = packages_distributions()
        owners_of = {name: set(map(canonicalize_name, owners[name])) for name in third}
        wanted = (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["metrics"])
        declared = {canonicalize_name(Requirement(each).name) for each in wanted}
        self.assertEqual([n for n, own in owners_of.items() if own.isdisjoint(declared)], [])
        self.assertEqual(declared - set().union(*owners_of.values()), set())
