"""`ai/why`: what a reply rests on, and where words are that seem to be forgotten."""

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.commands.history import hit_line, message_line
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.staff.explanation import explanation, found_message, refused_since, whole_prompt
from evennia_ai.staff.show import as_record, escaped, moment
from evennia_ai.turns.runtime import PROMPTS_KEPT

# Hits that are shown where words are nowhere.
NEAREST = 5


@inlineCallbacks
def why(script: AssistantScript, words: str, seen: Seen, is_full: bool = False) -> Steps[list[str]]:
    """Explain the newest reply, or the newest message that holds these words; see `found_message`.

    Only of what the viewer may see; with the whole prompt if `is_full`. Fires with escaped lines.
    """
    message, hits = yield found_message(words, seen, script.obj.key, script.tools.traits.speaks)
    refused = "" if words else refused_since(script.runtime.refused, message, seen)
    news = [f"Moderation refused a newer reply, {moment(refused)}."] if refused else []
    name = script.obj.key
    if message is None:
        silent = f"{name} has no reply in its live history. Name words: ai/why {name} = words"
        if not words:
            return [*news, escaped(silent)]
        nearest = [hit_line(hit) for hit in list(hits or ())[:NEAREST]]
        lines = [escaped(f"`{words}` is nowhere in the history or the archive of {name}.")]
        return lines + (
            ["Search finds nearest:", *nearest] if nearest else ["Search finds nothing."]
        )
    lines = [*news, f"{escaped(message.id)} {message_line(message, name)}"]
    lines += map(as_record, explanation(script, message, seen, words))
    if hits is not None:
        ids = [hit.turn_id for hit in hits]
        place = f"as result {ids.index(message.id) + 1}" if message.id in ids else "not at all"
        lines.append(f"A search for these words finds it {place}.")
    if is_full:
        parts = [as_record(f"[{who}] {text}") for who, text in whole_prompt(script, message)]
        gone = f"Its prompt is not kept: only those of the {PROMPTS_KEPT} newest turns are."
        lines += ["The whole prompt:", *parts] if parts else [gone]
    return lines
