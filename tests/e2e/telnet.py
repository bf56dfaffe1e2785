"""A small telnet client for playing a game from a test, on nothing but sockets."""

import re
import socket
import time

IAC, DONT, DO, WONT, WILL = 255, 254, 253, 252, 251
# A subnegotiation to its end, a verb with its option, or a command of one byte.
_COMMAND = re.compile(rb"\xff(?:\xfa.*?\xff\xf0|[\xfb-\xfe].|[^\xfa-\xfe])", re.DOTALL)
_WHOLE = re.compile(rb"(?:[^\xff]|" + _COMMAND.pattern + rb")*", re.DOTALL)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Timeout(AssertionError):
    """What was waited for did not come; the message holds what came instead."""


class Telnet:
    """A player's connection.

    Every option the game offers is refused, so that plain lines go both ways. Text is kept from
    the end of the last match on; what came before is in `transcript`.

    Args:
        port: The game's telnet port.
        host: Where it listens.
        timeout_s: How long to wait for things where nothing else is said, seconds.
    """

    def __init__(self, port, host="127.0.0.1", timeout_s=20.0):
        self.timeout_s = timeout_s
        self.transcript = ""
        self._unread = ""
        self._raw = b""
        self._socket = socket.create_connection((host, port), timeout=timeout_s)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        """Hang up."""
        self._socket.close()

    def login(self, name, password):
        """Log in with an account; returns what the game showed."""
        self._meet(f"connect {name} {password}")
        shown = self.read_until(r"You become |That account name|password is not correct|banned")
        if "You become" not in shown:
            raise AssertionError(f"`{name}` cannot log in: {shown}")
        return shown + self.drain(0.5)

    def create(self, name, password):
        """Make an account and log in with it; returns what the game showed."""
        self._meet(f"create {name} {password}")
        shown = self.read_until(r"\[Y\]/N|was created|[Ee]rror|already")
        if "[Y]/N" in shown:
            self.send("y")
            shown += self.read_until(r"was created")
        self.drain(0.3)
        self.send(f"connect {name} {password}")
        return shown + self.read_until(r"You become ") + self.drain(0.5)

    def _meet(self, line):
        """Type a line as soon as the game has shown its first page."""
        self.read_until(r"connect")
        self.drain(0.3)
        self.send(line)

    def send(self, line):
        """Type a line."""
        data = line.encode("utf-8").replace(bytes([IAC]), bytes([IAC, IAC]))
        self._socket.sendall(data + b"\r\n")

    def ask(self, line, pattern, timeout_s=None):
        """Type a line and wait for its answer; returns what was shown up to and with it."""
        self.drain(0.05)
        self.send(line)
        return self.read_until(pattern, timeout_s)

    def read_until(self, pattern, timeout_s=None):
        """Wait until a regular expression is found in what the game shows.

        Returns:
            The text up to the end of the match.

        Raises:
            Timeout: It was not found in time, or the game hung up.
        """
        end = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        while True:
            found = re.search(pattern, self._unread)
            if found:
                text, self._unread = self._unread[: found.end()], self._unread[found.end() :]
                return text
            if not self._receive(end - time.monotonic()):
                raise Timeout(f"no `{pattern}` in: {self._unread[-2000:]!r}")

    def drain(self, quiet_s=0.5):
        """All that comes until the game has been quiet for a time."""
        while self._receive(quiet_s):
            continue
        text, self._unread = self._unread, ""
        return text

    def _receive(self, timeout_s):
        """Take in what has come; False if nothing came in time, or the game hung up."""
        if timeout_s <= 0:
            return False
        self._socket.settimeout(timeout_s)
        try:
            part = self._socket.recv(65536)
        except (TimeoutError, ConnectionError):
            return False
        text = self._text(part)
        self._unread += text
        self.transcript += text
        return bool(part)

    def _text(self, part):
        """Text out of bytes, whose commands are answered; an unfinished one waits for its rest."""
        data = self._raw + part
        whole = _WHOLE.match(data).end()
        self._raw = data[whole:]
        plain = _COMMAND.sub(self._answer, data[:whole])
        return _ANSI.sub("", plain.decode("utf-8", "replace").replace("\r", ""))

    def _answer(self, command):
        """Refuse what the game offers or asks for; returns what is part of the text."""
        verb, option = command[0][1], command[0][2:3]
        if verb in (WILL, DO):
            self._socket.sendall(bytes([IAC, DONT if verb == WILL else WONT]) + option)
        return bytes([IAC]) if verb == IAC else b""
