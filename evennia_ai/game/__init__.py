"""What knows Evennia: the body, the room, storing in Attributes, start and stop."""
