"""The names of the steps at which a transaction may be cut short (`at_commit_step`)."""

COMMIT_STEPS = ("archive", "summaries", "history", "notes", "journal", "record", "last_compaction")
ROLLBACK_STEPS = ("history", "summaries", "journal", "entities", "record")
REMAKE_STEPS = ("remake", "remade")
