"""What clients may cache of an open file, as it is stored: grants, in the row of the open file.

A grant is an oplock of one handle, or a lease that all handles with the same lease key of a client share
(``rules/oplocks.py``). Two more rows belong to them:

    J  client, lease key   the file that the lease key is for
    K  owner, number       a break that a process has to send to its client

The functions here change grants in memory or inside a transaction. ``caching.py`` has what requests do.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.opens.records import (
    BreakMessage,
    Grant,
    LeasedFile,
    decode_break,
    decode_leased_file,
)
from kyanite.model.records import encode
from kyanite.rules import oplocks
from kyanite.rules.oplocks import Break, Caching, Event
from kyanite.values import Instant

BREAKS = b"breaks "
"""The topic, followed by the id of a process, of breaks that it has to send."""


def rule_of(grant: Grant, now: Instant) -> oplocks.Grant:
    """The grant as the rules have it, after a break that was not acknowledged in time."""
    requested = None if grant.requested is None else Caching(grant.requested)
    return oplocks.expire(
        oplocks.Grant(
            grant.key,
            Caching(grant.state),
            bool(grant.version),
            grant.epoch,
            requested,
            Caching(grant.required),
            grant.ends_at,
        ),
        now,
    )


def changed(grant: Grant, rule: oplocks.Grant) -> Grant:
    """The grant with what the rules say of it now."""
    return replace(
        grant,
        state=rule.state.value,
        epoch=rule.epoch,
        requested=None if rule.requested is None else rule.requested.value,
        required=rule.required.value,
        ends_at=rule.ends_at,
    )


def find(all_grants: Iterable[Grant], key: bytes) -> Grant | None:
    return next((each for each in all_grants if each.key == key), None)


def replaced(all_grants: Sequence[Grant], new: Grant) -> tuple[Grant, ...]:
    """All grants, with this one in place of the one of its key. An oplock of nothing is dropped; a lease stays as long
    as a handle names it."""
    kept = tuple(new if each.key == new.key else each for each in all_grants)
    return kept if new.version or new.state else tuple(each for each in kept if each.key != new.key)


def must_wait(all_grants: Iterable[Grant], event: Event, own: bytes, now: Instant) -> bool:
    """Whether an event must wait for the owner of a grant. ``own`` is the key of who causes it."""
    return any(
        oplocks.break_for(event, rule_of(each, now), now, is_own=each.key == own).waits for each in all_grants
    )


def wait_ends_at(all_grants: Iterable[Grant], now: Instant) -> Instant:
    """When the last of the breaks is over, whatever their owners do."""
    return max((each.ends_at for each in all_grants if each.ends_at is not None), default=now)


def send(tx: Transaction, owner: bytes, handle_id: int, grant: Grant, message: Break) -> None:
    """Let the process that serves the handle send a break."""
    stored = BreakMessage(
        handle_id,
        grant.key,
        grant.version,
        message.current.value,
        message.to.value,
        grant.epoch,
        message.is_acknowledged,
    )
    tx.put(keys.break_message(owner, tx.new_id()), encode(stored))
    tx.notify(BREAKS + owner)


def read_messages(snap: Snapshot, owner: bytes, limit: int) -> list[tuple[bytes, BreakMessage]]:
    """Some breaks that a process has to send, in their order, with the keys of their rows."""
    base = keys.break_messages(owner)
    return [(key, decode_break(value)) for key, value in snap.scan(base, keys.after(base), limit=limit)]


def delete_messages(tx: Transaction, owner: bytes, limit: int) -> bool:
    """Delete some breaks that a dead process has not sent; False when it has none left."""
    base = keys.break_messages(owner)
    rows = list(tx.scan(base, keys.after(base), limit=limit))
    for key, _ in rows:
        tx.delete(key)
    return bool(rows)


def load_leased_file(snap: Snapshot, key: bytes) -> LeasedFile | None:
    stored = snap.get(keys.lease_key(key))
    return None if stored is None else decode_leased_file(stored)


def save_leased_file(tx: Transaction, key: bytes, share_id: int, file_id: int) -> None:
    tx.put(keys.lease_key(key), encode(LeasedFile(share_id, file_id)))


def released(tx: Transaction, all_grants: Sequence[Grant], key: bytes) -> tuple[Grant, ...]:
    """What is left of the grants when a handle with this key is closed."""
    grant = find(all_grants, key)
    if grant is None:
        return tuple(all_grants)
    if grant.handle_count > 1:
        return replaced(all_grants, replace(grant, handle_count=grant.handle_count - 1))
    if grant.version:
        tx.delete(keys.lease_key(key))
    return tuple(each for each in all_grants if each.key != key)


def delete_lease_keys(tx: Transaction, all_grants: Iterable[Grant]) -> None:
    """Delete the rows of lease keys that go with their file."""
    for each in all_grants:
        if each.version:
            tx.delete(keys.lease_key(each.key))
