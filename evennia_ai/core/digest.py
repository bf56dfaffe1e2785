"""A digest of a set of ids that does not depend on their order, and grows id by id.

The sum of the SHA-256 of each id, modulo 2**256. With the count beside it, it tells whether a
set of ids is the very set that was recorded, without keeping the ids twice.
"""

import hashlib
from collections.abc import Iterable

EMPTY_DIGEST = "0" * 64
_MODULUS = 1 << 256


def digest_add(digest: str, ids: Iterable[str]) -> str:
    """The digest with more ids in it.

    Args:
        digest: 64 hexadecimal digits; `EMPTY_DIGEST` for no ids.
        ids: Ids to add.
    """
    total = int(digest, 16)
    for one in ids:
        total += int.from_bytes(hashlib.sha256(one.encode("utf-8", "surrogatepass")).digest())
    return f"{total % _MODULUS:064x}"
