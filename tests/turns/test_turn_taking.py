"""Who answers a line."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.turns.turn_taking import (
    REPLIES_WITHOUT_PERSON,
    Line,
    Person,
    Talk,
    addressed,
    answerers,
    replied,
)

ARIA = Person("aria", ("Aria", "barkeep"), "assistant")
BORIS = Person("boris", ("Boris",), "assistant")
CLEO = Person("cleo", ("Cleo the Bard",), "assistant")
TOM = Person("tom", ("Old Tom",), "scripted")
ALICE = Person("alice", ("Alice",))
BOB = Person("bob", ("Bob",))
CROWD = (ARIA, BORIS, CLEO, TOM, ALICE, BOB)
QUIET = (ARIA, BORIS, CLEO, TOM, ALICE)
addressed("", CROWD)  # compiles the expressions, which takes longer than any call after it


HELLO = Line("alice", "Aria, hello", at=100)


def chosen(text, people=CROWD, talk=None, speaker="alice", at=100.0, channel="say", **more):
    """Who answers this line."""
    line = Line(speaker, text, channel, at, more.pop("receivers", ()))
    return answerers(line, people, talk or Talk(), **more)[0]


def after(*lines, talk=None):
    """The talk of a room once these lines were said."""
    talk = talk or Talk()
    for line in lines:
        talk = answerers(line, CROWD, talk)[1]
    return talk


class TestAddressed(unittest.TestCase):
    """A name calls somebody, or only names them."""

    CALLED = {
        "Hello Boris": ("boris",),
        "hello boris": ("boris",),
        "Aria, is Boris here?": ("aria",),
        "aria what time is it?": ("aria",),
        "Barkeep! An ale.": ("aria",),
        "thanks, Aria!": ("aria",),
        "Well, Aria, what now?": ("aria",),
        "Aria and Boris, who is older?": ("aria", "boris"),
        "Hi Aria, Boris and Cleo!": ("aria", "boris", "cleo"),
        "Cleo the Bard, sing for us": ("cleo",),
        "Hey Tom": ("tom",),
        "You are funny, Boris. Aria, an ale!": ("boris", "aria"),
        "Bob, have you seen Aria?": ("bob",),
        "Good evening everyone": ("aria", "boris", "cleo", "tom", "alice", "bob"),
        "I wonder what is new, Aria": ("aria",),
        "hi all": ("aria", "boris", "cleo", "tom", "alice", "bob"),
        "Aria, Boris is late": ("aria",),
        "Aria, Bob and Alice are here": ("aria",),
        "Well, Aria, Bob is here": ("aria",),
        "Aria、Bobに手紙をあげて。": ("aria",),
        "Aria，Bob要水。": ("aria",),
        "Aria, Bob को पानी दो": ("aria",),
        "Aria, Bob a faim.": ("aria",),
        "aria gimme an ale would you": ("aria",),
        "Aria is nice": ("aria",),
        "Aria tell Boris to come": ("aria",),
        "hello Aria Boris is late": ("aria",),
        "Aria and Boris are late": ("aria", "boris"),
        "Bob is late, Aria": ("aria",),
        "where is my boat aria": ("aria",),
        "what do you think Boris?": ("boris",),
        "two ales for Aria and Bob!": ("aria", "bob"),
        "Bob likes Aria": ("bob",),
    }
    NAMED = {
        "I asked Aria yesterday": ("aria",),
        "It is late. Aria sleeps. Good night.": ("aria",),
        "Is Aria's ale good?": ("aria",),
        "Aria's ale is good": ("aria",),
        "tell Aria to come": ("aria",),
        "Give Boris a coin": ("boris",),
        "As I said, Aria is late": ("aria",),
        "that is all": (),
        "Everyone knows that": (),
        "ariadne was a princess": (),
    }

    def test_calls_and_names(self):
        """Forms of address and the ends of a line call; a name within it only names."""
        for text, ids in self.CALLED.items():
            with self.subTest(text=text):
                self.assertEqual(addressed(text, CROWD)[0], ids)
        for text, ids in self.NAMED.items():
            with self.subTest(text=text):
                self.assertEqual(addressed(text, CROWD), ((), ids))

    def test_names_like_others(self):
        """A name that is a verb needs its capital; a whole name means one person."""
        will = Person("will", ("Will",))
        self.assertEqual(addressed("will you come?", [will]), ((), ()))
        self.assertEqual(addressed("Hello Will", [will])[0], ("will",))
        toms = (Person("tom", ("Tom",)), Person("baker", ("Tom Baker",)))
        self.assertEqual(addressed("Tom Baker, a loaf!", toms)[0], ("baker",))
        self.assertEqual(addressed("Tom, a loaf!", toms)[0], ("tom", "baker"))
        self.assertEqual(addressed("Cleo the Bard's lute is old", CROWD), ((), ("cleo",)))

    @given(st.text(max_size=80))
    def test_any_text(self, text):
        """Nothing a player types raises, and nobody is both called and named."""
        called, named = addressed(text, CROWD)
        self.assertFalse(set(called) & set(named))

    @given(st.lists(st.sampled_from(["Aria", "Boris", ",", "and", "hello", "you", ".", "!", "is"])))
    def test_any_order_of_names(self, words):
        """Each name is either called or named, whatever stands around it."""
        called, named = addressed(" ".join(words), CROWD)
        self.assertEqual({*called, *named}, {w.lower() for w in words if w in ("Aria", "Boris")})


# Lines in other languages, the name called, and whether it is; `*` calls all who are here.
ELSEWHERE = (
    ("Jürgen", "Servus Jürgen", True),
    ("Jürgen", "Na JÜRGEN, wie geht's?", True),
    ("Jürgen", "Gestern habe ich Jürgen gesehen.", False),
    ("Jürgen", "Jürgen ist müde.", True),
    ("Íñigo", "¡Oye Iñigo! ¿Qué tal?", True),
    ("Íñigo", "Ayer vi a Íñigo en la plaza.", False),
    ("Hélène", "Salut Hélène, ça va ?", True),
    ("Hélène", "J'ai vu Hélène au marché.", False),
    ("Łukasz", "Łukaszu, jesteś tam?", True),
    ("Ania", "Cześć Aniu!", True),
    ("Marek", "Hej Marku", True),
    ("Łukasz", "Widziałam Łukasza na targu.", False),
    ("İsmail", "İSMAİL, nasılsın?", True),
    ("Işıl", "Işıl dün geldi.", True),
    ("Ярослав", "Здравствуй Ярослав", True),
    ("Ярослав", "Ярослав спит.", True),
    ("ليلى", "يا ليلى، هل تسمعينني؟", True),
    ("ليلى", "رأيت أمس ليلى في السوق.", False),
    ("मीरा", "मीरा जी, कैसी हैं आप?", True),
    ("मीरा", "कल मैंने मीरा को देखा।", False),
    ("李小龙", "李小龙你好吗？", True),
    ("李小龙", "你好李小龙", True),
    ("李小龙", "李小龙先生，早上好", True),
    ("李小龙", "我昨天看见了李小龙。", False),
    ("さくら", "さくらちゃん、おはよう", True),
    ("さくら", "さくらは市場にいた。", False),
    ("민준", "민준아, 거기 있어?", True),
    ("민준", "어제 민준을 봤어요.", False),
    ("มาลี", "สวัสดีมาลี", True),
    ("มาลี", "เมื่อวานฉันเห็นมาลีที่ตลาด", False),
    ("Aria", "你好Aria", True),
    ("Aria", "Aria야, 안녕", True),
    ("Aria", "Aria는 어제 갔어.", True),
    ("Aria", "hi there Aria", True),
    ("Aria", "aria que vend la boulangère ?", True),
    ("Aria", "Aria is late.", True),
    ("*", "You all like that bread, don't you?", False),
    ("*", "Good night to you all", True),
    ("*", "All of you, listen!", True),
    ("*", "Bram, do you want to come with us all?", False),
    ("서연", "서연 씨, 잘 지내요?", True),
    ("Niccolò", "Ciao Niccolò", True),
    ("João", "Ei João, tudo bem?", True),
    # In languages without a table: one word before the name.
    ("Joost", "Hoi Joost", True),
    ("Joost", "Zeg Joost, hoe gaat het?", True),
    ("Joost", "Gisteren heb ik Joost op de markt gezien.", False),
    ("נועה", "שלום נועה", True),
    ("נועה", "אתמול ראיתי את נועה בשוק.", False),
    ("Ελένη", "Χθες είδα την Ελένη στην αγορά.", False),
    ("Hương", "Chào Hương", True),
    ("*", "Ciao a tutti!", True),
    ("*", "Hallo zusammen!", True),
    ("*", "¡Hola a todos!", True),
    ("*", "Salut tout le monde !", True),
    ("*", "Cześć wszystkim!", True),
    ("*", "Herkese merhaba!", True),
    ("*", "Всем привет!", True),
    ("*", "مرحبا بالجميع!", True),
    ("*", "सबको नमस्ते!", True),
    ("*", "大家好！", True),
    ("*", "みなさん、こんにちは", True),
    ("*", "여러분 안녕하세요!", True),
    ("*", "ทุกคนสวัสดี", True),
    ("*", "Alle sind müde.", False),
    ("*", "大家都知道这件事。", False),
    ("*", "All I know is this.", False),
)


class TestAddressedElsewhere(unittest.TestCase):
    """Forms of address in other languages and scripts."""

    def test_calls_and_mentions(self):
        """Who is greeted or called by any form of the name is addressed, who is named is not."""
        for name, text, is_called in ELSEWHERE:
            with self.subTest(text):
                one = Person("one", ("Zed" if name == "*" else name,), "assistant")
                called = addressed(text, [one, BOB])[0]
                wanted = ("one", "bob") if name == "*" else ("one",)
                self.assertEqual(called, wanted if is_called else ())


class TestWhoAnswers(unittest.TestCase):
    """The three rules, attention, and the bound without people."""

    def test_a_talk_goes_on(self):
        """A line without a name goes to the last partner, for a minute after the last answer."""
        talk = after(HELLO)
        self.assertEqual(chosen("What is new?", talk=talk, at=150), ("aria",))
        self.assertEqual(chosen("What is new?", talk=talk, at=161), ())
        self.assertEqual(chosen("And me?", talk=talk, at=150, speaker="bob"), ())
        self.assertEqual(chosen("What is new?", QUIET[1:], talk, at=150), ("boris",))
        talk = replied(talk, "aria", "alice", 130)
        self.assertEqual(chosen("What is new?", talk=talk, at=185), ("aria",))

    def test_a_name_at_the_beginning(self):
        """Whoever begins a line with a name, without a comma, turns to that person."""
        self.assertEqual(chosen("aria gimme an ale would you"), ("aria",))
        self.assertEqual(chosen("bob gimme an ale would you", talk=after(HELLO), at=110), ())
        self.assertEqual(
            chosen("boris and aria drink with me", talk=after(HELLO)), ("boris", "aria")
        )

    def test_a_name_before_a_comma(self):
        """An assistant's name that ends a part of a line calls it, a player's does not."""
        self.assertEqual(chosen("what do you serve aria, at this hour"), ("aria",))
        self.assertEqual(chosen("I like Bob, he is kind", talk=after(HELLO), at=110), ("aria",))
        self.assertEqual(chosen("Bob, what do you serve Aria, wine?"), ())

    def test_a_call_to_another_ends_it(self):
        """Whoever turns to Bob talks with Bob."""
        self.assertEqual(chosen("Bob, look at that!", talk=after(HELLO), at=110), ())
        talk = after(HELLO, Line("alice", "Bob, look at that!", at=110))
        self.assertEqual(chosen("Is it not strange?", talk=talk, at=112), ())

    def test_whoever_is_called_talks_with_the_caller(self):
        """Who is called by name talks with an assistant no more; `everyone` calls none."""
        talk = after(HELLO, Line("bob", "nice to meet you Alice", at=110))
        self.assertEqual(chosen("and you!", talk=talk, at=112), ())
        self.assertEqual(chosen("Aria, and you!", talk=talk, at=112), ("aria",))
        elsewhere = Line("bob", "Come here.", at=110, receivers=("somebody elsewhere",))
        self.assertEqual(answerers(elsewhere, CROWD, Talk())[0], ())
        talk = after(HELLO, Line("bob", "hello everyone", at=110))
        self.assertEqual(chosen("what is new?", talk=talk, at=112), ("aria",))

    def test_a_call_to_several(self):
        """Whoever calls a player and two assistants talks on with the first who answers."""
        line = Line("alice", "Bob, Aria and Boris, who is older?", at=100)
        found, talk = answerers(line, CROWD, Talk())
        self.assertEqual(found, ("aria", "boris"))
        self.assertEqual(chosen("Well?", talk=talk, at=110), ("aria",))

    def test_a_pose_or_whisper_does_not_end_it(self):
        """A talk outlasts a pose that names nobody and a whisper to somebody else."""
        pose = Line("alice", "sits down.", "pose", 110)
        whisper = Line("alice", "Psst!", "whisper", 120, ("boris",))
        for talk, at in ((after(HELLO, pose), 115), (after(HELLO, pose, whisper), 125)):
            self.assertEqual(chosen("What is new?", talk=talk, at=at), ("aria",))

    def test_a_name_within_the_talk(self):
        """In a talk with Aria a line about Boris is for Aria; one who is alone gets Boris."""
        asked = "I asked Boris yesterday."
        self.assertEqual(chosen(asked, talk=after(HELLO), at=110), ("aria",))
        self.assertEqual(chosen(asked), ())
        alone = [person for person in CROWD if person.kind != "player" or person.id == "alice"]
        self.assertEqual(chosen(asked, people=alone), ("boris",))

    def test_one_person_alone(self):
        """The one whom it concerns most, then who has been silent longest, then who is awake."""
        for shares, answerer in (
            ({"aria": 0.0, "boris": 0.0, "cleo": 0.5}, "cleo"),
            ({"aria": 0.2, "boris": 0.6, "cleo": 0.4}, "boris"),
        ):
            self.assertEqual(chosen("Any songs?", QUIET, concern=shares.get), (answerer,))
        spoken = Talk(spoke={"aria": 90.0, "cleo": 50.0})
        self.assertEqual(chosen("Any news?", QUIET, spoken), ("boris",))
        sleepy = (ARIA, Person("boris", ("Boris",), "assistant", awake=False), ALICE)
        self.assertEqual(chosen("Any news?", sleepy, spoken), ("aria",))
        self.assertEqual(chosen("Any news?", (TOM, ALICE)), ())

    def test_other_channels(self):
        """A pose is answered by those it names, whispers and pages by whom they reach."""
        self.assertEqual(chosen("nods to Aria and Bob.", channel="pose"), ("aria",))
        self.assertEqual(chosen("sits down.", QUIET, channel="pose"), ())
        self.assertEqual(chosen("hello", channel="whisper", receivers=("boris",)), ("boris",))
        page = {"channel": "page", "receivers": ("aria",), "speaker": "far"}
        self.assertEqual(chosen("hello", QUIET[:2], **page), ("aria",))

    def test_attention(self):
        """`addressed` waits for its name; `all` answers whatever a player says."""
        shy = Person("aria", ("Aria",), "assistant", attention="addressed")
        keen = Person("boris", ("Boris",), "assistant", attention="all")
        talk = Talk(partners={"alice": ("aria", 99.0)})
        self.assertEqual(chosen("Any news?", (shy, ALICE), talk), ())
        self.assertEqual(chosen("Any news?", (shy, ALICE)), ())
        self.assertEqual(chosen("Aria?", (shy, ALICE)), ("aria",))
        self.assertEqual(chosen("Nice weather.", (keen, ALICE, BOB)), ("boris",))
        self.assertEqual(chosen("Aria, hello", (shy, keen, ALICE)), ("aria", "boris"))

    def test_no_endless_talk_without_people(self):
        """Two replies to characters nobody plays, until a player speaks."""
        talk, line, replies = Talk(), Line("tom", "Aria, what?"), 0
        for _ in range(5):
            found, talk = answerers(line, CROWD, talk)
            replies += len(found)
        self.assertEqual((replies, REPLIES_WITHOUT_PERSON), (2, 2))
        self.assertEqual(chosen("Boris, hello", speaker="aria", talk=talk), ())
        talk = after(Line("alice", "Quiet!"), talk=talk)
        self.assertEqual(chosen("Boris, hello", speaker="aria", talk=talk), ("boris",))
        self.assertEqual(chosen("Any news?", speaker="tom"), ())

    def test_assistants_that_greet_all(self):
        """Nobody answers an assistant's line to all; by their names it calls them."""
        greeting = "Good evening, everyone!"
        self.assertEqual(chosen(greeting), ("aria", "boris", "cleo"))
        self.assertEqual(chosen(greeting, speaker="aria"), ())
        self.assertEqual(chosen(greeting, speaker="tom"), ("aria", "boris"))
        self.assertEqual(chosen("Boris, good evening!", speaker="aria"), ("boris",))
        pair = (ARIA, Person("boris", ("Boris",), "assistant"))
        self.assertEqual(chosen("Boris, good evening!", pair, speaker="aria"), ("boris",))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["alice", "bob", "tom", "aria", "boris", "cleo"]),
                st.sampled_from(
                    ["Aria, hi", "Boris?", "so be it", "hello everyone", "Bob!", "Is Cleo here?"]
                ),
                st.sampled_from(["say", "say", "pose"]),
            )
        )
    )
    def test_never_a_crowd(self, lines):
        """A line that addresses nobody has one answer at most, and nobody answers himself."""
        talk, unattended = Talk(), 0
        for number, (speaker, text, channel) in enumerate(lines):
            line = Line(speaker, text, channel, at=float(number * 20))
            found, talk = answerers(line, CROWD, talk)
            self.assertNotIn(speaker, found)
            self.assertLessEqual(set(found), {"aria", "boris", "cleo"})
            if "everyone" not in text:
                self.assertLessEqual(len(found), 1)
            unattended = 0 if speaker in ("alice", "bob") else unattended + len(found)
            self.assertLessEqual(unattended, REPLIES_WITHOUT_PERSON)
