"""Forgetting a player, and erasing what the database keeps of deleted rows."""
