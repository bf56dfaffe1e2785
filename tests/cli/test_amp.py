"""The connection between Portal and Server."""

import unittest
from types import SimpleNamespace
from unittest import mock

import evennia
from django.apps import apps as django_apps
from django.conf import settings
from django.test import override_settings
from evennia.server import amp_client
from evennia.server.amp_client import AMPServerClientProtocol
from evennia.server.portal.amp_server import AMPServerFactory
from twisted.internet.testing import StringTransport
from twisted.protocols.amp import Box

from evennia_ai import apps
from evennia_ai.cli.amp import PortalEnd, adjust_server_end
from tests.waiting import pump_until, started_reactor


class TestAmp(unittest.TestCase):
    """Messages, however they are cut."""

    def setUp(self):
        self.side, self.transport, self.got = PortalEnd(), StringTransport(), []
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


class TestConnection(unittest.TestCase):
    """As Evennia makes it, over TCP."""

    def setUp(self):
        """Let Evennia's factories meet, without the game behind them."""
        reactor = started_reactor()
        self.portal = SimpleNamespace(amp_protocol=None)
        self.server = SimpleNamespace(
            amp_protocol=None, get_info_dict=dict, run_initial_setup=lambda: None
        )
        port = reactor.listenTCP(0, AMPServerFactory(self.portal), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        factory = amp_client.AMPClientFactory(self.server)
        service = mock.patch.object(evennia, "EVENNIA_SERVER_SERVICE", self.server)
        service.start()
        self.addCleanup(service.stop)
        with mock.patch.object(AMPServerClientProtocol, "send_AdminServer2Portal"):
            connector = reactor.connectTCP("127.0.0.1", port.getHost().port, factory)
            self.addCleanup(connector.disconnect)
            self.addCleanup(factory.stopTrying)
            pump_until(lambda: all(end and end.transport for end in self.ends()))
        adjust_server_end()

    def ends(self):
        """Portal's end and Server's, once they are there."""
        return self.portal.amp_protocol, self.server.amp_protocol

    def test_sends_at_once(self):
        """Both ends wait for no acknowledgement."""
        for end in self.ends():
            self.assertTrue(end.transport.getTcpNoDelay())

    def test_cut_anywhere(self):
        """The Server's end takes messages however they are cut, as the Portal's does."""
        end, boxes = self.server.amp_protocol, []
        end.ampBoxReceived = boxes.append
        sent = Box({b"_ask": b"1", b"_command": b"Ping"}).serialize() * 2
        for at in range(1, len(sent)):
            boxes.clear()
            end.dataReceived(sent[:at])
            end.dataReceived(sent[at:])
            self.assertEqual(len(boxes), 2, at)
            self.assertFalse(end.transport.disconnecting)

    def test_without_a_connection(self):
        """Before there is one, nothing happens."""
        self.server.amp_protocol = None
        adjust_server_end()


class TestSettings(unittest.TestCase):
    """What the app does with Evennia's settings."""

    def test_a_class_of_the_game_s_own_stays(self):
        """The default is replaced; what a game chose is not; a module is added once."""
        app, own = django_apps.get_app_config("evennia_ai"), "server.conf.amp.OurEnd"
        for before, after in ((own, own), (apps.PORTAL_END, apps.OWN_PORTAL_END)):
            with override_settings(
                AMP_SERVER_PROTOCOL_CLASS=before, AT_SERVER_STARTSTOP_MODULE="server.conf.start"
            ):
                for _ in range(2):
                    app.ready()
                self.assertEqual(settings.AMP_SERVER_PROTOCOL_CLASS, after)
                modules = ["server.conf.start", apps.START_STOP]
                self.assertEqual(settings.AT_SERVER_STARTSTOP_MODULE, modules)
