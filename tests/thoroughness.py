"""How much of what could be tried is tried: all of it, or a share, told in the environment.

``TEST_SHARE=0.1`` tries a tenth of the examples of the longest properties, and of the junk that
Attributes may hold; without it, as little as still reaches every branch of the pure modules. Each
version of Python tries other ones. Nothing else changes.
"""

import os
import sys

MEASURABLE = 0.02
SHARE = min(1.0, max(0.001, float(os.environ.get("TEST_SHARE", MEASURABLE))))


def examples(number, least=10):
    """The share of a number of examples, at least `least` of them if coverage is measurable."""
    least = least if SHARE >= MEASURABLE else min(least, 10)
    return max(min(least, number), round(number * SHARE))


def sampled(items):
    """A share of items, evenly spread over all."""
    items = list(items)
    every = round(1 / SHARE)
    return items[sys.version_info.minor % every :: every]
