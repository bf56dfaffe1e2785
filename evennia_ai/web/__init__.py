"""Pages for staff."""
