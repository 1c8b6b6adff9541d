"""A container of 100,000 blobs: a page of it reads as many rows as it shows, wherever it begins."""

from pathlib import Path

import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs.records import decode_blob, decode_container
from kyanite.model.records import encode
from kyanite.services.blob.service import blob_service
from kyanite.services.console.service import Console
from kyanite.wire.http import Request
from tests.console.consoles import console_of
from tests.model.counted import CountingEngine, unlimited
from tests.services.harness import ACCOUNT, BytesBody, Harness

COUNT = 100_000


async def page_of(console: Console, query: str) -> str:
    request = Request(
        "GET", "/blobs", query, {"host": "127.0.0.1"}, [], BytesBody(b""), "127.0.0.1", False, 10010
    )
    response = await console(request)
    assert response.status == 200
    assert isinstance(response.body, bytes)
    return response.body.decode()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


async def test_a_page_of_many_blobs_reads_few_rows(harness: Harness) -> None:
    engine = CountingEngine(clock=harness.clock)
    harness.use_store(blob_service, engine=engine)
    await harness("PUT", "/many?restype=container")
    await harness("PUT", "/many/000000", {"x-ms-blob-type": "BlockBlob"}, b"1")

    def body(tx: Transaction) -> None:
        stored = tx.get(keys.container(ACCOUNT.name, "many"))
        assert stored is not None
        container_id = decode_container(stored).id
        first = tx.get(keys.blob(container_id, "000000"))
        assert first is not None
        record = encode(decode_blob(first))
        for number in range(COUNT):
            tx.put(keys.blob(container_id, f"{number // 1000:03}/{number:06}"), record)

    with unlimited():
        await engine.run(body)
    console = console_of(harness)
    where = f"account={ACCOUNT.name}&container=many"
    for query, rows in {
        f"{where}": 600,
        f"{where}&flat=1": 110,
        f"{where}&prefix=050/": 600,
        f"{where}&flat=1&prefix=0999": 110,
        f"{where}&flat=1&versions=1&snapshots=1&deleted=1": 230,
    }.items():
        before = len(engine.costs)
        page = await page_of(console, query)
        assert page.count("<tr") <= 102
        assert sum(engine.costs[before:]) <= rows, query
        if 'rel="next"' in page:
            link = page.split('rel="next" href="/blobs?')[1].partition('"')[0].replace("&amp;", "&")
            before = len(engine.costs)
            await page_of(console, link)
            assert sum(engine.costs[before:]) <= rows, link
