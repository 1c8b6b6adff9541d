"""A queue that is used for hours leaves dead rows at its head. They must not make it slower for long."""

import asyncio
import json
import time
from collections.abc import Callable

from kyanite.engine.api import Transaction
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from tests.postgres_server import PostgresServer
from tests.profiles import examples

CLIENTS = 64
HEAD_PAGES = 25
"""What a scan for the first row may touch: the levels of the index, its own row, and some pages that are new since."""
VACUUM_SECONDS = 60


def first_row_plan(server: PostgresServer, schema: str) -> int:
    """How many pages it takes to find the first message."""
    found = server.sql(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
        f"SELECT key, value FROM {schema}.kv WHERE key >= 'q' AND key < 'r' ORDER BY key LIMIT 1"
    )
    plan = json.loads(found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def cycle(name: bytes) -> Callable[[Transaction], bytes]:
    """Put a message at the end of the queue, and take the first one."""

    def body(tx: Transaction) -> bytes:
        tx.put(b"q%020d" % tx.now, name)
        ((key, value),) = tx.scan(b"q", b"r", limit=1)
        tx.delete(key)
        return value

    return body


async def test_dead_rows_at_the_head_of_a_queue(postgres_server: PostgresServer) -> None:
    cycles = examples(6_000)
    url = postgres_server.new_schema_url()
    schema = url.partition("schema=")[2]
    engine = PostgresEngine(parse(url))

    def fill(tx: Transaction) -> None:
        for number in range(100):
            tx.put(b"q%020d" % number, b"%d" % number)

    await engine.run(fill)

    async def client(number: int) -> None:
        for count in range(cycles // CLIENTS):
            await engine.run(cycle(b"%d-%d" % (number, count)))

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    assert len(await engine.read(lambda snap: list(snap.scan(b"q", b"r")))) == 100
    await engine.close()
    # The database removes dead rows by itself, because of the settings of the table: nothing here asks for it.
    deadline = time.monotonic() + VACUUM_SECONDS
    while (pages := first_row_plan(postgres_server, schema)) > HEAD_PAGES and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
    assert pages <= HEAD_PAGES
    vacuums = (
        f"SELECT autovacuum_count FROM pg_stat_user_tables WHERE schemaname = '{schema}' AND relname = 'kv'"
    )
    while postgres_server.sql(vacuums) == "0" and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
    assert int(postgres_server.sql(vacuums)) >= 1
