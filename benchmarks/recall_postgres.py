"""Measure the recall index on PostgreSQL: time of searches and adds, size. Prints JSON.

    python -m benchmarks.recall_postgres [--sizes 10000 1000000] [--url postgresql://...]
    python -m benchmarks.recall_postgres --sizes 10000000 --made 1000000

Without `--url` a private server is started, from the programs that `tests/postgres.py` finds. The
turns are those of `benchmarks/recall.py`: lines of LoCoMo, in which each word may be replaced by
another one. The indexes of turns are made once all are there, as after a restore; then turns come
one by one, as in a game. Of a size beyond `--made` the rest are copies of the made ones, with other
ids, times and sessions, and with vectors moved at random (cosine to the original about .9): words
stay as frequent as they were, and no text is embedded twice. The same questions are put to
PostgreSQL's own text search (`ts_rank` over the same words), for comparison. At most sizes the
first search also learns all words; its time is printed apart.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.recall import DEFAULT_DATA, Conversation, _percentiles, _timed, read_conversations
from evennia_ai.language.words import STOP_WORDS, words
from evennia_ai.recall import Turn
from evennia_ai.recall.postgres import INDEXES, PostgresIndex, _sql
from evennia_ai.recall.wanted import lexeme
from tests import postgres

SCOPE = "benchmark"
OPTIONS = ("shared_buffers=4GB", "maintenance_work_mem=6GB", "max_wal_size=8GB", "work_mem=32MB")
_PLAIN = """
SELECT number FROM {table} WHERE words @@ %s::tsquery
ORDER BY ts_rank(words, %s::tsquery) DESC LIMIT 10
"""


def many_turns(conversations: Sequence[Conversation]) -> Iterator[Turn]:
    """Varied turns without end, a minute apart, 25 in a session."""
    rng = random.Random(11)
    pool = [turn for each in conversations for turn in each.turns]
    vocabulary = [word for turn in pool for word in turn.text.split()]
    number = 0
    while True:
        for source in pool:
            text = " ".join(
                rng.choice(vocabulary) if rng.random() < 0.3 else word
                for word in source.text.split()
            )
            yield Turn(f"t{number}", source.speaker, text, number * 60.0, number // 25)
            number += 1


# Copies of all turns up to a number, `{after}` minutes later.
_COPY = """
INSERT INTO {table}
    (key, id, speaker, text, at, time, session, audience, kind, traits, words, vector)
SELECT key || '+{copy}', id || '+{copy}', speaker, text, at, time + 60.0 * {after},
    session || '+{copy}', audience, kind, traits, words, l2_normalize(vector + (
        SELECT array_agg((random() - 0.5) * 0.11) FROM generate_series(1, {dims})
        WHERE made.number > 0)::real[]::halfvec({dims}))
FROM {table} made WHERE number <= {last}
"""


def _say(what: str, start: float) -> None:
    print(f"{what}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def filled(index: PostgresIndex, turns: Iterator[Turn], size: int, made: int) -> dict[str, float]:
    """Add turns, without indexes until the end; seconds of both."""
    index.clear(SCOPE)
    start, made = time.perf_counter(), min(made, size)
    for done, batch in enumerate(_batches(islice(turns, made))):
        index.add(SCOPE, batch)
        if not done:
            table, dims = table_of(index)
            with index._at_work() as db:
                for name in ("in_talk", "by_word", "by_vector"):
                    db.execute(f"DROP INDEX {table}_{name}".encode())
        if done % 50 == 49:
            _say(f"{(done + 1) * 2_000:,} turns", start)
    added = time.perf_counter() - start
    with index._at_work() as db:
        db.execute("SET statement_timeout = 0")
        [last] = db.execute(f"SELECT max(number) FROM {table}".encode()).fetchone() or (0,)
        for copy in range(1, size // made):
            named = {"table": table, "dims": dims, "copy": copy, "last": last}
            db.execute(_COPY.format(**named, after=copy * made).encode())
            _say(f"{(copy + 1) * made:,} turns", start)
        number = int(table.rpartition("_")[2])
        for counted in ("words", "audiences"):
            times = f"UPDATE recall_{counted} SET turns = turns * {size // made}"
            db.execute(f"{times} WHERE scope = {number}".encode())
        copied = time.perf_counter() - start
        db.execute("SET max_parallel_maintenance_workers = 2")
        db.execute(_sql(INDEXES, int(table.rpartition("_")[2]), dims))
        db.execute(f"ANALYZE {table}".encode())
        db.execute("ANALYZE recall_words")
    _say("indexes", start)
    return {
        "made": made,
        "add_s": round(added, 1),
        "copy_s": round(copied - added, 1),
        "index_s": round(time.perf_counter() - start - copied, 1),
    }


def _batches(turns: Iterator[Turn]) -> Iterator[list[Turn]]:
    while batch := list(islice(turns, 2_000)):
        yield batch


def table_of(index: PostgresIndex) -> tuple[str, int]:
    """The table of the benchmark's turns, and the length of its vectors."""
    with index._at_work() as db:
        found = db.execute("SELECT number FROM recall_scopes WHERE name = %s", [SCOPE]).fetchone()
        dims = db.execute("SELECT dims FROM recall_schema").fetchone()
    assert found and dims, "turns were added"
    return f"recall_turns_{found[0]}", int(dims[0])


def plain_ms(url: str, table: str, queries: Sequence[str]) -> dict[str, float]:
    """PostgreSQL's own text search for the ten best, milliseconds."""
    sql = _PLAIN.format(table=table).encode()
    asked = [[lexeme(w) for w in words(q) if w not in STOP_WORDS] for q in queries]
    with psycopg.connect(url, autocommit=True) as db:
        found = [" | ".join(each) for each in asked if each]
        return _percentiles([_timed(lambda q=q: db.execute(sql, [q, q]).fetchall()) for q in found])


def measured(
    url: str, conversations: Sequence[Conversation], size: int, made: int, searches: int
) -> dict[str, Any]:
    """Figures of one size."""
    index, turns = PostgresIndex(url), many_turns(conversations)
    times = filled(index, turns, size, made)
    asked = [q.text for c in conversations for q in c.questions]
    chosen = random.Random(7).choices(asked, k=searches)
    first_ms = _timed(lambda: index.search(SCOPE, asked[0]))
    cold = _percentiles([_timed(lambda q=q: index.search(SCOPE, q)) for q in chosen])
    warm = _percentiles([_timed(lambda q=q: index.search(SCOPE, q)) for q in chosen])
    public = [_timed(lambda q=q: index.search(SCOPE, q, audience="public")) for q in chosen[:50]]
    one_ms = _percentiles([_timed(lambda t=t: index.add(SCOPE, [t])) for t in islice(turns, 200)])
    table, _ = table_of(index)
    with index._at_work() as db:
        [total] = db.execute("SELECT pg_total_relation_size(%s)", [table]).fetchone() or (0,)
    found = {
        "turns": size,
        **times,
        "first_search_ms": round(first_ms, 1),
        "search_ms": cold,
        "search_again_ms": warm,
        "search_public_ms": _percentiles(public),
        "plain_text_search_ms": plain_ms(url, table, chosen[:60]),
        "add_one_by_one_ms": one_ms,
        "bytes_per_turn": round(total / size),
        "load_average_1_min": round(os.getloadavg()[0], 1),
    }
    index.close()
    return found


def main() -> None:
    """Measure every size and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--made", type=int, default=1_000_000, help="most turns that are embedded")
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--url")
    options = parser.parse_args()
    conversations = read_conversations(options.data)
    if any(size > options.made and size % options.made for size in options.sizes):
        sys.exit("a size beyond --made must be a multiple of it")
    if not options.url and (why := postgres.why_no_vector()):
        sys.exit(why)
    server = None if options.url else postgres.Server(OPTIONS)
    url = options.url or server.url()
    try:
        figures = [
            measured(url, conversations, each, options.made, options.searches)
            for each in options.sizes
        ]
        with psycopg.connect(url) as db:
            version = db.execute("SHOW server_version").fetchone()
            vector = db.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            versions = {"postgresql": version[0], "pgvector": vector.fetchone()[0]}
    finally:
        if server:
            server.stop()
    print(json.dumps({**versions, "sizes": figures}, indent=2))


if __name__ == "__main__":
    main()
