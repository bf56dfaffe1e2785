"""The sleep cycle: memory work and compaction, as a list of named steps."""

from evennia_ai.sleep.cycle import SLEEP_STEPS, SleepStep, run_sleep_tick, without_words

__all__ = ["SLEEP_STEPS", "SleepStep", "run_sleep_tick", "without_words"]
