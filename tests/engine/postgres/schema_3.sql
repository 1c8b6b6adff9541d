-- What version 3 made, for the test of the upgrade.
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

ALTER TABLE batch ADD last bigint, ADD written bigint[], ADD read bigint[], ADD parts bytea[], ADD lows bytea[],
    ADD highs bytea[];
ALTER TABLE batch ALTER written SET STORAGE EXTERNAL, ALTER read SET STORAGE EXTERNAL,
    ALTER parts SET STORAGE EXTERNAL, ALTER lows SET STORAGE EXTERNAL, ALTER highs SET STORAGE EXTERNAL;
ALTER TABLE batch SET (toast_tuple_target = 8160, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ON batch (last);

CREATE FUNCTION clock_ticks() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint + 621355968000000000 $$;

CREATE FUNCTION have_common(these bigint[], those bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT AS $body$
BEGIN
    -- Comparing each with each needs no plan of its own, and takes less time while there are few.
    IF cardinality(these)::bigint * cardinality(those) < 20000 THEN
        RETURN these && those;
    END IF;
    RETURN EXISTS (SELECT unnest(these) INTERSECT SELECT unnest(those));
END $body$;

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
    status := length(pg_advisory_xact_lock(1803116910, hashtext(channel))::text);
    clock := clock_ticks();
    SELECT l.last_value, c.numbers, c.versions, c.contents
    INTO last, changed, changed_versions, changed_values
    FROM last_instant l, (
        SELECT array_agg(q.number) AS numbers, array_agg(s.version) AS versions, array_agg(s.value) AS contents
        FROM unnest(read_keys, read_versions) WITH ORDINALITY q(key, version, number)
            LEFT JOIN kv s ON s.key = q.key
        WHERE s.version IS DISTINCT FROM q.version AND (NOT has_long OR length(q.key) <= 2000)
    ) c;
    -- Others have used later instants. That does no harm, unless they have read or written what this batch writes, or
    -- written what it reads.
    IF first_given <= last THEN
        IF first_given <= last - 10000000 OR EXISTS (
            SELECT FROM batch b WHERE b.last >= first_given AND (
                have_common(b.written, written_hashes || read_hashes) OR have_common(b.read, written_hashes)
                OR (low_parts <> '{}' AND EXISTS (
                    SELECT FROM unnest(b.parts) part, unnest(low_parts, high_parts) r(low, high)
                    WHERE part BETWEEN r.low AND r.high))
                OR (b.lows <> '{}' AND EXISTS (
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
        WHERE s.version IS DISTINCT FROM q.version AND length(q.key) > 2000;
    END IF;
    IF changed IS NOT NULL THEN
        status := 2;
        RETURN;
    END IF;
    IF cardinality(lows) > 0 THEN
        IF EXISTS (
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
    last := setval('last_instant', greatest(last, last_given));
    FOREACH payload IN ARRAY payloads LOOP
        PERFORM pg_notify(channel, payload);
    END LOOP;
    status := 0;
END $body$;
INSERT INTO schema_version VALUES (3);
