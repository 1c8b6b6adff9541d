"""``kyanite migrate``: an account, or all of them, from one store to another.

Either store may be served or not. One that is not is locked meanwhile. The account is read-only in the source from the
beginning, also when the migration has ended: who removes it there, or lets it be written again, is the operator. In
the target it appears when everything is there and was compared; until then a row keeps the name (``model/migration``).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvloop
from msgspec.structs import replace

from kyanite.engine.api import STEP_ROWS, EngineError, Snapshot, Steps, Transaction
from kyanite.engine.clock import wall_clock
from kyanite.model import account_rows, keys, store_format
from kyanite.model.account_rows import AccountRecord
from kyanite.model.content.references import decode_extent
from kyanite.model.migration import accounts, transactions
from kyanite.model.migration.move import AccountMove, Moving, Side
from kyanite.model.migration.transactions import Changed
from kyanite.server.accounts import sealed_keys
from kyanite.server.accounts.directory import all_obey
from kyanite.server.accounts.sealed_keys import KeyFile
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.management import client
from kyanite.server.migration.addresses import StoreAddress
from kyanite.server.progress import Progress
from kyanite.server.store.api import Store
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import check_folder, is_store, make_folder, prepare
from kyanite.server.store.lock import StoreLock, take_store_lock
from kyanite.values import TICKS_PER_SECOND, Instant

CLOCK_SECONDS_MAX = 30.0
"""For so long the migration waits for the clock of the target."""


class MigratedStore:
    """One of the two stores, opened."""

    def __init__(self, address: StoreAddress, store: Store, key_file: KeyFile, *, is_served: bool) -> None:
        self.address = address
        self.engine = store.engine
        self.side = Side(store.engine, store.extents)
        self.key_file = key_file
        self.is_served = is_served
        self.late = None if store.node is None else store.node.late
        """The processes of all nodes that may not obey a change yet."""


def migrate(
    source: StoreAddress,
    target: StoreAddress,
    *,
    names: Iterable[str],
    is_given_up: bool,
    source_key_file: Path | None,
    target_key_file: Path | None,
    progress: Progress,
) -> None:
    """Move the accounts of these names, or all if there is none. Raises a Failure; running it again goes on.

    With ``is_given_up``, delete from the target what unfinished migrations of these accounts have moved.
    """
    if source.kind == target.kind and source.folder.resolve() == target.folder.resolve():
        raise BadUsage("--from and --to name the same store.")
    if source.has_folder_of_its_own and not is_store(source.folder):
        raise Failure(f"There is no store in {source.folder}.")
    try:
        uvloop.run(
            _migrate(
                source, target, sorted(set(names)), is_given_up, source_key_file, target_key_file, progress
            )
        )
    except Changed as changed:
        raise Failure(f"The source has changed while it was moved: {changed}.") from changed
    except EngineError as error:
        raise Failure(f"The migration has stopped, and goes on when it is run again: {error}") from error


async def _migrate(
    source_address: StoreAddress,
    target_address: StoreAddress,
    names: list[str],
    is_given_up: bool,
    source_key_file: Path | None,
    target_key_file: Path | None,
    progress: Progress,
) -> None:
    async with (
        _opened(source_address, source_key_file) as source,
        _opened(target_address, target_key_file, source=source) as target,
    ):
        present = await source.engine.read_in_steps(accounts.names)
        for name in names:
            if name not in present:
                raise Failure(f"The store {source_address} has nothing of an account {name}.")
        if is_given_up:
            for name in names or present:
                await _give_up(source, target, name)
            return
        total = None if names else await source.engine.read_in_steps(_content_bytes)
        on_copied = progress.begin(", ".join(names) or "all accounts", total)
        on_checked = progress.begin("read back", total)
        for name in names or present:
            move = AccountMove(source.side, target.side, name, on_copied, on_checked)
            done = await _move(source, target, name, move)
            print(
                f"{name}: {done.rows} rows and {done.extents} extents with {done.bytes} bytes were moved,"
                f" {done.checked_bytes} bytes were read back, all as they were."
            )
        progress.end()


def _content_bytes(snap: Snapshot) -> Steps[int]:
    """How many bytes all extents of a store have."""
    total = 0
    for count, (_, value) in enumerate(snap.scan(keys.EXTENTS, keys.after(keys.EXTENTS)), 1):
        total += decode_extent(value).length
        if count % STEP_ROWS == 0:
            yield
    return total


async def _give_up(source: MigratedStore, target: MigratedStore, name: str) -> None:
    move = AccountMove(source.side, target.side, name)
    found = await move.found()
    if found is None or found.is_complete:
        print(f"{name}: no migration of it is unfinished.")
        return
    await move.give_up()
    await target.engine.run(partial(account_rows.delete, name=name))
    print(f"{name}: given up. In the source it is still read-only.")


@asynccontextmanager
async def _opened(
    address: StoreAddress, key_file: Path | None, *, source: MigratedStore | None = None
) -> AsyncIterator[MigratedStore]:
    """The store; with ``source``, one that everything is moved into, which is made if there is none."""
    make_folder(address.folder)
    lock = _lock(address)
    try:
        check_folder(address.folder)
        factory = factory_of(address.kind, address.folder)
        await factory.check_extents()
        await factory.check_shared()
        store = factory.open(wall_clock)
        try:
            await _prepare(address, store, source)
            keys = KeyFile(key_file or address.folder / sealed_keys.NAME, may_make=key_file is None)
            yield MigratedStore(address, store, keys, is_served=lock is None)
        finally:
            await store.close()
    finally:
        if lock is not None:
            lock.release()


def _lock(address: StoreAddress) -> StoreLock | None:
    """None if a server has the store, or may have."""
    if not address.has_folder_of_its_own:
        return None
    try:
        return take_store_lock(address.folder)
    except Failure:
        return None


async def _prepare(address: StoreAddress, store: Store, source: MigratedStore | None) -> None:
    """Upgrade an older store, and mark a new one as the source is marked."""
    is_testing = None
    if source is not None:
        is_testing = (await source.engine.read(store_format.load)).is_testing
    await prepare(store.engine, address.folder, is_testing=is_testing)


async def _move(source: MigratedStore, target: MigratedStore, name: str, move: AccountMove) -> Moving:
    found = await move.found()
    if found is None:
        await _reserve(source, target, move, name)
    elif found.is_complete:
        await move.forget()
        return move.done
    await _make_read_only(source, name)
    await move.run(str(source.address))
    await _wait_for_clock(source, target)
    await _take_over(source, target, name)
    await move.forget()
    return move.done


async def _reserve(source: MigratedStore, target: MigratedStore, move: AccountMove, name: str) -> None:
    """Keep the name in the target: an account of which nothing is stored could be stated there and be written."""

    def body(tx: Transaction) -> bool:
        if account_rows.load(tx, name) is not None:
            return False
        read_only = replace(AccountRecord().settings, read_only=True)
        account_rows.save(tx, name, AccountRecord(settings=read_only))
        transactions.begin(tx, name, str(source.address))
        return True

    if not await move.is_free() or not await target.engine.run(body):
        raise Failure(f"The store {target.address} has an account {name} already.")


async def _make_read_only(source: MigratedStore, name: str) -> None:
    """Every process that serves the account obeys when this returns."""
    if source.is_served and source.late is None:
        folder = source.address.folder
        if name in {account["name"] for account in client.call(folder, "account list")}:
            client.call(folder, "account set", name=name, settings={"read_only": True})
            return

    def body(tx: Transaction) -> Instant:
        record = account_rows.load(tx, name) or AccountRecord()
        if not record.settings.read_only:
            account_rows.save(tx, name, replace(record, settings=replace(record.settings, read_only=True)))
        return account_rows.last_change(tx)

    changed_at = await source.engine.run(body)
    if source.late is not None:
        await all_obey({}, changed_at, source.late)


async def _wait_for_clock(source: MigratedStore, target: MigratedStore) -> None:
    """New ETags and ids of the target have to come after all that were moved."""
    last = await source.engine.read(lambda snap: snap.now)
    deadline = asyncio.get_running_loop().time() + CLOCK_SECONDS_MAX
    while (now := await target.engine.read(lambda snap: snap.now)) <= last:
        if asyncio.get_running_loop().time() > deadline:
            seconds = (last - now) // TICKS_PER_SECOND
            raise Failure(
                f"The clock of {target.address} is {seconds} seconds behind that of the source."
                " Everything is moved; run the command again when it has caught up."
            )
        await asyncio.sleep(0.1)


async def _take_over(source: MigratedStore, target: MigratedStore, name: str) -> None:
    """From here on the target serves the account."""
    record = await source.engine.read(partial(account_rows.load, name=name)) or AccountRecord()
    sealed = await _sealed_again(source, target, name, record)

    def body(tx: Transaction) -> None:
        settings = replace(record.settings, read_only=False)
        account_rows.save(tx, name, AccountRecord(sealed, settings))
        transactions.complete(tx, name)

    await target.engine.run(body)
    if not sealed:
        print(f"{name}: its keys are not stored, so state them when you serve the target.")


async def _sealed_again(
    source: MigratedStore, target: MigratedStore, name: str, record: AccountRecord
) -> tuple[bytes, ...]:
    """The keys of the account, as the target stores them."""
    if not record.sealed_keys:
        return ()
    opening = source.key_file.sealer()
    opened = [source.key_file.opened(opening, name, sealed) for sealed in record.sealed_keys]
    stored = await target.engine.read_in_steps(account_rows.load_all)
    present = ((other, key) for other, row in stored.records.items() for key in row.sealed_keys)
    sealing = target.key_file.sealer_for_new_key(present)
    return tuple(sealing.seal(name, key) for key in opened)
