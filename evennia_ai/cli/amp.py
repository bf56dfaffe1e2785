"""The two ends of Evennia's connection between Portal and Server, with two of its faults mended.

Players meet both faults when much is said, in games with and without assistants:

- By Nagle's algorithm a small message waits until the one before it is acknowledged, which the
  other side puts off by up to 40 ms. With fifty players talking, somebody else's `look` waits that
  long.
- Evennia takes a read that does not begin with a zero byte for HTTP and hangs up, unless the read
  before it ended in the middle of a message. Where that ended after a message's last two zero bytes
  and the first byte of the next, which is zero too, it is mistaken. Portal and Server then connect
  anew, and everybody is out of character.

Evennia has a setting for the class of the Portal's end. For the Server's it heeds none, so that
connection is adjusted once it is made; one that is made anew while the Server runs is Evennia's.
"""

import evennia
from evennia.server.portal.amp import NUL
from evennia.server.portal.amp_server import AMPServerProtocol

# Evennia counts these down, one a message, while it takes any read for a part of messages.
_ALWAYS = 10**12


class PortalEnd(AMPServerProtocol):
    """For ``AMP_SERVER_PROTOCOL_CLASS``: it asks for HTTP only until AMP was spoken."""

    def connectionMade(self) -> None:
        """Called when the two are connected."""
        self.transport.setTcpNoDelay(True)
        super().connectionMade()

    def dataReceived(self, data: bytes) -> None:
        """Take in what has come."""
        if data[:1] == NUL:
            self.multibatches = _ALWAYS
        super().dataReceived(data)


def adjust_server_end() -> None:
    """Let the Server's end send at once, and take all that it reads for AMP."""
    end = getattr(evennia.EVENNIA_SERVER_SERVICE, "amp_protocol", None)
    if end is not None and end.transport is not None:
        end.transport.setTcpNoDelay(True)
        end.multibatches = _ALWAYS
