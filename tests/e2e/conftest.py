"""Tests on a started game take minutes: they run only when asked for."""

import pytest


def pytest_collection_modifyitems(config, items):
    asked = config.option.markexpr or any("e2e" in str(arg) for arg in config.args)
    if asked:
        return
    reason = pytest.mark.skip(reason="starts a real game; run with `pytest -m e2e`")
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(reason)
