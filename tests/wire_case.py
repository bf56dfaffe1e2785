"""A test case whose model is a server on loopback."""

from evennia_ai import services
from evennia_ai.llm_interaction.client import ModelClient
from tests import loopback
from tests.base import AssistantTest
from tests.loopback import LoopbackServer, check_pairs, count_tokens
from tests.waiting import wait_for

LIMIT = 4000
QUICK = 0.01


class WireTest(AssistantTest):
    """An assistant whose model is a server on loopback."""

    def setUp(self):
        super().setUp()
        self.server = LoopbackServer(self.respond).start()
        client = ModelClient(api_base=self.server.url, api_key="sk-test", pause_s=QUICK)
        wait_for(client.warm_up())
        services.use(model=client)
        # Its trial is over before anybody speaks.
        wait_for(client.trial(self.script.model_name))
        self.configure(max_context_tokens=LIMIT, llm_timeout_s=2.0)

    def tearDown(self):
        services.mind().model.cancel_all()
        self.server.stop()
        super().tearDown()

    def respond(self, body):
        """What the server answers; a plain sentence by default."""
        return loopback.text("So they say.")

    def recorded(self):
        """All messages, archived ones and live ones (markers left out), in order."""
        live = [m for m in self.script.history.messages() if not m.is_summary]
        return [m for s in self.script.history.segments() for m in s.messages] + live

    def recorded_contents(self, role):
        """Contents of all recorded messages of a role."""
        return [m.content for m in self.recorded() if m.role == role]

    def assert_requests_legal(self):
        """No request exceeds the limit or parts a call from its result."""
        limit = self.script.config.max_context_tokens
        for body in self.server.bodies:
            check_pairs(body)
            self.assertLessEqual(count_tokens(body) + body.get("max_tokens", 0), limit)
