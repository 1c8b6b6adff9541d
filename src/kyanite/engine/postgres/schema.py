"""The tables and functions in the database, made and upgraded by whichever process connects first.

``kv`` holds the rows. Each has the version that its last commit gave it: the last instant of that batch, so a version
says all about a value. An index entry of PostgreSQL has room for about 2,700 bytes, so rows with longer keys are in
``kv_long``, found by the hash of the key or, in scans, by the first bytes of it.

``last_instant`` is a sequence and not a row, since it changes with every batch: a row would leave a dead version behind
each time, and those stay as long as one reader is slow. It may be ahead of what is committed, never behind.

``batch`` has the batches that were committed lately. A process that lost the connection during a commit inserts the
number of its batch: if it is there the batch was committed; if not, it was not, and never will be (``writer.py``).
The other columns say what it has read and written (``order.py``), for batches with earlier instants that come later.
"""

import asyncpg

from kyanite.engine.api import EngineError
from kyanite.values import UNIX_EPOCH

VERSION = 4
MAX_SHORT_KEY_BYTES = 2_000
_LOCK = 0x6B79616E  # Any number, the same for all.
LATE_TICKS_MAX = 10_000_000
"""Instants of a batch may be earlier by this much than the last one that was used. Batches are kept twice as long."""

_CLOCK = f"""
CREATE FUNCTION clock_ticks() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint + {UNIX_EPOCH} $$;
"""

RANGE_HASH = f"""
    SELECT sha256(coalesce(
        string_agg(int8send(r.version) || int4send(length(r.key)) || r.key, ''::bytea ORDER BY r.key), ''))
    FROM (
        SELECT key, version FROM kv WHERE key >= q.low AND key < q.high
        UNION ALL
        SELECT key, version FROM kv_long
        WHERE head >= substring(q.low for {MAX_SHORT_KEY_BYTES}) AND head <= substring(q.high for {MAX_SHORT_KEY_BYTES})
            AND key >= q.low AND key < q.high
    ) r
"""
"""Of the rows of a range ``q``: their keys and versions, in order."""

_TABLES = """
CREATE TABLE kv (key bytea PRIMARY KEY, version bigint NOT NULL, value bytea NOT NULL) WITH (
    fillfactor = 80, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE kv ALTER key SET STORAGE PLAIN, ALTER value SET STORAGE EXTERNAL;
CREATE TABLE kv_long (hash bytea PRIMARY KEY, head bytea NOT NULL, key bytea NOT NULL, version bigint NOT NULL,
    value bytea NOT NULL);
CREATE INDEX ON kv_long (head);
ALTER TABLE kv_long ALTER value SET STORAGE EXTERNAL;
CREATE TABLE batch (number bytea PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
CREATE SEQUENCE last_instant AS bigint MINVALUE 0 START 0 NO CYCLE;
"""

_FOOTPRINTS = """
ALTER TABLE batch ADD last bigint, ADD written bigint[], ADD read bigint[], ADD parts bytea[], ADD lows bytea[],
    ADD highs bytea[];
ALTER TABLE batch ALTER written SET STORAGE EXTERNAL, ALTER read SET STORAGE EXTERNAL,
    ALTER parts SET STORAGE EXTERNAL, ALTER lows SET STORAGE EXTERNAL, ALTER highs SET STORAGE EXTERNAL;
ALTER TABLE batch SET (toast_tuple_target = 8160, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ON batch (last);
"""

_HAVE_COMMON = """
CREATE FUNCTION have_common(these bigint[], those bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT AS $body$
BEGIN
    -- Comparing each with each needs no plan of its own, and takes less time while there are few.
    IF cardinality(these)::bigint * cardinality(those) < 20000 THEN
        RETURN these && those;
    END IF;
    RETURN EXISTS (SELECT unnest(these) INTERSECT SELECT unnest(those));
END $body$;
"""

_COMMIT = f"""
CREATE FUNCTION commit_batch(
    given_batch bytea, old_batches bytea[], is_durable boolean, has_long boolean,
    read_keys bytea[], read_versions bigint[],
    lows bytea[], highs bytea[], hashes bytea[],
    first_given bigint, last_given bigint,
    put_keys bytea[], put_values bytea[], delete_keys bytea[],
    channel text, payloads text[],
    written_hashes bigint[], read_hashes bigint[], written_parts bytea[], low_parts bytea[], high_parts bytea[],
    OUT status int, OUT last bigint, OUT clock bigint,
    OUT changed bigint[], OUT changed_versions bigint[], OUT changed_values bytea[])
LANGUAGE plpgsql VOLATILE AS $body$
DECLARE payload text;
BEGIN
    -- Every statement after this one has a snapshot of its own, and so sees what the last holder committed.
    -- Assignments of plain expressions take a tenth of what statements do.
    status := length(pg_advisory_xact_lock({_LOCK}, hashtext(channel))::text);
    clock := clock_ticks();
    SELECT l.last_value, c.numbers, c.versions, c.contents
    INTO last, changed, changed_versions, changed_values
    FROM last_instant l, (
        SELECT array_agg(q.number) AS numbers, array_agg(s.version) AS versions, array_agg(s.value) AS contents
        FROM unnest(read_keys, read_versions) WITH ORDINALITY q(key, version, number)
            LEFT JOIN kv s ON s.key = q.key
        WHERE s.version IS DISTINCT FROM q.version AND (NOT has_long OR length(q.key) <= {MAX_SHORT_KEY_BYTES})
    ) c;
    -- Others have used later instants. That does no harm, unless they have read or written what this batch writes, or
    -- written what it reads.
    IF first_given <= last THEN
        IF first_given <= last - {LATE_TICKS_MAX} OR EXISTS (
            SELECT FROM batch b WHERE b.last >= first_given AND (
                have_common(b.written, written_hashes || read_hashes) OR have_common(b.read, written_hashes)
                OR (low_parts <> '{{}}' AND EXISTS (
                    SELECT FROM unnest(b.parts) part, unnest(low_parts, high_parts) r(low, high)
                    WHERE part BETWEEN r.low AND r.high))
                OR (b.lows <> '{{}}' AND EXISTS (
                    SELECT FROM unnest(b.lows, b.highs) r(low, high), unnest(written_parts) part
                    WHERE part BETWEEN r.low AND r.high))))
        THEN
            status := 1;
            RETURN;
        END IF;
    END IF;
    IF has_long THEN
        SELECT changed || array_agg(q.number), changed_versions || array_agg(s.version),
            changed_values || array_agg(s.value)
        INTO changed, changed_versions, changed_values
        FROM unnest(read_keys, read_versions) WITH ORDINALITY q(key, version, number)
            LEFT JOIN kv_long s ON s.hash = sha256(q.key)
        WHERE s.version IS DISTINCT FROM q.version AND length(q.key) > {MAX_SHORT_KEY_BYTES};
    END IF;
    IF changed IS NOT NULL THEN
        status := 2;
        RETURN;
    END IF;
    IF cardinality(lows) > 0 THEN
        IF EXISTS (
            SELECT FROM unnest(lows, highs, hashes) q(low, high, hash) WHERE q.hash IS DISTINCT FROM ({RANGE_HASH})
        ) THEN
            status := 2;
            RETURN;
        END IF;
    END IF;
    INSERT INTO batch (number, last, written, read, parts, lows, highs)
    VALUES (given_batch, last_given, written_hashes, read_hashes, written_parts, low_parts, high_parts);
    IF cardinality(old_batches) > 0 THEN
        DELETE FROM batch WHERE number = ANY(old_batches);
    END IF;
    IF NOT is_durable THEN
        payload := set_config('synchronous_commit', 'off', true);
    END IF;
    IF cardinality(put_keys) > 0 THEN
        INSERT INTO kv (key, version, value)
        SELECT q.key, last_given, q.value FROM unnest(put_keys, put_values) q(key, value)
        WHERE NOT has_long OR length(q.key) <= {MAX_SHORT_KEY_BYTES}
        ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value;
    END IF;
    IF cardinality(delete_keys) > 0 THEN
        DELETE FROM kv WHERE key = ANY(delete_keys);
    END IF;
    IF has_long THEN
        INSERT INTO kv_long (hash, head, key, version, value)
        SELECT sha256(q.key), substring(q.key for {MAX_SHORT_KEY_BYTES}), q.key, last_given, q.value
        FROM unnest(put_keys, put_values) q(key, value) WHERE length(q.key) > {MAX_SHORT_KEY_BYTES}
        ON CONFLICT (hash) DO UPDATE SET version = excluded.version, value = excluded.value;
        DELETE FROM kv_long WHERE hash IN (SELECT sha256(q.key) FROM unnest(delete_keys) q(key));
    END IF;
    last := setval('last_instant', greatest(last, last_given));
    FOREACH payload IN ARRAY payloads LOOP
        PERFORM pg_notify(channel, payload);
    END LOOP;
    status := 0;
END $body$;
"""

_SCAN_GROUPS = f"""
CREATE FUNCTION scan_groups(
    low bytea, high bytea, inside int, delimiter bytea, behind bytea, rows_max bigint, bytes_max bigint)
RETURNS TABLE (found_key bytea, found_version bigint, found_value bytea)
LANGUAGE plpgsql STABLE AS $body$
DECLARE
    -- STABLE: all statements have the snapshot of the one that calls.
    stored refcursor;
    first bytea := low;
    cut int;
    at_a_time bigint := 1;
    taken bigint;
    has_long boolean := EXISTS (
        SELECT FROM kv_long WHERE head >= substring(low for {MAX_SHORT_KEY_BYTES})
            AND head <= substring(high for {MAX_SHORT_KEY_BYTES}));
BEGIN
    WHILE first < high AND rows_max > 0 LOOP
        IF has_long THEN
            OPEN stored FOR SELECT r.key, r.version, r.value FROM (
                (SELECT key, version, value FROM kv WHERE key >= first AND key < high ORDER BY key LIMIT at_a_time)
                UNION ALL (
                    SELECT key, version, value FROM kv_long
                    WHERE head >= substring(first for {MAX_SHORT_KEY_BYTES})
                        AND head <= substring(high for {MAX_SHORT_KEY_BYTES}) AND key >= first AND key < high
                    ORDER BY head, key LIMIT at_a_time)
            ) r ORDER BY r.key LIMIT at_a_time;
        ELSE
            OPEN stored FOR SELECT key, version, value FROM kv WHERE key >= first AND key < high
                ORDER BY key LIMIT at_a_time;
        END IF;
        taken := 0;
        cut := 0;
        LOOP
            FETCH stored INTO found_key, found_version, found_value;
            EXIT WHEN NOT FOUND;
            RETURN NEXT;
            taken := taken + 1;
            rows_max := rows_max - 1;
            bytes_max := bytes_max - length(found_key) - length(found_value);
            cut := position(delimiter IN substring(found_key FROM inside + 1));
            IF cut > 0 THEN
                first := substring(found_key FOR inside + cut - 1) || behind;
            ELSE
                first := found_key || '\\x00'::bytea;
            END IF;
            EXIT WHEN cut > 0 OR rows_max <= 0 OR bytes_max <= 0;
        END LOOP;
        CLOSE stored;
        IF rows_max <= 0 OR bytes_max <= 0 THEN
            -- There may be more, from this key on.
            found_key := first;
            found_version := NULL;
            found_value := NULL;
            RETURN NEXT;
            RETURN;
        END IF;
        IF cut > 0 THEN
            at_a_time := 1;
        ELSE
            EXIT WHEN taken < at_a_time;
            at_a_time := least(at_a_time * 8, 512);
        END IF;
    END LOOP;
END $body$;
"""
"""Skips groups of keys by seeks (``groups.py``), as many in one statement as the caller has room for."""

_OLD_BATCHES = "batch WHERE at < now() - interval '1 day'"
"""Of processes that have ended."""

_HAS_TABLES = (
    "SELECT true FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relname = 'schema_version'"
)

LOCK_STATEMENT = f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext('{{channel}}'))"


async def prepare(connection: asyncpg.Connection, schema: str) -> None:
    """Make the tables, or bring those of an older version up to date. Several processes may do this at once.

    ``schema`` is an identifier that needs no quotes.
    """
    if await _version(connection, schema) == VERSION:
        await connection.execute(f"DELETE FROM {schema}.{_OLD_BATCHES}")
        return
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK}, 0)")
        found = await _version(connection, schema)
        if found is None:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            await connection.execute(f"SET LOCAL search_path = {schema}")
            await connection.execute("CREATE TABLE schema_version (version int NOT NULL)")
            await connection.execute(_TABLES + _FOOTPRINTS + _CLOCK + _HAVE_COMMON + _COMMIT + _SCAN_GROUPS)
            await connection.execute(f"INSERT INTO schema_version VALUES ({VERSION})")
        elif found > VERSION:
            raise EngineError(
                f"The schema {schema} of the database has version {found}, and this version of Kyanite knows "
                f"version {VERSION} at most."
            )
        elif found in (1, 2, 3):
            # Processes of version 1 cannot commit any more: their batches would not be known to the others. Those of
            # version 2 can: they take no notice of what the function returns beside. To those of version 3 nothing
            # changes.
            await connection.execute(f"SET LOCAL search_path = {schema}")
            if found < 3:
                await connection.execute("DROP FUNCTION commit_batch")
                await connection.execute((_FOOTPRINTS if found == 1 else "") + _HAVE_COMMON + _COMMIT)
            await connection.execute(_SCAN_GROUPS)
            await connection.execute(f"UPDATE schema_version SET version = {VERSION}")
        elif found < VERSION:
            raise EngineError(f"The schema {schema} of the database has the unknown version {found}.")


async def _version(connection: asyncpg.Connection, schema: str) -> int | None:
    # to_regclass would answer from a cache, which may be older than the lock.
    if await connection.fetchval(_HAS_TABLES, schema) is None:
        return None
    found: int | None = await connection.fetchval(f"SELECT max(version) FROM {schema}.schema_version")
    return found
