"""Ten games that were not written for the package: ``make test-games`` prints a table.

Each is made from Evennia's template and contribs, wired in by `evennia-ai install`, and runs the
suite that ships in the package (`evennia_ai/tests.py`) with its own commands, rooms and characters.
Where a game needs lines of its owner's, the suite must name each of them before they are added.
Then the package is taken out again. ``python -m tests.games rpsystem`` tries one.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evennia_ai.cli.install import BACKUP, install

ROOT = Path(__file__).parents[2]
EVENNIA = Path(importlib.util.find_spec("evennia").submodule_search_locations[0])
ROWS = {
    "test_hears_say": "say",
    "test_whisper_is_private": "whisper",
    "test_hears_pose": "pose",
    "test_page_is_heard_once": "page",
    "test_sees": "sees",
    "test_acts": "acts",
    "test_others_see_who_speaks": "who",
    "test_others_see_it_once": "once",
}
# What an owner has in `world/tests.py`.
OWN_TESTS = """
from evennia.utils.test_resources import EvenniaTest


class TestOwn(EvenniaTest):
    def test_look(self):
        self.assertTrue(self.char1.at_look(self.room1))
"""
# The same, without an exit.
PLAIN_TESTS = """
from unittest import TestCase

from commands.own import CmdSay


class TestOwn(TestCase):
    def test_say(self):
        self.assertEqual(CmdSay().key, "say")
"""


def bases(**parents):
    """Modules of the game whose typeclasses have other parents."""
    files = {}
    for name, path in parents.items():
        module, _, parent = path.rpartition(".")
        head = f"from {module} import {parent}\n\n\n"
        head += "class ObjectParent:\n    pass\n\n\n" if name == "Object" else ""
        file = f"typeclasses/{name.lower()}s.py"
        files[file] = f"{head}class {name}({parent}):\n    pass\n"
    return files


def in_room(lines, head=""):
    """Own tests that try the shipped suite in a room of another kind."""
    body = "\n".join(f"        {line}" for line in lines)
    return {
        "world/tests.py": f"{OWN_TESTS}\nfrom django.conf import settings\n{head}\n"
        'if "evennia_ai" in settings.INSTALLED_APPS:\n    from evennia_ai import tests\n\n'
        f"    class TestRoom(tests.TestThisGame):\n      def make_room(self):\n{body}\n"
    }


def commands(*lines, head=""):
    """Lines at the end of the character command set."""
    text = (EVENNIA / "game_template/commands/default_cmdsets.py").read_text()
    added = "\n".join(f"        {line}" for line in lines)
    mark = "        # any commands you add below will overload the default ones.\n        #\n"
    return {"commands/default_cmdsets.py": head + text.replace(mark, mark + added + "\n", 1)}


OWN_COMMANDS = '''
from evennia import Command


class CmdSay(Command):
    """talk"""

    key = "say"

    def func(self):
        words = self.args.strip()
        for obj in self.caller.location.contents:
            obj.msg(f"{self.caller.key} sagt: „{words}“")


class CmdWhisper(Command):
    """talk in private"""

    key = "whisper"

    def func(self):
        name, _, words = self.args.partition("=")
        if target := self.caller.search(name.strip()):
            target.msg((f"{self.caller.key} says {words.strip()}", {"type": "say"}), self.caller)


class CmdEmote(Command):
    """act"""

    key = "emote"
    aliases = ["pose"]

    def func(self):
        self.caller.location.msg_contents(f"{self.caller.key} {self.args.strip()}")


class CmdPage(Command):
    """talk from afar"""

    key = "page"
    aliases = ["tell"]

    def func(self):
        name, _, words = self.args.partition("=")
        if target := self.caller.search(name.strip(), global_search=True):
            target.msg(f"{self.caller.key} pages: {words.strip()}", from_obj=self.caller)
'''
# As MUSHes do: talk goes to whoever is played.
LOOPING_COMMANDS = '''
from evennia import Command


def emit(caller, line):
    for obj in caller.location.contents:
        if obj.has_account:
            obj.msg(line)


class CmdSay(Command):
    """talk"""

    key = "say"

    def func(self):
        emit(self.caller, f'{self.caller.key} says, "{self.args.strip()}"')


class CmdPose(Command):
    """act"""

    key = "pose"

    def func(self):
        emit(self.caller, f"{self.caller.key} {self.args.strip()}")


class CmdEmit(Command):
    """show the room a line"""

    key = "@emit"
    aliases = ["emit"]

    def func(self):
        emit(self.caller, self.args.strip())
'''
# To each of the others alone, with neither a type nor a sender.
BARE_COMMANDS = '''
from evennia import Command


class CmdSay(Command):
    """talk"""

    key = "say"

    def func(self):
        for obj in self.caller.location.contents:
            if obj is not self.caller:
                obj.msg(f"{self.caller.key}: {self.args.strip()}")
        self.caller.msg(f"You: {self.args.strip()}")


class CmdPose(Command):
    """act, a moment later"""

    key = "pose"

    def func(self):
        yield 0.1
        for obj in self.caller.location.contents:
            obj.msg(f"* {self.caller.key} {self.args.strip()}")


class CmdWhisper(Command):
    """talk in private"""

    key = "whisper"

    def func(self):
        name, _, words = self.args.partition("=")
        if target := self.caller.search(name.strip()):
            target.msg(f"{self.caller.key} whispers to you: {words.strip()}")


class CmdGet(Command):
    """pick up, a moment later"""

    key = "get"

    def func(self):
        thing = self.caller.search(self.args.strip())
        yield 0.1
        if thing and thing.move_to(self.caller, quiet=True):
            self.caller.msg(f"You take {thing.key}.")


class CmdGive(Command):
    """hand over: give lamp Bob"""

    key = "give"

    def func(self):
        name, _, person = self.args.strip().partition(" ")
        thing, target = self.caller.search(name), person and self.caller.search(person)
        if thing and target and thing.move_to(target, quiet=True):
            self.caller.msg(f"You give {thing.key}.")
'''
# Its way of sending has no parameters of its own.
WRAPPING_ROOM = """
from evennia import DefaultRoom


class Room(DefaultRoom):
    def msg_contents(self, *args, **kwargs):
        return super().msg_contents(*args, **kwargs)
"""
RP, EVADVENTURE = "evennia.contrib.rpg.rpsystem", "evennia.contrib.tutorials.evadventure"
INGAME = "evennia.contrib.base_systems.ingame_python"
EXTENDED = "evennia.contrib.grid.extended_room.ExtendedRoom"
SETTINGS = "server/conf/settings.py"

# By name: the files that make it of the template, None for one that it lacks; of the settings,
# what is added.
GAMES = {
    "template": {},
    "evadventure": {
        **bases(
            Character=f"{EVADVENTURE}.characters.EvAdventureCharacter",
            Room=f"{EVADVENTURE}.rooms.EvAdventureRoom",
            Object=f"{EVADVENTURE}.objects.EvAdventureObject",
        ),
        **commands(
            "self.add(EvAdventureCmdSet)",
            head=f"from {EVADVENTURE}.commands import EvAdventureCmdSet\n",
        ),
    },
    "rpsystem": {
        **bases(
            Character=f"{RP}.ContribRPCharacter", Room=EXTENDED, Object=f"{RP}.ContribRPObject"
        ),
        **commands("self.add(RPSystemCmdSet())", head=f"from {RP} import RPSystemCmdSet\n"),
        **in_room(
            [
                "self.room1.db.desc = 'A hall. $state(burning, It burns!)$state(cold, Snow.)'",
                "self.room1.add_room_state('burning')",
                "for person in (self.char1, self.char2):",
                "    person.sdesc.add(f'a {person.key[::-1]} figure')",
                "return self.room1",
            ]
        ),
    },
    "wilderness": in_room(
        [
            "wilderness.create_wilderness()",
            "wilderness.enter_wilderness(self.char1)",
            "return self.char1.location",
        ],
        head="from evennia.contrib.grid.wilderness import wilderness\n",
    ),
    "xyzgrid": {
        SETTINGS: "PROTOTYPE_MODULES += ['evennia.contrib.grid.xyzgrid.prototypes']\n",
        **commands(
            "self.add(XYZGridCmdSet)",
            head="from evennia.contrib.grid.xyzgrid.commands import XYZGridCmdSet\n",
        ),
        **in_room(
            [
                "grid = get_xyzgrid()",
                "grid.add_maps({'zcoord': 'map', 'map': '+ 0 1\\n\\n0 #-#\\n\\n+ 0 1'})",
                "grid.reload()",
                "room, _ = XYZRoom.create('Square', xyz=(0, 0, 'map'))",
                "return room",
            ],
            head="from evennia.contrib.grid.xyzgrid.xyzgrid import get_xyzgrid\n"
            "from evennia.contrib.grid.xyzgrid.xyzroom import XYZRoom\n",
        ),
    },
    "ingame_python": {
        **bases(
            Character=f"{INGAME}.typeclasses.EventCharacter",
            Room=f"{INGAME}.typeclasses.EventRoom",
            Object=f"{INGAME}.typeclasses.EventObject",
        ),
        **in_room(
            [
                "create_script('" + INGAME + ".scripts.EventHandler')",
                "self.addCleanup(setattr, CallbackHandler, 'script', None)",
                "return self.room1",
            ],
            head="from evennia import create_script\n"
            f"from {INGAME}.callbackhandler import CallbackHandler\n",
        ),
    },
    "multisession": {  # its settings are a package
        SETTINGS: "from server.conf.parts import *\n",
        "server/conf/parts/__init__.py": "from .players import *\n",
        "server/conf/parts/players.py": "MULTISESSION_MODE = 3\nMAX_NR_CHARACTERS = 3\n"
        'GUEST_ENABLED = True\nROOT_URLCONF = "web.pages"\n',
        "web/pages.py": "from web.urls import urlpatterns\n",
        "typeclasses/rooms.py": WRAPPING_ROOM,
    },
    "own_commands": {  # its command set has a name and a module of its own
        SETTINGS: 'CMDSET_CHARACTER = "commands.sets.PlayerCmdSet"\n',
        "commands/own.py": OWN_COMMANDS,
        "commands/sets.py": "from commands.default_cmdsets import CharacterCmdSet\n\n\n"
        "class PlayerCmdSet(CharacterCmdSet):\n    key = 'Player'\n\n"
        "    def at_cmdset_creation(self):\n        super().at_cmdset_creation()\n",
        **commands(
            "for command in (own.CmdSay, own.CmdWhisper, own.CmdEmote, own.CmdPage):",
            "    self.add(command)",
            head="from commands import own\n",
        ),
    },
    "looping": {
        "commands/own.py": LOOPING_COMMANDS,
        **commands(
            "for command in (own.CmdSay, own.CmdPose, own.CmdEmit):",
            "    self.add(command)",
            head="from commands import own\n",
        ),
    },
    "bare": {  # it has thrown away what it does not use
        "typeclasses/exits.py": None,
        "typeclasses/scripts.py": None,
        "typeclasses/channels.py": None,
        "world/prototypes.py": None,
        "world/tests.py": PLAIN_TESTS,
        "commands/own.py": BARE_COMMANDS,
        **commands(
            "commands = own.CmdSay, own.CmdPose, own.CmdWhisper, own.CmdGet, own.CmdGive",
            "for command in commands:",
            "    self.add(command)",
            head="from commands import own\n",
        ),
    },
}
CONDITION = 'or getattr(obj, "is_assistant_body", False)'
# What the owner of a game adds: settings; and in a file what stands where something else stood.
ADDED = {
    "own_commands": (
        'EVENNIA_AI_PUBLIC_COMMANDS = ["say"]\nEVENNIA_AI_SPEAK_BY = {"say": "say"}\n',
        {},
    ),
    "looping": (
        'EVENNIA_AI_PUBLIC_COMMANDS = ["pose", "say"]\n',
        {"commands/own.py": ("if obj.has_account:", f"if obj.has_account {CONDITION}:")},
    ),
    "bare": (
        'EVENNIA_AI_PUBLIC_COMMANDS = ["pose", "say"]\n'
        'EVENNIA_AI_SPEAK_BY = {"pose": "pose", "say": "say"}\n'
        'EVENNIA_AI_ACT_BY = {"give": "give {thing} {person}"}\n',
        {},
    ),
}
# What the suite must print before it is added.
NAMED = {
    name: [*(f"To add: {line}" for line in settings.splitlines()), *([CONDITION] if files else [])]
    for name, (settings, files) in ADDED.items()
}
# What a game needs besides Evennia.
NEEDS = {"xyzgrid": "scipy"}
QUICK = """
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:",
                         "TEST": {"MIGRATE": False}}}
MIGRATION_MODULES = type("No", (), {"__contains__": lambda self, app: True,
                                    "__getitem__": lambda self, app: None})()
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SECRET_KEY = "games"
"""


def make(name, folder):
    """A game of that name in a folder."""
    shutil.copytree(EVENNIA / "game_template", folder, ignore=shutil.ignore_patterns("*.pyc"))
    settings = folder / SETTINGS
    settings.write_text(settings.read_text().replace("{servername}", repr(name)))
    (folder / "server/conf/secret_settings.py").write_text(QUICK)
    (folder / "world/tests.py").write_text(OWN_TESTS)
    (folder / "server/logs").mkdir(exist_ok=True)
    for path, text in GAMES[name].items():
        file = folder / path
        if text is None:
            file.unlink()
            continue
        if path == SETTINGS:
            mark = f"{'#' * 70}\n# Settings"
            text = file.read_text().replace(mark, text + "\n" + mark, 1)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def tested(folder, *labels):
    """What `evennia test` prints and returns for some labels."""
    program = (
        "import os, sys, django; sys.path.insert(0, os.getcwd()); django.setup();"
        "from django.core.management import call_command;"
        "call_command('migrate', run_syncdb=True, verbosity=0);"
        "import evennia; evennia._init();"
        "call_command('test', *sys.argv[1:], verbosity=2)"
    )
    extra = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "server.conf.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *extra]),
    }
    command = [sys.executable, "-W", "ignore", "-c", program, *labels]
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    return done.returncode == 0, done.stdout + done.stderr


def tried(name):
    """A row of the table, and what failed, as it was printed."""
    if (needs := NEEDS.get(name)) and importlib.util.find_spec(needs) is None:
        return {}, f"not tried: `{needs}` is not installed"
    with tempfile.TemporaryDirectory(prefix=f"games-{name}-") as base_folder:
        folder = Path(base_folder) / "game"
        make(name, folder)
        before = tested(folder, "world")
        pristine = {path: path.read_bytes() for path in folder.rglob("*.py")}
        install(folder, apply=True, say=lambda line: None)
        # ingame_python's own characters are mute without its script, which only `world` makes.
        labels = ("world",) if name == "ingame_python" else ("world", "evennia_ai")
        unnamed = add_lines(name, folder, labels)
        passed, printed = tested(folder, *labels)
        row = {}
        for test, title in ROWS.items():
            results = re.findall(rf"^{test} [^\n]*(?:\n[^\n]*)??\.\.\. (\w+)$", printed, re.M)
            row[title] = bool(results) and set(results) == {"ok"}
        row["tests"] = passed and before[0]
        row["named"] = not unnamed
        own_tests = folder / "world/tests.py"
        if "from evennia_ai" in own_tests.read_text():  # by hand, as the docs ask
            own_tests.write_text(OWN_TESTS)
            pristine[own_tests] = own_tests.read_bytes()
        for copy in folder.rglob(f"*{BACKUP}"):
            copy.replace(str(copy).removesuffix(BACKUP))
        for path in ADDED.get(name, ("", {}))[1]:
            (folder / path).write_text(GAMES[name][path])
        (folder / "server/conf/secret_settings.py").write_text(QUICK)
        clean, after = tested(folder, "world")
        left = [path.name for path in folder.rglob("*.py") if path.read_bytes() != pristine[path]]
        row["removed"] = clean and not left
    failed = [part for ok, part in ((passed, printed), (clean, after)) if not ok]
    failed += [f"left over: {path}" for path in left]
    return row, "\n".join([*failed, *(f"not named: {line}" for line in unnamed)])


def add_lines(name, folder, labels):
    """Add what the owner of a game adds; the lines that the suite did not name before."""
    if name not in ADDED:
        return []
    _, printed = tested(folder, *labels)
    settings, files = ADDED[name]
    (folder / "server/conf/secret_settings.py").write_text(QUICK + settings)
    for path, (old, new) in files.items():
        file = folder / path
        file.write_text(file.read_text().replace(old, new))
    return [line for line in NAMED[name] if line not in printed]


def main(names):
    """Try these games, or all; the exit code."""
    names = names or list(GAMES)
    with ThreadPoolExecutor(max_workers=2) as pool:
        rows = dict(zip(names, pool.map(tried, names), strict=True))
    titles = [*ROWS.values(), "named", "tests", "removed"]
    print(f"{'':16}", *(f"{title:8}" for title in titles))
    for name, (row, printed) in rows.items():
        cells = (("yes" if row[title] else "NO") if row else "-" for title in titles)
        print(f"{name:16}", *(f"{cell:8}" for cell in cells))
        if not row:
            print(f"{'':16} {printed}")
    for name, (row, printed) in rows.items():
        if row and not all(row.values()):
            print(f"\n--- {name}\n{printed[-12_000:]}")
    return 0 if all(all(row.values()) for row, _ in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
