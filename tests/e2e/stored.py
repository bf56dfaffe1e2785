"""Games that versions of the package stored, and what stands in them."""

from pathlib import Path

# Archives, each named after the version that stored it; `scripts/store_game.py` makes them.
STORED = Path(__file__).parents[1] / "stored"
# What stands in each: who typed what, a note of Alice's, and an option of Aria's.
SAID = (
    ("Alice", "say Aria, remember that my boat is called Heron."),
    ("Alice", "say Aria, what is my boat called?"),
    ("Bob", "say The miller owes me nine sacks of barley."),
    ("Alice", "whisper Aria = My hidden key lies under the well."),
    ("Bob", "say Aria, remember that my dog is called Rufus."),
    ("Alice", "say The ferry leaves at noon on Sundays."),
    ("Bob", "say Then I shall take the ferry to the isle of Gannet."),
    ("Alice", "say Aria, good night."),
)
WANTS = "I want plum jam with my bread"
PERSONA = "You are Aria, who keeps the bar and collects old maps."
