"""What a summary may say: what its source supports."""

import tomllib
import unittest
from pathlib import Path

from evennia_ai.llm_interaction.grounding import grounded_in
from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.history.frames import heard_line
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.summary import (
    accepted,
    format_messages_for_compaction,
    request_text,
)
from evennia_ai.llm_interaction.values import ModelReply
from tests.strategies import FEW, awkward_texts

TALK = (
    ("Alice", "I forge nails and hinges in the smithy by the river."),
    ("Bob", "My sister Wilma keeps three goats behind the old mill."),
    ("Alice", "I owe you twelve crowns, to be paid on Friday."),
    ("Cora", 'The song is called "Heron on the Weir", I sang it yesterday.'),
    ("Bob", "The ferry was late again, the ropes are rotten."),
    ("Cora", "I am looking for therapy for my bad knee."),
)
SOURCE = "\n".join(
    ["[2026-05-08]", *(heard_line(who, f"o1.{who.lower()}", "say", text) for who, text in TALK)]
)
GERMAN = (
    'Alice sagt: "Ich schmiede Nägel und Scharniere in der Schmiede am Fluss."\n'
    'Bob sagt: "Meine Schwester Wilma hält drei Ziegen hinter der alten Mühle, und sie sind brav."'
)
JAPANESE = "アリスは川のそばで釘を作っている。ボブに12クラウンの借りがある。"
FRENCH = (
    "Alice dit : « Je forge des clous dans la forge près de la rivière, avec mon frère. »\n"
    "Bob dit : « Ma sœur Wilma garde trois chèvres derrière le vieux moulin. »"
)


def struck(summary, source=SOURCE, known=()):
    """The rules that struck sentences of a summary, in order."""
    return [each.rule for each in grounded_in(summary, source, known).struck]


class TestGrounded(unittest.TestCase):
    def test_paraphrase(self):
        """Facts, forms of words, dates that are meant, reported speech, and no claims at all."""
        for summary in (
            "Alice is a smith who forges hinges in a smithy near the river.",
            "Wilma, Bob's sister, has 3 goats; they live behind the mill.",
            "Alice promised to pay Bob 12 crowns on Friday.",
            "On 7 May 2026 Cora sang “Heron on the Weir”.",
            "On May 8, 2026, they talked.",
            "On 2026-05-08 the ferry was late, and in 2025 it was late.",
            "Cora wants therapeutic help for her knee.",
            "They met.",
            "Bob complained that the ferry came late and its ropes were rotten.",
        ):
            with self.subTest(summary):
                self.assertEqual(struck(summary), [])

    def test_known_names(self):
        """Whom the assistant knows may be named, though the lines do not name them."""
        told = "Gustav Holm heard of the goats behind the mill."
        self.assertEqual(struck(told), ["name"])
        self.assertEqual(struck(told, known=["Gustav Holm"]), [])

    @FEW
    @given(st.lists(st.sampled_from([text for _, text in TALK]), min_size=1))
    def test_what_was_said(self, lines):
        """Whatever was said word for word is supported, and left as it is."""
        summary = " ".join(lines)
        found = grounded_in(summary, SOURCE)
        self.assertEqual((found.text, found.struck), (summary, ()))

    @FEW
    @given(awkward_texts)
    @example("AO\u201c0\u00b4\u201c")
    def test_its_own_source(self, text):
        """No text is struck that is its own source."""
        self.assertEqual(grounded_in(text, text).text, text)

    @FEW
    @given(awkward_texts, awkward_texts)
    def test_any_texts(self, text, source):
        """Nothing is added, and everything struck was there."""
        found = grounded_in(text, source)
        self.assertLessEqual(set(found.text.split()), set(text.split()))
        self.assertLessEqual(len(found.struck), found.sentences)
        for each in found.struck:
            self.assertIn(each.sentence, text)

    def test_each_rule(self):
        """Names, numbers, quotations and claims that the source does not have."""
        for rule, summary in (
            ("name", "Gustav forges nails in the smithy."),
            ("name", "Alice forges nails in Norvik."),
            ("number", "Wilma keeps seven goats behind the mill."),
            ("number", "Alice owes Bob 40 crowns."),
            ("number", "On 23 May 2026 Cora sang a song."),
            ("quote", 'Cora sang "Home to the Sea".'),
            ("claim", "Alice and Bob have a son."),
            ("claim", "Alice killed the dragon in the tower."),
            ("claim", "Cora stole a purse from Bob at the harbour."),
        ):
            with self.subTest(summary):
                self.assertEqual(struck(summary), [rule])

    def test_the_rest_stays(self):
        """Sentences and lines around a struck one stay in their order."""
        summary = (
            "Alice forges nails. She and Bob have a son. Wilma keeps goats.\n"
            "Dr. Gustav Holm came.\n\nThe ferry was late."
        )
        found = grounded_in(summary, SOURCE)
        self.assertEqual(found.text, "Alice forges nails. Wilma keeps goats.\nThe ferry was late.")
        self.assertEqual(found.sentences, 5)
        self.assertEqual([each.rule for each in found.struck], ["claim", "name"])
        self.assertEqual(found.struck[0].what, ("son",))
        self.assertEqual(found.struck[1].sentence, "Dr. Gustav Holm came.")

    def test_a_formatted_request(self):
        """Speakers, what they said and the days of the lines support a summary."""
        mara = {"speaker": Speaker("Mara Voss", "o1.m"), "channel": "say", "id": new_id("m")}
        at = "2026-03-04T05:06:07+00:00"
        said = Message("user", "My boat is called Heron.", created_at=at, **mara)
        source = format_messages_for_compaction([said]) + "\nEgon sold his cart."
        true = "On 4 March Mara Voss said that her boat is called Heron. Egon sold a cart."
        self.assertEqual(struck(true, source), [])
        self.assertEqual(struck("Mara Voss called her horse Star.", source), ["name"])


class TestLanguages(unittest.TestCase):
    """A summary in another language is not struck for its words."""

    def test_translated(self):
        """A translation keeps its names and numbers; wrong ones are struck."""
        german = (
            "Alice schmiedet Nägel und Scharniere am Fluss, und die Schwester von Bob hält 3 "
            "Ziegen. Alice schuldet Bob 12 Kronen und will am Freitag zahlen."
        )
        self.assertEqual(struck(german), [])
        self.assertEqual(struck(german.replace("12", "99")), ["number"])
        french = (
            "Alice forge des clous près de la rivière, et la sœur de Bob, Wilma, garde des chèvres "
            'derrière le moulin. Cora a chanté une chanson, "Le héron", et parle de son genou.'
        )
        self.assertEqual(struck(french), [])
        self.assertEqual(struck(french.replace("Wilma", "Gaspard")), ["name"])
        english = "Alice and her brother are smiths by the river, and they make nails for Wilma."
        self.assertEqual(struck(english, FRENCH), [])

    def test_other_scripts(self):
        """Names in other letters and words without spaces cannot be compared, digits can."""
        russian = 'Алиса говорит: "Я кую гвозди у реки и должна Бобу 12 крон."'
        self.assertEqual(struck("Alisa forges nails by the river and owes Bob 12.", russian), [])
        self.assertEqual(struck("Alisa owes Bob 40 crowns.", russian), ["number"])
        self.assertEqual(struck("アリスはボブに12クラウン借りている。", JAPANESE), [])

    def test_a_language_without_a_table(self):
        """What was said stands, in whatever language; other numbers do not."""
        told = (
            "Blorp Gnarf snibt vlek Zorpl drin grubb Klont frop wint Skreb bilt 12 Kropp. "
            "Gnarf frilt Snod plim vrop Zorpl brin dront."
        )
        self.assertEqual(struck(told, f"{told} Blim frob dlim."), [])
        self.assertEqual(struck(told.replace("12", "41"), told), ["number"])
        self.assertEqual(struck("Blorp snibt vlek.", told), [])

    def test_sentences_in_another_language(self):
        """Beside sentences in a language that was spoken, those in others are struck."""
        talks = {
            "en": ("My boat is called Heron.", "Mira's boat is called Heron."),
            "de": ("Mein Boot heißt Reiher und liegt am Steg.", "Miras Boot heißt Reiher."),
            "ja": ("私の舟の名前はサギです。港町から来ました。", "舟の名前はサギです。"),
            "ru": ("Мою лодку зовут Цапля, я приехала из Рязани.", "Лодку зовут Цапля."),
        }
        asides = {
            "en": "I am saving this part of the text now and will go on with the next.",
            "de": "Ich werde den Text jetzt für dich weiter zusammenfassen.",
            "ja": "これから次の部分をまとめていきますので、お待ちください。",
        }
        for code, (told, true) in talks.items():
            source = f"[MESSAGES TO COMPACT]\n{heard_line('Mira', 'o1.a', 'say', told)}"
            for other, aside in asides.items():
                found = grounded_in(f"{true} {aside}", source, ["Mira"])
                self.assertEqual(found.text.strip(), true, (code, other))
                if code != other:
                    self.assertEqual([each.rule for each in found.struck], ["language"])
            found = grounded_in(talks["de"][1], source, ["Mira", "Heron", "Reiher"])
            self.assertEqual(found.struck, (), code)  # wholly in another language
        source = heard_line("Mira", "o1.a", "say", "Mein Boot heißt Heron. Danke, Bernd.")
        english = "Mira's boat is called Heron. She thanked Bernd for it. Danke."
        self.assertNotIn("language", struck(english, source, ["Mira"]))

    def test_refusals_in_any_language(self):
        """A short text without a word of its source says nothing of it, whatever its language."""
        for refusal, source in (
            ("Valitettavasti tätä keskustelua ei pysty tiivistämään.", GERMAN),
            ("Mi dispiace, non posso riassumere questa conversazione.", GERMAN),
            ("抱歉，我无法总结这段对话。", JAPANESE),
        ):
            self.assertEqual(grounded_in(refusal, source).text, "")
        long = "Sie nähte Kleider in Wismar. " * 30
        self.assertNotIn("refusal", struck(long, GERMAN))


TALKS = tomllib.loads(Path(__file__).with_name("summaries.toml").read_text("utf-8"))["talk"]


def ground(talk):
    """A talk as a summariser reads it."""
    rows = [row.split(": ", 1) for row in talk["lines"].strip().splitlines()]
    people = sorted({who for who, _ in rows})
    lines = [heard_line(who, f"o1.{people.index(who)}a", "say", text) for who, text in rows]
    return request_text(["[2026-11-22]", *lines]), people


class TestTalks(unittest.TestCase):
    def test_true_ones_pass(self):
        """Hardly a sentence is struck, and never most of a summary."""
        told = [(ground(talk), text) for talk in TALKS for text in talk["true"]]
        summaries = [
            grounded_in(accepted(ModelReply(content=text)), *source) for source, text in told
        ]
        cut = [found for found in summaries if found.struck]
        self.assertLessEqual(len(cut), 0.04 * len(told), cut)
        for found in summaries:
            self.assertLess(len(found.struck), max(2, found.sentences / 2), found)
            self.assertNotIn("turned", {each.rule for each in found.struck}, found)

    def test_lists(self):
        """Neither the numbers of a list nor its heading are claims."""
        text = (
            "Zusammenfassung des Gesprächs:\n1. Oskar schläft in der alten Mühle.\n"
            "2. Er schuldet Konrad 340 Taler.\n7) Veit meldet einen Einbruch am Nordtor."
        )
        found = grounded_in(text, *ground(TALKS[0]))
        self.assertEqual(found.struck, ())
        self.assertIn("\n- Oskar schläft", found.text)

    def test_inventions_are_struck(self):
        """A wrong name or number, or a claim turned round, whatever stands before it.

        Names without capitals, and German ones behind no noun, pass: they look like any noun.
        """
        told = [(ground(talk), talk["true"][0], text) for talk in TALKS for text in talk["false"]]
        alone = [text for source, _, text in told if not grounded_in(text, *source).struck]
        self.assertLessEqual(len(alone), 0.2 * len(told), alone)
        whole = [(text, grounded_in(f"{true}\n{text}", *source)) for source, true, text in told]
        behind = [
            text
            for text, found in whole
            if text not in alone and not any(text in each.sentence for each in found.struck)
        ]
        self.assertEqual(behind, [])
