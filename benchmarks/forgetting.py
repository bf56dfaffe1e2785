"""Measure what is left of a forgotten guest, and what others lose. Prints JSON.

Five guests of a tavern talk with an assistant over 400 lines, in each of five languages; two
compactions and a night lie between. Each guest is forgotten once, in a tavern of its own. Counted:

- `runs_left`: five words in a row (twelve letters of scripts without spaces) that only the
  forgotten guest said, in all that is stored afterwards: Attributes, index, semantic memory
  (counted apart from the package, by `tests.wordings`);
- `others_lost`: the share of the replies to other guests that went and hold no such words;
- `lines_of_others_lost`: the lines of other guests that went.

The talk is made of two halves of sentences. `--half 1` takes the other half, on which nothing was
settled.

    python -m benchmarks.forgetting [--half 0|1]
"""

import argparse
import random
from collections.abc import Iterable
from typing import Any

from benchmarks.figures import show
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.budget import REGIONS, ReplyTrace, TokenBudget
from evennia_ai.privacy.forget import forget_people
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from tests.memory_assistant import ARIA, MemoryWorld
from tests.waiting import alone, wait_for
from tests.wordings import wordings

LINES, COMPACTED_EVERY = 400, 150
AT = "2027-01-15T08:00:00.000+00:00"
ARIA_SPEAKER = Speaker("Aria", ARIA)

# Of each language: five names; things and places; what guests say, in two halves; what a reply says
# of the asker's line, of another guest by name, and in general.
LANGUAGES: dict[str, dict[str, Any]] = {
    "en": {
        "names": ["Alice", "Bram", "Cora", "Dorn", "Elin"],
        "things": ["lantern", "rope", "saddle", "ledger", "kettle", "anchor", "violin", "compass"],
        "places": ["mill", "ferry", "chapel", "quarry", "orchard", "harbour", "bridge", "tower"],
        "said": (
            [
                "I have hidden my old {a} under the floor of the {b}.",
                "Yesterday I sold {n} barrels and a {a} near the {b}.",
                "My brother still owes me {n} silver for the {a} from the {b}.",
                "Could you tell me who left this {a} behind at the {b}?",
            ],
            [
                "The {a} that my mother gave me was lost by the {b} last winter.",
                "I shall walk to the {b} at {n} o'clock and fetch the {a} myself.",
                "Nobody at the {b} believes that the {a} is worth {n} crowns.",
                "What would you do with a broken {a} found behind the {b}?",
            ],
        ),
        "reply": ["A {a}, at the {b}? I see.", "Then mind the {b}.", "That is a good price."],
        "named": ["{name} sits by the fire tonight.", "Ask {name}, who came in before you."],
        "plain": ["The stew is hot.", "It rains again.", "What may I bring you?"],
    },
    "de": {
        "names": ["Anna", "Bruno", "Clara", "Dirk", "Elsa"],
        "things": ["Laterne", "Trommel", "Truhe", "Geige", "Karte", "Axt", "Glocke", "Waage"],
        "places": ["Mühle", "Fähre", "Kapelle", "Brücke", "Schmiede", "Burg", "Scheune", "Quelle"],
        "said": (
            [
                "Ich habe meine alte {a} unter dem Boden der {b} versteckt.",
                "Gestern verkaufte ich {n} Fässer und eine {a} nahe der {b}.",
                "Mein Bruder schuldet mir noch {n} Taler für die {a} aus der {b}.",
                "Kannst du mir sagen, wer diese {a} bei der {b} vergessen hat?",
            ],
            [
                "Die {a} meiner Mutter ging letzten Winter bei der {b} verloren.",
                "Um {n} Uhr gehe ich selbst zur {b} und hole die {a} ab.",
                "Niemand in der {b} glaubt, dass die {a} {n} Taler wert ist.",
                "Was tust du mit einer zerbrochenen {a}, die hinter der {b} lag?",
            ],
        ),
        "reply": ["Eine {a}, bei der {b}? Ich verstehe.", "Hast du Hunger?", "Ein guter Preis."],
        "named": ["{name} sitzt heute Abend am Feuer.", "Frag {name}, die Tür stand offen."],
        "plain": ["Der Eintopf ist heiß.", "Es regnet wieder.", "Was darf ich dir bringen?"],
    },
    "ja": {
        "names": ["花子", "次郎", "明美", "健太", "由美"],
        "things": ["提灯", "太鼓", "地図", "茶釜", "刀", "笛", "帳簿", "羅針盤"],
        "places": ["水車小屋", "渡し場", "礼拝堂", "石切り場", "果樹園", "港", "橋", "塔"],
        "said": (
            [
                "古い{a}を{b}の床下にそっと隠しておきました。",
                "昨日、{b}の近くで樽を{n}個と{a}を売りました。",
                "兄は{b}の{a}の代金をまだ銀貨{n}枚も払ってくれません。",
                "この{a}を{b}に置き忘れたのは誰か教えてもらえますか？",
            ],
            [
                "母からもらった{a}を去年の冬に{b}のそばで失くしました。",
                "{n}時になったら{b}まで歩いて{a}を自分で取りに行きます。",
                "{b}の人たちは{a}に金貨{n}枚の値打ちがあるとは信じません。",
                "{b}の裏で見つけた壊れた{a}をあなたならどうしますか？",
            ],
        ),
        "reply": ["{b}の{a}ですか。", "お腹は空いていますか。", "良い値段ですね。"],
        "named": [
            "{name}さんは今夜、火のそばに座っています。",
            "先に来た{name}さんに聞いてください。",
        ],
        "plain": ["シチューは温かいですよ。", "また雨です。", "何をお持ちしましょうか。"],
    },
    "zh": {
        "names": ["小明", "阿芳", "老李", "秀英", "建国"],
        "things": ["灯笼", "绳子", "马鞍", "账本", "水壶", "铁锚", "笛子", "罗盘"],
        "places": ["磨坊", "渡口", "小教堂", "采石场", "果园", "港口", "石桥", "高塔"],
        "said": (
            [
                "我把自己的旧{a}藏在{b}的地板下面了。",
                "昨天我在{b}附近卖掉了{n}个木桶和一个{a}。",
                "我哥哥还欠我{b}那个{a}的{n}块银元没有还。",
                "你能告诉我是谁把这个{a}忘在{b}里的吗？",
            ],
            [
                "母亲送给我的{a}去年冬天在{b}旁边丢了。",
                "到了{n}点我会自己走到{b}把{a}取回来。",
                "{b}那里没有人相信这个{a}值{n}个金币。",
                "要是在{b}后面捡到一个坏了的{a}你会怎么办？",
            ],
        ),
        "reply": ["{b}的{a}？明白了。", "你今天饿吗？", "价钱不错。"],
        "named": ["{name}今晚坐在火炉旁边。", "去问{name}吧，来得比你早。"],
        "plain": ["热汤已经好了。", "又下雨了。", "想喝点什么？"],
    },
    "ar": {
        "names": ["ليلى", "كريم", "سلمى", "ياسر", "هند"],
        "things": ["فانوس", "حبل", "سرج", "دفتر", "إبريق", "مرساة", "عود", "بوصلة"],
        "places": [
            "الطاحونة",
            "المعبر",
            "المصلى",
            "المحجر",
            "البستان",
            "الميناء",
            "الجسر",
            "البرج",
        ],
        "said": (
            [
                "لقد خبأت أنا نفسي {a} قديم تحت أرضية {b} ليلا.",
                "بعت أمس {n} براميل و {a} واحد بالقرب من {b} هنا.",
                "ما زال أخي مدينا لي بمبلغ {n} دينار ثمن {a} من {b}.",
                "هل تخبرني من الذي نسي هذا {a} عند {b} يا صديقي؟",
            ],
            [
                "أعطتني أمي {a} جميل وقد ضاع مني قرب {b} في الشتاء الماضي.",
                "سأمشي بنفسي إلى {b} في الساعة {n} لأحضر {a} معي.",
                "لا أحد في {b} يصدق أن {a} هذا يساوي {n} قطعة.",
                "ماذا كنت ستفعل لو وجدت {a} مكسور خلف {b} وحدك؟",
            ],
        ),
        "reply": ["{a} عند {b}؟ فهمت.", "هل أنت جائع جدا؟", "هذا سعر جيد."],
        "named": ["تجلس {name} الليلة قرب النار.", "اسأل {name} فقد جاءت قبلك."],
        "plain": ["الحساء ساخن.", "إنها تمطر من جديد.", "ماذا أحضر لك؟"],
    },
}


def chatter(request: Any) -> str:
    """A summary that repeats pieces of what it reads, as models do."""
    lines = str(request.messages[-1]["content"]).splitlines()
    return " ".join(line[:60] for line in lines[1::3])[:1500] or "Quiet."


class Tavern:
    """An evening in one language; what was said is kept beside the store.

    Attributes:
        heard: The lines of guests, by id, with the speaker's id.
        replies: The assistant's lines, by id, with whom it answered; None for nobody.
    """

    def __init__(self, language: str, half: int) -> None:
        self.words, self.half, self.language = LANGUAGES[language], half, language
        self.chance = random.Random(f"{language} {half}")
        self.guests = [Speaker(name, f"o{n}.x") for n, name in enumerate(self.words["names"], 1)]
        self.world = MemoryWorld(
            compact_preserve_window=6, pre_compact_extraction_enabled=False, summary_max_tokens=400
        )
        self.world.model.default = chatter
        self.heard: dict[str, tuple[str, str]] = {}
        self.replies: dict[str, tuple[str | None, str]] = {}
        self.evening()

    def evening(self) -> None:
        """Everything that is said, and what is made of it."""
        compacted = 0
        while (count := len(self.heard) + len(self.replies)) < LINES:
            self.exchange()
            if count - compacted >= COMPACTED_EVERY:
                wait_for(Compaction(self.world.script, MANUAL).run())
                compacted = count
        wait_for(consolidate_memories_to_semantic(self.world.script, self.world.body))

    def exchange(self) -> None:
        """A guest says something and is answered; now and then notes are made of it."""
        chance, script, body = self.chance, self.world.script, self.world.body
        self.world.later(30)
        guest, other = chance.sample(self.guests, 2)
        about = {"a": chance.choice(self.words["things"]), "b": chance.choice(self.words["places"])}
        about["n"] = str(chance.randint(2, 900))
        text = chance.choice(self.words["said"][self.half]).format(**about)
        line = Message("user", text, new_id("m"), speaker=guest, channel="say")
        script.history.append([line])
        self.heard[line.id] = guest.id, text
        kind = chance.choice(("reply", "reply", "named", "plain", "quoted", "unasked"))
        hits: tuple[str, ...] = ()
        if kind == "quoted":  # what another guest said before, word for word or nearly so
            before = [said for said in self.heard.values() if said[0] == other.id]
            words = chance.choice(before)[1] if before else text
            answer = f"{other.key}: {words}"
        elif kind == "unasked":
            answer = chance.choice(self.words["named"]).format(name=other.key)
        else:
            answer = chance.choice(self.words[kind]).format(name=other.key, **about)
            theirs = [key for key, said in self.heard.items() if said[0] == other.id]
            hits = tuple(chance.sample(theirs, min(2, len(theirs))))
        asker = None if kind == "unasked" else guest.id
        self.answer(answer, asker, line.id, hits)
        if chance.random() < 0.3:
            entry = body.journal.add(text, source_message_ids=[line.id])
            profile = body.entities.get(guest.id) or new_profile(guest.id, guest.key, 0.0)
            seen = observe(profile, text, script.now(), [line.id, entry.id])
            body.entities.put({guest.id: seen})

    def answer(self, text: str, asker: str | None, answers: str, hits: Iterable[str]) -> None:
        """The assistant says something; its prompt held memories of another guest."""
        budget = TokenBudget(
            at=1.0, purpose="awake", model="m", regions=dict.fromkeys(REGIONS, 0), limit=9
        )
        given = dict.fromkeys(hits, 0.9)
        trace = ReplyTrace(budget=budget, answers=(answers,) if asker else (), given=given)
        meta = {"trace": trace.to_text(), "memories": [{"id": hit} for hit in given]}
        meta |= {"asker": asker} if asker else {}
        channel = self.chance.choice(("say", "page", "pose"))
        line = Message(
            "assistant", text, new_id("m"), speaker=ARIA_SPEAKER, channel=channel, metadata=meta
        )
        self.world.script.history.append([line])
        self.replies[line.id] = asker, text

    def forget(self, guest: Speaker) -> dict[str, int]:
        """Forget a guest; returns counts of what is left and what others lost."""
        script, body = self.world.script, self.world.body
        own, theirs = set[str](), set[str]()
        for by, text in self.heard.values():
            (own if by == guest.id else theirs).update(self.runs(text))
        own -= theirs
        wait_for(alone(forget_people, script, body, [guest.id], AT))
        segments = script.history.segments()
        left = {m.id for segment in segments for m in segment.messages}
        left |= {message.id for message in script.history.messages()}
        others = {
            key
            for key, (asker, text) in self.replies.items()
            if asker != guest.id and own.isdisjoint(self.runs(text))
        }
        said = {key for key, (by, _) in self.heard.items() if by != guest.id}
        return {
            "runs_said": len(own),
            "runs_left": len({run for text in self.stored() for run in self.runs(text)} & own),
            "lines_left": len(self.heard.keys() - said & left),
            "replies_to_others": len(others),
            "others_lost": len(others - left),
            "lines_of_others_lost": len(said - left),
        }

    def runs(self, text: str) -> set[str]:
        """Each five words, or twelve letters, in a row of a text."""
        return wordings(text, self.language)

    def stored(self) -> Iterable[str]:
        """Every text that is stored anywhere."""
        storage = self.world.storage
        yield from texts_of([storage.script.values, storage.body.values])
        yield from (turn.text for turn in self.world.index.turns.values())
        yield from (turn.text for turn in self.world.memories())


def texts_of(value: Any) -> Iterable[str]:
    """All texts in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts_of(key)
            yield from texts_of(each)
    elif hasattr(value, "__iter__"):
        for each in value:
            yield from texts_of(each)


def main() -> None:
    """Print the figures of each language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    half, figures = parser.parse_args().half, dict[str, dict[str, float]]()
    for language in LANGUAGES:
        counts: dict[str, int] = {}
        for number in range(len(LANGUAGES[language]["names"])):
            tavern = Tavern(language, half)
            for key, count in tavern.forget(tavern.guests[number]).items():
                counts[key] = counts.get(key, 0) + count
        share = counts["others_lost"] / max(1, counts["replies_to_others"])
        figures[language] = {**counts, "share_of_others_lost": round(share, 4)}
    show({"half": half, "lines": LINES, "guests": 5, "by_language": figures})


if __name__ == "__main__":
    main()
