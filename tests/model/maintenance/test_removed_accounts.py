"""What a removed account leaves, and that maintenance deletes all of it, and nothing else."""

from functools import partial

import pytest

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import account_rows, keys, settings
from kyanite.model.account_rows import AccountRecord
from kyanite.model.blobs.deleted_containers import RetiredContainer
from kyanite.model.blobs.records import ContainerRecord
from kyanite.model.files.deleted_shares import RetiredShare
from kyanite.model.files.share import ShareRecord
from kyanite.model.maintenance import removed_accounts
from kyanite.model.maintenance.tasks import Marked, step_of
from kyanite.model.queues.records import QueueRecord
from kyanite.model.records import encode
from kyanite.model.tables.table import TableRecord
from kyanite.service_properties import INITIAL
from kyanite.values import Instant

TASK = Marked(keys.REMOVED_ACCOUNTS, removed_accounts.purge)


NOW, LATER = Instant(1), Instant(7)


def share(share_id: int) -> ShareRecord:
    return ShareRecord(share_id, NOW, NOW, {})


def fill(tx: Transaction, account: str, first_id: int, count: int = 1) -> None:
    """Some of everything that an account can have by name."""
    for number in range(first_id, first_id + count):
        name = f"name{number}"
        tx.put(keys.container(account, name), encode(ContainerRecord(number, NOW, NOW, {})))
        tx.put(keys.queue(account, name), encode(QueueRecord(number, NOW, {})))
        tx.put(keys.table(account, name), encode(TableRecord(number, name, NOW)))
        tx.put(keys.share(account, name), encode(share(number)))
        gone = RetiredContainer(ContainerRecord(number + 200_000, NOW, NOW, {}), NOW, LATER)
        row = keys.retired_container(account, name, 5)
        tx.put(row, encode(gone))
        tx.put(keys.expiry(LATER, row), b"")
        tx.put(keys.retired_share(account, name, 5), encode(RetiredShare(share(number + 100_000), NOW, NOW)))
        tx.put(keys.delegator(account, "tenant", name), b"")
    tx.put(keys.delegation_secret(account), b"")
    for service in ("blob", "queue", "table", "file"):
        settings.save(tx, account, service, INITIAL)
    account_rows.save(tx, account, AccountRecord((b"sealed",)))


def put(tx: Transaction, key: bytes, value: bytes) -> None:
    tx.put(key, value)


def everything(snap: Snapshot) -> dict[bytes, bytes]:
    return dict(snap.scan(b"", b"\xff"))


async def remove(engine: MemoryEngine, name: str) -> int:
    """Remove an account as the server does. Returns how many steps that took."""
    await engine.run(lambda tx: account_rows.close(tx, name))
    assert await engine.read_in_steps(account_rows.closed_accounts) == [name]
    await engine.run(lambda tx: account_rows.let_purge(tx, name))
    assert await engine.read_in_steps(account_rows.closed_accounts) == []
    step, steps = step_of(engine, TASK), 0
    while await step():
        steps += 1
    return steps


async def test_everything_becomes_what_a_deleted_one_is() -> None:
    engine = MemoryEngine()
    await engine.run(lambda tx: fill(tx, "alpha", 1))
    assert await remove(engine, "alpha") == 1
    left = await engine.read(everything)
    assert left.pop(keys.ACCOUNTS)
    assert left == dict.fromkeys(
        [
            keys.deleted_container(1),
            keys.deleted_container(200_001),
            keys.discarded_messages(1),
            keys.deleted_table(1),
            keys.deleted_share(1),
            keys.deleted_share(100_001),
        ],
        b"",
    )


@pytest.mark.parametrize("other", ["alpha2", "alph", "beta2"])
async def test_others_keep_everything(other: str) -> None:
    engine = MemoryEngine()
    await engine.run(lambda tx: fill(tx, other, 50))
    before = await engine.read(everything)
    await engine.run(lambda tx: fill(tx, "alpha", 1))
    await remove(engine, "alpha")
    after = await engine.read(everything)
    assert {key: after[key] for key in before if key != keys.ACCOUNTS} == {
        key: value for key, value in before.items() if key != keys.ACCOUNTS
    }


async def test_a_large_account_takes_several_steps() -> None:
    engine = MemoryEngine()
    for start in range(0, 300, 100):
        await engine.run(partial(fill, account="alpha", first_id=start, count=100))
    assert await remove(engine, "alpha") >= 6 * 300 // removed_accounts.ROWS_PER_STEP
    left = await engine.read(everything)
    assert {key[:1] for key in left} == {b"A", b"d", b"z", b"T", b"D"}
    assert len([key for key in left if key[:1] == b"D"]) == 600


async def test_the_name_is_free_only_when_nothing_is_left() -> None:
    engine = MemoryEngine()
    for start in range(0, 300, 100):
        await engine.run(partial(fill, account="alpha", first_id=start, count=100))
    await engine.run(lambda tx: account_rows.close(tx, "alpha"))
    await engine.run(lambda tx: account_rows.let_purge(tx, "alpha"))
    step = step_of(engine, TASK)
    while await engine.read(lambda snap: account_rows.load(snap, "alpha")) is not None:
        assert await step()
    assert not await engine.read(lambda snap: account_rows.has_data(snap, "alpha"))
    assert not await step()


async def test_nothing_is_purged_before_it_may_be() -> None:
    engine = MemoryEngine()
    await engine.run(lambda tx: fill(tx, "alpha", 1))
    await engine.run(lambda tx: account_rows.close(tx, "alpha"))
    assert not await step_of(engine, TASK)()
    assert await engine.read(lambda snap: account_rows.has_data(snap, "alpha"))
    record = await engine.read(lambda snap: account_rows.load(snap, "alpha"))
    assert record == AccountRecord((b"sealed",), is_removed=True)
    # A removal can be taken back until then.
    await engine.run(lambda tx: account_rows.reopen(tx, "alpha"))
    assert await engine.read(lambda snap: account_rows.load(snap, "alpha")) == AccountRecord((b"sealed",))
    await engine.run(lambda tx: account_rows.close(tx, "alpha"))
    await engine.run(lambda tx: account_rows.let_purge(tx, "alpha"))
    await engine.run(lambda tx: account_rows.reopen(tx, "alpha"))
    assert (await engine.read_in_steps(account_rows.load_all)).records["alpha"].is_removed
    assert await step_of(engine, TASK)()
    # An account that is there is never purged, whatever a caller asks for.
    await engine.run(lambda tx: fill(tx, "beta2", 7))
    for name in ("beta2", "gamma"):
        await engine.run(partial(account_rows.let_purge, name=name))
    assert not await step_of(engine, TASK)()


async def test_data_of_each_kind_counts() -> None:
    engine = MemoryEngine()
    await engine.run(lambda tx: fill(tx, "alpha", 1))
    rows = await engine.read(everything)
    for prefix in account_rows.DATA:
        alone = MemoryEngine()
        (key,) = [key for key in rows if key.startswith(prefix("alpha"))]
        await alone.run(partial(put, key=key, value=rows[key]))
        assert await alone.read(lambda snap: account_rows.has_data(snap, "alpha"))
        assert not await alone.read(lambda snap: account_rows.has_data(snap, "beta2"))


KEYED_BY_ACCOUNT = {
    "s": "purged",
    "c": "purged",
    "5": "purged",
    "q": "purged",
    "t": "purged",
    "F": "purged",
    "R": "purged",
    "3": "purged",
    "4": "purged",
    "G": "purged with the blobs of the container",
    "9": "there is none: an account with a protected container is not removed",
    "A": "the account itself",
    "0": "there is none: an account that is being moved into the store is not removed",
}


@pytest.mark.interpreted("a compiled module has no docstring")
def test_everything_that_is_keyed_by_an_account_is_purged() -> None:
    """A new kind of row with the name of an account in its key must not outlive the account: say here how it goes."""
    layout = (keys.__doc__ or "").splitlines()
    assert {line[4] for line in layout if line[12:].startswith(("account ", "0 account"))} == set(
        KEYED_BY_ACCOUNT
    )


async def test_each_change_is_noted() -> None:
    engine = MemoryEngine()
    assert await engine.read(account_rows.last_change) == 0
    subscription = engine.subscribe(account_rows.TOPIC)
    noted: list[Instant] = []
    for body in (
        lambda tx: account_rows.save(tx, "alpha", AccountRecord()),
        lambda tx: account_rows.close(tx, "alpha"),
        lambda tx: account_rows.delete(tx, "alpha"),
    ):
        await engine.run(body)
        assert subscription.is_notified
        await anext(subscription)
        noted.append(await engine.read(account_rows.last_change))
    assert noted == sorted(set(noted))
    stored = await engine.read_in_steps(account_rows.load_all)
    assert stored == (noted[-1], {})
