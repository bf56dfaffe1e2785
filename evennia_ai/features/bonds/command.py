"""`aibond`: what an assistant feels for people, and why."""

import re

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal
from evennia_ai.features.bonds import STAFF_NOTE, all_bonds, drop, note_event, seen_bond
from evennia_ai.game.seeing import player_ids, stable_id
from evennia_ai.history.audience import STAFF, private
from evennia_ai.staff.show import escaped


class CmdAIBond(AssistantCommand):
    """
    see what an assistant feels for you, and why

    Usage:
      aibond <assistant>
      aibond/note <assistant> = <person>: <points>: <why>
      aibond/forget <assistant> = <id>

    Switches:
      note   - add something that happened: -20 to 20 points, and a reason that
               the assistant may tell anybody
      forget - take it back

    A bond is a sum of events, each with its source. It makes an assistant
    hostile, wary, neutral, friendly or close to somebody. Old events count
    less: half after 90 days. What you say moves a bond by three points a day
    and 14 in all, so that words alone make neither a friend nor an enemy.

    Without a switch you see what the assistant feels for you, as far as you may
    know the reasons. Admins see all bonds; the switches are for admins.

    See also: airemember, aiforget
    """

    key = "aibond"
    locks = "cmd:all();admin:perm(Admin)"
    admin_switches = ("note", "forget")

    def do(self) -> None:
        script = self.assistant()
        name, now = script.obj.key, script.now()
        if self.audience == STAFF:
            seen, people = script.seen(self.audience), [*all_bonds(script)]
        else:
            seen = script.seen(private([stable_id(self.caller)]))
            people = player_ids(self.caller)
        lines = []
        for bond in (seen_bond(script, seen, person) for person in people):
            if not bond.events:
                continue
            lines.append(f"{bond.name}: {bond.level(now)} ({bond.points(now):+d})")
            lines += [f"  {event.line}" for event in bond.events[::-1]]
        nothing = f"{name} has no bond of which you may know."
        self.page(escaped("\n".join(lines)) or nothing)

    def do_note(self) -> None:
        parts = [part.strip() for part in self.words().split(":", 2)]
        if len(parts) < 3 or not re.fullmatch(r"[+-]?\d{1,3}", parts[1]):
            raise Refusal(self.usage)
        script = self.assistant()
        person = script.game.player_called(parts[0])
        by = f"by {self.caller.key}"
        event = note_event(script, person, int(parts[1]), parts[2], by, by=STAFF_NOTE)
        script.audit("bond", act="note", event=event.id, person=person.id, points=event.points)
        self.tell(f"{script.obj.key} on {person.key}: {event.line}")

    def do_forget(self) -> None:
        script, wanted = self.assistant(), self.words()
        if not drop(script, wanted):
            raise Refusal(f"There is no event `{wanted}`. See: aibond {script.obj.key}")
        script.audit("bond", act="forget", event=wanted)
        self.tell(f"{script.obj.key} no longer counts {wanted}.")
