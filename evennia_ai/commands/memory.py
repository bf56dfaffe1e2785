"""`aimemory`: what an assistant remembers, and whom it knows."""

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.commands.history import search_memory
from evennia_ai.commands.ledger import note_text
from evennia_ai.rag_memory.entities import Profile, current
from evennia_ai.rag_memory.ledger import STATES
from evennia_ai.sleep.consolidation import (
    consolidate_memories_to_semantic,
    prune_orphaned_memory_links,
)
from evennia_ai.staff.show import as_records, audience_mark, moment
from evennia_ai.staff.status import memory_status


class CmdAIMemory(AssistantCommand):
    """
    look into an assistant's memory

    Usage:
      aimemory [<assistant>] [= <query>]
      aimemory/status [<assistant>]
      aimemory/entities [<assistant>]
      aimemory/facts [<assistant>]
      aimemory/approve <assistant> = <id>
      aimemory/reject <assistant> = <id>
      aimemory/forget <assistant> = <id>
      aimemory/rebuild [<assistant>]
      aimemory/quarantine <assistant> [= <player>]
      aimemory/release <assistant> = <player>

    Switches:
      status   - how much it remembers, and whether the memory store works
      entities - what it knows about the people, places and things it met
      facts    - the notes pinned into its prompt, and those that await approval
      approve  - approve a proposed note
      reject   - withdraw a note, proposed or approved
      forget   - remove a journal entry from all searches; the journal keeps it
      rebuild  - rebuild the search index from what is stored, and store memories
                 again that are missing, from the journal
      quarantine - use nothing of what a player said, with all their characters:
                 no search finds it, no prompt holds it, nor the notes, entries,
                 observations and memories made from it. All of it is kept.
                 Without a player, list who is in quarantine
      release  - use it again

    Of summaries, quarantine covers those that are searched and those made from
    now on; one that stands in the prompt already stays ('aiforget' makes them
    again). What the player says from now on is answered, but not kept in mind.

    With a query it shows what the assistant would find for it, with scores, ids,
    kinds, times and speakers; without one, how much it remembers, and so does
    '@memory-status'. Without a name it means the only assistant here.

    See also: airemember, aihistory/search
    """

    key = "aimemory"
    aliases = ("@memory-status",)
    # A game may open the command to others: they may read what is public but change nothing.
    admin_switches = ("approve", "reject", "forget", "rebuild", "quarantine", "release")

    def do(self) -> Steps[None]:
        if self.rhs:
            yield from search_memory(self, self.rhs)
        else:
            yield from self.do_status()

    def do_status(self) -> Steps[None]:
        self.show((yield memory_status(self.assistant())))

    def do_entities(self) -> None:
        _, seen, name = self.view()
        profiles = sorted(seen.profiles(), key=lambda p: p.last_seen, reverse=True)

        def text(profile: Profile) -> str:
            last, known = moment(profile.last_seen or "never"), profile.kind or "unknown"
            lines = [f"{profile.name} ({known}, {profile.id}), last seen {last}"]
            if relationship := profile.relationship(seen.audience):
                lines.append(f"  relationship: {relationship}")
            observations = (*seen.older(profile), *profile.observations)
            for belief in current(observations, seen.audience):
                lines.append(f"  {audience_mark(belief.observation.audience)}{belief.line}")
            return as_records(lines)

        head, empty = f"{name} knows ({len(profiles)}):", f"{name} knows nobody yet."
        self.listing(profiles, text, head, empty)

    def do_facts(self) -> None:
        _, seen, name = self.view()
        newest = sorted(seen.notes(), key=lambda note: note.at, reverse=True)
        living = sorted(newest, key=lambda note: STATES.index(note.state))
        entries = [*living, *seen.closed_notes()]
        head = f"The ledger of {name} ({len(entries)}):"
        self.listing(entries, note_text, head, f"The ledger of {name} is empty.")

    do_approve = do_reject = do_forget = do_release = AssistantCommand.act

    def do_quarantine(self) -> Steps[None] | None:
        script = self.assistant()
        if self.rhs:
            return self.act()
        held = sorted(script.memory.quarantine.sources.items(), key=lambda pair: pair[1]["at"])
        rows = [f"{p['name'] or 'a line'} ({each}), since {moment(p['at'])}" for each, p in held]
        self.show(rows, f"{script.own_name} has nobody in quarantine.")
        return None

    def do_rebuild(self) -> Steps[None]:
        script = self.assistant()
        name = script.own_name
        self.tell(f"Rebuilding {name}'s search index and semantic memory...")
        indexed, count = yield script.run_exclusive(lambda: rebuild_memory(script))
        self.tell(
            f"{name}'s search index holds {indexed} items again. Memories that were missing, and "
            f"are restored from the journal: {count}."
        )


@inlineCallbacks
def rebuild_memory(script: AssistantScript) -> Steps[tuple[int, int]]:
    """Fires with the items in the index, and the memories stored again from the journal."""
    script.runtime.lock.holder()
    indexed = yield script.memory.rebuild()
    yield script.mind.memories.status()  # a store that is gone is noticed and made anew
    counts = yield consolidate_memories_to_semantic(script, script.obj, whole=True)
    yield prune_orphaned_memory_links(script, script.obj, whole=True)
    return indexed, counts["consolidated"]
