"""The file of tested versions, beside the dependencies that the package declares."""

import re
import tomllib
import unittest
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
STOLEN = {"1.82.7", "1.82.8"}


class TestConstraints(unittest.TestCase):
    """Each dependency has one tested version for each Python."""

    def setUp(self):
        text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        self.lines = [line for line in text.splitlines() if not line.startswith("#")]
        self.pins = [Requirement(line) for line in self.lines]
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.python = project["requires-python"]
        self.dependencies = [Requirement(each) for each in project["dependencies"]]

    def pinned(self, python):
        """Versions by name, for one version of Python."""
        chosen = [p for p in self.pins if not p.marker or p.marker.evaluate(python)]
        names = [canonicalize_name(pin.name) for pin in chosen]
        self.assertEqual(len(names), len(set(names)))
        return {name: str(pin.specifier) for name, pin in zip(names, chosen, strict=True)}

    def test_every_dependency_has_a_tested_version(self):
        """On each supported Python, and one that the package accepts."""
        for number in ("3.11", "3.12", "3.13", "3.14"):
            pins = self.pinned({"python_version": number, "python_full_version": f"{number}.0"})
            for wanted in self.dependencies:
                with self.subTest(python=number, name=wanted.name):
                    pin = pins[canonicalize_name(wanted.name)].removeprefix("==")
                    self.assertTrue(wanted.specifier.contains(pin), pin)

    def test_hashes(self):
        """`requirements.txt` has these versions of all that is needed, each with hashes."""
        text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
        blocks = re.split(r"\n(?=\S)", text.strip())
        hashed = [Requirement(block.partition("\\")[0]) for block in blocks]
        self.assertTrue(all("--hash=sha256:" in block for block in blocks))
        for number in ("3.11", "3.13"):
            python = {
                "python_version": number,
                "python_full_version": f"{number}.0",
                "sys_platform": "linux",
            }
            pins = self.pinned(python)
            chosen = [r for r in hashed if not r.marker or r.marker.evaluate(python)]
            found = {canonicalize_name(each.name): str(each.specifier) for each in chosen}
            differ = {name: pin for name, pin in found.items() if pins.get(name, pin) != pin}
            self.assertEqual(differ, {}, "run `make hashes`")
            for wanted in self.dependencies:
                self.assertIn(canonicalize_name(wanted.name), found)

    def test_stolen_releases_are_left_out(self):
        """Neither the dependencies nor the file allow them."""
        (litellm,) = (each for each in self.dependencies if each.name == "litellm")
        for stolen in STOLEN:
            self.assertFalse(litellm.specifier.contains(stolen))
        pins = {str(p.specifier).removeprefix("==") for p in self.pins if p.name == "litellm"}
        self.assertFalse(pins & STOLEN)
        self.assertNotIn(version("litellm"), STOLEN)
