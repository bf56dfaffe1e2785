"""The command line: `evennia-ai` and `evennia ai`."""
