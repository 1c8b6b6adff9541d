"""The rows of user delegation: one secret for an account, whom keys were given to, and how both are forgotten."""

from functools import partial

import pytest

from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import delegation, keys
from kyanite.model.delegation import Delegation, Delegator
from kyanite.model.maintenance import removed_accounts
from kyanite.model.verification.rows import check_page
from kyanite.values import Instant
from tests.services.harness import Clock

HOUR = 3600 * 10_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> MemoryEngine:
    return MemoryEngine(clock=clock)


def someone(expires_at: int, group: str = "g") -> Delegator:
    return Delegator("test", "me", "app", (group,), (("roles", ("a", "b")),), Instant(expires_at))


async def test_one_secret_for_an_account(engine: MemoryEngine, clock: Clock) -> None:
    until = clock.now + HOUR
    assert await delegation.give(engine, "acme", "t", "o", someone(until), b"first") == b"first"
    assert await delegation.give(engine, "acme", "t", "p", someone(until), b"second") == b"first"
    assert await delegation.give(engine, "other", "t", "o", someone(until), b"third") == b"third"
    assert await delegation.find(engine, "acme", "t", "o") == Delegation(b"first", someone(until))
    assert await delegation.find(engine, "acme", "t", "x") == Delegation(b"first", None)
    assert await delegation.find(engine, "none", "t", "o") == Delegation(None, None)
    await delegation.revoke(engine, "acme", b"fourth")
    assert (await delegation.find(engine, "acme", "t", "o")).secret == b"fourth"
    assert (await delegation.find(engine, "other", "t", "o")).secret == b"third"


async def test_a_delegator_is_known_until_its_last_key_expires(engine: MemoryEngine, clock: Clock) -> None:
    start = clock.now
    await delegation.give(engine, "acme", "t", "o", someone(start + 2 * HOUR), b"s")
    await delegation.give(engine, "acme", "t", "o", someone(start + HOUR, "other"), b"s")
    found = (await delegation.find(engine, "acme", "t", "o")).delegator
    assert found == someone(start + 2 * HOUR, "other")
    clock.now = Instant(start + 2 * HOUR)
    assert (await delegation.find(engine, "acme", "t", "o")).delegator is None


async def test_expired_ones_are_removed(engine: MemoryEngine, clock: Clock) -> None:
    start = clock.now
    for number in range(2500):
        until = start + (HOUR if number % 2 else 2 * HOUR)
        await delegation.give(engine, "acme", "t", f"o{number:04}", someone(until), b"s")
    clock.now = Instant(start + HOUR)
    removed, key, pages = 0, b"", 0
    while True:
        found, key = await engine.read(partial(delegation.find_expired, start=key))
        await engine.run(partial(delegation.remove_expired, found=found))
        removed, pages = removed + len(found), pages + 1
        if not key:
            break
    assert (removed, pages) == (1250, 3)
    left = await engine.read(lambda snap: list(snap.scan(keys.DELEGATORS, keys.after(keys.DELEGATORS))))
    assert len(left) == 1250


async def test_one_that_was_renewed_meanwhile_stays(engine: MemoryEngine, clock: Clock) -> None:
    start = clock.now
    await delegation.give(engine, "acme", "t", "o", someone(start + HOUR), b"s")
    clock.now = Instant(start + HOUR)
    found, _ = await engine.read(lambda snap: delegation.find_expired(snap, b""))
    await delegation.give(engine, "acme", "t", "o", someone(start + 3 * HOUR), b"s")
    await engine.run(lambda tx: delegation.remove_expired(tx, found))
    assert (await delegation.find(engine, "acme", "t", "o")).delegator is not None


async def test_a_removed_account_leaves_no_keys(engine: MemoryEngine, clock: Clock) -> None:
    """A token of before must not open an account that is made again with the same name."""
    for number in range(1200):
        await delegation.give(engine, "acme", "t", f"o{number}", someone(clock.now + HOUR), b"s")
    await delegation.give(engine, "acme2", "t", "o", someone(clock.now + HOUR), b"other")
    mark = keys.removed_account("acme")
    await engine.run(lambda tx: tx.put(mark, b""))
    for _ in range(10):
        await engine.run(lambda tx: removed_accounts.purge(tx, mark) if tx.get(mark) is not None else None)
    assert await engine.read(lambda snap: snap.get(mark)) is None
    assert await delegation.find(engine, "acme", "t", "o1") == Delegation(None, None)
    left = await engine.read(lambda snap: list(snap.scan(keys.DELEGATORS, keys.after(keys.DELEGATORS))))
    assert [key for key, _ in left] == [keys.delegator("acme2", "t", "o")]
    assert (await delegation.find(engine, "acme2", "t", "o")).secret == b"other"


async def test_the_rows_are_verified(engine: MemoryEngine, clock: Clock) -> None:
    await delegation.give(engine, "acme", "t", "o", someone(clock.now + HOUR), b"s")
    assert (await engine.read(lambda snap: check_page(snap, b""))).findings == []
    await engine.run(lambda tx: tx.put(keys.delegator("acme", "t", "p"), b"\xc1"))
    await engine.run(lambda tx: tx.put(keys.delegation_secret("bad"), b"\xc1"))
    assert len((await engine.read(lambda snap: check_page(snap, b""))).findings) == 2
