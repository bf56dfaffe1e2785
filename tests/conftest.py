"""Start Evennia once for the whole run."""

import gc
import os

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
LONGEST = ("test_lossless_properties", "test_hardening", "test_long_talk", "test_interleavings")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Initialise Django and Evennia before any test module is imported."""
    import django
    from pytest_django.plugin import blocking_manager_key

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    import evennia

    with config.stash[blocking_manager_key].unblock():
        evennia._init()


def pytest_collection_modifyitems(config, items):
    """Tests that are named run in that order; else the files that take longest come first.

    So no core works on alone at the end.
    """
    named = {name: place for place, name in enumerate(config.args)}
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(
        key=lambda item: (
            named.get(item.nodeid, len(named)),
            places.get(item.path.stem, len(LONGEST)),
        )
    )


def pytest_collection_finish():
    """Let the collector pass over what stays: Evennia's tests call it after each test."""
    gc.collect()
    gc.freeze()
