"""An act needs an asker: whose own words of this turn name what the act is about.

A model may take any text in its prompt for an order: somebody else's line, a name, a note, a
memory, in whatever encoding. So what counts is not what the model read but what the asker typed in
this turn. An act acts on objects, and the asker must have named each of them exactly. Else it waits
until they confirm it with a yes.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import regex

from evennia_ai.errors import ToolError, UnaskedError
from evennia_ai.history.audience import private
from evennia_ai.language.script import folded, is_unparted, normalized
from evennia_ai.language.tables import each_phrase, table_of
from evennia_ai.language.words import content_words, is_common, stem, words
from evennia_ai.life import Named

if TYPE_CHECKING:
    from evennia_ai.history.messages import Message
    from evennia_ai.turns.tools.base import ToolCall, ToolContext

# How long a yes confirms what the asker was last asked, and most characters of a value they see.
CONFIRM_S, SHOWN_CHARS = 120.0, 60
# A line that confirms holds words of these two lists alone, and one of the first at least.
YES = frozenset(phrase for phrase in each_phrase("yes") if " " not in phrase)
BESIDE = frozenset(
    word
    for key in ("yes", "please", "thanks")
    for phrase in each_phrase(key)
    for word in phrase.split()
)
_SEPARATORS = re.compile(r"[\s.,:;!?¡¿…。、，！؟-]+")
_TAKEN = "\0"  # stands for a stretch that names something already
# Signs that go on with a word, and a hyphen or an apostrophe between a name and more of it. What is
# joined to a stretch that is taken is its ending.
_GOES_ON = rf"[{_TAKEN}\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}\p{{Cf}}]"
_BEFORE = rf"(?<!{_GOES_ON}|{_GOES_ON}[-‐‑'’‘`´])"
_BEHIND = rf"(?!{_GOES_ON}|[-‐‑]{_GOES_ON})"
# The article that French and Italian join to a thing: `l'anneau`, `d'argent`.
_ELIDED = rf"(?:(?<=(?<!{_GOES_ON})[dl]['’])|{_BEFORE})"
# Where somebody else's words may begin.
_QUOTE = regex.compile(r"[[\p{Quotation_Mark}《》〈〉❝❞❛❜″‶]--['’‘‚‛]]|<<|(?<!\w)['‘‚‛`]", regex.V1)
_COLON = regex.compile(r":(?=\s)|：")


@dataclass(frozen=True, slots=True)
class Proposal:
    """An act that waits for its asker's yes."""

    tool: str  # the tool's name
    arguments: str  # its values as JSON, keys sorted, the stable ids of objects for their names
    question: str = field(default="", compare=False)  # what the asker is shown
    at: float = field(default=0.0, compare=False)  # when that was, seconds since the epoch
    # Id of the line that its asker spoke next, and whether somebody else spoke before.
    next_line: str = field(default="", compare=False)
    is_crossed: bool = field(default=False, compare=False)

    def heard(self, line: "Message", asker: str) -> "Proposal":
        """The same after a line that the assistant heard."""
        if self.next_line:
            return self
        if line.speaker_id != asker:
            return replace(self, is_crossed=True)
        return self if line.channel == "pose" else replace(self, next_line=line.id)

    def is_confirmed(self, lines: Sequence[str], own: str, now: float) -> bool:
        """Whether what its asker said next, and in the same turn, is a yes and nothing else.

        Args:
            lines: Their lines.
            own: The assistant's name, which may stand beside the yes.
            now: Seconds since the epoch.
        """
        if not 0 <= now - self.at <= CONFIRM_S:
            return False
        name = set(_SEPARATORS.split(folded(own)))
        said = set(filter(None, _SEPARATORS.split(folded(" ".join(lines))))) - name
        return bool(said & YES) and said <= YES | BESIDE


def read_answer(ctx: "ToolContext") -> None:
    """Read in a turn's lines whether they confirm what their asker was asked before it.

    A yes is one only as the asker's next line. If somebody else spoke before it, and it was said to
    more than the assistant alone, it may be an answer to them: the assistant asks again.
    """
    asker, proposals = ctx.asker or "", ctx.script.runtime.proposals
    proposal = proposals.get(asker)
    lines = ctx.own_lines(posed=False)
    if proposal is None or not proposal.next_line or not lines:
        return
    is_next = proposal.next_line in ctx.source_message_ids
    if not is_next or not proposal.is_confirmed(lines, ctx.character.key, ctx.script.now()):
        del proposals[asker]
    elif proposal.is_crossed and ctx.audience != private([asker]):
        del proposals[asker]
        ctx.proposal = proposal
    else:
        ctx.confirmed = proposal


def show_question(ctx: "ToolContext") -> None:
    """Show the question of a turn, as the last thing in it: the next line answers nothing else."""
    proposal, asker = ctx.proposal, ctx.asker
    if proposal is None or asker is None:
        return
    asked = replace(proposal, at=ctx.script.now(), next_line="", is_crossed=False)
    ctx.script.runtime.proposals[asker] = asked
    ctx.game.show(asked.question, private([asker]), ctx.channel, asker)


def check_asked(call: "ToolCall", ctx: "ToolContext") -> None:
    """Raise `ToolError` for an act that nobody asked for in this turn; its asker is then asked."""
    if not call.tool.is_act:
        return
    if ctx.asker is None:
        raise ToolError("nobody asked for this; speak, pose or call noop")
    shown = [  # objects by their own names
        call.objects[name].names[0]
        if name in call.objects
        else " ".join(str(value).split())[:SHOWN_CHARS]
        for name, value in call.arguments.items()
    ]
    what = ", ".join((call.name.replace("_", " "), *shown))
    question = f'asks {ctx.asker_name()}: {what}? Say "yes" if you want this.'
    arguments = json.dumps(call.arguments, sort_keys=True, default=str)
    act = Proposal(call.name, arguments, question)
    if ctx.confirmed == act:
        ctx.confirmed = None
        ctx.script.runtime.proposals.pop(ctx.asker, None)
        return
    if _are_named(call.objects.values(), ctx):
        return
    if ctx.proposal is None:
        ctx.proposal = act
    raise UnaskedError(ctx.asker_name(), ctx.proposal == act)


def _are_named(objects: Iterable[Named], ctx: "ToolContext") -> bool:
    """Whether a call has an object besides the asker, and the asker's lines name each of these."""
    wanted = {each.id: each for each in objects if each.id != ctx.asker}
    here = {each.id: each for each in (*ctx.game.named_here(), *wanted.values())}
    own = Named(ctx.character.stable_id, (ctx.character.key,), "assistant")
    here[own.id] = own
    stretches = [
        owners
        for line in ctx.own_lines(posed=False)
        for owners in named_stretches(
            line, here.values(), ctx.character.key, ctx.script.tools.tools
        )
        if _is_clear([here[each] for each in owners])
    ]
    return bool(wanted) and _can_share(stretches, [*wanted])


def _is_clear(owners: Sequence[Named]) -> bool:
    """Whether it does not matter which of those that bear a name is meant: one, or things alike."""
    if len(owners) == 1:
        return owners[0].kind != "assistant"
    looks = {(each.kind, spelled(each.names[0])) for each in owners}
    return len(looks) == 1 and owners[0].kind == "thing"


def _can_share(stretches: Sequence[frozenset[str]], wanted: Sequence[str]) -> bool:
    """Whether each of some ids can have a stretch of its own among those that name it."""
    if not wanted:
        return True
    first, *others = wanted
    return any(
        _can_share([*stretches[:at], *stretches[at + 1 :]], others)
        for at, owners in enumerate(stretches)
        if first in owners and owners not in stretches[:at]  # equal ones are as good
    )


def named_stretches(
    line: str, here: Iterable[Named], own: str, orders: Collection[str] = ()
) -> list[frozenset[str]]:
    """Whom or what each stretch of a line names: ids of those that bear that very name.

    Names count in whole, as they are spelled but for capitals, and in scripts without spaces as a
    run of characters. Stretches do not overlap; the longest name has the first choice. A name that
    is an ordinary word names something only in a line that speaks of nothing else. What stands
    behind a quotation mark, or behind the name of a person and a colon, is somebody else's.

    Args:
        line: What somebody typed.
        here: All that a name may mean.
        own: The assistant's name.
        orders: Names of tools, which are ordinary words.
    """
    table, owners = table_of(line), dict[str, list[Named]]()
    for each in here:
        for name in filter(None, map(spelled, each.names)):
            owners.setdefault(name, []).append(each)
    text = _without_quotations(spelled(line), owners)
    is_bare = not [word for word in content_words(text, table) if word not in words(own)]
    stretches: list[frozenset[str]] = []
    for name in sorted(owners, key=len, reverse=True):
        if name not in text:
            continue
        is_courtesy = name in BESIDE or name in orders
        is_ordinary = is_courtesy or is_common(name) or not content_words(name, table)
        text, times = regex.subn(_bordered(name, owners[name]), _TAKEN * len(name), text)
        if is_bare or not is_ordinary:
            stretches += [frozenset(each.id for each in owners[name])] * times
    return stretches


def spelled(text: str) -> str:
    """A text for comparing names: in one normal form, without capitals, one blank between words.

    Accents, full-width letters and letters that look alike stay as they are: they tell names apart.
    """
    return " ".join(normalized("NFC", text.lower()).split())


def _bordered(name: str, owners: Iterable[Named]) -> str:
    """A pattern for a name as a whole word, or as a run of characters."""
    joined = _ELIDED if all(each.kind == "thing" for each in owners) else _BEFORE
    before = "" if is_unparted(name[0]) else joined
    is_run = is_unparted(name[-1]) or regex.match(r"\p{Hangul}", name[-1])
    behind = r"(?![\p{M}\p{Cf}])" if is_run else _BEHIND
    return f"{before}{regex.escape(name)}{behind}"


def _without_quotations(text: str, owners: Mapping[str, Sequence[Named]]) -> str:
    """A text up to the first quotation: a mark that opens one, or a person's name and a colon."""
    quote = _QUOTE.search(text)
    text = text[: quote.start()] if quote else text
    people = [name for name in owners if any(each.kind == "person" for each in owners[name])]
    for colon in _COLON.finditer(text):
        head = text[: colon.start()]
        if any(regex.search(_bordered(name, owners[name]), head) for name in people):
            return head
    return text


def is_own_wording(text: str, ctx: "ToolContext", beside: str = "") -> bool:
    """Whether the one who asks typed these words in this turn: as they are, or each that tells.

    The words `beside` may stand in the text without being typed.
    """
    said = " ".join(ctx.own_lines(posed=False))
    if " ".join(text.casefold().split()) in " ".join(said.casefold().split()):
        return True
    table = table_of(said)

    def stems(of: Iterable[str]) -> set[str]:
        return {stem(word, table.code) for word in of}

    wanted = stems(content_words(text, table)) - stems(words(beside))
    return bool(wanted) and wanted <= stems([*content_words(said, table), *words(said)])
