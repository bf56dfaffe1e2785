"""`aiforget`: players who want to be forgotten, or to see what assistants keep of them."""

import time
from typing import Any

from evennia.typeclasses.models import TypedObject

from evennia_ai.assistant_script import all_assistants, all_scripts
from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal
from evennia_ai.game.seeing import player_ids, stable_id
from evennia_ai.history.messages import utc_iso
from evennia_ai.privacy.export import export_player
from evennia_ai.privacy.requests import (
    REPORT,
    enqueue,
    forget_queued,
    is_running,
    queued,
)
from evennia_ai.staff.acts import people_called

# How often a player may ask, and how soon again after a run that failed: each time the game's
# database is rewritten.
EVERY_S, RETRY_S = 3600, 600
# How often a player may get a copy: each time whole archives are read.
EXPORT_EVERY_S = 600


class CmdAIForget(AssistantCommand):
    """
    have all assistants forget what you said

    Usage:
      aiforget
      aiforget me [= yes]
      aiforget/export
      aiforget <player> [= yes]
      aiforget/export <player>

    Switches:
      export - write what the assistants keep of you into a file on the
               server; ask staff for it

    Without a name, the command says how far your last request is. To confirm
    'aiforget me', type it again with '= yes' within a minute. It cannot be
    undone. You may ask once an hour, and for one copy in ten minutes; a new
    copy replaces the last one.

    All assistants forget what you said, whispered, paged and posed as any of
    your characters: in the history and its archive, in summaries, which are
    made again without your words, in the journal, your notes, what they
    observed, and every search. What an assistant answered you, and lines in
    which it repeats you, go too, also where another assistant heard the answer.
    So do files that were exported. You are told when it is done.

    What other people said stays, also what they said of you. Staff can remove
    more. What you say after you confirm is new.

    Only admins may name another player: an account, a character, or an id from
    'aihistory/raw' for a character that no longer exists.

    See also: airemember
    """

    key = "aiforget"
    locks = "cmd:all();admin:perm(Admin)"

    def do(self) -> None:
        if not self.args.strip():
            return self._tell_state()
        typed = self.lhs.strip()
        people = self._people(typed)
        whose = f"`{typed}`"
        if typed.lower() == "me":
            whose = "you"
        question = f"Forget all that {whose} ever said to any assistant? It cannot be undone."
        now = time.time()
        done = self._last.get("at", "")
        if any(set(people) & set(request.people) for request in queued()):
            raise Refusal("A request for this waits already; `aiforget` shows how far it is.")
        if utc_iso(now - EVERY_S) < done <= utc_iso(now) and not self.is_admin:
            raise Refusal(
                "What you said was forgotten within the last hour. Ask again later, or ai/ignore."
            )
        if self.confirms(f"forget {' '.join(people)}", question, typed):
            enqueue(people, utc_iso(now), stable_id(self._asker), all_scripts())
            self.tell(
                "The assistants begin to forget. What others said stays, also about "
                f"{whose}. You are told when it is done; `aiforget` shows how far it is."
            )
            forget_queued(all_scripts)

    def do_export(self) -> Steps[None]:
        people, now, asker = self._people(self.args.strip() or "me"), time.time(), self._asker
        if 0 <= now - (asker.ndb.evennia_ai_exported or 0) < EXPORT_EVERY_S and not self.is_admin:
            raise Refusal("You asked for a copy already. You may ask again in ten minutes.")
        asker.ndb.evennia_ai_exported = now
        path = yield export_player(all_assistants(), people)
        self.tell(f"Written to {path} on the server. `aiforget me` deletes it.")

    @property
    def _asker(self) -> TypedObject:
        """Who gets the report: the account, whichever character it plays by then."""
        return getattr(self.caller, "account", None) or self.caller

    @property
    def _last(self) -> dict[str, Any]:
        """Times and report of the caller's last request; empty if there was none."""
        return dict(self._asker.attributes.get(REPORT[0], category=REPORT[1]) or {})

    def _tell_state(self) -> None:
        asker, last = stable_id(self._asker), self._last
        if not any(request.asker == asker for request in queued()):
            nothing = "You asked for nothing to be forgotten. Type: aiforget me"
            return self.tell(last.get("text", nothing))
        waited_s = time.time() - last.get("tried_at", 0)
        if not is_running() and 0 <= waited_s < RETRY_S and not self.is_admin:
            return self.tell(last["text"])
        forget_queued(all_scripts)
        self.tell("Your request is being carried out.")

    def _people(self, name: str) -> tuple[str, ...]:
        """The stable ids that a name means; `Refusal` if the caller may not name it."""
        if name.lower() == "me":
            return player_ids(self.caller)
        if not self.is_admin:
            raise Refusal("Type: aiforget me. Only admins may name somebody else.")
        return people_called(name)
