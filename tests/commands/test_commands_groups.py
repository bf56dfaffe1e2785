"""`aiconfig/group`: options for all with a tag, of a prototype or of a class."""

from evennia import create_object
from evennia.prototypes.prototypes import PROTOTYPE_TAG_CATEGORY

from evennia_ai import services
from tests.base import CHARACTER
from tests.command_line import CommandLineTest


class TestGroups(CommandLineTest):
    """Scene 7."""

    def setUp(self):
        super().setUp()
        self.boris = create_object(CHARACTER, key="Boris", location=self.room1)
        self.boris.assistant.stop()
        for body in (self.aria, self.boris):
            body.tags.add("guard")

    def persona(self, body):
        return body.assistant.config.persona

    def test_scene(self):
        """All have it but who has an own value; `aiconfig` names the source; undone in one step."""
        before = self.persona(self.aria)
        self.typed("aiconfig Boris persona = A smith.")
        told = self.typed("aiconfig/group tag:guard persona = You serve the Watch.")
        self.assertIn("tag:guard: persona is now You serve the Watch.", told)
        self.assertIn("In the group: Aria, Boris", told)
        self.assertEqual(self.persona(self.aria), "You serve the Watch.")
        self.assertEqual(self.persona(self.boris), "A smith.")
        self.assertTold("aiconfig Aria persona", "(tag:guard)")
        self.assertTold("aiconfig/group", "tag:guard: persona = You serve the Watch.")
        services.kept("groups", dict).clear()  # another start of the server
        self.assertEqual(self.persona(self.aria), "You serve the Watch.")
        self.typed("aiconfig/group tag:guard persona = You sleep.")
        self.assertTold("aiconfig/undo tag:guard persona", "persona is now You serve the Watch.")
        self.assertEqual(self.persona(self.aria), "You serve the Watch.")
        self.assertTold(
            "aiconfig/group tag:guard persona = default", "It was: You serve the Watch."
        )
        self.assertEqual(self.persona(self.aria), before)
        self.assertTold("aiconfig/group", "No group has options.")

    def test_undo_by_name(self):
        """A group's name may hold spaces, and an assistant be called as a kind of group."""
        for text in ("one", "two"):
            self.typed(f"aiconfig/group tag:old guard persona = {text}")
        self.assertTold("aiconfig/undo tag:old guard", "persona is now one")
        self.aria.key = "class"
        for text in ("A smith.", "A cook."):
            self.typed(f"aiconfig class persona = {text}")
        self.assertTold("aiconfig/undo class", "persona is A smith. again")

    def test_order(self):
        """A tag wins over a prototype, this over a class; another class is none of theirs."""
        self.aria.tags.add("town_guard", category=PROTOTYPE_TAG_CATEGORY)
        self.typed(f"aiconfig/group class:{CHARACTER} persona = class")
        self.assertEqual(self.persona(self.aria), "class")
        self.typed("aiconfig/group prototype:town_guard persona = prototype")
        self.assertEqual(self.persona(self.aria), "prototype")
        self.typed("aiconfig/group tag:guard persona = tag")
        self.assertEqual(self.persona(self.aria), "tag")
        self.typed("aiconfig/group tag:thief persona = thief")
        self.assertEqual(self.persona(self.boris), "tag")

    def test_refused(self):
        """Wrong groups, values and options; a builder lifts no limit and touches no others."""
        self.assertTold("aiconfig/group guard persona = x", "A group is one of tag:<name>")
        self.assertTold("aiconfig/group tag:guard initiative = often", "`initiative` takes")
        self.assertTold("aiconfig/group tag:guard emotes.wake = x", "Give tag:guard the whole")
        self.assertTold("aiconfig/group tag:guard llm_model = http://x/y", "`llm_model`")
        self.assertTold("aiconfig/group tag:guard", "Usage: aiconfig/group")
        self.be("Builder")
        self.account.is_superuser = False
        self.assertTold("aiconfig/group tag:guard persona = x", "Only admins give `persona`")
        self.assertTold("aiconfig/group tag:x spend_caps = {}", "Only admins give `spend_caps`")
        self.assertTold("aiconfig/group tag:thief persona = x", "tag:thief: persona is now x")
