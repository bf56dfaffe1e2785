"""`aiconfig`, and options that groups share."""

from django.test import override_settings

from evennia_ai.errors import AssistantError
from evennia_ai.options import EMOTES, OPTIONS, PRESETS
from evennia_ai.staff.configuration import option_called
from evennia_ai.staff.status import warnings
from tests.base import CHARACTER
from tests.command_line import CommandLineTest, WholePagesTest


class TestConfig(WholePagesTest):
    def test_listing(self):
        """Each option stands with value, unit, whether it was changed, and its meaning."""
        self.configure(max_context_tokens=4000)
        self.assertTold(
            "aiconfig Aria",
            *("Compaction", "Model", "Manners", "Life", *OPTIONS),
            "compact_enabled = True (default)\n      Allow compaction.",
            "max_context_tokens = 4000 tokens (set here; default 100000)\n      Largest size of",
        )

    def test_undo(self):
        """The value before a change comes back, word for word, and again the one it replaced."""
        self.assertTold("aiconfig/undo Aria", "No change of Aria can be undone.")
        default, first = OPTIONS["persona"].default, "A thief. " * 400
        self.typed(f"aiconfig Aria persona = {first}")
        for _ in range(2):  # what changes nothing is no change
            self.typed("aiconfig Aria persona = A cook.")
        before = f"as it was before {self.char1.key} changed it just now"
        self.assertTold("aiconfig/undo Aria", before)
        self.assertEqual(self.script.config.persona, first.strip())
        self.typed("aiconfig/undo Aria")
        self.assertEqual(self.script.config.persona, "A cook.")
        self.typed("aiconfig/undo Aria")
        self.typed("aiconfig Aria persona = default")
        self.typed("aiconfig/undo Aria")
        self.assertEqual(self.script.config.persona, first.strip())
        self.typed("aiconfig Aria max_context_tokens = 4000")
        self.typed("aiconfig Aria preset = fewshot")
        self.assertTold("aiconfig/undo Aria", "changed it just now: None")
        for name in PRESETS["fewshot"]:
            self.assertFalse(self.script.attributes.has(name))
        self.assertEqual(self.script.config.max_context_tokens, 4000)
        self.assertNotEqual(self.script.config.persona, default)

    def test_undo_is_checked(self):
        """As a change is: limits are for admins, and a value that may not be stays away."""
        with override_settings(EVENNIA_AI_MODELS=("openai/gpt-4o",)):
            self.typed("aiconfig Aria llm_model = openai/gpt-4o")
            self.typed("aiconfig Aria llm_model = default")
        with override_settings(EVENNIA_AI_MODELS=("openai/gpt-4o-mini",)):
            self.assertTold("aiconfig/undo Aria", "`llm_model`")
        self.typed("aiconfig Aria spend_caps = {'tokens_day': 500}")
        self.be("Builder")
        self.account.is_superuser = False
        self.assertTold("aiconfig/undo Aria", "You may not change Aria")
        self.aria.locks.add("control:all()")
        self.assertTold("aiconfig/undo Aria", "Only admins raise or remove")
        self.assertEqual(self.script.config.spend_caps, {"tokens_day": 500})

    def test_change_takes_effect(self):
        """An option is in force at once, as an Attribute; `default`, or nothing, restores it."""
        for word in ("default", ""):
            self.assertTold("aiconfig Aria max_context_tokens = 4000", "is now 4000")
            self.assertEqual(self.script.config.max_context_tokens, 4000)
            self.assertEqual(self.script.db.max_context_tokens, 4000)
            typed = f"aiconfig Aria max_context_tokens = {word}"
            self.assertTold(typed, "is the default again: 100000")
            self.assertFalse(self.script.attributes.has("max_context_tokens"))

    def test_an_empty_list(self):
        """It is shown as `none` and typed so, whatever the list is of."""
        for option in OPTIONS.values():
            if isinstance(option.default, tuple):
                self.assertTold(f"aiconfig Aria {option.name} = none", "is now none")
                self.assertEqual(getattr(self.script.config, option.name), ())

    def test_one_value_of_several(self):
        """A value of a dict is set alone, and its default is restored alone."""
        self.assertTold("aiconfig Aria emotes.wake = stirs.", "emotes.wake is now stirs.")
        self.assertTold("aiconfig Aria emotes.sleep = none", "emotes.sleep is now None")
        self.assertEqual(self.script.config.emotes, {**EMOTES, "wake": "stirs.", "sleep": None})
        self.assertTold(
            "aiconfig Aria emotes.wake = default", "the default again: stirs and wakes up"
        )
        self.assertEqual(self.script.db.emotes, {"sleep": None})
        self.typed("aiconfig Aria emotes.sleep = default")
        self.assertFalse(self.script.attributes.has("emotes"))
        self.assertTold("aiconfig Aria tool_levels.give = off", "tool_levels.give is now off")
        self.assertTold("aiconfig Aria llm_extra.api_base = 5", "EVENNIA_AI_OPTIONS")
        self.assertTold("aiconfig Aria emotes.dance = 5", "it has no `dance`")
        self.assertTold("aiconfig Aria persona.age = 5", "it has no `age`")
        self.assertTold("aiconfig Aria emotes.wake =", "the default")

    def test_options_of_groups(self):
        """By typeclass, tag or prototype; an own value wins, and the source is named."""
        groups = {
            "evennia_ai.assistant_character.AssistantMixin": {"max_react_iterations": 3},
            "Guards": {"persona": "A guard.", "emotes": {"wake": None}, "post": 5},
            "innkeeper": {"persona": "An innkeeper.", "spend_caps": {"tokens_day": 500}},
            "others": {"persona": "Somebody else."},
        }
        self.aria.tags.add("guards")
        self.aria.tags.add("innkeeper", category="from_prototype")
        with override_settings(EVENNIA_AI_OPTIONS=groups):
            config = self.script.config
            self.assertEqual((config.max_react_iterations, config.persona), (3, "An innkeeper."))
            self.assertEqual(config.emotes, {**EMOTES, "wake": None})
            self.assertTold("aistatus Aria", "Wrong setting: `post` = 5")
            source = 'EVENNIA_AI_OPTIONS["innkeeper"]'
            self.assertTold("aiconfig Aria persona", f"An innkeeper. ({source})")
            self.assertTold("aiconfig Aria persona = A cook.", "is now A cook.")
            self.assertTold("aiconfig Aria", "persona = A cook. (set here; default")
            self.script.attributes.add("spend_caps", {"tokens_day": 9999})
            self.assertEqual(self.script.config.spend_caps, {"tokens_day": 500})
            self.aria.tags.remove("innkeeper", category="from_prototype")
            self.typed("aiconfig Aria persona = default")
            self.assertEqual(self.script.config.persona, "A guard.")
        self.assertEqual(self.script.config.persona, OPTIONS["persona"].default)

    def test_wrong_values(self):
        """A value of another kind is refused in words and nothing changes."""
        wrong = {
            "max_context_tokens = many": "takes a whole number from 50 to 10,000,000, not 'many'",
            "compact_enabled = perhaps": "takes True or False, not 'perhaps'",
            "tool_levels = {'say': 'loud'}": "off, dry run, confirm, on",
            "tool_levels = [[[": "off, dry run, confirm, on",
        }
        for line, says in wrong.items():
            with self.subTest(line=line):
                self.assertTold(f"aiconfig Aria {line}", says)
                self.assertFalse(self.script.attributes.has(line.split()[0]))

    def test_unknown(self):
        """An unknown option or assistant is refused with what may be meant."""
        self.assertTold("aiconfig Aria persnoa = x", "Do you mean persona?")
        self.assertTold("aiconfig Aria qqqq = x", "There is no option `qqqq`. `aiconfig")
        self.assertTold("aiconfig Zed persona = x", "There is no assistant called `Zed`")
        self.assertTold("aiconfig Zed", "There is no assistant called `Zed`")
        self.assertTold("aiconfig Zed persona", "There is no assistant called `Zed`")
        with self.assertRaises(AssistantError):
            option_called("conversation_history")


class TestBuildersWay(CommandLineTest):
    """Evennia's own commands, as a builder who is no admin types them."""

    def setUp(self):
        super().setUp()
        self.be("Builder")
        self.account.characters.add(self.char1)

    def test_create_and_set(self):
        """An assistant made by `create` takes no character slot, and its maker may tune it."""
        self.assertTold(f"create/drop Borin:{CHARACTER}", "You create a new AssistantCharacter")
        borin = next(obj for obj in self.room1.contents if obj.key == "Borin")
        self.assertNotIn(borin, self.account.characters.all())
        self.assertNotIn("hears nothing", self.typed("aistatus Borin"))
        self.assertTold("aiconfig Borin persona = A gruff smith.", "is now A gruff smith.")
        self.typed("set/script Borin/compact_sleep_threshold = 0.5")
        self.assertEqual(borin.assistant.config.compact_sleep_threshold, 0.5)

    def test_carried(self):
        """One that was made without `/drop` is deaf, and its status says so."""
        self.typed(f"create Zed:{CHARACTER}")
        self.assertTold("aistatus Zed", "Zed is carried by Char and hears nothing: drop Zed")
        self.aria.location = None
        self.assertIn("is nowhere and hears nothing", " ".join(warnings(self.script)))

    def test_tools_without_room(self):
        """Tools are said to be missing where the limit leaves them no room, and nowhere else."""
        for limit, is_told in ((100_000, False), (700, True)):
            self.configure(max_context_tokens=limit)
            told = " ".join(warnings(self.script))
            self.assertEqual("tools of Aria are not offered" in told, is_told, limit)

    def test_warnings_of_a_change(self):
        """A change shows the warnings that it brought, and none that was there before."""
        self.typed("ai/create Borin")
        warned = "Warning: \\d+ of the tools of Borin are not offered"
        self.assertRegex(self.typed("aiconfig Borin max_context_tokens = 700"), warned)
        told = self.typed("aiconfig Borin language = German")
        self.assertIn("language is now", told)
        self.assertNotIn("Warning", told)

    def test_not_those_of_others(self):
        """Another's assistant stays as it is."""
        self.typed("set/script Aria/compact_sleep_threshold = 0.5")
        self.assertEqual(self.script.config.compact_sleep_threshold, 0.7)
