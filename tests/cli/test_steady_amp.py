"""The link between Portal and Server of games started by tests."""

import unittest

from twisted.internet.testing import StringTransport
from twisted.protocols.amp import Box

from tests.e2e.steady_amp import PortalSide


class TestSteadyAmp(unittest.TestCase):
    """Messages, however they are cut."""

    def setUp(self):
        self.side, self.transport, self.got = PortalSide(), StringTransport(), []
        # What connecting does in a game needs its Portal; boxes only are looked at here.
        self.side.transport = self.transport
        self.side.ampBoxReceived = self.got.append

    def test_cut_anywhere(self):
        """Two messages arrive, whatever two reads they come in."""
        boxes = [Box({b"_ask": b"1", b"_command": b"Ping"}), Box({b"_ask": b"2", b"n": b"\0\0"})]
        sent = b"".join(box.serialize() for box in boxes)
        for at in range(1, len(sent)):
            with self.subTest(at=at):
                self.setUp()
                self.side.dataReceived(sent[:at])
                self.side.dataReceived(sent[at:])
                self.assertEqual(self.got, boxes)
                self.assertFalse(self.transport.disconnecting)

    def test_http(self):
        """Who never spoke AMP is told so, and hung up on."""
        self.side.dataReceived(b"GET / HTTP/1.1\r\n\r\n")
        self.assertEqual(self.got, [])
        self.assertTrue(self.transport.disconnecting)
