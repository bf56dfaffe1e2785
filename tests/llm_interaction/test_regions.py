"""Prompts from their regions, within a limit."""

import json
import unittest
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import (
    OVERHEAD_TOKENS,
    Message,
    Speaker,
    flat,
    mended,
    message_tokens,
    note,
)
from evennia_ai.llm_interaction.budget import REGIONS
from evennia_ai.llm_interaction.conversation import BEFORE, alternating, read_prompt
from evennia_ai.llm_interaction.regions import (
    Caps,
    Regions,
    fit_prompt,
    shorten_message,
    told,
    tools_tokens,
)
from evennia_ai.llm_interaction.tokens import counter_for, estimate
from evennia_ai.turns.tools.base import Text, function_schema
from tests.strategies import (
    FEW,
    calls,
    counted,
    faults,
    heard,
    histories,
    marker,
    reply,
    result,
    texts,
)


def words(text):
    """The simplest counter: words."""
    return len(text.split())


COUNTERS = {"words": words, "characters": len, "tiktoken": counter_for("gpt-4"), "bytes": estimate}
TOOL = function_schema("look", "Look around.", {"target": Text("What at.", required=False)})


lines = st.lists(texts.map(lambda text: note("Now", text)), max_size=4).map(tuple)
examples = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
rows = st.lists(st.tuples(st.sampled_from(("Rules:", "Facts:")), texts.map(flat)), max_size=3)
answers = texts.map(lambda text: heard(text, id="", speaker=Speaker("Al", "o1")))


def prompt_of(history=(), limit=1000, count=words, system="You are Aria.", **regions):
    """A prompt of a history counted by `count`, with caps shrunk to the limit."""
    caps = Caps(60, 60, 60, 60, 60).under(limit)
    tools = regions.pop("tools", ())
    made = Regions(system, tools, history=counted(history, count), **regions)
    return fit_prompt(made, caps, limit, count)


def shown_text(prompt):
    return json.dumps(prompt.messages, ensure_ascii=False)


@st.composite
def prompts(draw):
    """Prompts of all shapes, with the regions and the counter they were made of."""
    count = COUNTERS[draw(st.sampled_from(sorted(COUNTERS)))]
    regions = Regions(
        draw(st.one_of(st.just("You are Aria."), texts)),
        draw(st.sampled_from(((), (TOOL,), (TOOL, TOOL)))),
        draw(examples),
        counted(draw(histories()), count),
        draw(lines),
        draw(lines),
        counted(draw(st.lists(answers, max_size=3)), count),
        ledger=draw(rows),
        has_ids=draw(st.booleans()),
    )
    limit = draw(st.one_of(st.integers(0, 400), st.integers(400, 20_000)))
    wanted = draw(st.tuples(*[st.integers(0, 800)] * 4))
    prompt = fit_prompt(regions, Caps(*wanted).under(limit), limit, count)
    return prompt, regions, count


class TestCaps(unittest.TestCase):
    """Caps under a limit."""

    def test_caps(self):
        """What takes more than a quarter together shrinks in proportion; summaries to a tenth."""
        for wanted, limit, caps in (
            ((10, 10, 30, 20), 200, Caps(10, 10, 30, 20)),
            ((100, 100, 200, 20), 400, Caps(25, 25, 50, 20)),
            ((0, 0, 0, 800), 4000, Caps(0, 0, 0, 400)),
            ((0, 0, 0, 800), 100, Caps(0, 0, 0, 40)),
        ):
            self.assertEqual(Caps(*wanted).under(limit), caps)
            self.assertLessEqual(caps.volatile, limit // 4)


class TestFitPromptByExample(unittest.TestCase):
    """What is shown, case by case."""

    def test_order(self):
        """System, notes, examples, summaries, talk; the line to answer is last."""
        al = Speaker("Al", "o1")
        prompt = prompt_of(
            [marker(content="Older.", summary_id="s1"), heard("hi", speaker=al), reply("hello")],
            examples=(("Bo: Ho!", "Aye."), ("Bo: Hm?", "No.")),
            retrieved=("(You remember: a boat)",),
            tail=("(Now: noon)",),
            ledger=(("Rules:", "- be kind"),),
            answered=counted([heard("and you?", speaker=al)], words),
            has_ids=True,
        )
        self.assertEqual(
            [(m["role"], m["content"]) for m in prompt.messages],
            [
                (
                    "system",
                    "You are Aria.\n\nNotes to keep in mind (approved; they give nobody any "
                    "rights):\nRules:\n- be kind",
                ),
                ("user", "Bo: Ho!"),
                ("assistant", "Aye."),
                ("user", "Bo: Hm?"),
                ("assistant", "No."),
                ("user", "(What happened before, summary s1:\n- Older.\nAl: hi"),
                ("assistant", "hello"),
                ("user", "(Now: noon)\n(You remember: a boat)\nAl: and you?"),
            ],
        )
        self.assertEqual(tuple(prompt.budget.regions), REGIONS)
        self.assertTrue(prompt.fits)

    def test_what_the_turn_brought(self):
        """Calls and results of the turn itself stand behind the line that it answers."""
        al = Speaker("Al", "o1")
        history = [heard("hi", speaker=al, id="m1"), calls("c1", id="m2"), result("c1", id="m3")]
        answered = counted([heard("look!", speaker=al)], words)
        prompt = prompt_of(history, tail=("(Now: noon)",), answered=answered, newer={"m2", "m3"})
        self.assertEqual(
            [(m["role"], m["content"]) for m in prompt.messages[1:]],
            [
                ("user", "Al: hi\n(Now: noon)\nAl: look!"),
                ("assistant", None),
                ("tool", "done"),
            ],
        )

    def test_squeezed_in_order(self):
        """With ever longer rules examples, the present and summaries go; rules are cut last."""
        history = [marker(content="story " * 40), heard("hi")]
        states = []
        for size in range(0, 400, 10):
            prompt = prompt_of(
                history,
                300,
                system="rule " * size,
                tail=(note("Now", "now " * 10),),
                examples=(("Bo: " + "hm " * 30, "Aye."),),
            )
            shown = shown_text(prompt)
            whole = "rule " * size in shown
            states.append(
                (not whole, "story" not in shown, "(Now" not in shown, "Bo:" not in shown)
            )
            self.assertTrue(prompt.fits)
            self.assertIn("someone: hi", shown)
        self.assertEqual(states, sorted(states))
        self.assertEqual((states[0], states[-1]), ((False,) * 4, (True,) * 4))

    def test_the_beginning_stays(self):
        """While a talk grows, the oldest lines go in large steps: caches hold what begins alike."""
        beginnings, talk = [], []
        for at in range(60):
            talk += [heard(f"line {at} " + "word " * 9), reply(f"aye {at}")]
            shown = prompt_of(talk, 400, retrieved=("(You remember: x)",) * (at % 3)).messages
            beginnings.append(str(shown[1]["content"]).partition("\n")[0])
        changes = sum(one != other for one, other in pairwise(beginnings))
        self.assertLess(changes, 25)
        self.assertGreater(changes, 2)

    def test_results_in_parallel_are_shortened(self):
        """Results too large together are all shown shortened, and what was asked with them."""
        for size in range(1, 8):
            ids = [f"c{i}" for i in range(size)]
            made = [calls(*ids), *(result(each, f"{each} " + "gold " * 900) for each in ids)]
            made = [replace(message, id=f"m{at}") for at, message in enumerate(made)]
            answered = counted([heard("count the gold")], words)
            newer = {message.id for message in made}
            prompt = prompt_of(made, 1000, answered=answered, newer=newer)
            self.assertTrue(prompt.fits)
            self.assertEqual(len(prompt.messages), 3 + size)
            self.assertEqual(prompt.messages[1]["content"], "someone: count the gold")
            for each, shown in zip(ids, prompt.messages[3:], strict=True):
                self.assertTrue(shown["content"].startswith(f"{each} "))
            self.assertEqual(len(prompt.budget.notes), size)

    def test_tools_that_do_not_fit(self):
        """Tools that would leave hardly any room are not offered, the last of them first."""
        tools = tuple({**TOOL, "place": place} for place in range(9))
        cost = tools_tokens(tools[:4], words)
        made = Regions("You are Aria.", tools, history=counted([heard("hi")], words))
        prompt = fit_prompt(made, Caps(0, 0, 60, 60), cost + 60 + 100, words)
        self.assertEqual(prompt.tools, tools[:4])
        self.assertTrue(prompt.fits)
        self.assertIn("5 of 9 tools do not fit and are not offered", prompt.budget.notes)
        self.assertEqual(prompt_of([heard("hi")], 20, tools=tools).tools, ())

    def test_cuts_are_noted(self):
        """What of memories, present moment and rules is not shown is noted, with the reason."""
        long = "gold " * 40
        regions = {"retrieved": ("a memory", long, long), "tail": ("now", long)}
        history = counted([heard("hi")], words)
        made = Regions("You are Aria.", (), history=history, **regions)
        self.assertEqual(
            fit_prompt(made, Caps(60, 30, 16, 60), 400, words).budget.notes,
            (
                "present moment shortened: more than its 30 tokens",
                "memories shortened: more than its 60 tokens",
            ),
        )
        self.assertIn("1,200 older messages", prompt_of(archived=1200).budget.notes[-1])
        made = Regions("rule " * 400, (), history=history, retrieved=("a memory",), tail=("now",))
        why = "other regions leave no room"
        self.assertEqual(
            fit_prompt(made, Caps(60, 30, 16, 60), 200, words).budget.notes,
            (
                f"rules and persona shortened: {why}",
                f"present moment left out: {why}",
                f"memories left out: {why}",
            ),
        )


class TestFitPromptAlways(unittest.TestCase):
    """What holds for every prompt."""

    @FEW
    @given(
        st.lists(st.sampled_from(("line", "result", "own")), min_size=1, max_size=12),
        st.integers(1, 40_000),
        st.sampled_from(sorted(COUNTERS)),
        st.integers(3_000, 30_000),
    )
    def test_results_leave_the_talk(self, shape, size, name, limit):
        """However large results are, the newest exchanges that were said are shown."""
        count, history = COUNTERS[name], list[Message]()
        for at, what in enumerate(sorted(shape, key="own".__eq__)):
            if what == "line":
                history += [
                    heard(f"hm {at}?", id=f"line-h{at}"),
                    reply(f"aye {at}.", id=f"line-r{at}"),
                ]
            else:
                made = calls(f"c{at}", id=f"{what}-c{at}")
                history += [made, result(f"c{at}", "gold " * size, id=f"{what}-r{at}")]
        newer = {message.id for message in history if message.id.startswith("own")}
        prompt = prompt_of(history, limit, count, newer=newer)
        self.assertTrue(prompt.fits)
        shown, newest = shown_text(prompt), [m for m in history if m.id.startswith("line")][-6:]
        for message in newest if shape.count("result") < 3 else ():
            self.assertIn(message.content, shown)

    @FEW
    @given(prompts())
    def test_roles(self, made):
        """Only the first message has the role `system`; a strict provider takes the rest."""
        prompt, _, _ = made
        self.assertNotIn("system", [m["role"] for m in prompt.messages[1:]])
        shown = [Message.from_dict({**m, "content": m["content"] or ""}) for m in prompt.messages]
        self.assertEqual(faults(shown), [])

    @FEW
    @given(prompts())
    def test_what_is_shown_is_counted(self, made):
        """The regions hold at least what is shown, told quiet times and frames included."""
        prompt, _, count = made
        shown = [Message.from_dict({**m, "content": m["content"] or ""}) for m in prompt.messages]
        if count is len:  # the only counter by which a text is as long as its parts
            texts = sum(count(message.content) for message in shown)
            calls_of = (json.dumps(m.tool_calls, ensure_ascii=False) for m in shown if m.tool_calls)
            texts += sum(map(count, calls_of)) + OVERHEAD_TOKENS * len(shown)
            sizes = prompt.budget.regions
            logged = prompt.budget.total - sizes["Reserve"] - sizes["Tools"]
            self.assertGreaterEqual(logged, texts)

    def test_quiet_times_are_counted(self):
        """A talk with days between its lines lies within the limit, too."""
        days = (f"2026-01-{day:02}T10:00:00+00:00" for day in range(1, 29))
        talk = [heard("hi", created_at=at) for at in days]
        for limit in range(100, 400, 20):
            prompt = prompt_of(talk, limit)
            self.assertTrue(prompt.fits)
            shown = sum(words(m["content"]) + OVERHEAD_TOKENS for m in prompt.messages)
            self.assertLessEqual(shown + prompt.budget.regions["Reserve"], limit)
        self.assertEqual(shown_text(prompt_of(talk, 4000)).count("(Time passes: 1 day)"), 27)

    @FEW
    @given(histories(), st.integers(900, 20_000))
    def test_markers_are_rendered_once_as_data(self, history, limit):
        """Each summary is shown once, as a block of a user's turn, before the talk."""
        marked = [
            replace(m, content=f"summary-{m.id}- {m.content}") if m.is_summary else m
            for m in history
        ]
        prompt = prompt_of(marked, limit, count=len)
        for message in (m for m in history if m.is_summary):
            self.assertLessEqual(shown_text(prompt).count(f"summary-{message.id}-"), 1)
        turns = read_prompt(prompt.messages).turns
        places = [at for at, (_, line) in enumerate(turns) if getattr(line, "label", "") == BEFORE]
        self.assertEqual(places, [*range(len(places))])

    @FEW
    @given(histories(markers=False), st.integers(1500, 9000))
    def test_the_newest_turn_is_always_shown(self, history, limit):
        """With room for it the newest message or exchange is never left out."""
        raw = [m for m in mended(counted(history, words)) if m.id]
        prompt = prompt_of(history, limit, system="rule " * 2000)
        if raw:
            self.assertNotIn(raw[-1].id, prompt.left_out)


class TestShortenMessage(unittest.TestCase):
    """Messages cut in their middle."""

    @FEW
    @given(
        st.text(min_size=1),
        st.integers(1, 3000),
        st.integers(60, 600),
        st.sampled_from(sorted(COUNTERS)),
    )
    def test_under_the_cap(self, text, times, cap, name):
        """Speech and results end under any cap that a frame and a note can stand under."""
        count = COUNTERS[name]
        said = heard(text * times, speaker=Speaker("Al", "o1"))
        cap = max(cap, message_tokens(replace(said, content=""), count) + count("[... ] " * 9))
        for message in (said, result("c1", text * times), reply(text * times)):
            self.assertLessEqual(shorten_message(message.counted(count), cap, count).tokens, cap)


class TestTold(unittest.TestCase):
    """Messages as turns."""

    def test_lines_share_a_turn(self):
        """Lines and notes that follow one another are lines of one turn."""
        said = heard("hi", speaker=Speaker("Al", "o1"))
        notice = Message("system", "Rain.")
        self.assertEqual(
            alternating(told([said, notice, reply("hello"), said])),
            [
                {"role": "user", "content": "Al: hi\n(You notice: Rain.)"},
                {"role": "assistant", "content": "hello"},
                {"role": "user", "content": "Al: hi"},
            ],
        )

    @FEW
    @given(histories(markers=False))
    def test_nothing_is_lost(self, history):
        """Every text with something in it is there, in order."""
        tagged = [replace(m, content=f"tag-{m.id}-") for m in history]
        shown = json.dumps(alternating(told(tagged)))
        places = [shown.index(m.content) for m in tagged]
        self.assertEqual(places, sorted(places))
