"""The offline model in each language."""

import tomllib
import unittest
from pathlib import Path

from evennia_ai.history.frames import heard_line, note
from evennia_ai.language.script import size
from evennia_ai.language.tables import DEFAULT, language_of, table_of, tables
from evennia_ai.llm_interaction.contexts import language_rule
from evennia_ai.llm_interaction.conversation import NOW
from evennia_ai.llm_interaction.facts import lost, numbers
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.summary import request_text
from tests.llm_interaction.offline.requests import SYSTEM, TOOLS, asking, said

WRITES = "add_journal_entry"
TALKS = tomllib.loads((Path(__file__).parents[1] / "summaries.toml").read_text("utf-8"))["talk"]
TEXTS = Path(__file__).with_name("languages.txt")

# A question after somebody else's name, after the assistant's, and after one's own.
NAMES = {
    "en": ("What is my cat's name?", "What is your name?", "What is my name?"),
    "de": ("Wie heißt meine Katze?", "Wie heißt du?", "Wie heiße ich?"),
    "fr": ("Comment s'appelle mon chat ?", "Comment t'appelles-tu ?", "Comment je m'appelle ?"),
    "es": ("¿Cómo se llama mi gato?", "¿Cómo te llamas?", "¿Cómo me llamo?"),
    "ru": ("Как зовут мою кошку?", "Как тебя зовут?", "Как меня зовут?"),
    "pl": ("Jak ma na imię mój kot?", "Jak masz na imię?", "Jak mam na imię?"),
    "tr": ("Kedimin adı ne?", "Adın ne?", "Benim adım ne?"),
    "ar": ("ما اسم قطتي؟", "ما اسمك؟", "ما اسمي؟"),
    "hi": ("मेरी बिल्ली का नाम क्या है?", "तुम्हारा नाम क्या है?", "मेरा नाम क्या है?"),
    "zh": ("我的猫叫什么名字？", "你叫什么名字？", "我叫什么名字？"),
    "ja": ("私の猫の名前は何ですか？", "お名前は何ですか？", "私の名前は何ですか？"),
    "ko": ("제 고양이 이름이 뭐예요?", "이름이 뭐예요?", "제 이름이 뭐예요?"),
    "it": ("Come si chiama il mio gatto?", "Come ti chiami?", "Come mi chiamo?"),
    "pt": ("Como se chama o meu gato?", "Como você se chama?", "Como eu me chamo?"),
    "th": ("แมวของฉันชื่ออะไร", "คุณชื่ออะไร", "ฉันชื่ออะไร"),
}

# A greeting by a name in any script, a courtesy that tells nothing, an order.
MANNERS = {
    "en": ("アリア, good evening!", "Good to know, Cora.", "Speak German please."),
    "de": ("Arja, guten Abend!", "Alles klar, danke.", "Sag Cora guten Tag."),
    "fr": ("Aria — bonsoir !", "C'est bon à savoir.", "Donne-moi la lanterne."),
    "es": ("Aria，¡buenas noches!", "Es bueno saberlo.", "Dame la linterna, por favor."),
    "it": ("Arya, buonasera!", "Buono a sapersi, Cora.", "Dammi la lanterna, per favore."),
    "pt": ("Ária, boa noite!", "É bom saber, Cora.", "Traga a lanterna para mim."),
    "ru": ("Ария, добрый вечер!", "Буду знать, Cora.", "Принеси мне фонарь."),
    "pl": ("Aria！dobry wieczór！", "Dobrze wiedzieć, Cora.", "Przynieś mi latarnię."),
    "tr": ("Arya, iyi akşamlar!", "Çok iyi, Cora.", "Bana feneri getir."),
    "ar": ("آريا، مساء الخير!", "جيد أن أعرف.", "أعطني الفانوس من فضلك."),
    "hi": ("आरिया, शुभ संध्या!", "अच्छा, समझ गया।", "मुझे लालटेन दो।"),
    "zh": ("阿莉亚晚上好！", "原来如此，知道了。", "把灯笼给我拿来。"),
    "ja": ("アリア、こんばんは！", "なるほど、わかりました。", "ランタンを持ってきてください。"),
    "ko": ("아리아, 안녕하세요!", "그렇군요, 알겠습니다.", "등불을 가져와 주세요."),
    "th": ("อาเรีย, สวัสดีครับ!", "เข้าใจแล้วครับ", "ช่วยหยิบโคมไฟมาให้หน่อย"),
}

# Statements that begin or end as orders, wishes or courtesies do, and questions that do.
TOLD = """
Yesterday, light rain fell on Ford. | Today, help came from the king.
Feribot şafakta gelir. | 할머니는 시장에 가세요. | 船は夜明けに出るって。 | 去磨坊的路断了。
Vende pescado en el puerto. | Canta ogni sera alla locanda. | Vende peixe no porto de Ford.
The well-read men live in Ford. | Spell books are kept in the tower.
Roll call is at six in the yard. | Keep Lane leads to the mill. | Say Cora has the key.
Singen kann Bram gut. | Spiele gibt es am Sonntag auf dem Markt. | En sevdiğim mevsim yaz.
Kardeşimin adı Al. | 犬の名前はしろ。 | 唱歌的是米拉。 | 拿破仑住在北边的磨坊。
写信的人是布拉姆。 | 我要结婚了。 | ขอนไม้อยู่หลังบ้าน | मेरे भाई दो। | Cantar es mi oficio.
Lire est mon métier. | Reste deux tonneaux dans la cave du moulin. | Открыть дверь может мой ключ.
Katten heter Kal. | Je vois Bram au moulin. | Вижу лодку у моста. | Ich verstehe Latein.
Güzel atım var. | I want a divorce. | I want a new life. | I want the truth about Bram.
I want a word with Bram about the mill. | 我的船叫白鹭，谢谢。 | 私の船はサギ、ありがとう。
Watch duty begins at noon at the gate. | Play begins at eight in the hall.
Hide tanning is my father's trade. | Hope keeps the inn at Ford. | Read is a village by the river.
Keep sits above the river. | Try as we might the mill burned down. | Call me Bram, please.
I want my father to come home. | I want to marry Cora in spring. | You said Bram owns the mill.
I see Bram at the mill every day. | Good timber comes from Ford.
Noted herbalist Cora lives in Ford. | The mill is closed, good evening.
I don't know Bram's brother. | Sounds carry far over the lake at night.
Warte seit Montag auf Bram. | Verkaufe Fische am Hafen. | Folge dem Fluss bis zur Mühle.
Ich möchte ein Haus am Fluss. | Ich will ein Kind. | Mira singt Lieder auf dem Markt.
Geschichten erzählt am besten Cora. | Gut geht es meinem Bruder in Ford.
Abre la taberna a las seis. | Quiero una vida nueva. | Ven es el nombre de mi gato.
Toma la medicina cada noche. | Ferme de Bram au nord du village. | Compte de Ford est mon oncle.
Va chaque jour au moulin avec Bram. | Je veux une nouvelle vie.
Mira chante des chansons au marché. | Apri la porta ogni mattina alle sei.
Vieni da Ford come mio fratello. | Parla tre lingue mio fratello. | Voglio una nuova vita.
Me dá medo o moinho velho. | Quero uma vida nova. | Fala três línguas o meu irmão.
Хочу новый дом у реки. | Взять ключ может только Брам. | Мира поёт песни на рынке.
Chcę nowego domu nad rzeką. | Otworzyć drzwi może tylko Bram. | Köpeğimin rengi boz, yaşı on say.
Bram her sabah ekmek sat. | Yeni bir hayat istiyorum. | خذ المطر كل شيء من الحقل.
ساعدني بدر في الحصاد. | تكلم بدر مع الملك أمس. | أريد حياة جديدة. | मुझे नई ज़िंदगी चाहिए।
मेरी बहन रोज़ गाना गाती है। | 我弟弟说的故事很长。 | 米拉每天晚上在市场唱歌。
好的，我叫苍鹭，住在磨坊。 | 打开门的人是布拉姆。 | 给我写信的人是米拉。 | 我想要新的生活。
讲故事的人住在北边。 | 兄に帰ってきてほしい。 | 兄が舟を直してくれる。 | ここで薬を分けてもらえる。
ミラは毎晩市場で歌を歌っています。 | はい、私の犬はしろです。 | 미라는 시장에서 노래해요.
할머니 시장에 자주 가세요. | 네, 제 배 이름은 백로예요. | ช่วยแม่ทำงานที่โรงสีทุกวัน
ขอทานอยู่หน้าวัด | ใช่ ฉันเป็นชาวประมง | กรุณาอยู่ที่โรงสีเก่า | ได้เงินสิบเหรียญจากเบรม
Hunden heter Al. | Min bror bor i Ford og heter Say. | De kat heet Kies en woont in Ford.
Good friends are here from Ford. | Puedes abrir la puerta con mi llave.
Możesz otworzyć drzwi moim kluczem. | Keep it Simple is the name of my horse.
Two ravens nest on the mill. | Ich hätte gern einen Bruder. | Muy bien canta mi hermana.
Je comprends le latin. | Capisco il latino. | Rozumiem łacinę i stary język.
Harika bir teknem var. | 再来一次我就搬走。 | 把门关上的是布拉姆。 | 母は物語を話してくれました。
아버지는 이야기를 해 주세요. | Canta una canción cada noche mi hermana.
Raconte une histoire chaque soir, mon oncle. | Racconta una storia ogni sera mio nonno.
Знаешь историю про мельницу лучше Брама. | 布拉姆来讲故事了。
"""
ASKED = """
Erzähl mir von der Mühle. | Sag mir das Losungswort. | 合言葉を教えてください。
who owns the mill please | Where is Bram, please | Tell me where the mill is, please.
Wo ist die Mühle bitte. | Où est le moulin, s'il vous plaît. | Dónde está el molino, por favor.
Где мельница, пожалуйста. | أين الطاحونة من فضلك. | ช่วยบอกว่าเบรมอยู่ไหน
Could you tell me who owns the mill? | Can you say where Bram lives? | Is Bram at the mill, please?
Do you know where Cora lives please | Sag mir, wo die Mühle ist.
Kannst du mir sagen, wo Bram wohnt? | Dime dónde está el molino. | Dis-moi où est le moulin.
Dimmi dov'è il mulino. | Скажи, где мельница. | Powiedz mi, gdzie jest młyn. | 告诉我谁住在磨坊。
粉屋がどこにあるか教えてください。 | ช่วยบอกหน่อยว่าเบรมอยู่ที่ไหน
"""


def facts():
    """Facts and questions by language."""
    told = {}
    for line in TEXTS.read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = told.setdefault(line.strip("[]"), [])
        elif " | " in line:
            rows.append(line.split(" | "))
    return told


def answer(text, *before, tools=TOOLS, rules=""):
    """The reply to one line of Bob's."""
    system = {**SYSTEM, "content": f"{SYSTEM['content']}\n{rules}"}
    return respond(asking("Bob", text, *before, system=system), tools)


def extract(*told):
    """The summary of lines that somebody said, or of other rows."""
    rows = [
        row if isinstance(row, str) else heard_line(row[0], "o1.a", "say", row[1]) for row in told
    ]
    return respond([SYSTEM, {"role": "user", "content": request_text(rows)}]).content


class TestEachLanguage(unittest.TestCase):
    def test_each_has_texts(self):
        """A table without texts is not measured."""
        self.assertEqual(facts().keys(), tables().keys())

    def test_facts_are_written_down(self):
        """And questions are looked up; neither is nonsense."""
        for code, rows in facts().items():
            wrong = []
            for fact, question in rows:
                for text, tool in ((fact, WRITES), (question, "search_memory")):
                    wrong += [text] * ([call.name for call in answer(text).tool_calls] != [tool])
            self.assertLessEqual(len(wrong), 2, (code, wrong))

    def test_no_orders(self):
        """A statement like an order is a fact, a polite question and one for an answer ask."""
        for rows, tool in ((TOLD, WRITES), (ASKED, "search_memory")):
            for text in rows.strip().replace("\n", " | ").split(" | "):
                self.assertEqual([call.name for call in answer(text).tool_calls], [tool], text)

    def test_set_off_in_any_way(self):
        """Whatever mark stands behind the assistant's name, the rest is what was said."""
        for code, rows in facts().items():
            for mark in (", ", "，", "、", ": ", "! "):
                with self.subTest(code, mark=mark):
                    told = [answer(f"Aria{mark}{fact}").tool_calls for fact, _ in rows]
                    wrong = [calls for calls in told if [c.name for c in calls] != [WRITES]]
                    self.assertLessEqual(len(wrong), 2)

    def test_manners(self):
        """Who is greeted by any name greets; courtesies and orders are not written down."""
        self.assertEqual(MANNERS.keys(), tables().keys())
        for code, (greeting, *others) in MANNERS.items():
            with self.subTest(code):
                lines = [each.format(who="Bob") for each in tables()[code].get("lines", "greeting")]
                self.assertIn(answer(greeting).content, lines)
                for text in others:
                    self.assertFalse(answer(f"Aria, {text}").tool_calls, text)

    def test_whose_name(self):
        """Somebody else's is looked up; the assistant's own and the asker's are known.

        It quotes its persona only in the persona's language.
        """
        self.assertEqual(NAMES.keys(), tables().keys())
        for code, (others, own, askers) in NAMES.items():
            with self.subTest(code):
                self.assertEqual([c.name for c in answer(others).tool_calls], ["search_memory"])
                told = answer(own).content
                introduction = tables()[code].get("lines", "introduction")[0]
                self.assertIn(introduction.format(name="Aria"), told)
                self.assertEqual("A barkeep" in told, code == DEFAULT)
                self.assertIn("Bob", answer(askers).content)

    def test_persona_in_the_language(self):
        """It tells its persona as its own, and nothing that still speaks to it."""
        for persona, question, told in (
            ("Du bist Aria, die Wirtin.", "Wer bist du?", "Ich bin Aria, die Wirtin. "),
            ("Du kennst jede Straße.", "Wer bist du?", "Ich bin Aria. "),
            ("你是Aria，客栈老板娘。", "你是谁？", "我是Aria，客栈老板娘。"),
            ("Tu es Aria, l'aubergiste.", "Who are you?", "I am Aria. To"),
        ):
            system = {**SYSTEM, "content": f"You are Aria, in a game.\n\n{persona}"}
            reply = respond([system, said("Bob", question)])
            self.assertTrue(reply.content.startswith(told), reply)

    def test_insults_keys_and_wishes_are_not_written_down(self):
        """Whoever is rude, hits the keys or orders an ale is answered and not remembered."""
        for text in (
            "Two ales, please.",
            "Ich hätte gern noch ein Bier.",
            "Je voudrais une bière.",
            "Quiero una cerveza.",
            "Raconte-moi une blague.",
            "给我讲个笑话。",
            "재미있는 이야기 해 줘.",
            "Please sing something.",
            "Read me the letter.",
            "Bring mir ein Bier.",
            "Дай мне фонарь.",
            "Daj mi latarnię.",
            "给我一杯啤酒。",
            "Хочу пива.",
            "再来一杯啤酒。",
            "Aria, you are a stupid bucket of rust.",
            "Aria, du dumme Kuh.",
            "Tu es vraiment minable, Aria.",
            "Eres una burra, Aria.",
            "Aria, sei proprio stupida.",
            "Você é muito burra, Aria.",
            "Ты глупая, Aria.",
            "Aria、おまえはばかだ。",
            "Aria, 이 바보야.",
            "Aria fjdks ghhh wqpz",
            "Aria, ölkj wrtz mnbv",
            "Aria、ぬぬぬぺぺぺががが",
            "blarg zorp fnord",
        ):
            with self.subTest(text):
                reply = answer(text)
                self.assertTrue(reply.content, reply)

    def test_answers_are_in_the_language(self):
        """What was told is quoted, what was not is not known, each by a line of the language."""
        for code, rows in facts().items():
            with self.subTest(code):
                fact, question = rows[2]
                told = answer(question, said("Cora", fact), tools=())
                self.assertIn(fact.rstrip(".。।"), told.content)
                untold = answer(question, tools=())
                self.assertIn(untold.content, tables()[code].get("lines", "unknown"))

    def test_extracts(self):
        """They keep what was told, with speakers and numbers, and no greetings or frames."""
        for talk in TALKS:
            code = talk["language"]
            rows = [row.split(": ", 1) for row in talk["lines"].strip().split("\n")]
            text = extract(*rows)
            with self.subTest(code):
                self.assertEqual(language_of(text), code if code in tables() else "")
                self.assertNotIn("[", text)
                told = [said.rstrip(".。।") for _, said in rows]
                for row in text.split("\n"):
                    who, _, said = row.partition(": ")
                    self.assertIn(who, dict(rows), row)
                    small = table_of(said).expression("speech", "small").match(said)
                    self.assertFalse(small and size(said) < 4, row)
                self.assertGreaterEqual(sum(said in text for said in told), len(told) // 3, text)
                digits = numbers("\n".join(said for _, said in rows))
                self.assertFalse(lost(digits, text), text)

    def test_greetings_by_name(self):
        """Who is called and greeted was told nothing; a name behind a greeting is something."""
        for greeting, told in (
            ("Aria, hello!", "Hello, my name is Tom Heron."),
            ("Aria, guten Abend!", "Hallo, ich heiße Tom Reiher."),
            ("Aria, привет!", "Привет, меня зовут Антон."),
            ("Aria、こんばんは！", "こんばんは、私の舟の名前はサギです。"),
            ("阿莉亚，你好！", "你好，我叫苍鹭。"),
        ):
            room = f"tool look: {'a plain room ' * 9}"  # of which room is made
            text = extract(("Bob", greeting), ("Bob", told), room)
            self.assertNotIn("plain", text)
            self.assertIn(told.strip(".。"), text)
            self.assertNotIn(greeting.strip("!！"), text)

    def test_what_is_no_fact_is_not_extracted(self):
        """A question that nobody answered is none; what the assistant told may be all there is."""
        text = extract(
            ("Alice", "Aria, what colour is the king's old horse?"),
            "assistant: Your bed is the third on the left, for 2 coppers.",
            ("Bob", "My brother Tomas keeps 14 goats in Ford."),
            "assistant: I will keep the red room for Bob until Friday.",
            ("Cora", "I sold the mill to Henrik for 300 crowns last winter."),
            f"tool look: {'a plain room ' * 9}",  # of which room is made
        )
        self.assertNotIn("horse", text)
        for told in ("goats", "red room", "crowns", "third on the left"):
            self.assertIn(told, text)

    def test_extract_of_one_long_sentence(self):
        """It is the beginning of what was said, never the frame around it."""
        for spoken in (
            "Der Fährmann Oskar, der in der alten Mühle schläft, schuldet Konrad noch 340 Taler",
            "健太は洪水のあとから古い水車小屋で寝ていてパン屋の大輔に三百四十文の借りがあると言っていた",
            "!!! ??? ...",
        ):
            text = extract(("Bob", spoken))
            self.assertTrue(spoken.startswith(text.removeprefix("Bob: ")), text)
            self.assertTrue(text)

    def test_fixed_language(self):
        """It speaks the language that the rules name, whatever it hears."""
        for text, rules, codes in (
            ("Hello there!", language_rule("de"), ["de"]),
            ("Guten Abend!", "", ["de"]),
            ("Xyzzy?", language_rule("Klingon"), [DEFAULT, ""]),
        ):
            self.assertIn(language_of(answer(text, tools=(), rules=rules).content), codes)

    def test_the_time(self):
        """The clock and the day as the language tells them; a game's own words stay."""
        shown = "about a quarter past nine in the evening, Sunday 22 November 2026"
        for text, want in (
            ("Wie spät ist es?", "21:15 Uhr"),
            ("Welcher Tag ist heute?", "22.11.2026"),
        ):
            self.assertIn(
                want,
                respond(
                    [SYSTEM, {"role": "user", "content": f"{note(NOW, shown)}\nBob: {text}"}], ()
                ).content,
            )
