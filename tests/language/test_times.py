"""Times as people say and type them, in several languages."""

import unittest
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.tables import tables
from evennia_ai.language.times import (
    due,
    is_coming,
    leaves_words,
    read_time,
    spoken_time,
    spoken_units,
)

USUAL = {"sec": 1, "min": 60, "hr": 3600, "hour": 3600, "day": 86400, "month": 2419200}
TIDES = {"drop": 1, "tide": 500, "moon": 5000, "year": 50_000}
NOW = datetime(2026, 11, 26, 14, 0, tzinfo=UTC)
TIMES = {
    "11-26 16:00": "in 2h|in 2 hours|2 h|in 2 Stunden|через 2 часа|2時間後|2小时后|2시간 후"
    "|بعد ٢ ساعات|2 घंटे|อีก 2 ชั่วโมง|120 min|en 2 horas|dans 2 heures|tra 2 ore|1h60m"
    "|za 2 godziny|2 saat sonra",
    "11-26 21:00": "21:00|at 21:00|9pm|9 p.m.|21 Uhr|21h00|21時|２１：００|21.00",
    "11-27 09:00": "9:00|9 am|tomorrow|tomorrow 9:00|tomorrow at 9|morgen um 9 Uhr|завтра 9:00"
    "|明日9時|明天 9点|내일 9시|yarın 9:00|غدا ٩:٠٠|พรุ่งนี้ 9:00|mañana 9:00|demain 9:00"
    "|domani 9:00|jutro 9:00",
    "11-27 09:30": "9時30分|9:30",
    "11-27 00:00": "12am|0:00",
    "12-01 09:00": "2026-12-01 09:00|2026-12-01|2026/12/1",
    "11-29 14:00": "in 3 days|3d|3 天后|za 3 dni|3 gün sonra",
    "11-26 14:30": "in 0.5 hours|0,5 Stunden|30分後|in 30 minutes",
}
NONE = """soon||when pigs fly|25:00|13pm|0am|2026-13-01|9|in 5 months|in 99999 days
9999-12-31 9:00 x9|tomorrow evening or so maybe|in 2 hours and 5|tomorrow 30:00
meet me at 9:00 by the old mill|9:99"""

# Lines that leave words, by language, and others that do not.
ERRANDS = {
    "en": """Aria, tell Bram when he comes that the boat leaves at dawn.
remind me at nine to feed the cat
when Bob arrives, say hello from me
Let Tom know I paid
please pass a message on to Bob
could you tell him I was here?
tell Bob: dinner is ready
Tell Bob dinner is ready.""",
    "de": """Aria, sag Bram, wenn er kommt, dass das Boot bei Tagesanbruch fährt.
Erinnere mich um neun daran, die Katze zu füttern.
Richte Bob aus, dass ich bezahlt habe.
Kannst du mich morgen an den Markt erinnern?
Sag Tom bitte, er soll kommen""",
    "es": """Aria, dile a Bram cuando venga que el barco sale al amanecer.
Recuérdame a las nueve dar de comer al gato.
Avisa a Bob de que he pagado""",
    "fr": """Aria, dis à Bram quand il viendra que le bateau part à l'aube.
Rappelle-moi à neuf heures de nourrir le chat.
Préviens Bob que j'ai payé""",
    "it": """Aria, di' a Bram quando arriva che la barca parte all'alba.
Ricordami alle nove di dare da mangiare al gatto.
Avvisa Bob che ho pagato""",
    "pt": """Aria, diz ao Bram quando ele chegar que o barco parte ao amanhecer.
Lembra-me às nove de alimentar o gato.
Me lembre amanhã do mercado""",
    "pl": """Aria, powiedz Bramowi, gdy przyjdzie, że łódź odpływa o świcie.
Przypomnij mi o dziewiątej, żeby nakarmić kota.
Przekaż Bobowi, że zapłaciłem""",
    "ru": """Ария, скажи Браму, когда он придёт, что лодка отходит на рассвете.
Напомни мне в девять покормить кошку.
Передай Бобу, что я заплатил""",
    "tr": """Aria, Bram gelince teknenin şafakta kalkacağını söyle.
Saat dokuzda kediyi beslememi hatırlat.
Bob'a ödediğimi söyle""",
    "ar": """آريا، أخبري برام عندما يأتي أن القارب يغادر عند الفجر.
ذكرني في التاسعة أن أطعم القطة.
قل لبوب إنني دفعت""",
    "hi": """आरिया, ब्रैम जब आए तो उसे बता देना कि नाव भोर में जाती है।
मुझे नौ बजे याद दिलाना कि बिल्ली को खाना दूँ।
बॉब को कह देना कि मैंने पैसे दे दिए""",
    "ja": """アリア、ブラムが来たら、船は夜明けに出ると伝えて。
九時に猫に餌をやるよう思い出させて。
ボブに払ったと言っておいて""",
    "ko": """아리아, 브람이 오면 배가 새벽에 떠난다고 전해 줘.
아홉 시에 고양이 밥 주라고 알려 줘.
밥에게 돈을 냈다고 말해 줘""",
    "th": """อาเรีย ถ้าแบรมมา ช่วยบอกเขาว่าเรือออกตอนเช้ามืด
เตือนฉันตอนเก้าโมงให้อาหารแมว
ฝากบอกบ็อบว่าฉันจ่ายแล้ว""",
    "zh": """阿丽雅，布拉姆来了就告诉他船在黎明出发。
九点提醒我喂猫。
转告鲍勃我已经付钱了""",
}
TALK = {
    "en": """what do I owe Tom?
tell me a story
Tell me about Tom
good evening, Aria
I told Bob that the mill is shut
The boat leaves at dawn
When does the boat leave?
Who told you that?
remind me what we said
Do you know when Bob comes?
The ferry comes at noon.
tell us a tale
Where is the market?
when it comes to fish, I like trout""",
    "de": """Was schulde ich Tom?
Sag mir, wo der Markt ist.
Erzähl mir eine Geschichte
Ich erinnere mich an Bob
Wann kommt Bob?
Sag mal, wie geht es dir?
Bob hat gesagt, dass die Mühle zu ist""",
    "es": """¿Qué le debo a Tom?
Dime dónde está el mercado
Cuéntame una historia
¿Cuándo viene Bob?""",
    "fr": """Que dois-je à Tom ?
Dis-moi où est le marché
Raconte-moi une histoire
Quand vient Bob ?
Je me rappelle Bob""",
    "it": """Cosa devo a Tom?
Dimmi dov'è il mercato
Raccontami una storia
Quando viene Bob?""",
    "pt": """O que devo ao Tom?
Diz-me onde fica o mercado
Conta-me uma história
Quando vem o Bob?""",
    "pl": """Co jestem winien Tomowi?
Powiedz mi, gdzie jest rynek
Opowiedz mi historię
Kiedy przyjdzie Bob?""",
    "ru": """Что я должен Тому?
Скажи мне, где рынок
Расскажи историю
Когда придёт Боб?""",
    "tr": """Tom'a ne borcum var?
Bana pazarın nerede olduğunu söyle
Bir hikâye anlat
Bob ne zaman geliyor?""",
    "ar": """بماذا أدين لتوم؟
أخبرني أين السوق
احك لي قصة
متى يأتي بوب؟""",
    "hi": """मैं टॉम का क्या देनदार हूँ?
मुझे बताओ बाज़ार कहाँ है
एक कहानी सुनाओ
बॉब कब आएगा?""",
    "ja": """トムにいくら借りていますか？
市場がどこか教えて
話をして
ボブはいつ来ますか？
昨日ボブに会いました""",
    "ko": """톰에게 얼마를 빚졌나요?
시장이 어디인지 알려 줘
이야기해 줘
밥은 언제 와요?""",
    "th": """ฉันติดหนี้ทอมเท่าไหร่
บอกฉันหน่อยว่าตลาดอยู่ไหน
เล่านิทานให้ฟังหน่อย
บ็อบจะมาเมื่อไหร่""",
    "zh": """我欠汤姆什么？
告诉我市场在哪里
讲个故事
鲍勃什么时候来？""",
}


class TestDue(unittest.TestCase):
    """What a text means, on a Thursday at two in the afternoon."""

    def test_times(self):
        """Spans, clock times, days and dates."""
        for expected, texts in TIMES.items():
            for text in texts.split("|"):
                with self.subTest(text=text):
                    self.assertEqual(f"{due(text, NOW) or NOW:%m-%d %H:%M}", expected)

    def test_no_time(self):
        """What is none is None."""
        for text in NONE.replace("\n", "|").split("|"):
            with self.subTest(text=text):
                self.assertIsNone(due(text, NOW))

    def test_the_zone(self):
        """It is the time on the clock of the zone, also where that is put back in the night."""
        berlin = datetime(2026, 10, 24, 20, 0, tzinfo=ZoneInfo("Europe/Berlin"))
        then = due("tomorrow 9:00", berlin)
        self.assertEqual((then.hour, then.timestamp() - berlin.timestamp()), (9, 14 * 3600))

    def test_coming(self):
        """Words for somebody's coming, without a figure."""
        for text in ("when he comes", "wenn er kommt", "quand il vient", "来たら", "когда придёт"):
            self.assertTrue(is_coming(text), text)
        for text in ("", "2h", "when 2 come", "tomorrow"):
            self.assertFalse(is_coming(text), text)

    @given(st.text(max_size=40) | st.from_regex(r"[0-9:. ahmpin-]{1,20}", fullmatch=True))
    def test_any_text(self, text):
        """Any text is a time or none; a time is never in the past unless a date says so."""
        then = due(text, NOW)
        self.assertTrue(then is None or "-" in text or "." in text or "/" in text or then >= NOW)
        self.assertIsInstance(is_coming(text), bool)
        if then is not None:
            self.assertLess(then - NOW, timedelta(days=366 * 8000))


class TestLeavesWords(unittest.TestCase):
    def test_each_language(self):
        """Each has its own expression, which ordinary talk does not fit."""
        self.assertEqual(tables().keys(), ERRANDS.keys())
        for code, table in tables().items():
            errand = table.expression("speech", "errand")
            for line in ERRANDS[code].splitlines():
                self.assertTrue(errand.search(line), line)
                self.assertTrue(leaves_words(line), line)
            spoken = [line for lines in table.data["lines"].values() for line in lines]
            for line in TALK[code].splitlines():
                self.assertFalse(leaves_words(line), line)
            for line in spoken:
                self.assertFalse(errand.search(line), line)

    def test_a_language_without_a_table(self):
        """A sentence in one may leave words; a short line does not show its language."""
        self.assertTrue(leaves_words("Muistuta minua huomenna torista"))
        self.assertFalse(leaves_words("Kyllä kiitos"))


class TestSpokenTime(unittest.TestCase):
    def test_words(self):
        """The hour to a quarter, the time of the day, the date."""
        for clock, words in (
            ((0, 3), "about midnight"),
            ((0, 15), "about a quarter past midnight"),
            ((3, 20), "about a quarter past three at night"),
            ((9, 32), "about half past nine in the morning"),
            ((12, 14), "about a quarter past noon"),
            ((14, 51), "about a quarter to three in the afternoon"),
            ((21, 12), "about a quarter past nine in the evening"),
            ((22, 5), "about ten at night"),
            ((23, 55), "about midnight"),
        ):
            with self.subTest(clock):
                said = spoken_time(datetime(2026, 11, 22, *clock))
                self.assertEqual(said, f"{words}, Sunday 22 November 2026")

    @given(st.datetimes())
    def test_read_back(self, at):
        """The clock and the day are read as they were written."""
        clock, day = read_time(spoken_time(at))
        self.assertEqual(f"{clock}, {day}", spoken_time(at))
        self.assertTrue(day.endswith(f" {at.year}"))

    def test_words_of_a_game(self):
        """What has no comma is both the clock and the day."""
        self.assertEqual(read_time("dusk. "), ("dusk", "dusk"))
        self.assertEqual(read_time(""), ("", ""))

    def test_calendars(self):
        """With usual hours the clock is told in words; every other unit is told by its number."""
        at = 4 * 2419200 + 2 * 86400 + 21 * 3600 + 12 * 60
        told = "about a quarter past nine in the evening, day 3, month 5"
        self.assertEqual(spoken_units(at, USUAL), told)
        at = 1203 * 50_000 + 7 * 5000 + 999.5
        self.assertEqual(spoken_units(at, TIDES), "tide 1, moon 7, year 1203")
