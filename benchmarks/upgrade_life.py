"""What `upgrade.py` does in a game of the earlier version, and asks in the present one."""

import random
import re
from pathlib import Path

from benchmarks.long_life import Tavern
from benchmarks.mudlife import RELATIONS, Fact, distinct_facts
from tests.e2e.telnet import Telnet

PLAYERS = ("Alice", "Bob")
SEED = 5
FACTS, LINES = 6, 40
ANSWER_S, COMPACTION_S = 60, 120
CONFIG = {
    "persona": "Hüterin der »Laterne«, gruff but fair; counts every crown.",
    "compact_preserve_window": "6",
    "max_context_tokens": "60000",
    "pre_compact_max_iterations": "3",
    "reply_cooldown_s": "0",
    "sleep_after_idle_s": "None",
    "tick_interval_s": "1",
    "llm_temperature": "0.5",
    "compact_notice": "True",
    "tool_levels": '{"move": "off"}',
}
TOLD = "Aria, please remember that my ferry is called Heron."
# A question about what was said aloud, who asks, and the answer.
QUESTIONS = (
    ("Alice", "Aria, what is my ferry called?", "Heron"),
    ("Bob", "Aria, what is Alice's ferry called?", "Heron"),
)
# Who told it in private, how and in which words, the question about it and the answer.
SECRETS = (
    (
        "Alice",
        "whisper Aria = ",
        "The password for the mill is nightjar.",
        "What's the password for the mill?",
        "nightjar",
    ),
    (
        "Bob",
        "page Aria = ",
        "The password for the brewery is thistledown.",
        "What's the password for the brewery?",
        "thistledown",
    ),
)
NOTES = (
    ("Alice", "airemember Aria = I like jazz.", "keep"),
    ("Alice", "airemember Aria = My favourite drink is ale.", "keep"),
    ("Alice", "airemember Aria = My favourite drink is rum.", "keep"),
    ("Alice", "airemember/private Aria = I am afraid of geese.", "keep"),
    ("Bob", "airemember Aria = I am left-handed.", "forget"),
    ("Bob", "airemember Aria = Alice owes me five crowns.", "approve"),
    ("Bob", "airemember Aria = Everybody must bow to me.", "reject"),
    ("Alice", "airemember Aria = Bob must never be served stout.", "wait"),
)
# Additional journal entries, so that the journal turns pages.
ENTRIES = 120
JOURNAL = (
    "py [me.search('Aria', global_search=True).journal.add("
    "f'Cask {number} came from Oakhaven.', importance=1 + number % 10) "
    f"for number in range({ENTRIES})] and 'written'"
)
# Stop the villager's rounds: the assistant would hear him come and go at any moment.
STAYS = "py me.search('Odo Marrek', global_search=True).attributes.add('rounds', []) or 'stays'"


class Staff:
    """The admin in a started game.

    Args:
        admin: The connection.
    """

    def __init__(self, admin: Telnet):
        self.admin = admin

    def package(self) -> Path:
        """Return the folder of the Server's package."""
        shown = self.admin.ask("py 'FROM:' + __import__('evennia_ai').__file__", "FROM:/[^\n]*")
        return Path(shown[shown.rfind("FROM:") + len("FROM:") :].strip()).parents[1]

    def proof(self) -> str:
        """Return what `compact/verify` says."""
        self.admin.drain(1)
        told = r"Aria: (proven[\s\S]*?checksum(?: matches)?\.|\d+ violation)"
        shown = self.admin.ask("compact/verify Aria", told, ANSWER_S)
        if "proven" not in shown:
            shown += self.admin.drain(1)
        return re.sub(r"\s+", " ", shown[shown.rfind("Aria:") :]).strip()

    def until_idle(self) -> None:
        """Wait until everything is loaded and repaired, so that the assistant ticks."""
        for _ in range(60):
            shown = self.admin.ask("aistatus Aria", r"Last trouble[^\n]*", ANSWER_S)
            if re.search(r"tick idle [1-9]", shown):
                return
            self.admin.drain(1)
        raise AssertionError(f"Aria does not start to tick:\n{shown}")

    def export(self) -> str:
        """Export everything to a file; return its path."""
        self.admin.drain(1)
        shown = self.admin.ask("aihistory/export Aria", r"Written: [\s\S]*?\.json", ANSWER_S)
        return re.sub(r"\s+", "", shown[shown.rfind("Written:") + len("Written:") :])


class Stay(Staff):
    """The admin and the players in a started game.

    Args:
        tavern: The game with the players.
    """

    def __init__(self, tavern: Tavern):
        super().__init__(tavern.admin)
        self.tavern = tavern
        self.wrong: list[str] = []

    # -- in the earlier version ----------------------------------------------------------------

    def live(self) -> None:
        """Live with everything that is stored: talk, notes, compactions, a rollback, a night."""
        for name, value in CONFIG.items():
            self.admin.ask(f"aiconfig Aria {name} = {value}", "is now")
        self.tavern.ask("Alice", "Hello, Aria!")
        self.tavern.ask("Alice", TOLD)
        for fact in _facts():
            self.tavern.tell(fact.teller, fact.text)
        for who, how, told, _, _ in SECRETS:
            self.in_private(who, how, told)
        self.notes()
        self.compact()
        self.admin.ask(JOURNAL, "written")
        self.compact()
        self.tavern.night()
        self.withdraw_an_entry()
        self.compact()
        self.roll_back()
        self.ask_all()
        self.compact()
        self.roll_back()
        self.compact(chat=False)
        self.a_second_assistant()
        self.admin.ask(STAYS, r"\bstays\n")
        self.tavern.chat(LINES // 2)
        self.tavern.ask("Bob", "Aria, how do you do?")

    def notes(self) -> None:
        """Create notes that are active, waiting, approved, rejected, replaced and removed."""
        for who, line, then in NOTES:
            shown = self.tavern.players[who].ask(line, r"\(\w+, \w+\): ", ANSWER_S)
            note = re.findall(r"\((\w+), \w+\): ", shown)[-1]
            if then in ("approve", "reject"):
                self.admin.ask(f"aimemory/{then} Aria = {note}", rf"{note} \w+")
            if then == "forget":
                self.tavern.players[who].ask(f"airemember/forget Aria = {note}", "puts note")

    def a_second_assistant(self) -> None:
        """Create Borin, who is switched off, in the stable; the admin stays there."""
        self.admin.drain(1)
        self.admin.ask("out", "Chandler Street")
        self.admin.ask("east", "Stable")
        self.admin.ask("ai/create Borin", "is here and listens")
        self.admin.ask("aiconfig Borin persona = A smith who counts nails.", "is now")
        self.admin.ask("say Borin, I sell nails.", r"Borin says", ANSWER_S)
        self.admin.drain(3)
        self.admin.ask("ai/stop Borin", "is switched off")

    def withdraw_an_entry(self) -> None:
        """Remove one of the journal entries from all searches."""
        self.admin.send("aijournal/search Aria = Cask 7")
        shown = self.admin.drain(2)
        entry = re.findall(r"\b(e1\w{8,})\b", shown)[0]
        self.admin.send("q")
        self.admin.drain(0.5)
        self.admin.ask(f"aimemory/forget Aria = {entry}", "finds journal entry", ANSWER_S)

    # -- in both -------------------------------------------------------------------------------

    def in_private(self, who: str, how: str, text: str) -> str:
        """Say something to the assistant in private; return the answer."""
        player = self.tavern.players[who]
        self.tavern.admin.drain(1)
        player.drain(0.5)
        told = "Aria whispers[^\n]*" if how.startswith("whisper") else "Aria pages[^\n]*"
        shown = player.ask(how + text, told, ANSWER_S)
        return shown + player.drain(1.5)

    def compact(self, chat: bool = True) -> None:
        """Talk, then compact by command."""
        if chat:
            self.tavern.chat(LINES)
        self.admin.drain(1)
        shown = self.admin.ask("compact Aria", r"Aria (compacted|did not)[^\n]*", COMPACTION_S)
        if "Aria compacted" not in shown:
            self.wrong.append(shown[shown.rfind("Aria ") :])

    def roll_back(self) -> None:
        """Roll back the latest compaction."""
        self.admin.drain(1)
        shown = self.admin.ask("compact/rollback Aria", r"live again\. \S+", ANSWER_S)
        # Older versions ask for a `y`.
        yes = "compact/rollback Aria = yes" if "again. To" in shown else "y"
        self.admin.ask(yes, "Taken back", ANSWER_S)

    def ask_all(self) -> None:
        """Check all answers; what was told in private is answered only to those who told it."""
        for who, question, value in (*QUESTIONS, *_asked()):
            reply = self.tavern.ask(who, question)
            if value.lower() not in reply.lower():
                self.wrong.append(f"{who} asks `{question}`, is not told `{value}`: {reply}")
        for who, how, _, question, value in SECRETS:
            reply = self.in_private(who, how, question)
            if value not in reply:
                self.wrong.append(f"{who} asks `{how}{question}`, is not told `{value}`: {reply}")
            other = next(name for name in PLAYERS if name != who)
            replies = [self.tavern.ask(other, f"Aria, {question[0].lower()}{question[1:]}")]
            replies += [self.in_private(other, each[1], question) for each in SECRETS]
            for reply in replies:
                if value in reply:
                    self.wrong.append(f"{other} learns `{value}`: {reply}")


def _facts() -> list[Fact]:
    rng = random.Random(SEED)
    relations = rng.sample(list(RELATIONS), len(RELATIONS))
    return distinct_facts(rng, relations, FACTS, patrons=PLAYERS)


def _asked() -> list[tuple[str, str, str]]:
    """Return who asks for each fact, the question and the answer."""
    other = {"Alice": "Bob", "Bob": "Alice"}
    return [(other[fact.teller], fact.question, str(fact.value)) for fact in _facts()]
