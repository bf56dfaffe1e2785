"""Benchmarks. Each is one command that prints JSON."""

import os

# Assistants in memory ask the settings for their features.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
