"""The connection between Portal and Server."""

import unittest
from types import SimpleNamespace
from unittest import mock

from django.apps import apps as django_apps
from django.conf import settings
from django.test import override_settings
from evennia.server import amp_client
from evennia.server.portal.amp_server import AMPServerFactory
from twisted.internet.testing import StringTransport
from twisted.protocols.amp import Box

from evennia_ai import apps
from evennia_ai.cli.amp import PortalEnd, ServerEnd, start_plugin_services
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
        self.addCleanup(
            setattr, amp_client, "AMPServerClientProtocol", amp_client.AMPServerClientProtocol
        )
        start_plugin_services(None)
        reactor = started_reactor()
        self.portal = SimpleNamespace(amp_protocol=None)
        self.server = SimpleNamespace(
            amp_protocol=None, get_info_dict=dict, run_initial_setup=lambda: None
        )
        port = reactor.listenTCP(0, AMPServerFactory(self.portal), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        factory = amp_client.AMPClientFactory(self.server)
        with mock.patch.object(ServerEnd, "send_AdminServer2Portal"):
            connector = reactor.connectTCP("127.0.0.1", port.getHost().port, factory)
            self.addCleanup(connector.disconnect)
            self.addCleanup(factory.stopTrying)
            pump_until(lambda: all(end and end.transport for end in self.ends()))

    def ends(self):
        """Portal's end and Server's, once they are there."""
        return self.portal.amp_protocol, self.server.amp_protocol

    def test_sends_at_once(self):
        """Both ends are the package's, and wait for no acknowledgement."""
        for end, kind in zip(self.ends(), (PortalEnd, ServerEnd), strict=True):
            with self.subTest(kind=kind.__name__):
                self.assertIsInstance(end, kind)
                self.assertTrue(end.transport.getTcpNoDelay())


class TestSettings(unittest.TestCase):
    """What the app does with Evennia's settings."""

    def test_a_class_of_the_game_s_own_stays(self):
        """Defaults are replaced; what a game chose is not; the module is added, and once."""
        own = "server.conf.amp.OurEnd"
        with override_settings(
            AMP_SERVER_PROTOCOL_CLASS=own,
            AMP_CLIENT_PROTOCOL_CLASS=apps.REPLACED["AMP_CLIENT_PROTOCOL_CLASS"][0],
            SERVER_SERVICES_PLUGIN_MODULES="server.conf.server_services_plugins",
        ):
            for _ in range(2):
                django_apps.get_app_config("evennia_ai").ready()
            self.assertEqual(settings.AMP_SERVER_PROTOCOL_CLASS, own)
            self.assertEqual(settings.AMP_CLIENT_PROTOCOL_CLASS, "evennia_ai.cli.amp.ServerEnd")
            modules = ["server.conf.server_services_plugins", apps.AMP]
            self.assertEqual(settings.SERVER_SERVICES_PLUGIN_MODULES, modules)

    def test_a_patch_of_the_game_s_own_stays(self):
        """A game that has replaced Evennia's class keeps its own."""
        with mock.patch.object(amp_client, "AMPServerClientProtocol", StringTransport):
            start_plugin_services(None)
            self.assertIs(amp_client.AMPServerClientProtocol, StringTransport)
