"""Frames over a connection on which each side has proved that it knows the secret."""

import hashlib
import hmac
import json
import secrets
import struct
from collections.abc import Callable
from typing import Any

from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

from evennia_ai.mind.codec import MAX_FRAME

# The version of what is sent: sides of different versions do not talk.
VERSION = 1
# Before the proof: the largest frame, and the longest wait, in seconds.
_GREETING_BYTES = 4096
_GREETING_S = 20.0


class Frames(Int32StringReceiver):
    """One end of a connection.

    The side that listens begins with a nonce; the one that connects answers with its own and with
    its proof; the first replies with its proof. `proved`, `received` and `lost` are the owner's.

    Args:
        secret: What both sides know.
        listens: Whether this side listens.
        facts: What this side tells the other one with its proof, plain data.
        clock: Ends a greeting that takes too long.
    """

    MAX_LENGTH = _GREETING_BYTES
    transport: Any  # Twisted's interfaces have no types of their own

    def __init__(self, secret: str, listens: bool, facts: dict[str, Any], clock: Any):
        self._secret, self._listens, self._facts = secret.encode("ascii"), listens, facts
        self._nonces = {listens: secrets.token_hex(16)}
        self._chunks: list[bytes] = []
        self._held, self._wanted = 0, 0
        self.is_proved = False
        self._clock = clock
        self._waiting: Any = None
        self.proved: Callable[[dict[str, Any]], object] = lambda facts: None
        self.received: Callable[[bytes], object] = lambda data: None
        self.lost: Callable[[], object] = lambda: None

    def connectionMade(self) -> None:
        """Begin the greeting."""
        self._waiting = self._clock.callLater(_GREETING_S, self.abort)
        if self._listens:
            self._greet({"nonce": self._nonces[True]})

    def dataReceived(self, data: bytes) -> None:
        """Collect the chunks of a long frame, which the parent would copy for each chunk."""
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._wanted:
            return
        joined, self._chunks = b"".join(self._chunks), []
        super().dataReceived(joined)  # type: ignore[no-untyped-call]
        left = self._unprocessed
        self._held, self._wanted = len(left), 0
        if len(left) >= 4:
            self._wanted = 4 + struct.unpack("!I", left[:4])[0]

    def stringReceived(self, string: bytes) -> None:
        """Take a frame, or a step of the greeting."""
        if self.is_proved:
            self.received(string)
            return
        try:
            self._greeted(json.loads(string))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.abort()

    def _greeted(self, said: dict[str, Any]) -> None:
        if "nonce" in said:
            self._nonces[not self._listens] = str(said["nonce"])
        if not self._listens and "proof" not in said:
            self._greet({"nonce": self._nonces[False], "proof": self._proof(False), **self._facts})
            return
        wanted = self._proof(not self._listens)
        if said.get("version") != VERSION or not hmac.compare_digest(str(said["proof"]), wanted):
            self.abort()
            return
        if self._listens:
            self._greet({"proof": self._proof(True), **self._facts})
        self._end_waiting()
        self.is_proved, self.MAX_LENGTH = True, MAX_FRAME
        self.proved(said)

    def _greet(self, said: dict[str, Any]) -> None:
        self.send(json.dumps({"version": VERSION, **said}).encode())

    def _proof(self, listens: bool) -> str:
        said = f"{listens} {self._nonces[True]} {self._nonces[False]}"
        return hmac.new(self._secret, said.encode(), hashlib.sha256).hexdigest()

    def _end_waiting(self) -> None:
        if self._waiting is not None and self._waiting.active():
            self._waiting.cancel()

    def send(self, data: bytes) -> None:
        """Send a frame."""
        self.sendString(data)  # type: ignore[no-untyped-call]

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abortConnection()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.transport.loseConnection()

    def lengthLimitExceeded(self, length: int) -> None:
        """What is longer than any frame is none."""
        self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell the owner, if it was told that there is a connection."""
        self._end_waiting()
        if self.is_proved:
            self.is_proved = False
            self.lost()
