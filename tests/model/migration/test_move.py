"""Moving the accounts of a store with every kind of row, interrupted anywhere, into another one."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import uvloop

from kyanite.engine.api import Engine, EngineError, Snapshot, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.engine.faulty import Call, Fail, FaultyEngine, Plan, Repeat
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model import keys
from kyanite.model.blobs.records import decode_blob
from kyanite.model.migration import accounts
from kyanite.model.migration.move import AccountMove, Side
from kyanite.model.migration.rows import MOVED
from kyanite.model.migration.transactions import Changed
from kyanite.model.verification.rows import check_page, describe_difference
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import prepare
from tests.stores.recorded import unpack

ARCHIVE = Path(__file__).parents[2] / "stores" / "394e107.tar.xz"
ACCOUNT = "acme"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    unpack(ARCHIVE, folder)
    return folder


@asynccontextmanager
async def source_of(folder: Path) -> AsyncIterator[Side]:
    store = factory_of(StoreKind(), folder).open(wall_clock)
    try:
        await prepare(store.engine, folder, is_testing=None)
        yield Side(store.engine, store.extents)
    finally:
        await store.close()


@asynccontextmanager
async def target_of(folder: Path) -> AsyncIterator[tuple[MemoryEngine, LocalExtents]]:
    membership = LocalMembership(folder / "owners")
    extents = LocalExtents(folder / "extents", membership)
    try:
        yield MemoryEngine(clock=wall_clock), extents
    finally:
        await extents.close()
        membership.close()


async def findings_in(engine: Engine) -> list[str]:
    """What verification finds."""
    found: list[str] = []
    stated: Counter[bytes] = Counter()
    counted: Counter[bytes] = Counter()
    key: bytes | None = b""
    while key is not None:
        page = await engine.read(partial(check_page, start=key))
        key = page.next_key
        found += page.findings
        stated.update(page.stated)
        counted.update(page.counted)
    subjects = sorted(stated.keys() | counted.keys())
    return found + [
        describe_difference(each, stated[each], counted[each])
        for each in subjects
        if stated[each] != counted[each]
    ]


def letters(snap: Snapshot) -> Counter[bytes]:
    return Counter(key[:1] for key, _ in snap.scan(b"", b"\xff"))


def of_account(snap: Snapshot) -> set[bytes]:
    """Keys with the name of the account."""
    ranges = [moved.range_of(ACCOUNT, 0) for moved in MOVED if not moved.owner.value]
    return {key for bounds in ranges for key, _ in snap.scan(*bounds)}


def test_everything_moves(original: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            assert await source.engine.read_in_steps(accounts.names) == ["acme", "other"]
            for name in ("acme", "other"):
                move = AccountMove(source, Side(engine, extents), name)
                assert await move.found() is None
                assert await move.is_free()
                await move.run("here")
                assert not await findings_in(engine)
                await move.forget()
            assert not await findings_in(engine)
            before, after = await source.engine.read(letters), await engine.read(letters)
            assert after[b"0"] == 0
            for letter in (b"c", b"q", b"t", b"F"):
                assert after[letter] == before[letter] > 0, letter
            for letter in (
                b"n",
                b"v",
                b"w",
                b"o",
                b"m",
                b"S",
                b"N",
                b"V",
                b"P",
                b"i",
                b"j",
                b"l",
                b"r",
                b"x",
            ):
                assert 0 < after[letter] <= before[letter], letter  # The rest waits to be purged.
            assert after[b"H"] == 0 < before[b"H"]
            assert await engine.read(of_account) == await source.engine.read(of_account)

    uvloop.run(scenario())


@pytest.mark.parametrize("failing", [1, 2, 3, 9, 20, 33, 47, 60])
def test_an_interrupted_migration_goes_on(original: Path, tmp_path: Path, failing: int) -> None:
    """Whether or not the last transaction was committed. In between the target is sound."""

    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            for done in (False, True):
                plan: Plan = {
                    (Call.RUN, failing): Fail(EngineError("lost"), done=done),
                    (Call.RUN, max(1, failing - 1)): Repeat() if failing > 1 else Fail(EngineError("lost")),
                }
                faulty = FaultyEngine(engine, plan)
                with pytest.raises(EngineError, match="lost"):
                    await AccountMove(source, Side(faulty, extents), ACCOUNT).run("here")
                faulty.check_all_hit()
                assert not await findings_in(engine)
            move = AccountMove(source, Side(engine, extents), ACCOUNT)
            await move.run("here")
            again = AccountMove(source, Side(engine, extents), ACCOUNT)
            await again.run("here")
            assert (again.done.corrected, again.done.extents) == (0, 0)
            assert again.done.rows == move.done.rows
            assert again.done.checked_bytes > 9_000_000
            await again.forget()
            assert not await findings_in(engine)
            assert await engine.read(of_account) == await source.engine.read(of_account)

    uvloop.run(scenario())


def ids(snap: Snapshot) -> set[bytes]:
    """Of what is keyed by an id that no other account of a store may have."""
    rows = (key for start in b"nwNmjlb" for key, _ in snap.scan(bytes([start]), bytes([start + 1])))
    return {key[1:9] for key in rows}


def test_ids_do_not_meet(original: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            first = AccountMove(source, Side(engine, extents), ACCOUNT)
            await first.run("here")
            await first.forget()
            assert not await first.is_free()
            before = await engine.read(ids)
            assert before.isdisjoint(await source.engine.read(ids))
            second = AccountMove(source, Side(engine, extents), "other")
            await second.run("here")
            await second.forget()
            assert not await findings_in(engine)
            more = await engine.read(ids) - before
            assert more
            assert min(more) > max(before)
            assert await engine.read(of_account) == await source.engine.read(of_account)

    uvloop.run(scenario())


def test_what_differs_in_the_target_is_corrected(original: Path, tmp_path: Path) -> None:
    """A record with other metadata, one that is missing, and one too many."""

    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            move = AccountMove(source, Side(engine, extents), ACCOUNT)
            await move.run("here")

            def spoil(tx: Transaction) -> None:
                rows = list(tx.scan(b"n", b"o"))
                _, value = next(row for row in rows if decode_blob(row[1]).content.body)
                record = decode_blob(value)
                body = tx.get(keys.body(record.content.body))
                assert body is not None
                tx.put(keys.body(record.content.body), b"!" * len(body))
                missing = next(key for key, _ in tx.scan(b"w", b"x"))
                tx.delete(missing)
                tx.put(missing + b"more", b"{}")

            await engine.run(spoil)
            again = AccountMove(source, Side(engine, extents), ACCOUNT)
            await again.run("here")
            assert again.done.corrected == 3
            await again.forget()
            assert not await findings_in(engine)

    uvloop.run(scenario())


def test_content_that_differs_is_no_success(original: Path, tmp_path: Path) -> None:
    """As if a client had written the content of the source after it was moved: both layers differ in one interval."""

    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            move = AccountMove(source, Side(engine, extents), ACCOUNT)
            await move.run("here")

            def spoil(tx: Transaction) -> None:
                row = next(key for key, _ in tx.scan(b"r", b"s"))
                tx.delete(row)

            await engine.run(spoil)
            with pytest.raises(Changed, match="content was written"):
                await AccountMove(source, Side(engine, extents), ACCOUNT).run("here")

    uvloop.run(scenario())


def test_giving_up_leaves_nothing(original: Path, tmp_path: Path) -> None:
    """Layers and extents without references are left to maintenance."""

    async def scenario() -> None:
        async with source_of(original) as source, target_of(tmp_path) as (engine, extents):
            for failing in (30, 10_000):
                faulty = FaultyEngine(engine, {(Call.RUN, failing): Fail(EngineError("lost"))})
                move = AccountMove(source, Side(faulty, extents), ACCOUNT)
                with suppress(EngineError):
                    await move.run("here")
                await AccountMove(source, Side(engine, extents), ACCOUNT).give_up()
                assert not await findings_in(engine)
                assert set(await engine.read(letters)) <= {b"g", b"l", b"r", b"e", b"u", b"x", b"b", b"k"}
                assert await move.is_free()
                assert await move.found() is None

    uvloop.run(scenario())
