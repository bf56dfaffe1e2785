"""Mem0 as the memory back end: the only place that talks to it."""
