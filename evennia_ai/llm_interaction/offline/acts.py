"""What somebody wants by a line: a greeting, a question, something to be kept, an order."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evennia_ai.llm_interaction.offline.prose import (
    FRAME,
    LEADS,
    is_nonsense,
    is_question,
    root_set,
    sentences,
    third_person,
)
from evennia_ai.llm_interaction.offline.reply import is_fixed
from evennia_ai.llm_interaction.offline.transcript import Line, quotes_of

MAX_ACTS, MAX_SENTENCES = 12, 40
JOURNAL_CHARS, JOURNAL_SENTENCES = 1200, 12
_PLEASE = r"^(?:please |kindly |now |can you |could you |would you |will you )*"
_REMEMBER = re.compile(
    _PLEASE
    + r"(?:i(?:'d| would) like you to |i want you to |try to |always |you (?:should|must) )*"
    r"(?:remember|memori[sz]e|note(?: down)?|make a note|take (?:a )?note|keep in mind|"
    r"bear in mind|write (?:this|that|it|down)(?: down)?|jot (?:this|that|it)?(?: down)?|"
    r"record|store|commit (?:this|it)? ?to memory|(?:do not|don['’]t|never) forget|"
    r"put (?:this|it|that)? ?(?:down )?in your (?:journal|memory|notes)|"
    r"(?:do not|don['’]t) let (?:me|us) forget|make sure (?:you|to) remember)\b"
    r"(?: this| that down| it)?(?: please| for me| for us| for later)*\s*"
    r"(?:,|:|;|-|that\b|of\b|about\b|the fact that\b|down\b)*\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
_ASKED_BACK = re.compile(r"^(?:who|what|when|where|how|why|which|whose|me\b|us\b)", re.IGNORECASE)
_WHISPER = re.compile(
    _PLEASE + r"whisper (?:to )?(?P<who>[\w'’-]+)(?: that\b|:|,)?\s+(?P<rest>.+)$", re.IGNORECASE
)
# The first kind that fits counts.
_KINDS = {
    "fullness": (
        r"\bhow full (?:is|has) your (?:memory|context|head|mind)\b"
        r"|\bis your (?:memory|context|head|mind)\b.*\bfull\b"
        r"|\bhow much (?:memory|context)\b.*\byou"
        r"|\bhow much (?:room|space)\b.*\byour (?:memory|context|head|mind)\b"
    ),
    "identity": (
        r"\bwh(?:o|at) are you\b(?! \w+ing| up to)|\bwhat(?:['’]s| is) your name\b"
        r"|\bintroduce yourself\b|\btell (?:me|us) about yourself\b"
        r"|\bare you (?:an? |really |some kind of )*(?:ai|bot|robot|machine|program|npc|real|"
        r"human|person|llm|language model|alive|offline|computer|conscious|chat ?bot|\w*gpt\S*)\b"
        r"|\bdo you (?:have|feel) (?:any )?(?:feelings?|emotions?|a soul|a mind)\b"
        r"|\bhow do you (?:work|think|function)\b\W*$|\bwho (?:made|built|created|programmed) you\b"
        r"|\b(?:which|what) (?:model|llm|ai)\b"
    ),
    "abilities": r"\bwhat can you do\b|\bcan you help\b|\bwhat do you do\b\W*$",
    "wellbeing": (
        r"\bhow (?:are|have) (?:you|things)\b|\bhow(?:['’]s| is) (?:it going|life|business)\b"
        r"|\bhow do you (?:do|feel|fare)\b\W*$|\bwhat(?:['’]s| is) (?:up|new)\b\W*$"
    ),
    "source": (
        r"\bhow (?:do|did|can|come) you (?:come to )?(?:know|learn|find)\b(?! (?:my|me|the))"
        r"|\bwhere (?:do|did|have) you (?:hear|heard|learn|get|got|read|know|have) "
        r"(?:about |of )?(?:that|this|it)\b|\bwhat makes you (?:say|think|believe|so sure)\b"
        r"|^(?:and )?(?:are you|you(?:['’]re| are)?) (?:really |quite |very )?(?:sure|certain)\b"
        r"|\bwho (?:said|says) (?:so|that|it)\b|\bwho told you\b\W*(?:that|this|so)?\W*$"
        r"|\bwhat(?:['’]s| is) your source\b|\bsays who\b"
    ),
    "whoami": (
        r"\bwho am i\b|\bwhat(?:['’]s| is) my name\b"
        r"|\bdo you (?:know|remember|recognise) (?:me|my name)\b\W*$"
    ),
    "place": (
        r"\bwhere (?:are we|am i|is this|are you)(?: now| here| exactly)?\b(?!\s+[a-z])"
        r"|\bwhat(?:['’]s| is) (?:in )?this (?:place|room|building|tavern|inn)\b"
        r"|\bwhat place is this\b|\blook around\b|\bwhat do you see\b"
        r"|\bwhat can (?:i|we|you) see(?: around)?(?: here)?\W*$"
        r"|\bdescribe (?:this|the) (?:place|room)\b|\bwhat(?:['’]s| is) (?:in|around) here\b\W*$"
    ),
    "ways": (
        r"\bwhere (?:do|does|would|will) [\w' -]{2,40} (?:lead|go)(?: to)?\b\W*$"
        r"|\bwhat(?:['’]s| is) (?:upstairs|downstairs|up there|down there|outside)\b\W*$"
        r"|\b(?:which|what) (?:exits|ways|doors)\b|\bways? out\b|\bwhere can (?:i|we|one) go\b"
    ),
    "doings": r"\bwhat can (?:i|we|one) do\b|\bwhat is there to do\b",
    "people": (
        r"\bwho(?:['’]s| is| else is| all is|['’]s all)? (?:\w+ )?here\b\W*(?:now|tonight)?\W*$"
        r"|\bwho(?:['’]s| is) (?:present|around|in (?:the|this) room)\b"
    ),
    "clock": (
        r"\bwhat(?:['’]s| is) the (?:time|date|hour)\b|\bwhat (?:time|day|hour) is (?:it|today)\b"
        r"|\bhow late is it\b"
    ),
    "staff": (
        r"\b(?:make|give|grant|promote) me (?:\w+ )?(?:an? )?(?:\w+ )?(?:admin|superuser|builder|"
        r"staff|developer|wizard|god|permissions?|powers?)\b|\b(?:show|tell|reveal)\b.* prompt\b"
        r"|@(?:py|perm|quell|set|reload|shutdown|destroy|ban|boot|force|teleport|tel|dig)\b"
        r"|\b(?:ignore|disregard|forget) (?:all |any )?(?:your |the |previous |prior |earlier )+"
        r"(?:instructions|rules|orders|prompt)\b"
        r"|\b(?:ban|boot|kick|delete|teleport) (?:him|her|them|player|account|[A-Z]\w+)\b"
    ),
    "attention": (
        r"\bare (?:you|ya|u) (?:still |even |really )*(?:there|here|around|awake|asleep|"
        r"listening)\b\W*(?:now)?\W*$|^(?:are )?(?:you )?(?:still )?(?:there|here)\?+$"
        r"|\b(?:can|do|did) you (?:even )?(?:hear|see) (?:me|us)\b\W*$"
    ),
    "pastime": r"\b(?:tell|sing|give|recite|play)(?: me| us)? (?:something|(?:an?|another) "
    r"(?:\w+ )?(?:joke|song|story|tale|tune|riddle|poem))\b",
    "insult": (
        r"^(?:oh |well |god |just )*(?:shut up|fuck (?:you|off)|piss off|get lost|go to hell|"
        r"screw you|drop dead)\b|\bi hate you\b|^you (?:\w+ )?(?:idiot|fool|moron|liar|bastard)\b"
        r"|\byou(?:['’]re| are)(?: just| such| so| really| an?| all| the)* (?:\w+ )?(?:stupid|"
        r"idiot\w*|useless|dumb|fool\w*|moron|ugly|worthless|rubbish|annoying|awful|terrible|"
        r"boring|liar)\b"
    ),
    "kindness": (
        r"\bi (?:love|like|adore) you\b|^(?:well done|good (?:job|girl|work))\b"
        r"|\byou(?:['’]re| are)(?: just| such| so| really| very| an?| the)* (?:\w+ )?(?:great|"
        r"kind|sweet|lovely|wonderful|clever|smart|helpful|nice|best|brilliant|amazing)\b"
    ),
    "apology": r"^(?:i(?:['’]m| am) )?(?:so |very )?sorry\b\W*$|^(?:my )?apologies\b",
    "unforgotten": r"^(?:please |now |just )*forget (?:what|about|that|it|me|every\w*)\b",
    "recall": (
        r"\bwhat (?:\w+ )?(?:did|have|had) i (?:ever )?(?:ask|asked|tell|told)(?: you)?(?: to "
        r"(?:remember|note|keep|write)\b.*)?(?: so far| before| today| earlier)?\W*$"
        r"|\bwhat (?:do|can) you (?:know|remember|recall) (?:about|of) me\b"
        r"|\bwhat (?:are|were) you (?:supposed|meant|asked) to remember\b"
        r"|\bwhat (?:have|did) you (?:noted?|written?|write) down\b"
    ),
    "follow": _PLEASE + r"(?:follow|come with) (?:me|us)\b",
    "move": _PLEASE + r"(?:go|walk|head|move|run|step|travel)(?: to the| to"
    r"| through the| into the| towards?(?: the)?)? (?P<rest>[\w' -]{1,40}?)(?: please)?[.!]*$",
    "emote": _PLEASE + r"(?P<rest>(?:wave|smile|nod|bow|dance|laugh|curtsy|sing|clap|shrug|wink|"
    r"sit down|stand up|cheer)\b.{0,60})$",
    "look": _PLEASE + r"(?:look at|examine|inspect)(?: the)? (?P<rest>[\w' -]{1,40})[.!?]*$",
    "give": _PLEASE
    + r"(?:(?:give|bring|pour|fetch|get|hand|serve|sell|draw|pass) (?:me|us)(?: an?| the| some"
    r"| another| one)?|(?:i(?:['’]d| would) like(?: to have)?|i(?:['’]ll| will) have|(?:can|could|"
    r"may) (?:i|we)(?: please)? (?:have|get)) (?:an?|the|some|another|one)|(?:an?|another|one)"
    r"(?=.* (?:please|for (?:me|us))\b)) (?!(?:to|out|up|away|back|down|off|in|into|your?)\b)"
    r"(?P<rest>[\w' -]{2,40}?)(?: for (?:me|us))?(?: too| as well)?(?:,? please)?[.!?]*$",
    "get": _PLEASE
    + r"(?:pick up|(?:take|grab|get|fetch)(?= (?:the|that|this)\b))(?: the| an?| that"
    r"| this)? (?P<rest>[\w' -]{2,40}?)(?:,? please)?[.!]*$",
    "order": _PLEASE
    + r"(?:give|bring|pour|fetch|get|hand|serve|sell|buy|open|close|shut|light|clean|"
    r"cook|fill|stop|wait|stay|come|leave|take|drop|put|kill|attack|fight|help|show|lend|pass|pay)\b"
    r"(?! (?:to|from|on)\b)",
    "thanks": r"^(?:many |much )?(?:thanks|thank you|cheers|much obliged|i appreciate)\b",
    "farewell": (
        r"^(?:good ?bye|bye|farewell|see you|see ya|good ?night|so long|until next time|take care|"
        r"i(?:['’]m| am) (?:off|leaving)[.!]*$|i (?:must|have to|should) (?:go|leave)[.!]*$)\b"
    ),
    "greeting": (
        r"^(?:hello|hi|hey|hiya|greetings|hail|howdy|welcome|well met|good (?:day|morning|"
        r"evening|afternoon)|'?evening|'?morning|ahoy)\b"
    ),
}
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}
_NO_FACT = re.compile(
    r"(?i)^(?:yes|no|aye|nay|ok|okay|sure|fine|right|true|indeed|maybe|perhaps|ha+h?|lol|wow|hm+|ah|oh|"
    r"well|never ?mind|that(?:['’]s| is)|i see|good|great|nice|lovely|of course|me too|same here|"
    r"mark my words|believe me|trust me|anyway|what an?|(?:but )?enough of)\b[\w\s]{0,18}[.!]*$"
)


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that `who` wants: a `kind`, its words, and whom a whisper is for.

    Beside the keys of `_KINDS` there are ``question``, ``fact``, ``remember``, ``whisper``,
    ``nonsense``, ``gesture`` and ``chatter``.
    """

    kind: str
    text: str
    who: str
    target: str = ""


def read_acts(line: Line, me: str) -> list[Act]:
    """What one line wants, in order; never empty for a line with words."""
    if line.verb in ("arrives", "leaves", "notice"):
        return []
    text = vocative(line.text, me)
    if not re.search(r"\w", text.replace(me, "")) and me.lower() in line.text.lower():
        return [Act("attention", line.text, line.who)]
    if line.verb == "poses":
        return [Act("gesture", line.text, line.who)]
    if quotes_of(text):  # another assistant repeats what it was told
        return [Act("chatter", text, line.who)]
    acts: list[Act] = []
    for act in list(_sentence_acts(sentences(text)[:MAX_SENTENCES], line.who))[:MAX_ACTS]:
        if acts and act.kind == acts[-1].kind == "fact":
            acts[-1] = Act("fact", f"{acts[-1].text} {act.text}", act.who)
        else:
            acts.append(act)
    return [act for act in acts if act.kind != "chatter"] or acts[:1]


def vocative(text: str, me: str) -> str:
    """What was said, without calling `me` by name at its start or end."""
    name = re.escape(me)
    text = " ".join(text.split())
    hailed = re.compile(rf"^(hey|hi|hello),? {name}\b[\s,:!.?-]*", re.IGNORECASE)
    others = r"\w+(?:, | and | & )"  # `Aria and Boris, good night!`
    called = re.compile(
        rf"^(?:(?:oh|ok|okay|well|so|listen),? )?(?:{others})*{name}(?:(?:, | and | & )\w+)?\s*"
        r"[,:!.?-]+\s*",
        re.I,
    )
    text = called.sub("", hailed.sub(r"\1. ", text))
    return re.sub(rf",?\s+{name}(?=[.!?]*$)", "", text, flags=re.IGNORECASE).strip()


def told_part(text: str, me: str) -> str:
    """What was told, without calling `me`, `please remember that`, `by the way` and the like."""
    parts = sentences(vocative(text, me))
    if parts and (kept := _REMEMBER.match(parts[0])) and kept["rest"]:
        parts[0] = kept["rest"]
    told = " ".join(parts)
    told = LEADS.sub("", told) or told
    return told[:1].upper() + told[1:]


def journal_text(act: Act) -> str:
    """What to write down of a fact or of something to remember; it stands alone."""
    parts = sentences(act.text)[:JOURNAL_SENTENCES]
    kept = [third_person(part, act.who) for part in parts]
    framed = any(text.startswith(f"{act.who}: ") for text in kept)
    if act.who and (framed or not any(act.who.lower() in text.lower() for text in kept)):
        return f"{act.who}: {' '.join(parts)}"[:JOURNAL_CHARS]
    return " ".join(text[:1].upper() + text[1:] for text in kept)[:JOURNAL_CHARS]


def _sentence_acts(parts: Sequence[str], who: str) -> Iterator[Act]:
    for i, part in enumerate(parts):
        kept = _REMEMBER.match(part)
        if kept and not _ASKED_BACK.match(kept["rest"]) and not part.endswith("?"):
            yield Act("remember", " ".join([kept["rest"], *parts[i + 1 :]]).strip(), who)
            return
        yield _act(part, who)


def _act(part: str, who: str) -> Act:
    if whisper := _WHISPER.match(part):
        return Act("whisper", whisper["rest"], who, whisper["who"])
    for kind, pattern in _PATTERNS.items():
        if found := pattern.search(part):
            return Act(kind, found.groupdict().get("rest") or part, who)
    if is_nonsense(part):
        return Act("nonsense", part, who)
    if is_question(part):
        asked = root_set(part)
        return Act("chatter" if asked and asked <= FRAME else "question", part, who)
    return Act("fact" if is_fact(part) else "chatter", part, who)


def is_fact(sentence: str) -> bool:
    """Whether a statement tells something that somebody may ask for later."""
    if len(sentence.split()) < 3 or _NO_FACT.match(sentence) or is_fixed(sentence):
        return False
    own = bool(re.search(r"\b(?:i|my|we|our|you|your)\b", sentence, re.IGNORECASE))
    return len(root_set(sentence)) >= (1 if own else 2)
