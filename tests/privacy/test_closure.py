"""What goes when somebody is forgotten, decided from plain values."""

import tomllib
import unittest
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.archive import Segment, SummaryRecord, resting_on
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, is_by, pairing
from evennia_ai.history.verification import Evidence
from evennia_ai.language.script import SENTENCE_END
from evennia_ai.llm_interaction.budget import REGIONS, ReplyTrace, TokenBudget
from evennia_ai.privacy.closure import Made, plan_forgetting, without_copies
from tests.strategies import MANY
from tests.wordings import wordings

ALICE, BOB, ARIA = Speaker("Alice", "o1.a"), Speaker("Bob", "o2.b"), Speaker("Aria", "o9.aria")
SUMMARIES = Path(__file__).parents[1] / "llm_interaction" / "summaries.toml"
TALKS = tomllib.loads(SUMMARIES.read_text("utf-8"))["talk"]
IDS = st.sampled_from([f"m{n:02d}" for n in range(12)])


def line(number, text, speaker, role="user", **fields):
    """A message with an id and a time that sort by its number."""
    return Message(role, text, f"m{number:02d}", "2026", speaker, **fields)


def reply(number, text, asker="o2.b", hits=(), **fields):
    meta = {"asker": asker, **({"memories": [{"id": each} for each in hits]} if hits else {})}
    return line(number, text, ARIA, "assistant", metadata=meta, **fields)


def traced(message, **fields):
    """A reply with a trace."""
    event = TokenBudget(
        at=1.0, purpose="awake", model="m", regions=dict.fromkeys(REGIONS, 0), limit=9
    )
    text = ReplyTrace(budget=event, **fields).to_text()
    return replace(message, metadata={**message.metadata, "trace": text})


def call(number, arguments="{}"):
    """A call of a tool, for Bob."""
    function = {"name": "search_memory", "arguments": arguments}
    return reply(number, "", tool_calls=({"id": f"c{number}", "function": function},))


def result(number, call_number, text):
    return line(number, text, None, "tool", tool_call_id=f"c{call_number}", name="search_memory")


def record(key, **fields):
    fields = {"tier": "recent", "created_at": "", "audience": "public"} | fields
    return SummaryRecord(id=key, text="Hay.", **fields)


def plan(messages, made=(), segments=(), summaries=(), **options):
    """What goes with Alice."""
    known, none = {each.id: each for each in summaries}, frozenset()
    evidence = Evidence(tuple(messages), tuple(segments), known, none, len(messages), "")
    return plan_forgetting(evidence, made, ("o1.a", "a1.a"), **options)


class TestRestingOn(unittest.TestCase):
    @MANY
    @given(st.sets(IDS, max_size=4), st.dictionaries(IDS, st.sets(IDS, max_size=3)))
    def test_closure(self, ids, sources):
        """All that can be reached, and nothing else; rings end."""
        reached, before = set(ids), None
        while before != reached:
            before = set(reached)
            reached |= {each for each, below in sources.items() if before & below}
        self.assertEqual(resting_on(ids, sources), reached)


class TestPlan(unittest.TestCase):
    def gone(self, *messages, **options):
        found = plan(messages, **options)
        return sorted(found.theirs | found.replies | found.things)

    def test_what_answers_them(self):
        """By whom it was for, by what it answers, and by who alone could hear it.

        A trace that cannot be read may answer all that it names.
        """
        talk = [
            line(1, "Hello.", ALICE),
            line(2, "Hello.", BOB),
            reply(3, "Hello, dear.", "o1.a"),
            reply(4, "Hello, good man."),
            traced(reply(5, "As I said.", None), answers=("m01",)),
            reply(6, "Hm.", None, audience=private(["o1.a"])),
            reply(7, "Hm.", audience=private(["o1.a", "o2.b"])),
            line(8, "Hello.", None, metadata={"account": "a1.a"}),
            replace(reply(9, "Aye.", None), metadata={"trace": '{"answers": ["m01"]}'}),
        ]
        self.assertEqual(self.gone(*talk), ["m01", "m03", "m05", "m06", "m08", "m09"])
        self.assertEqual(self.gone(*talk, until="m02"), ["m01", "m05", "m09"])

    def test_what_drew_on_them(self):
        """Replies by the memories they opened, notes by their sources, however far away."""
        talk = [
            line(1, "I am afraid.", ALICE),
            line(2, "Who is afraid?", BOB),
            traced(reply(3, "Somebody.", hits=["e1"]), opened=("e1",)),
            traced(reply(4, "Somebody else."), opened=("o1",)),
            reply(5, "Nobody.", hits=["e2"]),
        ]
        made = [
            Made("e1", ("m01", "m02"), "Alice is afraid."),
            Made("o1", ("e1",), "Afraid."),
            Made("e2", ("m02",), "Bob asks."),
            Made("l1", ("m05",), "A note."),
            Made("l2", ("command",), "", ["o1.a"]),
        ]
        self.assertEqual(self.gone(*talk, made=made), ["e1", "l2", "m01", "m03", "m04", "o1"])

    def test_their_own_words(self):
        """A line for somebody else goes with five words in a row that only they said."""
        talk = [
            line(1, "Our lantern is older than the town.", ARIA, "assistant"),
            line(
                2, "My cat Mittens sleeps in 3 barrels. Our lantern is older than the town!", ALICE
            ),
            line(3, "And Bruno's cat sleeps in the hay all day.", BOB),
            reply(4, "my CAT mittens... sleeps, in the yard"),
            reply(5, "Her cat Mittens sleeps in the hay all day, Bob."),
            reply(6, "Our lantern is older than the town, Bob."),
            reply(7, "Mittens. In 3 barrels."),
            call(8, '{"query": "where Mittens sleeps in 3 barrels"}'),
            line(9, "Who sleeps in 3 barrels, do you say?", BOB),
            reply(10, "Mittens sleeps in 3 barrels."),
            line(
                11, "So she sleeps in 3 barrels, and all day.", ARIA, metadata={"assistant": True}
            ),
        ]
        self.assertEqual(self.gone(*talk), ["m02", "m04", "m08", "m10"])
        self.assertEqual(self.gone(*talk, known=talk[1].content), ["m02"])
        made = [Made("e1", (), "Her cat Mittens sleeps in 3 barrels."), Made("e2", (), "")]
        self.assertEqual(self.gone(*talk[:3], made=made), ["e1", "m02"])

    def test_their_own_words_without_spaces(self):
        """There it is twelve letters in a row; eleven, or such as Bob said as well, stay."""
        for theirs, bobs, gone, kept in (
            (
                "我把旧灯笼藏在磨坊的地板下面了。",
                "昨天我在渡口附近卖掉了三个木桶。",
                ("旧灯笼藏在磨坊的地板下面", "是旧灯笼，藏在磨坊的地板下面？"),
                ("灯笼藏在磨坊的地板下面", "昨天我在渡口附近卖掉了三个木桶"),
            ),
            (
                "古い提灯を水車小屋の床下に隠しました。",
                "昨日は渡し場の近くで樽を売りました。",
                ("提灯を水車小屋の床下に隠", "ええ、提灯を、水車小屋の床下に隠し…"),
                ("灯を水車小屋の床下に隠", "昨日は渡し場の近くで樽を売りました"),
            ),
            (
                "ฉันซ่อนโคมไฟไว้ใต้สะพาน",
                "เมื่อวานนี้ฝนตกหนักมากที่ท่าเรือ",
                ("ซ่อนโคมไฟไว้ใต้", "ฉันซ่อน โคมไฟไว้ใ"),
                ("อนโคมไฟไว้ใต้", "เมื่อวานนี้ฝนตกหนักมากที่ท่าเรือ"),
            ),
        ):
            talk = [line(1, theirs, ALICE), line(2, bobs, BOB)]
            talk += [reply(n, text) for n, text in enumerate((*gone, *kept), 3)]
            with self.subTest(theirs):
                self.assertEqual(self.gone(*talk), ["m01", "m03", "m04"])

    def test_later_words_protect_nothing(self):
        """What they say again after asking is not somebody else's."""
        said = "I met him at Zorb."
        talk = [line(1, said, ALICE), reply(2, said), line(3, said, ALICE)]
        self.assertEqual(self.gone(*talk, until="m01"), ["m01", "m02"])

    def test_what_a_prompt_held(self):
        """Memories in a prompt, and what a search listed, are no source: only what was opened is.

        No copy of any stays with the reply.
        """
        talk = [line(1, "I am afraid of bees.", ALICE), line(2, "Who is afraid?", BOB)]
        for fields, goes in (
            ({"given": {"m01": 1.0}}, False),
            ({"found": {"m01": 1.0}}, False),
            ({"given": {"m01": 1.0}, "found": {"m01": 0.5}, "opened": ("m01",)}, True),
        ):
            answer = traced(reply(3, "Bees are feared.", hits=["m01"]), **fields)
            found_plan = plan([*talk, answer])
            self.assertEqual("m03" in found_plan.replies, goes)
            left = without_copies(answer, found_plan.gone)
            self.assertEqual(left.metadata["memories"], [])

    def test_copies_elsewhere(self):
        """A page goes by what only replies that go have said, or by their own words."""
        talk = [
            line(1, "I owe her seven ducats for it.", ALICE),
            reply(2, "*nods* Seven, I think.", "o1.a", channel="page"),
            reply(3, "Good evening.", "o1.a", channel="page"),
            reply(4, "Good evening.", channel="page"),
        ]
        takes = plan(talk).takes
        for text, goes in (
            ("seven, i think", False),
            ("nods Seven, I think.", True),
            ("Good evening.", False),
            ("Alice: owe her seven ducats, for...", True),
            ("owe her seven ducats", False),
            ("", False),
        ):
            self.assertEqual(takes(text), goes, text)

    def test_names_decide_nothing(self):
        """What names them and rests on no line of theirs stays, asked for or not."""
        anna, anne = Speaker("Anna", "o1.a"), Speaker("Anne", "o2.b")
        talk = [
            line(1, "Hello.", anna),
            line(2, "Anna is late, Anna is late, Anna is late.", anne),
            reply(3, "Czekam na Annę nad rzeką.", None),
            reply(4, "Anna is late today, Anne.", "o2.b"),
        ]
        made = [Made("e1", ("m02",), "Anna is late."), Made("e2", (), "Anna.")]
        self.assertEqual(self.gone(*talk, made=made), ["m01"])

    def test_an_earlier_run(self):
        """What rests on messages that it removed goes as well."""
        made = [Made("e1", ("m00",), "Hay.")]
        self.assertEqual(self.gone(line(1, "Hay", BOB), made=made, begun=["m00"]), ["e1"])


class TestSummaries(unittest.TestCase):
    """Summaries are emptied, not removed."""

    def test_what_was_made_from_them(self):
        """At each tier; a search that found one goes, a reply only loses its copy."""
        segments = [
            Segment.sealed("g0", "s0", [line(1, "Hay.", ALICE), line(2, "Hay.", BOB)]),
            Segment.sealed("g1", "s1", [line(3, "Hay.", BOB), reply(4, "So.", hits=["compact_0"])]),
        ]
        records = [
            record("s0", segments={"g0": 2}, source_ids=("m01", "m02")),
            record("s1", segments={"g1": 2}, source_ids=("m03", "m04")),
            record("s2", child_ids=("s0", "s1")),
        ]
        marker = line(5, "Mittens", None, "system", metadata={"type": "compaction"})
        live = [marker, call(6), result(7, 6, '{"id": "compact_0"}')]
        found = plan(live, segments=segments, summaries=records)
        self.assertEqual(found.emptied, {"s0", "s2"})
        self.assertEqual((found.theirs, found.replies), ({"m01"}, {"m06", "m07"}))
        self.assertEqual(found.parts, {"g0": {"m01"}, "g1": {"m04"}})

    def test_copies(self):
        """Other copies stay."""
        message = reply(1, "So.", hits=["compact_0", "e1"])
        left = without_copies(message, {"compact_0"})
        self.assertEqual(left.metadata, {"asker": "o2.b", "memories": [{"id": "e1"}]})
        self.assertIs(without_copies(left, {"compact_0"}), left)


@st.composite
def talks(draw):
    """A talk of Alice, Bob and Aria, who searches, draws on memories and is asked."""
    messages = []
    for number in range(1, draw(st.integers(1, 12))):
        kind, hit = draw(st.integers(0, 4)), f"m{draw(st.integers(1, 12)):02d}"
        text = draw(st.sampled_from(["Hay.", "My Zorb.", "Is it Korb?", ""]))
        if kind == 4 and messages and messages[-1].tool_calls:
            messages.append(result(number, int(messages[-1].id[1:]), f'{{"id": "{hit}"}}'))
        elif kind == 3:
            messages.append(call(number))
        elif kind == 2:
            messages.append(reply(number, text, draw(st.sampled_from(["o1.a", "o2.b"])), [hit]))
        else:
            messages.append(line(number, text, (ALICE, BOB)[kind % 2]))
    return messages


class TestAnyTalk(unittest.TestCase):
    @MANY
    @given(talks())
    def test_what_stays(self, messages):
        """All of theirs goes, nothing of others; what stays rests on nothing that goes."""
        found = plan(messages)
        gone = found.theirs | found.replies
        for message in messages:
            if message.role == "user":
                self.assertEqual(message.id in gone, is_by(message, ["o1.a"]))
            elif message.id not in gone:
                self.assertNotEqual(message.metadata.get("asker"), "o1.a")
                self.assertFalse(any(each in message.content for each in gone))
        for end, begin in pairing(messages).items():
            self.assertEqual(messages[end].id in gone, messages[begin].id in gone)


class TestInEachLanguage(unittest.TestCase):
    """Talks in many languages, each of whose speakers is forgotten in turn."""

    def test_what_goes(self):
        """Of replies to others those that repeat words in a row of theirs alone, and no other.

        Each line of the talk is repeated, and so is each true sentence about it in other words.
        """
        for talk in TALKS:
            rows = [row.split(": ", 1) for row in talk["lines"].strip().splitlines()]
            told = [each for text in talk["true"] for each in SENTENCE_END.split(text) if each]
            speakers = {name: Speaker(name, f"o{n}.x") for n, (name, _) in enumerate(rows)}
            for forgotten in speakers.keys() - {"Aria"}:
                with self.subTest(language=talk["language"], forgotten=forgotten):
                    everybody = {**speakers, "Aria": ARIA}
                    self.forget(talk["language"], rows, told, everybody, forgotten)

    def forget(self, language, rows, told, speakers, forgotten):
        messages = [
            line(n, text, speakers[name], "assistant" if name == "Aria" else "user")
            for n, (name, text) in enumerate(rows, 100)
        ]
        theirs, others = set(), set()
        for name, text in rows:
            (theirs if name == forgotten else others).update(wordings(text, language))
        texts = [*(text for _, text in rows), *told]
        replies = [reply(n, text, "o99.other") for n, text in enumerate(texts, 300)]
        known, none = {}, frozenset()
        evidence = Evidence((*messages, *replies), (), known, none, 999, "")
        gone = plan_forgetting(evidence, (), [speakers[forgotten].id]).replies
        for answer in replies:
            goes = not wordings(answer.content, language).isdisjoint(theirs - others)
            self.assertEqual(answer.id in gone, goes, answer.content)
