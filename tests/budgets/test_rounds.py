"""How often a hot operation may wait for an answer of the engine, with the commit.

``ROUNDS`` holds for every engine: reads of a body that depend on one another, each of which is a round trip for a
request that is alone, if the engine does not know the rows yet. The process has served the same directory before, and
guesses by that which rows a path leads through. ``python -m bench.rounds`` shows what each of them reads.
``ROUND_TRIPS`` are those that the PostgreSQL engine makes when it knows rows of earlier requests: of the container, the
queue, the table, the directories. It guesses by what was seen last, and validates.
"""

from pathlib import Path

import uvloop
from bench.costs import Clock
from bench.in_process import InProcess

from bench import rounds
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from tests.postgres_server import PostgresServer

ROUNDS = {
    "Put Blob, 1 KiB": 3,
    "Get Blob, 1 KiB": 3,
    "Put Blob, If-Match": 3,
    "Lease Blob, acquire": 3,
    "Lease Blob, renew": 3,
    "Lease Blob, release": 3,
    "Put Blob, 64 KiB": 3,
    "Put Blob, 1 MiB": 3,
    "Get Blob, 1 MiB": 3,
    # The first of a blob. Others look for a block of the same id, which is one more.
    "Put Block": 3,
    "Put Block, 4 MiB": 3,
    "Put Block List": 4,
    "Put Message": 3,
    "Get Messages": 3,
    "Update Message": 3,
    "Delete Message": 3,
    "Insert Entity": 3,
    "Query Entities, by keys": 2,
    "Merge Entity": 3,
    "batch of 100 inserts": 3,
    "Create File": 3,
    "Put Range, 1 KiB": 3,
    "Get File, 1 KiB": 3,
    # All rows of a path are read at once, by a guess of where it leads (model/files/guesses.py).
    "Create File, depth 4": 3,
    "Put Range, depth 4": 3,
    "Get File, depth 4": 3,
    # The rows of the path, the entries, and which of them are marked for deletion.
    "List Files, depth 4": 3,
    # Every name of the path has changed since. The rows that were preserved are guessed as well.
    "Get File, snapshot, depth 4": 2,
    "Get File Properties, snapshot": 1,
    # What was preserved is merged with what has not changed.
    "List Files, snapshot, depth 4": 3,
    "Lease Blob, change": 3,
    "Lease Blob, break": 3,
    "Lease Container, acquire": 2,
    "Lease Container, change": 2,
    "Lease Container, break": 2,
    "List Containers": 1,
    "List Blobs, 1": 2,
    "List Queues": 1,
    "Query Tables": 1,
    "List Shares": 1,
    # The embedded engine begins a long read anew after its first step.
    "List Blobs, 5,000": 4,
    "List Blobs, 100 by prefix": 2,
    # Folders are skipped by one scan, however many there are.
    "List Blobs, 20 folders": 2,
    "List Blobs, 200 folders": 2,
    # The embedded engine begins a long read anew after its first step.
    "List Blobs, 600 folders": 4,
    "Query Entities, 1,000": 2,
}


def test_operations_keep_to_their_rounds() -> None:
    counted = rounds.totals()
    assert counted.keys() == ROUNDS.keys()
    assert {name: count for name, count in counted.items() if count > ROUNDS[name]} == {}


ROUND_TRIPS = {
    "Put Blob, 1 KiB": 2,
    "Get Blob, 1 KiB": 1,
    "Put Blob, If-Match": 1,
    "Lease Blob, acquire": 1,
    "Lease Blob, renew": 1,
    "Lease Blob, release": 1,
    "Put Blob, 64 KiB": 2,
    "Put Blob, 1 MiB": 2,
    "Get Blob, 1 MiB": 2,
    "Put Block": 2,
    "Put Block, 4 MiB": 2,
    "Put Block List": 1,
    "Put Message": 2,
    "Get Messages": 2,
    "Update Message": 1,
    "Delete Message": 2,
    "Insert Entity": 2,
    "Query Entities, by keys": 1,
    "Merge Entity": 1,
    "batch of 100 inserts": 2,
    "Create File": 3,
    "Put Range, 1 KiB": 2,
    "Get File, 1 KiB": 2,
    "Create File, depth 4": 3,
    "Put Range, depth 4": 2,
    "Get File, depth 4": 2,
    "List Files, depth 4": 2,
    "Get File, snapshot, depth 4": 2,
    "Get File Properties, snapshot": 1,
    # The first of this snapshot.
    "List Files, snapshot, depth 4": 4,
    "Lease Blob, change": 1,
    "Lease Blob, break": 1,
    "Lease Container, acquire": 1,
    "Lease Container, change": 1,
    "Lease Container, break": 1,
    "List Containers": 1,
    "List Blobs, 1": 1,
    "List Queues": 1,
    "Query Tables": 1,
    "List Shares": 1,
    # One finds that there are more rows than a step has; one fetches all, in a snapshot of its own.
    "List Blobs, 5,000": 2,
    "List Blobs, 100 by prefix": 1,
    "List Blobs, 20 folders": 1,
    "List Blobs, 200 folders": 1,
    # As of 5,000 blobs.
    "List Blobs, 600 folders": 2,
    "Query Entities, 1,000": 1,
}


class RoundTrips:
    """The statements of an engine, each of which is a round trip."""

    calls = ()

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._before = 0

    def _all(self) -> int:
        counters = self._engine.counters()
        return sum(counters[kind] for kind in ("write_statements", "read_statements", "long_read_statements"))

    def clear(self) -> None:
        self._before = self._all()

    @property
    def total(self) -> int:
        return self._all() - self._before


def test_postgresql_needs_few_round_trips(postgres_server: PostgresServer, tmp_path: Path) -> None:
    async def main() -> dict[str, int]:
        engine = PostgresEngine(parse(postgres_server.new_schema_url()))
        services = InProcess(tmp_path, Clock(), engine=engine)
        measured = rounds.RoundCosts(services, RoundTrips(engine))
        await rounds.run(measured, services)
        return measured.totals

    counted = uvloop.run(main())
    assert counted.keys() == ROUND_TRIPS.keys()
    assert {name: count for name, count in counted.items() if count > ROUND_TRIPS[name]} == {}
