"""`ai`: create, list, control and delete assistants."""

import re
import time
from typing import Any

from evennia_ai.assistant_character import BODY
from evennia_ai.assistant_script import all_assistants
from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.commands.history import why
from evennia_ai.commands.memory import rebuild_memory
from evennia_ai.commands.wizard import ask_builder
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.hearing import IGNORED_TAG, is_ignored
from evennia_ai.game.seeing import name_of, player_ids, stable_id
from evennia_ai.history.audience import STAFF, private
from evennia_ai.history.messages import SPEECH, one_line
from evennia_ai.staff import doctor
from evennia_ai.staff.acts import Acts
from evennia_ai.staff.bodies import body_class, good_name, new_body
from evennia_ai.staff.export import export_and_delete, import_assistant, read_export
from evennia_ai.staff.kept import KeptOf, kept_line
from evennia_ai.staff.show import ago
from evennia_ai.staff.status import facts_or_trouble
from evennia_ai.turns.tools.execution import approve, refuse, waiting_calls

# A player's reports: how often, how many of the last lines, and characters of each.
REPORT_EVERY_S, REPORT_LINES, REPORT_CHARS = 60, 10, 300
# Heads of the list of assistants, and the fact under each.
COLUMNS = {
    "Name": "name",
    "Room": "room",
    "Mode": "mode",
    "Model": "model",
    "Context used": "usage",
    "Messages": "messages",
    "Troubles": "troubles",
}
# Said before a wait for work that holds the turn lock for itself.
_WAITS = (
    "Waiting until {} has finished what it does now: an export, forgetting, a compaction, a "
    "rollback and the like are not broken off."
)

# What of the command's help is for some alone.
_FOR_STAFF = re.compile(r" *For builders:.*?(?=\n *See also)|\n *For staff:[^\n]*", re.S)
_FOR_ADMINS = re.compile(r"\n *For admins:.*?(?=\n *See also)", re.S)


class CmdAI(AssistantCommand):
    """
    take an answer back, see what is kept of you, look after assistants

    To talk with an assistant, say its name, or whisper or page to it. Type
      ai/undo, ai/again [<assistant>]  - take its newest answer back; ask anew
      ai/me [<assistant>] [= <id>[: <text>]]  - what it keeps of you; correct it
      ai/yes [<assistant>] [= <number>]  - let it do what it has shown you
      ai/report [<assistant>] [= <what is wrong>]  - tell staff
      ai/ignore  - no assistant hears you; typed again, all do
    For builders: ai, ai/new, ai/create <name>[:<typeclass>]  - list; make one
      ai/start, ai/stop, ai/sleep, ai/wake <assistant>
      ai/approve, ai/refuse <assistant> [= <number>]  - acts that wait
    For admins: ai/why[/full] <assistant> [= <words of a line>]  - its reasons
      ai/delete <assistant> [= yes], ai/import <file> [= <name>]  - out and in
      ai/doctor                         - check all
    See also: aiforget, airemember, aipage
    For staff: aistatus, aiconfig, aihistory, aibudget, aimemory, compact
    """

    key = "ai"
    locks = "cmd:all();build:perm(Builder);admin:perm(Admin)"
    admin_switches = ("delete", "doctor", "import", "why")
    player_switches = ("undo", "again", "me", "yes", "report", "ignore")
    is_full = False  # whether it is `why/full`

    def get_help(self, caller: Any, cmdset: Any) -> str:
        """The help for the caller, one screen: everybody reads of their own switches alone."""
        text = str(super().get_help(caller, cmdset))
        if not self.access(caller, "admin"):
            text = _FOR_ADMINS.sub("", text)
        if not self.access(caller, "build"):
            text = _FOR_STAFF.sub("", text)
        return text

    def full_switch(self) -> str:
        if [each.lower() for each in self.switches] == ["why", "full"]:
            self.switches, self.is_full = ["why"], True
        found = super().full_switch()
        if found not in self.player_switches and not self.access(self.caller, "build"):
            typed = ", ".join(f"ai/{switch}" for switch in self.player_switches)
            raise Refusal(f"Players may type: {typed}. See: help ai")
        return found

    def do_ignore(self) -> None:
        if self.args.strip():
            state = "Assistants hear you"
            if is_ignored(self.caller):
                state = "No assistant hears you"
            raise Refusal(
                f"{state}. Typed without a name, ai/ignore changes that for all assistants."
            )
        key, category = IGNORED_TAG
        player = getattr(self.caller, "account", None) or self.caller
        if is_ignored(self.caller):
            for each in {player, self.caller}:
                each.tags.remove(key, category=category)
            return self.tell("Assistants hear you again.")
        player.tags.add(key, category=category)
        self.tell(
            "From now on no assistant hears, answers or remembers what you say. What they know of "
            "you already stays; `aiforget me` removes it. Type ai/ignore again to be heard."
        )

    def do_report(self) -> None:
        script, now = self.assistant(), time.time()
        if now - (self.caller.ndb.evennia_ai_reported or 0.0) < REPORT_EVERY_S:
            raise Refusal("Staff have your last report. You can send the next one in a minute.")
        self.caller.ndb.evennia_ai_reported = now
        own, name = stable_id(self.caller), name_of(self.caller, script.obj)
        seen = script.seen(private([own]))
        passed = (m for m in script.runtime.passed() if seen.shows(m.audience))
        said = [m for m in (*seen.messages(), *passed) if m.content and m.channel in SPEECH]
        said = said[-REPORT_LINES:]
        lines = [f"{m.speaker_name or m.role}: {one_line(m.content)}"[:REPORT_CHARS] for m in said]
        words, speakers = (self.rhs or "")[:REPORT_CHARS], [m.speaker_id for m in said]
        script.audit("report", by=own, name=name, words=words, lines=lines, speakers=speakers)
        script.alert(
            f"{name} reports {script.own_name}. Their words and the last lines are on the page "
            "/ai/log/"
        )
        self.tell(f"Staff are told, with the last lines of {script.own_name} you could hear.")

    def do(self) -> None:
        if self.args:
            raise Refusal(f"`ai` alone lists the assistants. Do you mean: aistatus {self.args}")
        rows = []
        for script in all_assistants():
            facts = {"mode": "broken", "troubles": "see aistatus"}
            facts |= facts_or_trouble(script)
            if "usage" in facts:
                facts["usage"] = f"{facts['usage']:.0%}"
            rows.append([facts.get(key, "?") for key in COLUMNS.values()])
        if not rows:
            return self.tell("There are no assistants yet. Make one: ai/create <name>")
        self.page(self.table(list(COLUMNS), rows))

    do_list = do

    def do_create(self) -> None:
        name, _, path = self.args.partition(":")
        body = new_body(self.caller, good_name(name), body_class(path.strip()))
        hint = f"aiconfig {body.key} persona = <text>"
        self.tell(f"{body.key} is here and listens. Describe who it is: {hint}")

    def do_new(self) -> None:
        # Of the session, because a menu of the body would go on at the next login.
        ask_builder(self.session or self.caller, self.caller)

    def do_start(self) -> Steps[None]:
        """Switch it on, send it to sleep, or wake it."""
        self.tell((yield self.acts(is_own=True).do(self.switch)))

    do_sleep = do_wake = do_start

    def do_stop(self) -> Steps[None]:
        acts = self.acts(is_own=True)
        script, name = acts.script, acts.script.own_name
        self.tell(acts.switch(on=False))
        if script.runtime.lock.is_exclusive:
            self.tell(_WAITS.format(name))
            yield script.run_exclusive(lambda: None)
            self.tell(f"{name} has finished.")

    def do_approve(self) -> Steps[None]:
        """Let it do a call that waits, or not by that switch; without a number list what waits."""
        script, typed = self.own_assistant(), self.rhs or ""
        name, seen, calls = script.own_name, script.seen(self.audience), waiting_calls(script)
        if not typed:
            lines = [f"{name} waits for approval of:"] if calls else []
            for call in calls:
                line = f"{call.number}: made in private talk, for admins"
                if seen.shows(call.known_to):
                    line = call.line
                lines.append(f"{line} ({ago(script.now() - call.at)})")
            return self.show(lines, f"Nothing that {name} would do waits for approval.")
        call = next((call for call in calls if str(call.number) == typed), None)
        if call is None:
            raise Refusal(f"No call {typed[:9]} of {name} waits. See: ai/approve {self.lhs}")
        if not seen.shows(call.known_to):
            raise Refusal(f"Call {typed} was made in private talk; admins decide on it.")
        number, by = call.number, stable_id(self.caller)
        if self.switch == "approve":
            text = yield script.between_turns(lambda: approve(script, script.tools, number, by))
            return self.tell(f"{name}: {text}")
        refused = yield script.between_turns(lambda: refuse(script, number, by))
        self.tell(f"Refused: {refused.act}.")

    do_refuse = do_approve

    def do_yes(self) -> Steps[None]:
        people, number = player_ids(self.caller), self.rhs or ""
        calls = [
            (script, call)
            for script in self.assistants()
            for call in waiting_calls(script, by_asker=True)
            if call.asker in people and number in ("", str(call.number))
        ]
        listed = "; ".join(f"ai/yes {s.own_name} = {call.number}: {call.act}" for s, call in calls)
        script, call = only_one(calls, "No act waits for your yes.", f"Say which. {listed}")
        by = stable_id(self.caller)
        text = yield script.between_turns(lambda: approve(script, script.tools, call.number, by))
        self.tell(f"{script.own_name}: {text}")

    def do_undo(self) -> None:
        """Take its newest answer back, and have it answer again by that switch."""
        script, audience = self.assistant(), private([stable_id(self.caller)])
        askers = player_ids(self.caller)
        if script.may_change(self.caller):
            askers = ()
            if self.is_admin:
                audience = STAFF
        acts = Acts(script, script.seen(audience), self.caller)
        act = acts.again if self.switch == "again" else acts.undo
        self.tell(act(askers))

    do_again = do_undo

    def do_me(self) -> Steps[None]:
        if self.rhs:
            wanted, colon, text = self.rhs.partition(":")
            kept_of = KeptOf(self.assistant(), self.caller)
            kept = yield kept_of.called(wanted)
            act = kept_of.correct(kept, text) if colon else kept_of.drop(kept)
            return self.tell((yield act))
        lines, scripts = list[str](), self.assistants()
        for script in scripts:
            things = yield KeptOf(script, self.caller).all()
            if things:
                head = f"{script.own_name} keeps of you ({len(things)}):"
                lines += [head, *map(kept_line, things)]
        if lines:
            form = "ai/me <assistant> = <id>"
            lines.append(f"Take one back: {form}. Correct it: {form}: <text>")
        names = " and ".join(script.own_name for script in scripts) or "No assistant"
        nothing = f"Beside what was said, nothing is kept of you by {names}. See: help aiforget"
        self.show(lines, nothing)

    def do_why(self) -> Steps[None]:
        script = self.assistant()
        self.show((yield why(script, self.rhs or "", script.seen(self.audience), self.is_full)))

    def do_delete(self) -> Steps[None]:
        script = self.assistant()
        body = script.obj
        if not body.access(self.caller, "delete"):
            raise Refusal(f"You may not delete {body.key}.")
        question = f"Delete {body.key} (#{body.pk}) with all it remembers?"
        act, question = f"delete {script.scope}", f"{question} A file is written first."
        if not self.confirms(act, question, self.lhs or body.key):
            return
        name = body.key
        script.stop_thinking()
        if script.runtime.lock.is_exclusive:
            self.tell(_WAITS.format(name))
        self.tell(f"Writing {name} into a file...")
        path = yield script.run_exclusive(lambda: export_and_delete(script))
        self.tell(f"{name} is deleted. Its export is in {path}; back with: ai/import {path.name}")

    def do_import(self) -> Steps[None]:
        file = self.lhs.strip()
        exported = yield read_export(file)
        key, notes, typeclass = good_name(self.rhs or exported.name), [], BODY
        try:
            typeclass = body_class(exported.typeclass)
        except Refusal as error:
            notes.append(f"{error} The usual one is used.")
        self.tell(f"Reading {key} from {file}...")
        body = new_body(self.caller, key, typeclass)
        script, by = body.assistant, self.caller.key
        try:
            notes += yield script.run_exclusive(
                lambda: import_assistant(script, exported, file, by)
            )
            yield script.run_exclusive(lambda: rebuild_memory(script))
        except Exception:
            body.delete()
            raise
        self.show([*notes, f"{key} is here and listens."])

    def do_doctor(self) -> Steps[None]:
        self.tell("Checking the installation ...")
        findings = yield doctor.run_checks(in_game=True, show=lambda found: self.tell(found.line()))
        self.tell(doctor.verdict(findings))
