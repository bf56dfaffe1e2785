"""The two ends of Evennia's connection between Portal and Server, with two of its faults mended.

Players meet both faults when much is said, in games with and without assistants:

- By Nagle's algorithm a small message waits until the one before it is acknowledged, which the
  other side puts off by up to 40 ms. With fifty players talking, somebody else's `look` waits that
  long.
- Evennia takes a read that does not begin with a zero byte for HTTP and hangs up, unless the read
  before it ended in the middle of a message. Where that ended after a message's last two zero bytes
  and the first byte of the next, which is zero too, it is mistaken. Portal and Server then connect
  anew, and everybody is out of character.
"""

from django.conf import settings
from evennia.server import amp_client
from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp import NUL
from evennia.server.portal.amp_server import AMPServerProtocol
from evennia.utils.utils import class_from_module


class _End:
    """Sends at once, and does not ask again whether it is HTTP once AMP was spoken."""

    _spoke_amp = False

    def connectionMade(self) -> None:
        """Called when the two are connected."""
        self.transport.setTcpNoDelay(True)  # type: ignore[attr-defined]
        super().connectionMade()  # type: ignore[misc]

    def dataReceived(self, data: bytes) -> None:
        """Take in what has come."""
        self._spoke_amp = self._spoke_amp or data[:1] == NUL
        if self._spoke_amp:
            self.multibatches = 1  # Evennia's note that a read may begin within a message
        super().dataReceived(data)  # type: ignore[misc]


class PortalEnd(_End, AMPServerProtocol):
    """For ``AMP_SERVER_PROTOCOL_CLASS``."""


class ServerEnd(_End, AMPServerClientProtocol):
    """For ``AMP_CLIENT_PROTOCOL_CLASS``."""


def start_plugin_services(server: object) -> None:
    """Called in the Server before it connects: let Evennia heed ``AMP_CLIENT_PROTOCOL_CLASS``.

    Evennia 5.0 and 6.1 read that setting, and then make `AMPServerClientProtocol` all the same. A
    game that has put its own class in the place of that one keeps it.
    """
    if amp_client.AMPServerClientProtocol is AMPServerClientProtocol:
        amp_client.AMPServerClientProtocol = class_from_module(settings.AMP_CLIENT_PROTOCOL_CLASS)
