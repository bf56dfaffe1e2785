"""Django settings of the test suite: Evennia's defaults on an in-memory SQLite database.

`TEST_DATABASE=postgresql` runs it on a private PostgreSQL instead.
"""

import atexit
import os
import shutil
import tempfile

_folder = os.getcwd()
from evennia.settings_default import *  # noqa: E402, F403

# Looking for a game folder, Evennia's settings climb to the root and stay there; pytest takes
# its test paths from the folder it was started in.
os.chdir(_folder)

# A folder of its own for each process; else it would be Evennia's template, of which new games are
# made. The first process removes them all, as workers are ended without a word.
if "TEST_GAMES" not in os.environ:
    os.environ["TEST_GAMES"] = tempfile.mkdtemp(prefix="evennia_ai_games_")
    atexit.register(shutil.rmtree, os.environ["TEST_GAMES"], ignore_errors=True)
GAME_DIR = tempfile.mkdtemp(dir=os.environ["TEST_GAMES"])
LOG_DIR = os.path.join(GAME_DIR, "server", "logs")
os.makedirs(LOG_DIR)
SECRET_KEY = "tests-only"
SERVERNAME = "evennia_ai tests"
ROOT_URLCONF = "evennia.web.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
if os.environ.get("TEST_DATABASE") == "postgresql":
    from tests.postgres import django_database

    DATABASES = {"default": django_database()}
INSTALLED_APPS += ["evennia_ai"]  # noqa: F405
TEST_ENVIRONMENT = True
# Evennia's test classes make two accounts for each test; Django's own hash takes 0.2 s apiece.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A game has modules for these; looking for them in vain takes longer than making an account.
CMDSET_UNLOGGEDIN = "evennia.commands.default.cmdset_unloggedin.UnloggedinCmdSet"
CMDSET_SESSION = "evennia.commands.default.cmdset_session.SessionCmdSet"
CMDSET_CHARACTER = "evennia.commands.default.cmdset_character.CharacterCmdSet"
CMDSET_ACCOUNT = "evennia.commands.default.cmdset_account.AccountCmdSet"
BASE_ACCOUNT_TYPECLASS = "evennia.accounts.accounts.DefaultAccount"
BASE_GUEST_TYPECLASS = "evennia.accounts.accounts.DefaultGuest"
BASE_OBJECT_TYPECLASS = "evennia.objects.objects.DefaultObject"
BASE_CHARACTER_TYPECLASS = "evennia.objects.objects.DefaultCharacter"
BASE_ROOM_TYPECLASS = "evennia.objects.objects.DefaultRoom"
BASE_EXIT_TYPECLASS = "evennia.objects.objects.DefaultExit"
BASE_CHANNEL_TYPECLASS = "evennia.comms.comms.DefaultChannel"
BASE_SCRIPT_TYPECLASS = "evennia.scripts.scripts.DefaultScript"
LOCK_FUNC_MODULES = ("evennia.locks.lockfuncs",)
