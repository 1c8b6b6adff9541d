"""Bodies that skip parts of a range fetch about as much as they use, and what they fetch is of one state."""

from functools import partial

import pytest
from xxhash import xxh3_64_digest

from kyanite.engine.api import STEP_ROWS, Snapshot, Steps, Transaction
from kyanite.engine.postgres.address import parse
from kyanite.engine.postgres.engine import PostgresEngine
from kyanite.engine.postgres.long_reads import SnapshotRows
from tests.postgres_server import PostgresServer

FOLDERS = 200


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each statement of a long read fetches."""
    counts: list[int] = []
    fetch_range = SnapshotRows._fetch_range

    def counted(self: SnapshotRows, wanted: object) -> object:
        found = fetch_range(self, wanted)  # type: ignore[arg-type]
        counts.append(len(found[1]))
        return found

    monkeypatch.setattr(SnapshotRows, "_fetch_range", counted)
    return counts


def folders(snap: Snapshot) -> Steps[list[bytes]]:
    """The first row of each folder, found by a seek behind the one before."""
    found: list[bytes] = []
    start = b"f"
    while row := next(snap.scan(start, b"g", limit=1), None):
        found.append(row[0])
        start = row[0][:4] + b"0"  # What follows the slash.
        if len(found) % (STEP_ROWS // 16) == 0:
            yield
    return found


@pytest.mark.parametrize(
    ("in_each", "statements_max", "rows_max"), [(100, FOLDERS + 40, 1_200), (4, 20, 1_000)]
)
async def test_folders_are_skipped(
    postgres_server: PostgresServer,
    fetched: list[int],
    in_each: int,
    statements_max: int,
    rows_max: int,
) -> None:
    """Of long folders hardly more than a row each is fetched, of short ones many at a time. The first step
    runs once more than the others."""
    engine = PostgresEngine(parse(postgres_server.new_schema_url()))

    def fill(tx: Transaction, folder: int) -> None:
        for number in range(in_each):
            tx.put(b"f%03d/%03d" % (folder, number), bytes(100))

    for folder in range(FOLDERS):
        await engine.run(partial(fill, folder=folder))
    found = await engine.read_in_steps(folders)
    await engine.close()
    assert found == [b"f%03d/000" % folder for folder in range(FOLDERS)]
    assert 0 < len(fetched) <= statements_max
    assert sum(fetched) <= rows_max


async def test_groups_that_have_changed_before_a_row_was_read(postgres_server: PostgresServer) -> None:
    """The row is known from a later state than the groups: another process has committed, and another read has seen
    that."""
    url = postgres_server.new_schema_url()
    schema = parse(url).schema
    engine = PostgresEngine(parse(url))
    runs = 0

    def fill(tx: Transaction) -> None:
        tx.put(b"a/1", b"")
        tx.put(b"count", b"1")

    def commit_elsewhere() -> None:
        version = int(postgres_server.sql(f"SELECT max(version) + 1 FROM {schema}.kv"))
        for key, value in ((b"b/1", b""), (b"count", b"2")):
            stored = (xxh3_64_digest(key + value) + value).hex()
            postgres_server.sql(
                f"INSERT INTO {schema}.kv VALUES (decode('{key.hex()}', 'hex'), {version},"
                f" decode('{stored}', 'hex')) ON CONFLICT (key)"
                " DO UPDATE SET version = excluded.version, value = excluded.value"
            )
        engine._guesses.keep(b"count", (version, b"2"))

    def body(snap: Snapshot) -> tuple[int, bytes | None]:
        nonlocal runs
        groups = list(snap.scan_groups(b"a", b"c", inside=0, delimiter=b"/", limit=9))
        runs += 1
        if runs == 1:
            commit_elsewhere()
        return len(groups), snap.get(b"count")

    try:
        await engine.run(fill)
        assert await engine.read(body) == (2, b"2")
    finally:
        await engine.close()


async def test_rows_of_groups_that_do_not_fit_into_one_answer(postgres_server: PostgresServer) -> None:
    """What is fetched at a time is bounded by bytes."""
    engine = PostgresEngine(parse(postgres_server.new_schema_url()))
    value = bytes(512 * 1024)

    def fill(tx: Transaction, number: int) -> None:
        tx.put(b"%02d" % number if number % 3 else b"%02d/1" % number, value)

    def scan(snap: Snapshot) -> int:
        rows = list(snap.scan_groups(b"0", b"9", inside=0, delimiter=b"/", limit=100))
        assert all(each == value for _, each in rows)
        return len(rows)

    try:
        for number in range(30):
            await engine.run(partial(fill, number=number))
        before = engine.round_trips
        assert await engine.read(scan) == 30
        assert engine.round_trips - before == 4
    finally:
        await engine.close()
