"""The lists of modules that tools are configured with agree with each other."""

import configparser
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[1]


def contracts():
    """The sections of .importlinter."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


class TestModuleLists(unittest.TestCase):
    def test_mypy_skips_only_what_knows_evennia(self):
        """Every module but those of the contract `frameworks` is typed strictly."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        skipped = project["tool"]["mypy"]["overrides"][0]["module"]
        lines = contracts()["importlinter:contract:frameworks"]["ignore_imports"].split("\n")
        knowing = [line.split(" -> ")[0].replace("**", "*") for line in lines if line]
        self.assertEqual(sorted(skipped), sorted(knowing))

    def test_the_coverage_floor_reads_the_pure_contract(self):
        """Makefile's list of pure files holds one existing file or folder for each pure module."""
        command = [sys.executable, ROOT / ".ci" / "pure_modules.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        listed = done.stdout.strip().split(",")
        pure = contracts()["importlinter:contract:pure"]["source_modules"].split()
        self.assertEqual(len(listed), len(pure))
        for pattern in listed:
            self.assertTrue((ROOT / pattern.removesuffix("/*")).exists(), pattern)
