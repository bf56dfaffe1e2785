"""Django settings of `kill.py`: Evennia's defaults on an SQLite file in its folder."""

import os
from pathlib import Path

from evennia.settings_default import *  # noqa: F403

_FOLDER = Path(os.environ["EVENNIA_AI_KILL_FOLDER"])
SECRET_KEY = "benchmark-only"
SERVERNAME = "evennia_ai kill"
ROOT_URLCONF = "evennia.web.urls"
GAME_DIR = str(_FOLDER)
LOG_DIR = str(_FOLDER)
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(_FOLDER / "game.db3"),
        "OPTIONS": {"timeout": 30},
    }
}
INSTALLED_APPS += ["evennia_ai"]  # noqa: F405
TEST_ENVIRONMENT = True
LOCK_FUNC_MODULES = ("evennia.locks.lockfuncs",)
EVENNIA_AI_DATA_DIR = str(_FOLDER / "ai_memory")
LOG_DIR = str(_FOLDER)
EVENNIA_AI_LLM_MODEL = "scripted/model"
EVENNIA_AI_SPEND_CAPS = {"player": {"calls_minute": 100_000}}  # who talks here does not pause
