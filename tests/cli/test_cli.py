"""The console script: what it makes, what it refuses, and with which exit code."""

import contextlib
import io
import itertools
import json
import os
import re
import shutil
import socket
import stat
import tempfile
import unittest
from pathlib import Path
from unittest.mock import Mock, patch

import evennia

from evennia_ai.cli import launcher
from evennia_ai.cli import main as cli
from evennia_ai.cli.new import create_game
from evennia_ai.cli.ports import VARIABLES, GamePorts, busy, game_ports, with_free_inner_ports
from evennia_ai.cli.run import (
    PASSWORD_FILE,
    PASSWORD_VARIABLE,
    PROGRAM,
    admin_password,
    start_game,
    stored_password,
)
from evennia_ai.errors import ConfigError
from tests.local_servers import LM_STUDIO, OLLAMA, serving


def run(*argv, main=cli.main):
    """Run the console script; returns exit code, what it printed, and its errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()


class InFolder(unittest.TestCase):
    def setUp(self):
        self.base = Path(self.enterContext(tempfile.TemporaryDirectory()))


class TestNew(InFolder):
    def test_a_game_has_every_module_of_evennia_and_ours(self):
        """The folder holds Evennia's template with our files laid over it."""
        code, shown, _ = run("new", str(self.base / "tavern"), "--no-start")
        self.assertEqual(code, 0)
        self.assertIn("evennia-ai start", shown)
        for name in ("server/conf/lockfuncs.py", "web/admin/urls.py", "world/build.py"):
            self.assertTrue((self.base / "tavern" / name).is_file(), name)
        settings = (self.base / "tavern/server/conf/settings.py").read_text()
        self.assertIn('SERVERNAME = "tavern"', settings)

    def test_nothing_of_another_game_is_copied(self):
        """What was written into Evennia's template, as where it ran without a game, stays there."""
        server = Path(evennia.__file__).parent / "game_template" / "server"
        data = Path(tempfile.mkdtemp(prefix="ai_", dir=server))
        self.addCleanup(shutil.rmtree, data)
        (data / "recall.sqlite3").touch()
        game = create_game(self.base / "fresh")
        self.assertEqual(list((game / "server").glob("ai_*")), [])

    def test_secrets_are_random_private_and_ignored_by_git(self):
        """Two games have two keys, only the owner can read them, and git leaves them out."""
        games = [create_game(self.base / name) for name in ("one", "two")]
        paths = [game / "server/conf/secret_settings.py" for game in games]
        self.assertNotEqual(paths[0].read_text(), paths[1].read_text())
        self.assertEqual(stat.S_IMODE(paths[0].stat().st_mode), 0o600)
        ignored = (games[0] / ".gitignore").read_text()
        self.assertIn("server/conf/secret_settings.py", ignored)
        self.assertIn("admin_password.txt", ignored)

    def test_bad_folders_are_refused_in_one_line(self):
        """Each has exit code 2 and one line that says why, and no traceback."""
        (self.base / "full").mkdir()
        (self.base / "full" / "file").touch()
        (self.base / "file").touch()
        bad = ("full", "file", "9lives", "my game", "evennia", "no/parent/here", "naïve")
        for name in bad:
            with self.subTest(name=name):
                code, shown, error = run("new", str(self.base / name))
                self.assertEqual((code, shown), (2, ""))
                self.assertRegex(error, r"\Aevennia-ai: .+\n\Z")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_the_right_to_write_is_refused(self):
        """Nothing is made, and the folder is named."""
        locked = self.base / "locked"
        locked.mkdir(mode=0o500)
        code, _, error = run("new", str(locked / "game"), "--no-start")
        self.assertEqual(code, 2)
        self.assertIn("cannot be written", error)

    def test_a_game_is_reused_only_when_asked(self):
        """An empty folder becomes a game; one with `--reuse` stays, without it is refused."""
        (self.base / "tavern").mkdir()
        game = create_game(self.base / "tavern")
        (game / "mine.txt").write_text("kept")
        self.assertEqual(run("new", str(game), "--no-start")[0], 2)
        self.assertEqual(run("new", str(game), "--no-start", "--reuse")[0], 0)
        self.assertEqual((game / "mine.txt").read_text(), "kept")

    def test_the_settings_for_models_of_this_machine_are_shown(self):
        """Both lines for each model; where nobody answers, what was looked for."""
        game = str(self.base / "tavern")
        with serving(OLLAMA, {"/v1/models": {"data": []}}, LM_STUDIO) as servers:
            code, shown, _ = run("new", game, "--no-start", "--model")
        self.assertEqual(code, 0)
        self.assertIn(f"{game}/server/conf/secret_settings.py", shown)
        self.assertIn("no model yet", shown)
        models = ("ollama_chat/qwen2.5:1.5b", "ollama_chat/llama3.2:latest")
        for model, server in zip((*models, "openai/qwen2.5-7b-instruct"), (0, 0, 2), strict=True):
            address = f"http://127.0.0.1:{servers[server].server_port}"
            address += "/v1" if server else ""
            lines = f"EVENNIA_AI_LLM_MODEL = '{model}'\n  EVENNIA_AI_LLM_API_BASE = '{address}'\n"
            self.assertIn(lines, shown)
        with serving({}):
            shown = run("new", game, "--no-start", "--reuse", "--model")[1]
        self.assertIn("No model server answers on this machine. Looked for: Ollama (port", shown)
        self.assertNotIn("EVENNIA_AI_LLM", shown)


class TestOtherCommands(InFolder):
    def test_each_command_explains_itself_with_examples(self):
        """`--help` of each one ends with commands that its parser takes."""
        for name in ("new", "start", "stop", "install", "doctor", "card"):
            with self.subTest(name):
                code, shown, _ = run(name, "--help")
                self.assertEqual(code, 0)
                rows = shown.partition("examples:\n")[2].splitlines()
                commands = [re.split(" {2,}", row[row.index("evennia-ai") :])[0] for row in rows]
                self.assertGreater(len(commands), 1)
                for command in commands:
                    cli._parser().parse_args(command.split()[1:])

    def test_a_folder_without_a_game_is_refused_by_all(self):
        """Start, stop, install and doctor say that it is no game; an unknown word is refused."""
        self.assertEqual(run("dance")[0], 2)
        for command in ("start", "stop", "install", "doctor"):
            with self.subTest(command=command):
                code, _, error = run(command, str(self.base))
                self.assertEqual(code, 2)
                self.assertIn("not a game folder", error)

    def test_usage_of_evennia_ai(self):
        """Without a word, or asked for help, `evennia ai` shows its usage; another is a fault."""
        for *words, wanted in ((0,), ("help", 0), ("--help", 0), ("-h", 0), ("frobnicate", 2)):
            code, shown, _ = run(*words, main=lambda argv: launcher.main(*argv))
            self.assertIn("evennia ai doctor", shown)
            self.assertEqual(code, wanted, words)

    def test_stopping_what_is_not_there_is_no_error(self):
        """It only removes the pid file of a dead process, and that of another program."""
        self.assertEqual(run("stop", str(self.base / "demo"))[0], 0)
        game = create_game(self.base / "tavern")
        (game / "server/server.pid").write_text("999999999")
        (game / "server/portal.pid").write_text(str(os.getpid()))
        code, shown, _ = run("stop", str(game))
        self.assertEqual(code, 0)
        self.assertIn("was not running", shown)
        self.assertEqual(list((game / "server").glob("*.pid")), [])

    def test_starting_on_a_taken_port_names_it(self):
        """The message names the port and its variable, and ends with a command on free ones."""
        game = create_game(self.base / "tavern")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            environ = {**os.environ, "TELNET_PORT": str(port)}
            clock = Mock(monotonic=itertools.count().__next__)  # it waits for what may end soon
            refused = self.assertRaisesRegex(ConfigError, rf"{port}.*TELNET_PORT")
            with (
                patch("evennia_ai.processes.time", clock),
                patch.dict(os.environ),
                refused as raised,
            ):
                start_game(game, environ, lambda line: None)
        line = str(raised.exception).splitlines()[1].split()
        self.assertEqual(line[3:5], [PROGRAM, "start"])
        proposed = {word.partition("=")[0]: int(word.partition("=")[2]) for word in line[:3]}
        self.assertEqual(tuple(proposed), tuple(VARIABLES.values()))
        self.assertEqual(busy(GamePorts(*proposed.values())), {})


class TestGamePorts(InFolder):
    def setUp(self):
        super().setUp()
        (self.base / "server").mkdir()

    def test_the_record(self):
        """What was chosen once holds without the variables; a damaged record is made again."""
        first = game_ports(self.base, {"TELNET_PORT": "14000", "WEBSERVER_PORT": "14001"})
        self.assertEqual(game_ports(self.base, {}), first)
        for text in ("{", "[]", json.dumps({"telnets": 1})):
            (self.base / "server/ports.json").write_text(text)
            self.assertEqual(game_ports(self.base, {}).telnet, 4000)

    def test_no_two_of_the_five_are_the_same(self):
        """Inner ports keep clear of public ones, also at the end of the range."""
        for telnet in (3999, 4001 + 995, 65530, 65535):
            with self.subTest(telnet=telnet):
                environ = {
                    "TELNET_PORT": str(telnet),
                    "WEBSERVER_PORT": str(telnet - 1),
                    "WEBSOCKET_PORT": str(telnet - 2),
                }
                ports = game_ports(self.base, environ)
                five = {*ports.public().values(), ports.amp, ports.internal}
                self.assertEqual(len(five), 5)
                self.assertTrue(all(0 < port <= 65535 for port in five))

    def test_what_is_no_port_is_refused(self):
        """Words, zero, too large numbers and the same port twice are refused by name."""
        for value in ("abc", "0", "65536", "-1"):
            with self.subTest(value=value), self.assertRaisesRegex(ConfigError, "TELNET_PORT"):
                game_ports(self.base, {"TELNET_PORT": value})
        with self.assertRaisesRegex(ConfigError, "same"):
            game_ports(self.base, {"TELNET_PORT": "4002"})

    def test_taken_inner_ports_are_passed_over(self):
        """A port somebody listens on is not chosen; a public one is reported as busy."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            ports = with_free_inner_ports(GamePorts(telnet=port - 5))
            self.assertNotIn(port, (ports.internal, ports.amp))
            self.assertEqual(busy(GamePorts(telnet=port))["telnet"], port)


class TestAdminPassword(InFolder):
    def test_a_made_up_password_stays_the_same_and_private(self):
        """A later start keeps it, unless another is given; only its owner can read it."""
        first, changed = admin_password(self.base, {})
        self.assertTrue(changed)
        self.assertEqual(admin_password(self.base, {}), (first, False))
        path = self.base / PASSWORD_FILE
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertGreaterEqual(len(first), 12)
        environ = {PASSWORD_VARIABLE: "given-one"}
        self.assertEqual(admin_password(self.base, environ), ("given-one", True))
        self.assertEqual(stored_password(self.base), "given-one")

    def test_a_password_that_cannot_be_typed_is_refused(self):
        """Spaces and what telnet's command line splits at are refused."""
        for password in ("two words", 'a"b', "a;b", "tab\t"):
            with self.subTest(password=password), self.assertRaises(ConfigError):
                admin_password(self.base, {PASSWORD_VARIABLE: password})
