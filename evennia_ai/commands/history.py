"""`aihistory` and `ai/why`: an assistant's conversation history, and what a reply rests on."""

from collections.abc import Collection
from functools import partial
from operator import itemgetter

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal, only_one
from evennia_ai.history.archive import (
    ROLLED_BACK,
    CompactionRecord,
    SummaryRecord,
    absorbed_by,
    state_of,
)
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import COMINGS, Message, utc_iso
from evennia_ai.llm_interaction.budget import PROMPTS_KEPT
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit, Query
from evennia_ai.sleep.compaction.compact import report_line
from evennia_ai.staff.acts import line_state
from evennia_ai.staff.explanation import (
    explanation,
    holds,
    is_reply,
    newest_lines,
    spoken,
    whole_prompt,
)
from evennia_ai.staff.export import export_assistant
from evennia_ai.staff.show import (
    Slices,
    as_json,
    as_record,
    audience_mark,
    counted,
    marked,
    moment,
    phrase,
    speaker_label,
)

SEARCH_LIMIT = 20
# Characters of a line in the plain list, so that a page of it is a screen.
LINE_CHARS = 100


class CmdAIHistory(AssistantCommand):
    """
    read an assistant's conversation history

    Usage:
      aihistory [<assistant>]
      aihistory/full [<assistant>]
      aihistory/raw [<assistant>]
      aihistory/summaries [<assistant>]
      aihistory/expand [<assistant>] = <summary id>
      aihistory/search [<assistant>] = <words>
      aihistory/remove [<assistant>] = <id or words of a line>
      aihistory/restore [<assistant>] = <id or words of a line>
      aihistory/correct [<assistant>] = <id or words of a line>: <new text>
      aihistory/export [<assistant>]

    Switches:
      full      - with tool calls, their results and summaries
      raw       - the stored messages as JSON
      summaries - every summary ever made, and the report of every compaction
      expand    - the messages a summary was made from, word for word
      search    - search the history, the archive, the journal, observations of
                  people and places, and the output of tools
      remove    - use a line no more: no prompt or search holds it, and a summary
                  of it is made again. It stays stored, marked as removed
      restore   - use it again
      correct   - the same, and put another text in its place
      export    - write everything to a JSON file under server/ai_exports

    Lists the beginnings of what was said, newest first, without arrivals and
    departures; /full shows all. Whispers and pages are marked with
    [private: who]. Without a name it means the only assistant here.

    See also: aistatus, compact, aimemory
    """

    key = "aihistory"
    admin_switches = ("export", "remove", "restore", "correct")

    def do(self) -> None:
        """List the beginnings of what was said, or all by that switch."""
        script, seen, name = self.view()
        every, removed = seen.messages(), script.memory.quarantine.sources
        messages, what, most = every, "History", 0
        if self.switch != "full":
            what, most = "Said", LINE_CHARS
            messages = [
                message
                for message in every
                if message.content and message.role in ("user", "assistant")
                if not message.is_summary and message.channel not in COMINGS
            ]
        count = f"{len(messages)} of {counted(len(every), 'live message')}"
        self.listing(
            messages[::-1],
            lambda message: as_record(message_line(message, name, removed, most)),
            f"{what}, {name}, newest first ({count}):",
            f"{name} has no messages yet.",
        )

    do_full = do

    def do_raw(self) -> None:
        self.page(as_json([m.to_dict() for m in self.assistant().seen(self.audience).messages()]))

    def do_summaries(self) -> None:
        script, seen, name = self.view()
        records = seen.summaries()
        reports = []
        if self.is_admin:
            reports = script.history.compactions()
        above = absorbed_by(records)
        items = [(each.created_at, summary_lines(each, state_of(each, above))) for each in records]
        items += [(record.at, compaction_line(record, name)) for record in reports]
        self.listing(
            sorted(items, key=itemgetter(0), reverse=True),
            itemgetter(1),
            f"Summaries, {name}, newest first ({counted(len(records), 'summary')}, "
            f"{counted(len(reports), 'compaction')}):",
            f"{name} has made no summaries yet.",
        )

    def do_expand(self) -> None:
        (_, seen, name), wanted = self.view(), self.words()
        hint = f"`{wanted}`. `aihistory/summaries {name}` lists them."
        record = only_one(
            [record for record in seen.summaries() if record.id.startswith(wanted)],
            f"There is no summary {hint}",
            f"More than one summary begins with {hint}",
        )
        count = seen.count_below(record.id)
        messages = Slices(count, lambda first, last: [*seen.below(record.id, first, last)])
        head = f"Summary {record.id} was made from these {len(messages)} messages, oldest first:"
        self.listing(messages, lambda m: as_record(message_line(m, name)), head, "No messages.")

    def do_search(self) -> Steps[None]:
        yield from search_memory(self, self.words())

    do_remove = do_restore = AssistantCommand.act

    def do_correct(self) -> Steps[None]:
        words, colon, text = self.words().partition(":")
        if not colon:
            raise Refusal(self.usage)
        self.tell((yield self.acts().correct_line(words.strip(), text)))

    def do_export(self) -> Steps[None]:
        script = self.assistant()
        self.tell(f"Exporting {script.own_name}...")
        path = yield script.run_exclusive(lambda: export_assistant(script))
        self.tell(f"Written: {path}")


def search_memory(command: AssistantCommand, words: str) -> Steps[None]:
    """Search everything that an assistant remembers, and list what is found."""
    _, seen, name = command.view()
    query = Query(words, SEARCH_LIMIT, own_name=name, observations=True, tools=True)
    hits = yield seen.search(query)
    head = f"{name} on `{words}`, best first ({len(hits)}):"
    command.listing(hits, partial(hit_line, words), head, f"{name} knows nothing of `{words}`.")


def hit_line(words: str, hit: Hit) -> str:
    """One result: score, id, kind, time, who may know it, speaker, text with the words marked."""
    who, mark = phrase("{}: ", hit.speaker), audience_mark(hit.audience)
    when = moment(str(hit.at or ""))
    parts = [(as_record(part), is_hit) for part, is_hit in marked(hit.text, words)]
    text = "".join(f"|w{part}|n" if is_hit else part for part, is_hit in parts)
    return as_record(f"{hit.score:.2f} {hit.turn_id} {hit.kind} {when} {mark}{who}") + text


def message_line(
    message: Message, own_name: str, removed: Collection[str] = (), most: int = 0
) -> str:
    """One message: when, who, audience, channel, text and tool calls.

    `removed` are the ids of lines that are removed; `most` characters of the text are shown, if
    that is not 0.
    """
    when, mark = moment(message.created_at), audience_mark(message.audience)
    mark += phrase("[{}] ", line_state(message, removed))
    text = message.content
    for call in message.tool_calls:
        function = call.get("function") or {}
        text += f" [calls {function.get('name')} {function.get('arguments')}]"
    who = speaker_label(message, own_name)
    if most and len(text) > most:
        text = f"{text[:most]}…"
    return f"{when} {mark}{who} ({message.channel or 'say'}): {text.strip()}"


def summary_lines(record: SummaryRecord, state: str) -> str:
    """One summary's record, and its state."""
    head = (
        f"{record.id}: {record.tier}, {moment(record.created_at)}, level "
        f"{record.level}, {state}, of {len(record.source_ids)} messages"
    )
    if record.coverage is not None:
        head += f", generation {record.generation}, kept {record.coverage:.0%}"
    head += phrase(", {} not in its source", record.unsupported)
    return as_record(f"{head}\n{audience_mark(record.audience)}{record.text}")


def compaction_line(record: CompactionRecord, name: str) -> str:
    """A compaction's report, and when it was taken back."""
    line = f"{moment(record.at)} Compaction: {report_line(name, record)}"
    if record.status == ROLLED_BACK:
        line += f" Taken back {moment(record.rolled_back_at)}."
    return as_record(line)


@inlineCallbacks
def why(script: AssistantScript, words: str, seen: Seen, is_full: bool = False) -> Steps[list[str]]:
    """Explain the newest reply, or the newest that holds these words.

    Only of what the viewer may see; with the whole prompt if `is_full`. Fires with records.
    """
    name, speaks, lines = script.own_name, script.tools.traits.speaks, list[str]()
    replies = yield newest_lines(
        seen, lambda m: is_reply(m, speaks) and holds(spoken(m, speaks), words), 1
    )
    at, whose = script.runtime.refused or (0.0, PUBLIC)
    newest = max((message.created_at for message in replies), default="")
    if at and not words and utc_iso(at) > newest and seen.shows(whose):
        lines.append(f"Moderation refused a newer reply, {moment(utc_iso(at))}.")
    for message in replies:
        lines.append(f"{message.id} {message_line(message, name)}")
        lines += explanation(message, seen, speaks)
        if is_full:
            prompt = whole_prompt(message, script.prompts)
            gone = f"Its prompt is not kept: only those of the {PROMPTS_KEPT} newest turns are."
            lines.append("The whole prompt:" if prompt else gone)
            lines += [f"[{who}] {text}" for who, text in prompt]
    if not replies and words:
        nowhere = f"`{words}` is in no reply of {name}."
        lines.append(f"{nowhere} What is near it: aihistory/search {name} = {words}")
    elif not replies:
        lines.append(f"{name} has said nothing yet.")
    return lines
