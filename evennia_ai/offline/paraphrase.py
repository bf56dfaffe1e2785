"""Turns of phrase in questions, put as the plain question they mean."""

import re

_WHO = r"(?P<who>[\w'’ -]{1,40}?)"
_TRADE = r"(?:profession|trade|craft|occupation|vocation|calling|line of work|job)"
_MEANT = (
    (
        rf"\bwhere(?:['’]s| is) {_WHO}['’]s? (?:home|house)(?= ?(?:now|these days|nowadays)?\W*$)",
        r"where does \g<who> live",
    ),
    (
        rf"\bwhere (?P<aux>do|does|did) {_WHO} (?:plan|intend|mean|hope|want) (?:to|on) "
        r"(?=travel|go\b|journey|sail|ride|head)",
        r"where \g<aux> \g<who> ",
    ),
    (rf"\bby what name (?:do|does|did) {_WHO} (?:go|answer)\b", r"what is \g<who> called"),
    (r"\bwhen (?:do|does|did) (?:they|people|folk) (?:hold|have) ", "when is "),
    (
        rf"\bhow (?P<aux>do|does|did) {_WHO} (?:make|earn|get) "
        r"(?:(?:his|her|their|my|your|a|the|any|some|good) )*"
        r"(?:money|living|bread|keep|crust|coin)\b",
        r"what \g<aux> \g<who> do for a living",
    ),
    (
        rf"\b(?:what|which) {_TRADE} (?P<aux>do|does|did) {_WHO} "
        r"(?:follow|practi[sc]e|pursue|ply|have|do|work (?:in|at))\b",
        r"what \g<aux> \g<who> do for a living",
    ),
    (
        rf"\bwhat (?:would|will|might|does|do|did) {_WHO} (?:usually |always |likely )?"
        r"(?:order|ask for|have|call for) (?:at|in|over) (?:the|a) "
        r"(?:bar|inn|tavern|pub|counter|alehouse|taproom)\b",
        r"what does \g<who> like to drink",
    ),
    (
        r"\b(?:password|watchword|secret word|code ?word) (?:at|in|to|for|into) (?=the |my |our )",
        "password of ",
    ),
    (
        r"\bwho (?:took|has taken|grabbed) (?P<what>(?:the|a|an|that|this) [\w' -]{1,40}?) from "
        r"(?P<owner>[A-Z]\w+)",
        r"who stole \g<what> from \g<owner>",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in _MEANT)


def plainly(question: str) -> str:
    """A question in plainer words, where a turn of phrase is known; else as it is."""
    for pattern, plain in _PATTERNS:
        question = pattern.sub(plain, question)
    return question
