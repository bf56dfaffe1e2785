"""The recall index in PostgreSQL with pgvector, which several servers may share.

Public methods are those of `index.RecallIndex`. The database finds the few hundred turns that are
worth a look, by their words (`tsvector`) and by their vectors (pgvector's HNSW over their bits);
`subset` ranks them by the same features and weights as the file's.

Each scope has a table of its own, with indexes of its own. Statistics are kept for each audience
of a scope, so that turns hidden from the asker have no influence.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import psycopg
from psycopg.conninfo import conninfo_to_dict

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer, visible
from evennia_ai.language.words import storable, words
from evennia_ai.recall.embedding import Embedder, default_embedder
from evennia_ai.recall.features import WHOLE
from evennia_ai.recall.query import ParsedQuery, Speakers, parsed_query
from evennia_ai.recall.ranking import LinearModel
from evennia_ai.recall.store import Row
from evennia_ai.recall.subset import ranked
from evennia_ai.recall.values import Hit, Turn, seconds, stored_moment
from evennia_ai.recall.vectors import Floats, packed_traits, quantised
from evennia_ai.recall.vocabulary import Vocabulary
from evennia_ai.recall.wanted import LONGEST, SPEAKER, lexeme, speaker_word, wanted_of

Connection = psycopg.Connection[tuple[Any, ...]]

# Increased when what is stored changes meaning; older tables are dropped, as they can be rebuilt.
SCHEMA_VERSION = 1
_BATCH = 2_000
# Turns worth a look: the best by words, and by each of the two vectors of a query; and how many of
# the vectors' index are compared closely.
BY_WORDS, BY_VECTOR, BY_BITS = 100, 20, 100
# Scopes up to this size are searched for near vectors one by one, larger ones by the index, which
# finds most of the nearest, and not always the same ones with and without hidden turns.
EXACT = 5_000
CONNECT_S, STATEMENT_S = 5, 120
# Longest id that is its own key.
_LONGEST_ID = 200
# Of the lock that keeps two servers from making tables at once; any number will do.
_MAKING = 5_240_117

TABLES = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE recall_schema (version int NOT NULL, dims int NOT NULL);
CREATE TABLE recall_scopes (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
    filling boolean NOT NULL DEFAULT false);
CREATE TABLE recall_audiences (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scope int NOT NULL,
    audience text NOT NULL, turns bigint NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX recall_audiences_of_scope ON recall_audiences (scope, md5(audience));
CREATE TABLE recall_words (
    scope int NOT NULL, audience int NOT NULL, word text COLLATE "C" NOT NULL, turns int NOT NULL,
    PRIMARY KEY (scope, audience, word)) WITH (fillfactor = 80);
CREATE INDEX recall_words_by_word ON recall_words (word);
CREATE TABLE recall_vocabulary (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text COLLATE "C" NOT NULL UNIQUE);
CREATE SEQUENCE recall_numbers;
CREATE TABLE recall_turns (
    number bigint PRIMARY KEY DEFAULT nextval('recall_numbers'),
    key text COLLATE "C" NOT NULL UNIQUE, id text NOT NULL, speaker text NOT NULL,
    text text NOT NULL, at text NOT NULL, time double precision NOT NULL, session text,
    audience int NOT NULL, kind text NOT NULL, traits bigint NOT NULL, words tsvector NOT NULL,
    vector halfvec({dims}) NOT NULL);
"""
INDEXES = """
CREATE INDEX {table}_in_talk ON {table} (kind, time, number);
CREATE INDEX {table}_by_word ON {table} USING gin (words) WITH (fastupdate = off);
CREATE INDEX {table}_by_vector ON {table}
    USING hnsw ((binary_quantize(vector)::bit({dims})) bit_hamming_ops)
    WITH (m = 8, ef_construction = 40);
"""
_DROP = """
DROP TABLE recall_turns, recall_words, recall_vocabulary, recall_audiences,
    recall_scopes, recall_schema;
DROP SEQUENCE recall_numbers;
"""
# A new table has no statistics by which PostgreSQL would prefer the indexes; and an index scan must
# not end before enough is found.
_SESSION = f"""
SET enable_seqscan = off; SET enable_sort = off; SET hnsw.iterative_scan = relaxed_order;
SET hnsw.ef_search = {BY_BITS}; SET statement_timeout = '{STATEMENT_S}s'; SET jit = off
"""
_COPY = """
COPY {table} (key, id, speaker, text, at, time, session, audience, kind, traits, words, vector)
FROM STDIN
"""
_BY_WORDS = """
SELECT t.number FROM unnest(%(asked)s::text[], %(weights)s::float8[], %(most)s::int[])
    AS wanted (asked, weight, most)
CROSS JOIN LATERAL (
    SELECT number FROM {table} WHERE audience = ANY(%(shown)s)
        AND words @@ wanted.asked::tsquery LIMIT wanted.most) AS t
GROUP BY t.number ORDER BY sum(wanted.weight) DESC, t.number DESC LIMIT %(limit)s
"""
_BY_VECTOR = """
SELECT number FROM (
    SELECT number, vector FROM {table} WHERE audience = ANY(%(shown)s)
    ORDER BY (binary_quantize(vector)::bit({dims})
        <~> binary_quantize(%(vector)s::halfvec({dims}))::bit({dims})) {exactly}
    LIMIT %(bits)s) AS near
ORDER BY vector <=> %(vector)s::halfvec({dims}), number LIMIT %(limit)s
"""
_ROWS = """
SELECT number, id, speaker, text, at, time, session, audience, kind, traits, vector FROM {table}
WHERE """
_ALL = _ROWS + "audience = ANY(%(shown)s) ORDER BY number"
_CHOSEN = _ROWS + "number = ANY(%(numbers)s) ORDER BY number"
# Turns with up to three on either side of each in the talk, as far as the asker may see them.
_AROUND = """
SELECT DISTINCT near.number FROM {table} AS best CROSS JOIN LATERAL (
    (SELECT number FROM {table} WHERE kind = best.kind AND audience = ANY(%(shown)s)
        AND (time, number) <= (best.time, best.number) ORDER BY time DESC, number DESC LIMIT 4)
    UNION ALL
    (SELECT number FROM {table} WHERE kind = best.kind AND audience = ANY(%(shown)s)
        AND (time, number) > (best.time, best.number) ORDER BY time, number LIMIT 3)) AS near
WHERE best.number = ANY(%(numbers)s)
"""
_COUNT_WORDS = """
INSERT INTO recall_words AS known (scope, audience, word, turns)
SELECT %s, * FROM unnest(%s::int[], %s::text[], %s::int[])
ON CONFLICT (scope, audience, word) DO UPDATE SET turns = known.turns + excluded.turns
RETURNING word, xmax = 0
"""
_UNCOUNT_WORDS = """
UPDATE recall_words AS known SET turns = known.turns - gone.turns
FROM unnest(%s::int[], %s::text[], %s::int[]) AS gone (audience, word, turns)
WHERE known.scope = %s AND known.audience = gone.audience AND known.word = gone.word
"""
_UNKNOWN_WORDS = """
DELETE FROM recall_vocabulary AS v WHERE NOT EXISTS (
    SELECT FROM recall_words AS w WHERE w.word = v.word)
"""


class PostgresIndex:
    """Everything said in a scope, in a PostgreSQL database.

    Methods may be called from any thread and run one at a time, on one connection, which is made at
    first use and again when it was lost. `StoreError` if the database cannot be used.

    Args:
        url: The database's address, ``postgresql://user:password@host/name``.
        embedder: The packaged static embedder by default.
        model: How features become a score; the shipped weights by default.

    Attributes:
            damaged: Always False: a server mends its own files.
    """

    damaged = False

    def __init__(
        self, url: str, embedder: Embedder | None = None, model: LinearModel | None = None
    ):
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # The error would show the address, which holds a password.
            raise StoreError("The address of the recall index is none of PostgreSQL's.") from None
        self._url = url
        self._embedder = embedder if embedder is not None else default_embedder()
        self._model = model
        self._lock = threading.RLock()
        self._db: Connection | None = None
        self._vocabulary, self._words_until = Vocabulary(self._embedder), 0

    @contextmanager
    def _at_work(self) -> Iterator[Connection]:
        with self._lock:
            try:
                yield self._connection()
            except psycopg.Error as error:
                why = str(error).split("\n")[0]
                raise StoreError(
                    f"The recall index on PostgreSQL failed: {type(error).__name__}: {why}"
                ) from error

    def _connection(self) -> Connection:
        if self._db is None or self._db.closed:
            db = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_S)
            try:
                _make_tables(db, self._embedder.dims)
                for statement in _SESSION.split(";"):
                    db.execute(statement.encode())
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def add(self, scope: str, turns: Iterable[Turn]) -> int:
        """Add turns to a scope; returns how many were new or changed. As `RecallIndex.add`."""
        cleaned = {turn.id: (turn, time) for turn, time in map(_cleaned, turns)}
        kept, changed = list(cleaned.values()), 0
        with self._at_work() as db:
            for start in range(0, len(kept), _BATCH):
                changed += self._add(db, scope, kept[start : start + _BATCH])
        return changed

    def _add(self, db: Connection, scope: str, batch: Sequence[tuple[Turn, float]]) -> int:
        with db.transaction():
            number = _scope_number(db, scope, self._embedder.dims)
            old = _turns_of(db, number, [turn.id for turn, _ in batch])
            fresh = [(turn, time) for turn, time in batch if old.get(turn.id, (0, 0))[1] != turn]
            if not fresh:
                return 0
            _drop(db, number, [old[turn.id][0] for turn, _ in fresh if turn.id in old])
            vectors = quantised(self._embedder.embed([turn.text for turn, _ in fresh]))
            audiences = _audience_numbers(db, number, [turn.audience for turn, _ in fresh])
            tally: Counter[tuple[int, str]] = Counter()
            with db.cursor().copy(_sql(_COPY, number)) as copy:
                for (turn, time), vector in zip(fresh, vectors, strict=True):
                    audience = audiences[turn.audience]
                    said = _words_of(turn)
                    tally.update((audience, word) for word in said)
                    copy.write_row(_values(turn, time, audience, said, vector))
            _count(db, number, tally, Counter(audiences[turn.audience] for turn, _ in fresh))
        return len(fresh)

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        """Remove turns; returns how many there were."""
        wanted = [storable(str(each)) for each in ids]
        with self._at_work() as db, db.transaction():
            number = _scope_number(db, scope)
            gone = [each for each, _ in _turns_of(db, number, wanted).values()]
            _drop(db, number, gone)
            return len(gone)

    def clear(self, scope: str, at_most: int | None = None) -> int:
        """Remove all turns of a scope, at once; returns how many there were."""
        with self._at_work() as db, db.transaction():
            number = _scope_number(db, scope)
            if not number:
                return 0
            gone = _count_of(db, number)
            db.execute(_sql("TRUNCATE {table}", number))
            for table in ("recall_words", "recall_audiences"):
                db.execute(f"DELETE FROM {table} WHERE scope = %s".encode(), [number])
            db.execute(_UNKNOWN_WORDS)
            return gone

    def set_filling(self, scope: str, filling: bool) -> None:
        """Note whether a scope is being filled, for a start after a crash."""
        with self._at_work() as db, db.transaction():
            number = _scope_number(db, scope, self._embedder.dims)
            db.execute("UPDATE recall_scopes SET filling = %s WHERE number = %s", [filling, number])

    def is_filling(self, scope: str) -> bool:
        """Whether the filling of a scope began and has not ended."""
        with self._at_work() as db:
            sql = "SELECT filling FROM recall_scopes WHERE name = %s"
            row = db.execute(sql, [scope]).fetchone()
            return bool(row and row[0])

    def count(self, scope: str) -> int:
        """How many turns a scope has."""
        with self._at_work() as db:
            return _count_of(db, _scope_number(db, scope))

    def get(self, scope: str, ids: Iterable[str]) -> tuple[Turn, ...]:
        """Turns by id, in the order asked, without unknown ids."""
        wanted = [storable(str(each)) for each in ids]
        with self._at_work() as db:
            found = _turns_of(db, _scope_number(db, scope), wanted)
        return tuple(found[each][1] for each in wanted if each in found)

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> list[Hit]:
        """At most `limit` turns that answer a query, best first. As `RecallIndex.search`."""
        with self._at_work() as db:
            number = _scope_number(db, scope)
            if not number or limit <= 0:
                return []
            sql = "SELECT number, audience, turns FROM recall_audiences WHERE scope = %s"
            asker = None if audience is None else viewer(audience)
            known = {
                each: (name, turns)
                for each, name, turns in db.execute(sql, [number])
                if turns and (asker is None or visible(name, asker))
            }
            shown, total = list(known), sum(turns for _, turns in known.values())
            if not total:
                return []
            parsed = parsed_query(str(query), _speakers(db, number, shown))
            if not (parsed.content or parsed.asked):
                return []
            self._read_vocabulary(db)
            values: dict[str, Any] = {"shown": shown}
            if total > WHOLE:
                values["numbers"] = self._promising(db, number, shown, parsed, total)
            chosen = _sql(_CHOSEN if total > WHOLE else _ALL, number)
            with db.cursor(binary=True) as cursor:
                rows = [_row(each, known[each[7]][0]) for each in cursor.execute(chosen, values)]
            return ranked(rows, parsed, limit, self._embedder, self._vocabulary, self._model)

    def _promising(
        self, db: Connection, scope: int, shown: Sequence[int], query: ParsedQuery, total: int
    ) -> list[int]:
        """Numbers of the turns that are worth a look, and of their neighbours."""
        vectors = np.asarray(self._embedder.embed([query.text, *query.content]))
        counted = partial(_counts, db, scope, shown)
        wanted, rarity = wanted_of(query, vectors[1:], self._vocabulary, total, counted)
        words_asked = {
            "asked": [each.tsquery for each in wanted],
            "weights": [each.weight for each in wanted],
            "most": [each.most for each in wanted],
        }
        limits = {"shown": shown, "limit": BY_WORDS}
        found = _numbers(db, _sql(_BY_WORDS, scope), {**words_asked, **limits})
        exactly = "+ 0" if _count_of(db, scope) <= EXACT else ""
        sql = _sql(_BY_VECTOR.replace("{exactly}", exactly), scope, self._embedder.dims)
        limits |= {"limit": BY_VECTOR, "bits": BY_BITS}
        for vector in (vectors[0], (vectors[1:] * rarity[:, None]).sum(axis=0)):
            if vector.any():
                asked = _halfvec(quantised(vector[None])[0])
                found |= _numbers(db, sql, {**limits, "vector": asked})
        around = {"shown": shown, "numbers": list(found)}
        return sorted(_numbers(db, _sql(_AROUND, scope), around))

    def _read_vocabulary(self, db: Connection) -> None:
        """Learn the words that anybody said since the last search."""
        sql = "SELECT number, word FROM recall_vocabulary WHERE number > %s ORDER BY number"
        if rows := db.execute(sql, [self._words_until]).fetchall():
            self._vocabulary.numbers(word for _, word in rows)
            self._words_until = rows[-1][0]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()


def _make_tables(db: Connection, dims: int) -> None:
    """Make the tables if there are none, or those there are do not fit."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
        known = db.execute("SELECT to_regclass('recall_schema')").fetchone()
        if known and known[0]:
            row = db.execute("SELECT version, dims FROM recall_schema").fetchone()
            if row == (SCHEMA_VERSION, dims):
                return
            for (scope,) in db.execute("SELECT number FROM recall_scopes").fetchall():
                db.execute(_sql("DROP TABLE {table}", scope))
            db.execute(_DROP)
        db.execute(TABLES.format(dims=dims).encode())
        db.execute("INSERT INTO recall_schema VALUES (%s, %s)", [SCHEMA_VERSION, dims])


def _scope_number(db: Connection, name: str, dims: int = 0) -> int:
    """The number of a scope; 0 if there is none.

    For writers, who give the length of vectors: it is made if missing, and they wait for others.
    """
    lock = " FOR UPDATE" if dims else ""
    sql = f"SELECT number FROM recall_scopes WHERE name = %s{lock}".encode()
    row = db.execute(sql, [name]).fetchone()
    if row is None and dims:
        db.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
        db.execute("INSERT INTO recall_scopes (name) VALUES (%s) ON CONFLICT DO NOTHING", [name])
        row = db.execute(sql, [name]).fetchone()
        assert row is not None, "it was inserted"
        table = "CREATE TABLE IF NOT EXISTS {table} (LIKE recall_turns INCLUDING ALL)"
        if db.execute("SELECT to_regclass(%s)", [f"recall_turns_{row[0]}"]).fetchone() == (None,):
            db.execute(_sql(table + ";" + INDEXES, row[0], dims))
    return int(row[0]) if row else 0


def _audience_numbers(
    db: Connection, scope: int, audiences: Iterable[str | None]
) -> dict[str | None, int]:
    """Numbers of audiences in a scope, made if missing."""
    wanted = sorted(set(map(str, audiences)))
    db.execute(
        "INSERT INTO recall_audiences (scope, audience) SELECT %s, unnest(%s::text[]) "
        "ON CONFLICT DO NOTHING",
        [scope, wanted],
    )
    sql = "SELECT audience, number FROM recall_audiences WHERE scope = %s AND audience = ANY(%s)"
    return dict(db.execute(sql, [scope, wanted]).fetchall())


def _turns_of(db: Connection, scope: int, ids: Sequence[str]) -> dict[str, tuple[int, Turn]]:
    """Number and turn by id; unknown ids are left out."""
    if not scope:
        return {}
    sql = (
        "SELECT t.number, id, speaker, text, at, session, a.audience, kind FROM {table} AS t "
        "JOIN recall_audiences AS a ON a.number = t.audience WHERE key = ANY(%s)"
    )
    rows = db.execute(_sql(sql, scope), [[*map(_key, ids)]])
    return {
        turn_id: (number, Turn(turn_id, speaker, text, json.loads(at), session, audience, kind))
        for number, turn_id, speaker, text, at, session, audience, kind in rows
    }


def _drop(db: Connection, scope: int, numbers: Sequence[int]) -> None:
    """Delete turns, and their words from the statistics."""
    if not numbers:
        return
    sql = "DELETE FROM {table} WHERE number = ANY(%s) RETURNING audience, tsvector_to_array(words)"
    rows = db.execute(_sql(sql, scope), [list(numbers)]).fetchall()
    tally = Counter((audience, word) for audience, said in rows for word in said)
    listed = sorted(tally.items())
    columns = [[a for (a, _), _ in listed], [w for (_, w), _ in listed], [n for _, n in listed]]
    db.execute(_UNCOUNT_WORDS, [*columns, scope])
    db.execute("DELETE FROM recall_words WHERE scope = %s AND turns <= 0", [scope])
    db.execute(_UNKNOWN_WORDS + " AND v.word = ANY(%s)", [sorted(set(columns[1]))])
    _count_turns(db, Counter({audience: -n for audience, n in Counter(a for a, _ in rows).items()}))


def _count(
    db: Connection, scope: int, tally: Mapping[tuple[int, str], int], turns: Mapping[int, int]
) -> None:
    """Add words and turns to the statistics; sorted, so that two writers never wait in a ring."""
    listed = sorted(tally.items())
    columns = [[a for (a, _), _ in listed], [w for (_, w), _ in listed], [n for _, n in listed]]
    counted = db.execute(_COUNT_WORDS, [scope, *columns]).fetchall()
    new = sorted({word for word, is_new in counted if is_new and not word.startswith(SPEAKER)})
    db.execute(
        "INSERT INTO recall_vocabulary (word) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING",
        [new],
    )
    _count_turns(db, turns)


def _count_turns(db: Connection, turns: Mapping[int, int]) -> None:
    sql = "UPDATE recall_audiences SET turns = turns + %s WHERE number = %s"
    db.cursor().executemany(sql, [(more, number) for number, more in sorted(turns.items())])


def _count_of(db: Connection, scope: int) -> int:
    sql = "SELECT coalesce(sum(turns), 0) FROM recall_audiences WHERE scope = %s"
    [count] = db.execute(sql, [scope]).fetchone() or (0,)
    return int(count)


def _speakers(db: Connection, scope: int, shown: Sequence[int]) -> Speakers:
    """Who speaks in turns of some audiences."""
    low, high = SPEAKER, chr(ord(SPEAKER) + 1)
    sql = (
        "SELECT DISTINCT substr(word, 2) FROM recall_words "
        "WHERE scope = %s AND audience = ANY(%s) AND word >= %s AND word < %s"
    )
    return Speakers(name for (name,) in db.execute(sql, [scope, list(shown), low, high]))


def _counts(
    db: Connection, scope: int, shown: Sequence[int], asked: Sequence[str]
) -> dict[str, int]:
    """In how many turns of some audiences words stand."""
    sql = (
        "SELECT word, sum(turns)::bigint FROM recall_words WHERE scope = %s AND audience = ANY(%s) "
        "AND word = ANY(%s) GROUP BY word"
    )
    return dict(db.execute(sql, [scope, list(shown), list(asked)]).fetchall())


def _numbers(db: Connection, sql: bytes, values: Mapping[str, Any]) -> set[int]:
    return {number for (number,) in db.execute(sql, values)}


def _sql(text: str, scope: int, dims: int = 0) -> bytes:
    """A statement for the table of a scope."""
    return text.format(table=f"recall_turns_{scope}", dims=dims).encode()


def _cleaned(turn: Turn) -> tuple[Turn, float]:
    """A turn of fields that a database takes, and its time in seconds."""
    session = None if turn.session is None else _text(turn.session)
    fields = (_text(turn.id), _text(turn.speaker), _text(turn.text), stored_moment(turn.at))
    audience, kind = normalised(turn.audience), _text(turn.kind)
    return Turn(*fields, session, audience, kind), seconds(turn.at)


def _text(value: object) -> str:
    return "" if value is None else storable(str(value))


def _key(turn_id: str) -> str:
    if len(turn_id) <= _LONGEST_ID:
        return turn_id
    return turn_id[:_LONGEST_ID] + sha256(turn_id.encode()).hexdigest()


def _words_of(turn: Turn) -> list[str]:
    """The words of a turn and who said it, as they are stored and counted."""
    said = dict.fromkeys(word[:LONGEST] for word in words(turn.text))
    return [*said, speaker_word(turn.speaker)]


def _values(
    turn: Turn, time: float, audience: int, said: Sequence[str], vector: Floats
) -> tuple[Any, ...]:
    at = json.dumps(turn.at)
    fields = (_key(turn.id), turn.id, turn.speaker, turn.text, at, time, turn.session)
    lexemes = " ".join(map(lexeme, said))
    traits = packed_traits(turn.text)
    return (*fields, audience, turn.kind, traits, lexemes, _halfvec(vector))


def _halfvec(numbers: Floats) -> str:
    """Whole numbers as pgvector reads them; a half holds each of them exactly."""
    return f"[{','.join(map(str, numbers.astype(int).tolist()))}]"


def _row(found: Sequence[Any], audience: str) -> Row:
    """A row as `store.Store` gives it."""
    number, turn_id, speaker, text, at, time, session, _, kind, traits, vector = found
    # pgvector sends two lengths of two bytes, then a half for each dimension.
    packed = np.frombuffer(vector, dtype=">f2", offset=4).astype(np.int8).tobytes()
    at = json.loads(at)
    return (number, turn_id, speaker, text, at, time, session, audience, kind, traits, packed)
