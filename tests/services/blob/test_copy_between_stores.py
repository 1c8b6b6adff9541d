"""Copies from an account in another store: with the blocks of the source, in steps that are short however many."""

import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from kyanite.engine.api import Transaction
from kyanite.extents.local.store import LocalExtents
from kyanite.model import keys
from kyanite.model.accounts import Account, Store
from kyanite.model.blobs import long_block_list, staged_blocks
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.block_list import From, NewBlockList
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.long_block_list import Pin
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.blobs.staged_blocks import NewBlock
from kyanite.model.content import spread
from kyanite.model.maintenance.tasks import step_each, steps
from kyanite.model.records import HttpHeaders
from kyanite.services.blob.service import blob_service
from kyanite.values import later
from tests.model.counted import CountingEngine
from tests.services.blob.test_copy import signature, source_url
from tests.services.harness import ACCOUNT, OTHER, Answer, Harness

T = TypeVar("T")

ROWS_MAX = 2_000
SOURCE = BlobKey(ContainerKey("acme", "box"), "src")


class TwoStores(Harness):
    """The account ``other`` has a store of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "first")
        self.target = CountingEngine(clock=self.clock)
        self.target_extents = LocalExtents(folder / "second", self.membership)
        store = Store(self.target, self.target_extents, self.membership)
        accounts = {
            ACCOUNT.name: self.environment.accounts[ACCOUNT.name],
            OTHER.name: Account(OTHER.name, OTHER.keys, store),
        }
        self.environment = replace(self.environment, accounts=accounts)
        self.service = blob_service(self.environment)

    async def make_boxes(self) -> None:
        for account in (ACCOUNT, OTHER):
            assert (await self("PUT", "/box?restype=container", account=account)).status == 201

    async def make_source(self, blocks: list[tuple[bytes, bytes]]) -> None:
        """Below HTTP, because that is quicker."""
        for block_id, data in blocks:
            block = NewBlock(block_id, data, len(data))
            if len(data) > 16_384:
                block = NewBlock(block_id, (await self.extents.put(data),), len(data))
            await staged_blocks.put_block(self.engine, SOURCE, block, None)
        entries = [(From.LATEST, block_id) for block_id, _ in blocks]
        pin = Pin(self.membership.id, 1 << 40)
        await long_block_list.put_block_list(
            self.engine,
            SOURCE,
            NewBlockList(entries, HttpHeaders(), {}),
            UNCONDITIONAL,
            may_overwrite=True,
            pin=pin,
        )

    async def copy(self, name: str = "src", **headers: str) -> Answer:
        url = source_url(name, f"?{signature(self, name)}")
        return await self("PUT", "/box/dst", {"x-ms-copy-source": url, **headers}, account=OTHER)

    async def blocks(self) -> list[tuple[bytes, int]]:
        answer = await self("GET", "/box/dst?comp=blocklist", account=OTHER)
        found = re.findall(rb"<Name>(.*?)</Name><Size>(\d+)</Size>", answer.body)
        return [(base64.b64decode(name), int(size)) for name, size in found]

    async def downloaded(self) -> bytes:
        return (await self("GET", "/box/dst", account=OTHER)).body

    async def rows(self) -> dict[bytes, bytes]:
        return await self.target.read(lambda snap: dict(snap.scan(b"", b"\xff")))


@pytest.fixture
def stores(tmp_path: Path) -> TwoStores:
    return TwoStores(tmp_path)


def numbered(count: int, size: int = 1) -> list[tuple[bytes, bytes]]:
    return [(b"%06d" % number, (b"%06d" % number) * size) for number in range(count)]


@pytest.mark.parametrize(
    "blocks",
    [
        pytest.param([(b"one", b"a block")], id="one"),
        pytest.param([(b"a", b"first"), (b"b", b"x" * 70_000), (b"c", b"last")], id="few"),
        pytest.param(numbered(40, 3_000), id="extents"),
        pytest.param(numbered(spread.PORTION_RUNS), id="a portion"),
        pytest.param(numbered(spread.PORTION_RUNS + 1), id="a portion and one"),
        pytest.param(numbered(3 * spread.PORTION_RUNS + 7, 20), id="several portions"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"x-ms-requires-sync": "true"}])
async def test_a_copy_has_the_blocks_of_its_source(
    stores: TwoStores, blocks: list[tuple[bytes, bytes]], headers: dict[str, str]
) -> None:
    await stores.make_boxes()
    await stores.make_source(blocks)
    assert (await stores.copy(**headers)).status == 202
    assert await stores.blocks() == [(block_id, len(data)) for block_id, data in blocks]
    assert await stores.downloaded() == b"".join(data for _, data in blocks)
    await stores("DELETE", "/box/src")
    assert await stores.downloaded() == b"".join(data for _, data in blocks)


async def test_a_block_of_a_copy_can_be_committed_again(stores: TwoStores) -> None:
    await stores.make_boxes()
    await stores.make_source(numbered(700))
    await stores.copy()
    name = base64.b64encode(b"000599").decode()
    document = f"<BlockList><Committed>{name}</Committed></BlockList>".encode()
    answer = await stores("PUT", "/box/dst?comp=blocklist", body=document, account=OTHER)
    assert (answer.status, await stores.downloaded()) == (201, b"000599")


async def test_what_has_no_blocks_gets_none(stores: TwoStores) -> None:
    await stores.make_boxes()
    for data in (b"", b"inline", b"x" * 100_000):
        await stores("PUT", "/box/src", {"x-ms-blob-type": "BlockBlob"}, data)
        await stores.copy()
        assert (await stores.blocks(), await stores.downloaded()) == ([], data)


async def test_fifty_thousand_blocks_take_no_long_step(stores: TwoStores) -> None:
    await stores.make_boxes()
    blocks = numbered(50_000)
    await stores.make_source(blocks)
    first = len(stores.target.costs)
    assert (await stores.copy()).status == 202
    costs = stores.target.costs[first:]
    assert max(costs) <= ROWS_MAX
    assert len(costs) > 50_000 // spread.PORTION_RUNS
    assert await stores.blocks() == [(block_id, 6) for block_id, _ in blocks]


async def test_a_long_source_comes_in_portions(stores: TwoStores) -> None:
    """As one of terabytes does, with extents of 64 MiB."""
    await stores.make_boxes()
    await stores.make_source(numbered(5, 4_000))
    divide = spread.portions
    with patch.object(spread, "portions", lambda runs: divide(runs, bytes_max=20_001)):
        assert (await stores.copy()).status == 202
    assert await stores.blocks() == [(block_id, 24_000) for block_id, _ in numbered(5)]
    assert await stores.downloaded() == b"".join(data for _, data in numbered(5, 4_000))
    rows = await stores.rows()
    assert [key for key in rows if key.startswith(keys.PINNED_READS)] == []


async def test_a_refused_copy_leaves_nothing_behind(stores: TwoStores) -> None:
    await stores.make_boxes()
    await stores.make_source(numbered(1_200, 20))
    before = await stores.rows()
    answer = await stores.copy(**{"If-Match": '"0x1"'})
    assert answer.status == 412
    maintenance = steps(stores.target, stores.target_extents, stores.membership)
    for _ in range(50):
        stores.clock.now = later(stores.clock.now, 60)
        await step_each(maintenance)
    left = (await stores.rows()).keys() - before.keys()
    assert {key[:1] for key in left} <= {keys.FREED_EXTENTS}


class LosesTransaction:
    """Undoes a transaction that did not wait for the disk, as a failover may."""

    def __init__(self, engine: CountingEngine, number: int) -> None:
        self._engine = engine
        self._run = engine.run
        self._left = number

    def __call__(self, body: Callable[[Transaction], T], *scopes: Any, durable: bool = True) -> Awaitable[T]:
        if durable:
            return self._run(body, *scopes, durable=durable)
        self._left -= 1
        return self._lost(body) if self._left == 0 else self._run(body, *scopes, durable=False)

    async def _lost(self, body: Callable[[Transaction], T]) -> T:
        before = await self._engine.read(lambda snap: dict(snap.scan(b"", b"\xff")))
        outcome = await self._run(body)
        after = await self._engine.read(lambda snap: dict(snap.scan(b"", b"\xff")))

        def undo(tx: Transaction) -> None:
            for key in after.keys() - before.keys():
                tx.delete(key)
            for key, value in before.items():
                tx.put(key, value)

        await self._run(undo)
        return outcome


@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_a_part_that_a_failover_has_lost_is_missed(stores: TwoStores, number: int) -> None:
    await stores.make_boxes()
    await stores.make_source(numbered(1_200))
    stores.target.run = LosesTransaction(stores.target, number)  # type: ignore[method-assign]
    answer = await stores.copy()
    assert (answer.status, answer.headers["x-ms-error-code"]) == (503, "ServerBusy")
    assert (await stores("HEAD", "/box/dst", account=OTHER)).status == 404
    assert (await stores.copy()).status == 202
    assert await stores.blocks() == [(block_id, 6) for block_id, _ in numbered(1_200)]
