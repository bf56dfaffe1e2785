"""Small things with no better home. Import from the modules themselves."""
