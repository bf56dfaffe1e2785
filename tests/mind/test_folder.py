"""Where the Server and the mind's process meet."""

import os
import stat
import tempfile
import unittest
from pathlib import Path

from evennia_ai.errors import ConfigError
from evennia_ai.mind.folder import MindFolder


class TestFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = Path(folder.name)

    def test_only_the_user_may_enter(self):
        """The folder and the secret are the user's alone."""
        folder = MindFolder(self.base / "mind")
        folder.path.mkdir(mode=0o755)
        folder.prepare()
        secret = folder.secret()
        self.assertEqual(stat.S_IMODE(folder.path.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE((folder.path / "secret").stat().st_mode), 0o600)
        self.assertEqual(secret, MindFolder(self.base / "mind").secret())
        self.assertEqual(len(secret), 64)

    def test_a_path_too_long_for_a_socket(self):
        """The socket stands in a folder of the user's own; each game has another."""
        first = MindFolder(self.base / ("long" * 30) / "one")
        second = MindFolder(self.base / ("long" * 30) / "two")
        self.assertLess(len(os.fsencode(first.socket)), 100)
        self.assertNotEqual(first.socket, second.socket)
        first.prepare()
        self.addCleanup(first.socket.parent.rmdir)
        self.assertEqual(stat.S_IMODE(first.socket.parent.stat().st_mode), 0o700)

    def test_a_folder_that_is_a_link_is_refused(self):
        """Somebody else may have put it there."""
        folder = MindFolder(self.base / ("long" * 30) / "three")
        folder.socket.parent.symlink_to(self.base)
        self.addCleanup(folder.socket.parent.unlink)
        with self.assertRaisesRegex(ConfigError, "must be a folder"):
            folder.prepare()

    def test_two_games_do_not_share(self):
        """Sockets differ by the game's folder."""
        one, two = (MindFolder(self.base / name / "server" / "mind") for name in ("a", "b"))
        self.assertNotEqual(one.socket, two.socket)

    def test_the_lock_is_one_process_s(self):
        """A second holder is refused."""
        folder = MindFolder(self.base / "mind")
        folder.prepare()
        other = MindFolder(self.base / "mind")
        self.assertTrue(folder.lock())
        self.assertFalse(other.lock())
