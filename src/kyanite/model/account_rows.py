"""Accounts as they are stored: their keys, sealed, and the settings that every request obeys.

All processes keep the accounts in memory. Whoever changes a row notes the instant of the change in a row of its own and
notifies the others (``save``, ``delete``); each process reads all rows again when it is notified, and compares that
instant now and then, since notifications may be lost.

An account is removed in three steps. It is marked, and no process serves it any more. When every process has said so,
a second mark asks maintenance to delete what it has by name (``model/maintenance/removed_accounts.py``), unless that is
protected: then the account is opened again. With the last of it go both marks. So no request of the old account can
still be in progress when the name is used again.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import STEP_ROWS, Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.accounts import DEFAULT_SETTINGS, AccountSettings
from kyanite.model.records import Record, encode
from kyanite.values import Instant

TOPIC = b"accounts"
"""Notified after each change."""

DATA = (
    keys.containers,
    keys.retired_containers,
    keys.queues,
    keys.tables,
    keys.shares,
    keys.retired_shares,
)
"""What the keys of what an account has by name begin with, the settings of its services excepted."""


class AccountRecord(Record, frozen=True):
    sealed_keys: tuple[bytes, ...] = ()
    """Encrypted. None for an account whose keys the operator states at each start."""
    settings: AccountSettings = DEFAULT_SETTINGS
    is_removed: bool = False


decode_account: Callable[[bytes], AccountRecord] = msgspec.msgpack.Decoder(AccountRecord).decode


class StoredAccounts(NamedTuple):
    changed_at: Instant
    records: dict[str, AccountRecord]


def load(snap: Snapshot, name: str) -> AccountRecord | None:
    stored = snap.get(keys.account(name))
    return None if stored is None else decode_account(stored)


def last_change(snap: Snapshot) -> Instant:
    stored = snap.get(keys.ACCOUNTS)
    return Instant(0 if stored is None else int.from_bytes(stored, "big"))


def load_all(snap: Snapshot) -> Steps[StoredAccounts]:
    records: dict[str, AccountRecord] = {}
    rows = snap.scan(keys.after(keys.REMOVED_ACCOUNTS), keys.after(keys.ACCOUNTS))
    for count, (key, value) in enumerate(rows, 1):
        records[key[1:].decode()] = decode_account(value)
        if count % STEP_ROWS == 0:
            yield
    return StoredAccounts(last_change(snap), records)


def save(tx: Transaction, name: str, record: AccountRecord) -> None:
    tx.put(keys.account(name), encode(record))
    note_change(tx)


def delete(tx: Transaction, name: str) -> None:
    tx.delete(keys.account(name))
    note_change(tx)


def note_change(tx: Transaction) -> None:
    tx.put(keys.ACCOUNTS, keys.number(tx.now))
    tx.notify(TOPIC)


def has_data(snap: Snapshot, name: str) -> bool:
    """Whether an account has containers, queues, tables or shares, deleted ones that can be restored included."""
    ranges = [prefix(name) for prefix in DATA]
    return any(True for base in ranges for _ in snap.scan(base, keys.after(base), limit=1))


def close(tx: Transaction, name: str) -> None:
    """Begin to remove an account: from now on no process serves it."""
    save(tx, name, replace(load(tx, name) or AccountRecord(), is_removed=True))


def reopen(tx: Transaction, name: str) -> None:
    """Take a removal back that maintenance has not been let do."""
    record = load(tx, name)
    if record is not None and record.is_removed and tx.get(keys.removed_account(name)) is None:
        save(tx, name, replace(record, is_removed=False))


def closed_accounts(snap: Snapshot) -> Steps[list[str]]:
    """The removed accounts that maintenance may not touch yet."""
    stored = yield from load_all(snap)
    removed = [name for name, record in stored.records.items() if record.is_removed]
    return [name for name in removed if snap.get(keys.removed_account(name)) is None]


def let_purge(tx: Transaction, name: str) -> None:
    """Let maintenance delete what a removed account has: no process serves a request of it any more."""
    record = load(tx, name)
    if record is not None and record.is_removed:
        tx.put(keys.removed_account(name), b"")
