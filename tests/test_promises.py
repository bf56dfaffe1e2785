"""The page of promises names code and tests that are there."""

import re
import tomllib
import unittest
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


class TestPromises(unittest.TestCase):
    def test_files(self):
        """Each file and folder that is named; a test has tests."""
        paths = {ROOT / path for path in re.findall(r"`((?:evennia_ai|tests)/[\w/.]+)`", PAGE)}
        self.assertGreater(len(paths), 30)
        for path in paths:
            self.assertTrue(path.exists(), path)
            if path.name.startswith("test_"):
                self.assertRegex(path.read_text(encoding="utf-8"), r"def (test|test_\w+)\(")

    def test_bounds(self):
        """The next major versions are left out, as the page says."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        wanted = {each.name: each for each in map(Requirement, project["dependencies"])}
        rows = re.findall(r"^\| (\w+) \| below (\d+) \|", PAGE, re.MULTILINE)
        names = {"Evennia": "evennia", "Mem0": "mem0ai", "LiteLLM": "litellm"}
        self.assertEqual({name for name, _ in rows}, names.keys())
        for name, bound in rows:
            specifier = wanted[names[name]].specifier
            self.assertFalse(specifier.contains(f"{bound}.0"), name)
            self.assertTrue(specifier.contains(f"{int(bound) - 1}.99"), name)
