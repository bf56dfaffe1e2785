"""Steps at which a transaction may be cut short (`at_commit_step`), and the proof behind it."""

from evennia_ai.history.verification import verify

DRAFT_STEPS = ("segment", "summary")
COMMIT_STEPS = ("archive", "history", "notes", "journal", "record", "last_compaction")
ROLLBACK_STEPS = ("history", "summaries", "journal", "entities", "record")
REMAKE_STEPS = ("remake", "remade")


def raising_at(wanted, error):
    """Lets one step of a transaction fail."""

    def at_step(step):
        if step == wanted:
            raise error(step)

    return at_step


def verify_history(script):
    """Violations of the invariant; none if every message is accounted for."""
    return verify(script.history.evidence())
