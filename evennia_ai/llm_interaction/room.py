"""The room of a history: what fixed regions and reserves leave of the limit, and its shares."""

from dataclasses import dataclass

# What remains after a compaction, most that all summaries one reader sees take of the room, and
# most of what remains that the kept messages take.
TARGET_SHARE, SUMMARIES_SHARE, KEPT_SHARE = 0.5, 0.3, 0.7
# A smaller room than this share of the limit is no room to talk in; it is never counted as less.
LEAST_SHARE = 0.15
# Tokens of a summary's title and frame; and the fewest that a summary is given.
MARKER_TOKENS, LEAST_SUMMARY = 12, 30


@dataclass(frozen=True)
class Room:
    """The tokens in which an assistant's history and summaries live."""

    limit: int  # most tokens of a request and its reply
    fixed: int  # tokens of system text, tools and ledger
    reserved: int  # tokens set aside for the reply, retrieved memories and the present moment

    @property
    def is_too_small(self) -> bool:
        """Whether fixed regions and reserves leave next to nothing."""
        return self.limit - self.fixed - self.reserved < LEAST_SHARE * self.limit

    @property
    def tokens(self) -> int:
        """Its size."""
        return max(self.limit - self.fixed - self.reserved, int(LEAST_SHARE * self.limit), 1)

    def usage(self, history_tokens: int) -> float:
        """The share of it that history and summaries take."""
        return history_tokens / self.tokens

    @property
    def target(self) -> int:
        """Most tokens that remain after a compaction."""
        return int(TARGET_SHARE * self.tokens)

    @property
    def kept(self) -> int:
        """Most tokens of the messages that a compaction keeps."""
        return int(KEPT_SHARE * self.target)

    def summary_cap(self, kept_tokens: int, summaries: int) -> int:
        """Most tokens of one summary beside what is kept, if one reader sees so many of them."""
        free = min(int(SUMMARIES_SHARE * self.tokens), self.target - kept_tokens)
        return max(LEAST_SUMMARY, free // max(1, summaries) - MARKER_TOKENS)
