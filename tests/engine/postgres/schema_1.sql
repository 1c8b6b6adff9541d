-- What version 1 made, for the test of the upgrade.
CREATE TABLE schema_version (version int NOT NULL);
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

CREATE FUNCTION clock_ticks() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint + 621355968000000000 $$;

CREATE FUNCTION commit_batch(
    given_batch bytea, finished_batch bytea, is_durable boolean, has_long boolean,
    read_keys bytea[], read_versions bigint[],
    lows bytea[], highs bytea[], hashes bytea[],
    first_given bigint, last_given bigint,
    put_keys bytea[], put_values bytea[], delete_keys bytea[],
    channel text, payloads text[],
    OUT status int, OUT last bigint, OUT clock bigint)
LANGUAGE plpgsql VOLATILE AS $body$
DECLARE payload text;
BEGIN
    -- Every statement after this one has a snapshot of its own, and so sees what the last holder committed.
    PERFORM pg_advisory_xact_lock(1803116910, hashtext(channel));
    last := (SELECT last_value FROM last_instant);
    clock := clock_ticks();
    IF first_given <= last THEN
        status := 1;
        RETURN;
    END IF;
    IF EXISTS (
        SELECT FROM unnest(read_keys, read_versions) q(key, version) LEFT JOIN kv s ON s.key = q.key
        WHERE s.version IS DISTINCT FROM q.version AND (NOT has_long OR length(q.key) <= 2000)
    ) OR (has_long AND EXISTS (
        SELECT FROM unnest(read_keys, read_versions) q(key, version)
            LEFT JOIN kv_long s ON s.hash = sha256(q.key)
        WHERE s.version IS DISTINCT FROM q.version AND length(q.key) > 2000
    )) OR (cardinality(lows) > 0 AND EXISTS (
        SELECT FROM unnest(lows, highs, hashes) q(low, high, hash) WHERE q.hash IS DISTINCT FROM (
    SELECT sha256(coalesce(
        string_agg(int8send(r.version) || int4send(length(r.key)) || r.key, ''::bytea ORDER BY r.key), ''))
    FROM (
        SELECT key, version FROM kv WHERE key >= q.low AND key < q.high
        UNION ALL
        SELECT key, version FROM kv_long
        WHERE head >= substring(q.low for 2000) AND head <= substring(q.high for 2000)
            AND key >= q.low AND key < q.high
    ) r
)
    )) THEN
        status := 2;
        RETURN;
    END IF;
    INSERT INTO batch (number) VALUES (given_batch);
    DELETE FROM batch WHERE number = finished_batch;
    IF NOT is_durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF cardinality(put_keys) > 0 THEN
        INSERT INTO kv (key, version, value)
        SELECT q.key, last_given, q.value FROM unnest(put_keys, put_values) q(key, value)
        WHERE NOT has_long OR length(q.key) <= 2000
        ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value;
    END IF;
    IF cardinality(delete_keys) > 0 THEN
        DELETE FROM kv WHERE key = ANY(delete_keys);
    END IF;
    IF has_long THEN
        INSERT INTO kv_long (hash, head, key, version, value)
        SELECT sha256(q.key), substring(q.key for 2000), q.key, last_given, q.value
        FROM unnest(put_keys, put_values) q(key, value) WHERE length(q.key) > 2000
        ON CONFLICT (hash) DO UPDATE SET version = excluded.version, value = excluded.value;
        DELETE FROM kv_long WHERE hash IN (SELECT sha256(q.key) FROM unnest(delete_keys) q(key));
    END IF;
    PERFORM setval('last_instant', last_given);
    FOREACH payload IN ARRAY payloads LOOP
        PERFORM pg_notify(channel, payload);
    END LOOP;
    last := last_given;
    status := 0;
END $body$;
INSERT INTO schema_version VALUES (1);
