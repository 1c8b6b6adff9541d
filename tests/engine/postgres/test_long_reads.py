"""Bodies that skip parts of a range fetch about as much as they use."""

from functools import partial

import pytest

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
