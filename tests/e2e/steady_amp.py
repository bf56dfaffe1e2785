"""Evennia's link between Portal and Server, without its guess at what is HTTP.

Evennia takes a read that does not begin with a zero byte for HTTP and hangs up, unless the read
before it ended in the middle of a message. Where that ended after a message's last two zero bytes
and the first byte of the next, which is zero too, it is mistaken. Server and Portal then connect
anew and everybody is out of character. In bursts of talk that happens every few hours.
"""

from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp import NUL
from evennia.server.portal.amp_server import AMPServerProtocol


class _Steady:
    """Who has once spoken AMP is not asked again whether it is HTTP."""

    _spoke_amp = False

    def dataReceived(self, data):
        """Take in what has come."""
        self._spoke_amp = self._spoke_amp or data[:1] == NUL
        if self._spoke_amp:
            self.multibatches = 1  # Evennia's note that a read may begin within a message
        super().dataReceived(data)


class PortalSide(_Steady, AMPServerProtocol):
    """For `AMP_SERVER_PROTOCOL_CLASS`."""


class ServerSide(_Steady, AMPServerClientProtocol):
    """For `AMP_CLIENT_PROTOCOL_CLASS`."""
