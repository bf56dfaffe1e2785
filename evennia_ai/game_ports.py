"""`game_ports` for the `settings.py` of games made before it moved; new games use `cli.ports`."""

from evennia_ai.cli.ports import game_ports

__all__ = ["game_ports"]
