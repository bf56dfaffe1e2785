"""Pure logic: messages, audiences, plans, budgets. No Evennia, Twisted, Django or I/O."""
