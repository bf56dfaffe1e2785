"""A game's module of tools that cannot be imported."""

raise ValueError("half-written")
