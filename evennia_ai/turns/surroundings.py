"""The game as one assistant meets it in its turns; `game.world.GameHandler` says what each does."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.history.messages import Speaker
from evennia_ai.life import Named, Told
from evennia_ai.rag_memory.finder import Verdict
from evennia_ai.sleep.sleeper import Place


class Manners(Protocol):
    """What is remembered of the talk in a room."""

    cued_at: float


class Game(Place, Protocol):
    """What a turn does and asks in the game; people are named by their stable ids."""

    @property
    def manners(self) -> Manners:
        """Of the talk in this room."""

    def asked_by(self, asker: str | None) -> "Game":
        """The game in a turn for somebody."""

    def emote(self, text: str) -> Told:
        """Pose."""

    def whisper(self, target: str, text: str, audience: str) -> Told:
        """Whisper to somebody."""

    def speak(
        self, text: str, audience: str, channel: str, asker: str | None, to: str | None = None
    ) -> Any:
        """Answer an audience the way it spoke."""

    def show(self, text: str, audience: str, channel: str, asker: str | None) -> None:
        """Show a line about the assistant."""

    def show_typing(self, is_typing: bool, audience: str, channel: str, asker: str | None) -> None:
        """Show that it thinks."""

    def tell(self, person: str, text: str) -> None:
        """Tell a player something."""

    def look(self, target: str | None = None) -> str:
        """What it sees."""

    def step_towards(self, place: str) -> str:
        """Walk one exit on; a word of `routine`."""

    def account_id(self, asker: str) -> str:
        """The account of somebody."""

    def account_name(self, account: str) -> str:
        """The name of an account."""

    def payer(self, asker: str) -> str:
        """Whose lines caused what somebody asks."""

    def company(self, idle_s: float) -> tuple[str, ...]:
        """The players here who are not idle."""

    def audience(self) -> str:
        """Who hears what is said aloud."""

    def here(self) -> dict[str, bool]:
        """Everything here, and whether somebody plays it."""

    def only_present(self, audience: str) -> bool:
        """Whether nobody else hears than this audience."""

    def reaches(self, person: str, anywhere: bool) -> bool:
        """Whether a player can be told something now."""

    def clock(self, is_game: bool, now: float) -> datetime:
        """Date and time."""

    def named(self, name: str, place: str) -> Named:
        """What a name means in a place."""

    def named_here(self) -> list[Named]:
        """All that a word may name here."""

    def people_named(self, text: str) -> tuple[str, ...]:
        """The stable ids of those whom a text names."""

    def player_called(self, name: str) -> Speaker:
        """The player that a name means."""

    def allowed(self, lock: str) -> bool:
        """Whether the assistant, and who asks, pass a lock."""

    def needs_rank(self, lock: str, objects: Iterable[Named]) -> bool:
        """Whether an act needs more than a player's rights."""

    def lore(self, text: str, line: str, audience: str) -> Deferred[list[Verdict]]:
        """Fires with what of the lore is found."""
