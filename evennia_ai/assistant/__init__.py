"""One assistant: its tick, its turns, its configuration, its state, and the game around it."""
