"""Figures for Prometheus."""

from django.test import Client, override_settings

from tests.base import AssistantTest

TOKEN = "a-long-random-text"


@override_settings(ROOT_URLCONF="tests.web.urls")
class TestMetrics(AssistantTest):
    """Off until a token is set; then for whoever has it."""

    def fetch(self, **headers):
        return Client().get("/ai/metrics", headers=headers)

    def test_off(self):
        """Without a token there is nothing."""
        self.assertEqual(self.fetch().status_code, 404)

    def test_token(self):
        """A wrong or missing token is refused."""
        with override_settings(EVENNIA_AI_METRICS_TOKEN=TOKEN):
            wrong = ("", "Bearer wrong", "Bearer \u00e9", TOKEN, f"bearer {TOKEN}")
            for given in (*wrong, f"Basic {TOKEN}", f"Bearer {TOKEN} ", f"Bearer Bearer {TOKEN}"):
                response = self.fetch(authorization=given)
                self.assertEqual(response.status_code, 403)
                self.assertNotIn(b"Aria", response.content)

    def test_only_the_header(self):
        """A token in the address is none: addresses stand in logs."""
        with override_settings(EVENNIA_AI_METRICS_TOKEN=TOKEN):
            for name in ("token", "Authorization"):
                answer = Client().get("/ai/metrics", {name: f"Bearer {TOKEN}"})
                self.assertEqual(answer.status_code, 403)

    def test_figures(self):
        """Each assistant has its gauges, in Prometheus' format."""
        with override_settings(EVENNIA_AI_METRICS_TOKEN=TOKEN):
            response = self.fetch(authorization=f"Bearer {TOKEN}")
        self.assertEqual(response.status_code, 200)
        self.assertIn(b'evennia_ai_up{assistant="Aria"} 1.0', response.content)
        self.assertIn(b'evennia_ai_context_usage_ratio{assistant="Aria"}', response.content)
