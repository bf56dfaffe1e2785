"""Odd bodies of replies are read like plain ones, over real HTTP."""

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.bodies import plain_body
from tests.llm_interaction.test_client import TOOL, LoopbackCase
from tests.loopback import Answer, text
from tests.strategies import FEW

SAID = "The stew is hot tonight."
PARTS = [{"type": "text", "text": "The stew is "}, {"type": "text", "text": "hot tonight."}]
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}


def body(content=SAID, **message):
    """A plain body."""
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return {"id": "r", "object": "chat.completion", "model": "any", "created": 1} | {
        "choices": [choice],
        "usage": usage,
    }


def chunk(finish_reason=None, **delta):
    """One event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "r", "object": "chat.completion.chunk", "model": "any", "choices": [choice]}


def stream(*events, end="data: [DONE]\n\n", before=""):
    """Events as a server sends them."""
    return before + "".join(f"data: {json.dumps(each)}\n\n" for each in events) + end


def call(index=0, call_id=None, **function):
    """A piece of a tool call."""
    piece = {"index": index, "function": function}
    return {**piece, "id": call_id, "type": "function"} if call_id else piece


PIECES = [
    chunk(role="assistant", content=""),
    *(chunk(content=w) for w in ("The stew is ", "hot ")),
]
END = chunk("stop", content="tonight.")
USAGE = {**chunk(), "choices": [], "usage": body()["usage"]}
# Bodies that say `SAID`.
BODIES = {
    "plain": json.dumps(body()),
    "pretty": json.dumps(body(), indent=2),
    "a stream of pieces": stream(*PIECES, END, USAGE),
    "without an end": stream(*PIECES, END, end=""),
    "with comments and names": stream(*PIECES, END, before=": PROCESSING\n\nevent: message\n"),
    "with CRLF": stream(*PIECES, END).replace("\n", "\r\n"),
    "one piece": stream(chunk("stop", content=SAID)),
    "one piece without a frame": json.dumps(chunk("stop", content=SAID)),
    "lines of JSON": "\n".join(map(json.dumps, [*PIECES, END])),
    "a whole reply in an event": stream(body()),
    "a whole reply in one line": "data: " + json.dumps(body()),
    "without a blank": "data:" + json.dumps(body()),
    "pieces, then the whole": stream(*PIECES, END, body()),
    "parts": json.dumps(body(PARTS)),
    "parts with thoughts": json.dumps(body([THOUGHT, *PARTS])),
    "parts of texts": json.dumps(body(["The stew is ", "hot tonight."])),
    "one part": json.dumps(body({"type": "text", "text": SAID})),
    "a stream of parts": stream(*(chunk(content=[part]) for part in PARTS)),
    "a mark of the order of bytes": "\ufeff" + json.dumps(body()),
    "space before": "\n\n" + json.dumps(body()),
}


class TestBodies(LoopbackCase):
    def test_each(self):
        """The words are read in one call, whatever the body says it is."""
        for name, raw in BODIES.items():
            for kind in ("application/json", "text/event-stream", "text/plain"):
                with self.subTest(name, kind=kind):
                    self.server.script(text("", raw=raw, headers={"Content-Type": kind}))
                    reply = self.ask()
                    self.assertEqual((reply.content, reply.attempts), (SAID, 1))

    def test_bad_bytes(self):
        """They are left out, wherever they stand."""
        good = json.dumps(body("The stew is hot tonight.")).encode()
        for place in range(0, len(good), 7):
            for bad in (b"\xff", b"\xc3", b"\xed\xa0\xbd"):
                sent = good[:place] + bad + good[place:]
                self.assertEqual(json.loads(plain_body(sent)), body())
        self.server.script(Answer(raw=good.replace(b"stew", b"st\xffew")))
        self.assertEqual(self.ask().content, SAID)

    def test_calls(self):
        """The pieces of tool calls are put together, several of them, too."""
        raw = stream(
            chunk(tool_calls=[call(call_id="a", name="say", arguments="")]),
            chunk(tool_calls=[call(arguments='{"text": ')]),
            chunk(tool_calls=[call(1, "b", name="say", arguments='{"text": "Aye."}')]),
            chunk("tool_calls", tool_calls=[call(arguments='"No."}')]),
        )
        self.server.script(text("", raw=raw))
        made = self.ask(tools=(TOOL,), called={"say": "text"}).tool_calls
        said = [(each["id"], json.loads(each["function"]["arguments"])) for each in made]
        self.assertEqual(said, [("a", {"text": "No."}), ("b", {"text": "Aye."})])

    def test_other_lists(self):
        """Lists that are no calls stay lists, as clients read them."""
        pieces = [chunk(content="The stew ", annotations=[]), chunk("stop", content="is hot.")]
        self.server.script(text("", raw=stream(*pieces)))
        self.assertEqual(self.ask().content, "The stew is hot.")

    def test_base_models(self):
        """A stream of a text completion is read."""
        pieces = ({"choices": [{"index": 0, "text": words}]} for words in ("The stew is ", "hot."))
        self.server.script(text("", raw=stream(*pieces)))
        self.assertEqual(self.ask(api="completion").content, "The stew is hot.")

    def test_an_error_in_a_stream(self):
        """It is an error, whatever came before."""
        error = {"error": {"message": "Rate limit exceeded", "code": 429}}
        self.server.respond = lambda asked: text("", raw=stream(*PIECES, error))
        self.assertIn(self.fail().kind, ("rate_limit", "server", "bad_response"))

    def test_usage(self):
        """What the server counted is counted."""
        self.server.script(text("", raw=BODIES["a stream of pieces"]))
        reply = self.ask()
        self.assertEqual((reply.prompt_tokens, reply.completion_tokens), (9, 4))


class TestAny(unittest.TestCase):
    @FEW
    @given(st.binary(max_size=200))
    def test_bytes(self, raw):
        """What cannot be read stays as it is."""
        for sent in (raw, b"data: " + raw, b"{" + raw, b'{"choices": [' + raw + b"]}"):
            plain = plain_body(sent)
            self.assertTrue(plain == sent or isinstance(json.loads(plain), dict))

    @FEW
    @given(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda each: (
                st.lists(each)
                | st.dictionaries(
                    st.sampled_from(
                        ["choices", "delta", "message", "text", "content", "tool_calls", "x"]
                    ),
                    each,
                )
            ),
        )
    )
    def test_json(self, value):
        """Any JSON gives bytes."""
        for shown in (
            value,
            {"choices": value},
            {"choices": [value]},
            {"choices": [{"delta": value}]},
        ):
            self.assertIsInstance(plain_body(json.dumps(shown).encode()), bytes)
            self.assertIsInstance(plain_body(stream(shown).encode()), bytes)
