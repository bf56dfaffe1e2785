"""A digest of a set of ids that does not depend on their order, and grows id by id.

The sum of the SHA-256 of each id, modulo 2**256. With the count beside it, it tells whether a
set of ids is the very set that was recorded, without keeping the ids twice. Such sums tell sets
apart as long as nobody chooses the ids (Bellare and Micciancio's AdHash, Eurocrypt 1997); ids
are made here, by a clock and chance.
"""

import hashlib
from collections.abc import Iterable

EMPTY_DIGEST = "0" * 64
MODULUS = 1 << 256


def digest_add(digest: str, ids: Iterable[str]) -> str:
    """The digest with more ids in it.

    Args:
        digest: 64 hexadecimal digits; `EMPTY_DIGEST` for no ids.
        ids: Ids to add, none of which is in the set yet.

    Returns:
        64 hexadecimal digits, the same in any order of the ids.
    """
    total = int(digest, 16)
    for one in ids:
        total += int.from_bytes(hashlib.sha256(one.encode("utf-8", "surrogatepass")).digest())
    return f"{total % MODULUS:064x}"
