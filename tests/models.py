"""A scripted model that reads marks as the client does, and can keep its answers waiting."""

from dataclasses import replace

from twisted.internet.defer import Deferred

from evennia_ai import testing
from evennia_ai.history.messages import new_id
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.tool_calls import tool_call


def as_read(reply, request):
    """A reply as the client reads it: without marks, with the calls that it writes as text."""
    answer = read(reply.content, request.called, request.reported)
    calls = tuple(tool_call(new_id("call_"), *each) for each in answer.calls)
    calls = reply.tool_calls or calls
    return replace(reply, content=answer.text, tool_calls=calls)


class ScriptedModel(testing.ScriptedModel):
    """The shipped one, and more.

    Attributes:
        held: Whether answers wait until `release` is called.
        price: US dollars for a token of a prompt and of a reply; None if unknown.
        own: Whether it runs on the game's own machine.
        tried: The names of models that were tried out.
    """

    held = own = False
    price = None

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.tried, self._waiting = [], []

    def complete(self, request):
        answer = super().complete(request)
        answer.addCallback(lambda reply: reply if reply.tool_calls else as_read(reply, request))
        if not self.held:
            return answer
        waiting = Deferred()
        self._waiting.append((waiting, answer))
        return waiting

    def trial(self, model):
        self.tried.append(model)
        return super().trial(model)

    def release(self):
        """Let the answers that are held go; later calls are answered at once again."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for deferred, answer in waiting:
            if deferred.called:
                answer.addErrback(lambda _: None)
            else:
                answer.chainDeferred(deferred)

    def cancel_all(self):
        waiting, self._waiting = self._waiting, []
        for deferred, answer in waiting:
            answer.addErrback(lambda _: None)
            deferred.cancel()
        return len(waiting)

    def facts(self, model):
        return replace(super().facts(model), price=self.price, own=self.own)
