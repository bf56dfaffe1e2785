"""Tools as a model calls them in a game, and who asked for it."""

import json

from evennia_ai.testing import call
from evennia_ai.turns.tools import Tool
from evennia_ai.turns.tools.base import Text
from tests.base import AssistantTest

OBJECT = "evennia.objects.objects.DefaultObject"
done: list[str] = []  # what the tools below and their like have done


class RingBell(Tool):
    """Ring the bell over the bar."""

    name = "ring_bell"
    parameters = {"how": Text("Softly or loudly.")}
    lock = "tool:perm(Builder)"

    def run(self, ctx, how):
        """Ring it."""
        done.append(self.name)
        return "It rings."


def rank(account, permission):
    """Give an account this permission and no other."""
    account.is_superuser = False
    account.permissions.clear()
    account.permissions.add(permission)


def named_by(calls):
    """What some calls do, and what their arguments name, as somebody may say it."""
    named = []
    for function in (each["function"] for made in calls for each in made):
        values = json.loads(function["arguments"]).values()
        named.append(" ".join([function["name"].replace("_", " "), ", ".join(map(str, values))]))
    return "; ".join(named)


class AskedTest(AssistantTest):
    """`self.char2`, a player without rank, stands beside Aria and `self.char1`."""

    def setUp(self):
        super().setUp()
        self.char2.location = self.room1
        rank(self.account2, "Player")
        self.char2.account = self.account2
        self.char2.sessions.add(self.session)  # so that a player speaks, not a scripted character

    def results(self):
        """Results of all calls that were made, but for those of silence."""
        messages = self.script.history.messages()
        return [m.content for m in messages if m.role == "tool" and m.name != "noop"]

    def ask(self, *calls, asker=None, last=None):
        """A player names what the model's calls name; returns the calls' results."""
        before = len(self.results())
        speaker = asker or self.char2
        answers = [*calls, last or call("noop")]
        self.talk(f"Aria, do it: {named_by(calls)}", *answers, speaker=speaker)
        return self.results()[before:]
