"""Start Evennia once for the whole run."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings
from pytest_django.plugin import blocking_manager_key

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Some classes inherit property tests; a busy machine breaks deadlines of milliseconds.
settings.register_profile(
    "evennia_ai", deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)
settings.load_profile("evennia_ai")
LONGEST = (
    "test_lossless_properties",
    "test_hardening",
    "test_attacks",
    "test_interleavings",
)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Initialise Django and Evennia before any test module is imported."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    import evennia
    from django.db import connection

    with config.stash[blocking_manager_key].unblock():
        if connection.vendor == "postgresql":
            make_settings_table(connection)
        evennia._init()


def make_settings_table(connection):
    """Make the table that Evennia reads when it is imported.

    Evennia goes on without it on SQLite; on PostgreSQL that is another exception.
    """
    from evennia.server.models import ServerConfig

    if ServerConfig._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(ServerConfig)


def pytest_itemcollected(item):
    """Mark the tests that use the game's database."""
    from django.test import TransactionTestCase

    if issubclass(getattr(item, "cls", None) or object, TransactionTestCase):
        item.add_marker("database")


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


@pytest.fixture(autouse=True)
def numbers_go_on(request):
    """Number objects in each test from the last that is there, as SQLite does after a rollback."""
    from tests.postgres import number_from_last

    if request.node.get_closest_marker("database"):
        request.getfixturevalue("db")
        with request.config.stash[blocking_manager_key].unblock():
            number_from_last()
