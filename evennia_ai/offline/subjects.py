"""Whether a claim is about those whom a question names, and about what is theirs."""

from evennia_ai.offline import lexicon, words
from evennia_ai.offline.claims import Claim, Evidence
from evennia_ai.offline.coverage import strength
from evennia_ai.offline.question import Query, owned_folds
from evennia_ai.offline.words import Word


def names_factor(query: Query, claim: Claim, evidence: Evidence) -> float:
    """How surely a claim is about all those whom a question names: 0 (not) to 1."""
    factor = 1.0
    if _is_choice(query):
        return max(_name_strength(name, query, claim, evidence) for name in query.names)
    wanted = [name for name in query.names if not _frames_speaker(query, name, claim)]
    for name in wanted:
        factor *= _name_strength(name, query, claim, evidence)
        if not factor:
            return 0.0
    return factor


def _is_choice(query: Query) -> bool:
    """Whether one of those named is asked for: `who is taller, Ann or Ben`."""
    low = [word.lower for word in query.words]
    compares = "or" in low or ("of" in low and any(w.endswith(("er", "est")) for w in low))
    return query.kind == "who" and len(query.names) > 1 and compares


def _frames_speaker(query: Query, name: str, claim: Claim) -> bool:
    low = {w.lower for w in query.words}
    source = {word.name for word in claim.before} | {claim.line.who.lower()}
    told = bool(low & {"say", "said", "tell", "told", "mention", "claim"}) and len(query.names) > 1
    return name in source and (told or "according" in low)


def _name_strength(name: str, query: Query, claim: Claim, evidence: Evidence) -> float:
    if any(name in (word.name, word.lower) and _is_alone(word, claim) for word in claim.words):
        return 1.0
    # `my niece Ann. She is 31`: she is not the one who speaks.
    owns = any(owner == name for owner, _ in query.owned)
    if claim.pronoun and any(
        name in (w.name, w.lower) and (owns or not w.owner) for w in (*claim.before, *claim.near)
    ):
        return 0.95
    if _alias_stands(name, query, claim, evidence):
        return 0.9
    own_names = any(word.name and not word.owner for word in claim.words)
    if name == claim.line.who.lower() and _is_opinion(claim):
        return 0.95
    if not own_names and any(word.name == name for word in claim.near):
        return 0.85
    return 0.0


def _is_opinion(claim: Claim) -> bool:
    """Whether a clause without any name tells its speaker's taste: `nothing beats cider`."""
    if any(word.name for word in claim.words) or claim.pronoun:
        return False
    return any(word.concepts & {"like", "hate"} for word in claim.words)


def _is_alone(word: Word, claim: Claim) -> bool:
    """Whether a `we` may stand for its speaker: not where the clause names somebody else."""
    if word.lower not in words.FIRST_MANY:
        return True
    return all(other.pronoun for other in claim.words if other.name)


def _alias_stands(name: str, query: Query, claim: Claim, evidence: Evidence) -> bool:
    """Whether the claim names who the question calls `name`'s brother, or the reverse."""
    spoken = {word.name for word in claim.words if word.name}
    for owner, folds in query.owned:
        if owner == name:
            for folded in folds:
                if evidence.aliases.get((owner, folded), set()) & spoken:
                    return True
    for (owner, kin), known in evidence.aliases.items():
        if name in known and _has_pair(claim.words, owner, kin):
            return True
    return False


def _has_pair(found: tuple[Word, ...], owner: str, kin: str) -> bool:
    return any(
        word.owner and word.name == owner and kin in owned_folds(found, i)
        for i, word in enumerate(found)
    )


def owner_conflict(query: Query, claim: Claim, evidence: Evidence) -> bool:
    """Whether the claim is about another's horse, or about X's sister where X was asked about."""
    for owner, folds in query.owned:
        if _owned_by_another(owner, folds, claim):
            return True
    asked_owners = {owner for owner, _ in query.owned}
    if _relative_of_pronoun(query, claim) or _tells_of_relative(query, claim):
        return True
    for name in query.names:
        if name in claim.owners() and not _asks_for_owned(name, query, claim):
            return name not in asked_owners or not _alias_stands(name, query, claim, evidence)
    return False


def _relative_of_pronoun(query: Query, claim: Claim) -> bool:
    """Whether the claim is about his brother where he himself was asked about."""
    if any(name == word.name for name in query.names for word in claim.words):
        return False
    third = [i for i, word in enumerate(claim.words) if word.lower in words.THIRD]
    if not third or any(claim.words[i].lower not in words.THIRD_OWNER for i in third):
        return False
    owned = [word for i in third for word in claim.words[i + 1 : i + 4]]
    living = [word for word in owned if word.concepts & {"@kin", "@animal", "friend", "enemy"}]
    return bool(living) and not any(_asked(word, query) for word in living)


def _tells_of_relative(query: Query, claim: Claim) -> bool:
    """Whether what is told holds of a relative who was not asked about: `a cousin who mends it`."""
    return any(
        "@kin" in word.concepts and after.lower in _RELATIVE and not _asked(word, query)
        for word, after in zip(claim.words, claim.words[1:], strict=False)
    )


_RELATIVE = lexicon.word_set("who that whose")


def _owned_by_another(owner: str, folds: tuple[str, ...], claim: Claim) -> bool:
    others = False
    if _mutual(folds) and any(w.name == owner and not w.owner for w in claim.words):
        return False
    for i, word in enumerate(claim.words):
        if word.owner and set(folds) & set(owned_folds(claim.words, i)):
            if word.name == owner:
                return False
            others = others or bool(word.name)
    return others


def _mutual(folds: tuple[str, ...]) -> bool:
    """Whether the words owned name a bond that holds both ways: spouse, friend, enemy."""
    return any(lexicon.concepts(folded) & {"marry", "friend", "enemy"} for folded in folds)


def _asks_for_owned(name: str, query: Query, claim: Claim) -> bool:
    """Whether what `name` owns in the claim is a thing, or is asked for."""
    for i, word in enumerate(claim.words):
        if word.owner and word.name == name:
            owned = claim.words[i + 1 : i + 4]
            living = [
                w for w in owned if w.concepts & {"@kin", "@animal", "friend", "enemy", "boss"}
            ]
            if not living or any(_asked(w, query) for w in living):
                return True
            if any(w.name and w.name in query.names for w in claim.words[i + 1 :]):
                return True
    return False


def _asked(word: Word, query: Query) -> bool:
    if query.kind in ("who", "whose", "identity") or query.wanted in word.concepts:
        return True
    if query.kind == "what" and "@animal" in word.concepts:
        return True
    return any(strength(term, word) > 0 for term in query.terms)
