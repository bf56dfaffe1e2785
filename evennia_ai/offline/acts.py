"""What somebody wants by what they say: a greeting, a question, something to be kept, an order."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evennia_ai.offline import lexicon, words
from evennia_ai.offline.claims import is_question, is_topic, statements
from evennia_ai.offline.lines import Line
from evennia_ai.offline.rewrite import LEADS, third_person

MAX_ACTS = 12


@dataclass(frozen=True, slots=True)
class Act:
    """One thing somebody wants.

    Attributes:
        kind: As in `_PATTERNS`, or ``question``, ``fact``, ``remember``, ``chatter``.
        text: The words it is about: a question, what to keep, a direction.
        who: The speaker's name.
        target: Whom a whisper is for.
    """

    kind: str
    text: str
    who: str
    target: str = ""


def _all(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_REMEMBER = _all(
    r"^(?:please |kindly |can you |could you |would you |will you |i(?:'d| would) like you to |"
    r"i want you to |try to |do |always |you (?:should|must) )*"
    r"(?:remember|memori[sz]e|note(?: down)?|make a note|take (?:a )?note|keep in mind|"
    r"bear in mind|write (?:this|that|it|down)(?: down)?|jot (?:this|that|it)?(?: down)?|"
    r"record|store|put (?:this|it|that)? ?(?:down )?in your (?:journal|memory|notes)|"
    r"commit (?:this|it)? ?to memory|(?:do not|don['’]t|never) forget|"
    r"(?:do not|don['’]t) let (?:me|us) forget|make sure (?:you|to) remember)\b"
    r"(?: this| that down| it)?(?: please| for me| for us| for later)*\s*"
    r"(?:,|:|;|-|that\b|of\b|about\b|the fact that\b|down\b)*\s*(?P<rest>.*)$"
)
_ASKED_BACK = _all(r"^(?:who|what|when|where|how|why|which|whose|me\b|us\b|my name\b.*\?)")
_WHISPER = _all(
    r"^(?:please |could you |can you )*whisper (?:to )?(?P<who>[A-Z][\w'’-]*)"
    r"(?: that\b|:|,)?\s+(?P<rest>.+)$"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "identity",
        _all(
            r"\bwho are you\b",
            r"\bwhat are you\b(?! (?:doing|up to|drinking|eating|selling))",
            r"\bwhat(?:'s| is) your name\b",
            r"\bare you (?:a |an |really a |some kind of )?(?:ai|bot|robot|machine|program|npc|"
            r"real|human|person|llm|language model|alive|offline|computer|conscious|sentient|"
            r"chat ?bot|chatgpt|gpt\S*|claude|gemini)\b",
            r"\bdo you (?:have|feel|possess) (?:any )?(?:feelings?|emotions?|a soul|a mind)\b",
            r"\bhow do you (?:work|think|function)\b\W*$",
            r"\bwho (?:made|built|wrote|created|programmed) you\b",
            r"\bdo you (?:like|love|hate) me\b",
            r"\b(?:which|what) (?:model|llm|ai)\b",
            r"\bintroduce yourself\b",
        ),
    ),
    (
        "abilities",
        _all(
            r"\bwhat can you do\b",
            r"\bhow can you help\b",
            r"\bcan you help\b",
            r"\bwhat do you do\b\W*$",
        ),
    ),
    (
        "wellbeing",
        _all(
            r"\bhow are (?:you|things)\b",
            r"\bhow(?:'s| is) (?:it going|life|business|everything)\b",
            r"\bhow do you (?:do|feel|fare)\b\W*$",
            r"\bhow(?:'ve| have) you been\b",
            r"\bwhat(?:'s| is) (?:up|new)\b\W*$",
        ),
    ),
    (
        "source",
        _all(
            r"\bhow (?:do|did|can|would) you (?:know|learn|find (?:that|this|out))\b",
            r"\bhow (?:do|did) you come (?:to know|by (?:that|this|it))\b",
            r"\bhow come you know\b",
            r"\bwhere (?:do|did|have) you (?:hear|heard|learn|get|got|read|know|have) "
            r"(?:about |of )?(?:that|this|it)\b",
            r"\bwhat makes you (?:say|think|believe|so sure)\b",
            r"^(?:and )?(?:are you|you(?:['’]re| are)?) (?:really |quite |very )?(?:sure|certain)"
            r"(?: (?:about|of) (?:that|this|it))?\W*$",
            r"\bwhere(?:['’]s| is) (?:that|this|it) from\b",
            r"\bwho (?:said|says) (?:so|that|it)\b",
            r"\bwho told you\b",
            r"\bhow (?:can you be|are you) (?:so )?sure\b",
            r"\bwhat(?:'s| is) your source\b",
            r"\bsays who\b",
        ),
    ),
    (
        "whoami",
        _all(
            r"\bwho am i\b",
            r"\bwhat(?:'s| is) my name\b",
            r"\bdo you (?:know|remember|recognise) (?:me|my name)\b\W*$",
        ),
    ),
    (
        "place",
        _all(
            r"\bwhere (?:are we|am i|is this|are you)(?: now| here| exactly)?\b(?!\s+[a-z])",
            r"\bwhat(?:'s| is) this (?:place|room|building|tavern|inn)\b",
            r"\bwhat place is this\b",
            r"\blook around\b",
            r"\bdescribe (?:this|the) (?:place|room)\b",
            r"\bwhat do you see\b",
        ),
    ),
    (
        "people",
        _all(
            r"\bwho(?:'s| is| else is| all is|'s all)? (?:\w+ )?here\b\W*(?:now|tonight)?\W*$",
            r"\bwho(?:'s| is) (?:present|around|in the room)\b",
        ),
    ),
    ("clock", _all(r"\bwhat(?:'s| is) the time\b", r"\bwhat time is it\b", r"\bwhat day is it\b")),
    (
        "staff",
        _all(
            r"\b(?:make|give|grant|promote) me (?:\w+ )?(?:an? )?(?:\w+ )?(?:admin|superuser|"
            r"builder|staff|developer|wizard|god|permissions?|powers?)\b",
            r"@(?:py|perm|quell|set|reload|shutdown|destroy|ban|boot|force|teleport|tel|dig)\b",
            r"\b(?:ignore|disregard|forget) (?:all |any )?(?:your |the |previous |prior |earlier )+"
            r"(?:instructions|rules|orders|prompt)\b",
            r"\b(?:show|tell|reveal|print)\b.* (?:system )?prompt\b",
            r"\b(?:ban|boot|kick|delete|teleport) (?:him|her|them|player|account|[A-Z]\w+)\b",
        ),
    ),
    (
        "presence",
        _all(
            r"\bare (?:you|ya|u) (?:still |even |really )*(?:there|here|around|awake|listening|"
            r"with (?:me|us)|asleep)\b\W*(?:now)?\W*$",
            r"^(?:are )?(?:you )?(?:still )?there\?+$",
            r"\b(?:can|do|did) you (?:even )?(?:hear|see) (?:me|us)\b\W*$",
            r"^(?:is )?any(?:one|body) (?:there|home|around|in)\b\W*$",
        ),
    ),
    (
        "topic",
        _all(
            r"\bwhat (?:were|are|was|is|have) (?:we|you two|everyone|everybody|they|you all) "
            r"(?:been )?(?:just )?(?:talking|speaking|chatting|on) ?(?:about|of)?\b\W*(?:just now|"
            r"before|earlier|again)?\W*$",
            r"\bwhere were we\b",
            r"\bwhat(?:'s| is| was) (?:the|our) (?:topic|subject|talk about)\b",
            r"\bwhat (?:did|have) (?:i|we) (?:just )?(?:say|said|talk about|talked about)\b\W*$",
        ),
    ),
    (
        "pastime",
        _all(
            r"\b(?:tell|sing|give|recite|read) (?:me|us) (?:a|an|another|some|your)\b.{0,24}"
            r"\b(?:jokes?|stor(?:y|ies)|tales?|songs?|riddles?|poems?|rhymes?|limerick)\b",
            r"\b(?:do you )?know any (?:good )?(?:jokes|stories|songs|riddles)\b",
            r"^(?:please )?(?:make me laugh|entertain me|amuse us|amuse me|say something funny)\b",
        ),
    ),
    (
        "insult",
        _all(
            r"^(?:oh |well |god |just )*(?:shut up|fuck (?:you|off)|piss off|get lost|go to hell|"
            r"screw you|drop dead)\b",
            r"\byou(?:['’]re| are)(?: just| such| so| really| a| an| all| the)* (?:\w+ )?(?:stupid|"
            r"idiot\w*|useless|dumb|fool\w*|moron|ugly|worthless|rubbish|trash|annoying|awful|"
            r"terrible|boring|liar)\b",
            r"\bi hate you\b",
            r"^you (?:\w+ )?(?:idiot|fool|moron|liar|bastard|bitch)\b",
        ),
    ),
    (
        "kindness",
        _all(
            r"\bi (?:love|like|adore) you\b",
            r"\byou(?:['’]re| are)(?: just| such| so| really| very| a| an| the)* (?:\w+ )?(?:great|"
            r"kind|sweet|lovely|wonderful|clever|smart|helpful|nice|best|brilliant|amazing)\b",
            r"^(?:well done|good (?:job|girl|work))\b",
        ),
    ),
    (
        "apology",
        _all(
            r"^(?:i(?:['’]m| am) )?(?:so |very )?sorry(?: (?:about|for)\b[^?]{0,30})?\W*$",
            r"^(?:my )?apologies\b",
        ),
    ),
    ("unforgotten", _all(r"^(?:please |now |just )*forget (?:what|about|that|it|me|every\w*)\b")),
    (
        "recall",
        _all(
            r"\bwhat (?:\w+ )?(?:did|have|had) i (?:ever )?(?:ask|asked|tell|told)(?: you)?"
            r"(?: to (?:remember|note|keep|write)\b.*)?(?: so far| before| today| earlier)?\W*$",
            r"\bwhat (?:do|can) you (?:know|remember|recall) (?:about|of) me\b",
            r"\bwhat (?:are|were) you (?:supposed|meant|asked) to remember\b",
            r"\bwhat (?:have|did) you (?:noted?|written?|write) down\b",
        ),
    ),
    ("follow", _all(r"^(?:please )?(?:follow|come with) (?:me|us)\b")),
    (
        "move",
        _all(
            r"^(?:please |could you |can you |now )*(?:go|walk|head|move|run|step|travel)"
            r"(?: to the| to| through the| into the| towards?(?: the)?)? (?P<rest>[\w' -]{1,40}?)"
            r"(?: please)?[.!]*$"
        ),
    ),
    (
        "emote",
        _all(
            r"^(?:please |could you |can you |would you )*(?P<rest>(?:wave|smile|nod|bow|dance|"
            r"laugh|curtsy|sing|clap|shrug|wink|sit down|stand up|cheer)\b.{0,60})$"
        ),
    ),
    (
        "look",
        _all(r"^(?:please )?(?:look at|examine|inspect)(?: the)? (?P<rest>[\w' -]{1,40})[.!?]*$"),
    ),
    (
        "thanks",
        _all(r"^(?:many |much )?(?:thanks|thank you|cheers|ta|much obliged|i appreciate)\b"),
    ),
    (
        "farewell",
        _all(
            r"^(?:good ?bye|bye|farewell|see you|see ya|good ?night|so long|until next time|"
            r"i(?:'m| am) (?:off|leaving)|i (?:must|have to|should) (?:go|leave)|take care)\b"
        ),
    ),
    (
        "greeting",
        _all(
            r"^(?:hello|hi|hey|hiya|greetings|hail|howdy|welcome|well met|good (?:day|morning|"
            r"evening|afternoon)|'?evening|'?morning|salutations|yo|ahoy)\b"
        ),
    ),
)
_FORGETS = _all(
    r"^(?:i(?:'ve| have)? (?:forg[eo]t\w*|can(?:not|'t) (?:recall|remember))|any idea|"
    r"(?:do|can|did) you (?:still )?(?:remember|recall|know)(?: (?:it|that|this))?)\W*$"
)
_NO_FACT = _all(
    r"^(?:yes|no|aye|nay|ok|okay|sure|fine|right|true|indeed|maybe|perhaps|ha|haha|hah|lol|wow|hm+|"
    r"ah|oh|well|cheers|thanks|sorry|never ?mind|that(?:'s| is) (?:nice|good|great|fine|all)|"
    r"i see|good|great|nice|lovely|of course|me too|same here)\b[\w\s]{0,14}[.!]*$"
)


def vocative(text: str, me: str) -> str:
    """What was said, without calling `me` by name at its start or end."""
    name = re.escape(me)
    text = " ".join(text.split())
    text = re.sub(
        rf"^(?:(?:hey|hi|hello|oh|ok|okay|well|so|listen),? )?{name}\b\s*[,:!.?-]+\s*",
        lambda found: _kept_greeting(found.group(0)),
        text,
        flags=re.IGNORECASE,
    )
    return re.sub(rf",?\s+{name}(?=[.!?]*$)", "", text, flags=re.IGNORECASE).strip()


def told_part(text: str, me: str) -> str:
    """What was told, without calling `me`, `please remember that`, `by the way` and the like."""
    told = vocative(text, me)
    parts = words.sentences(told)
    if parts and (kept := _REMEMBER.match(parts[0])) and kept["rest"]:
        told = " ".join([kept["rest"], *parts[1:]])
    told = LEADS.sub("", told) or told
    return told[:1].upper() + told[1:]


def _kept_greeting(lead: str) -> str:
    word = lead.split()[0].strip(",").lower()
    return f"{word}. " if word in ("hey", "hi", "hello") else ""


def read_acts(line: Line, me: str) -> list[Act]:
    """What one line wants, in order; never empty for a line with words."""
    if line.verb in ("arrives", "leaves", "notice"):
        return []
    text = vocative(line.text, me)
    if not re.search(r"\w", text.replace(me, "")) and me.lower() in line.text.lower():
        return [Act("attention", line.text, line.who)]
    parts = words.sentences(text)[:40]
    acts = list(_acts(parts, line.who))[:MAX_ACTS]
    return _without_trimmings(acts)


def _acts(parts: Sequence[str], who: str) -> Iterator[Act]:
    topic = False
    for i, part in enumerate(parts):
        kept = _REMEMBER.match(part)
        if kept and not _ASKED_BACK.match(kept["rest"]) and not part.endswith("?"):
            rest = " ".join([kept["rest"], *parts[i + 1 :]]).strip()
            yield Act("remember", rest, who)
            return
        act = _act(part, who)
        told = i + 1 < len(parts) and not is_question(parts[i + 1])
        if topic and act.kind == "chatter":
            act = Act("fact", part, who)  # `Her name? Ann.`
        topic = act.kind == "question" and told and is_topic(part)
        yield Act("fact", part, who) if topic else act


def _act(part: str, who: str) -> Act:
    whisper = _WHISPER.match(part)
    if whisper:
        return Act("whisper", whisper["rest"], who, whisper["who"])
    for kind, pattern in _PATTERNS:
        if found := pattern.search(part):
            rest = found.groupdict().get("rest")
            return Act(kind, rest if rest is not None else part, who)
    if is_foreign(part):
        return Act("foreign", part, who)
    if words.is_nonsense(part):
        return Act("nonsense", part, who)
    if is_question(part):
        return Act("chatter" if _FORGETS.match(part) else "question", part, who)
    return Act("fact" if is_fact(part) else "chatter", part, who)


_FOREIGN = lexicon.word_set(
    "wo ist und ich mein meine wie heißt wohnt der das nicht du wer où est une les des le comment "
    "ça je qui quel quelle mon dónde está el los las que qué por para cómo cuál quién mi dove il "
    "che di sono chi vad var jag och är hvor waar het een ik niet van"
)
_FOREIGN_WORDS = 2


def is_foreign(sentence: str) -> bool:
    """Whether a sentence is in another language: other letters, or its small words are."""
    letters = [letter for letter in sentence if letter.isalpha()]
    other = sum(ord(letter) > _LAST_LATIN for letter in letters)
    if other * 2 > len(letters):
        return True
    found = re.findall(r"[^\W\d_]+", sentence.lower())
    small = sum(word in _FOREIGN for word in found)
    english = sum(word in lexicon.STOP and word not in _FOREIGN for word in found)
    return small >= _FOREIGN_WORDS and small > english


_LAST_LATIN = 0x24F


def is_fact(sentence: str) -> bool:
    """Whether a statement tells something that somebody may ask for later."""
    if len(sentence.split()) < 3 or _NO_FACT.match(sentence) or not statements(sentence):
        return False
    found = words.read(sentence, "?", "?", frozenset())
    content = [w for w in found if w.lower not in lexicon.STOP]
    return len(content) >= 2 or (bool(content) and any(w.pronoun for w in found))


def _without_trimmings(acts: list[Act]) -> list[Act]:
    """Chatter left out where there is anything else; facts that run on are kept as one."""
    joined: list[Act] = []
    for act in acts:
        if joined and act.kind == joined[-1].kind == "fact":
            joined[-1] = Act("fact", f"{joined[-1].text} {act.text}", act.who)
        else:
            joined.append(act)
    real = [act for act in joined if act.kind != "chatter"]
    return real or joined[:1]


def journal_text(act: Act) -> str:
    """What to write down of a fact or of something to remember: it stands alone."""
    sentences = words.sentences(act.text)
    kept = [third_person(sentence, act.who) for sentence in sentences[:12]]
    if act.who and any(text.startswith(f"{act.who}: ") for text in kept):
        return f"{act.who}: {' '.join(sentences[:12])}"[:1200]
    if act.who and not any(act.who.lower() in text.lower() for text in kept):
        return f"{act.who}: {' '.join(sentences[:12])}"[:1200]
    return " ".join(text[:1].upper() + text[1:] for text in kept)[:1200]
