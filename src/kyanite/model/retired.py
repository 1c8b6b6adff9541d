"""What was deleted and can be restored until its retention is over: containers and shares.

A deletion frees the name at once. The record moves to a row of its own, by its name and the instant of the deletion, so
one name can have been deleted several times. Everything inside stays where it is, under the id in the record. So
deleting and restoring are small transactions, however much is inside.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kyanite.engine.api import Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.records import NamedKey, Record, encode
from kyanite.rules import retention
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

INSTANT_BYTES = 8
_ITEMS_PER_STEP = 100

R = TypeVar("R")


class Retired(Record, Generic[R], frozen=True):
    record: R
    """As it was, but without its lease: that ends with the deletion."""
    deleted_at: Instant
    expires_at: Instant


class Kind(msgspec.Struct, Generic[R], frozen=True):
    """What containers and shares differ in."""

    row: Callable[[str, str], bytes]
    """The key of the live one, by account and name."""
    retired_rows: Callable[[str], bytes]
    """What the keys of an account's deleted ones begin with."""
    retired_row: Callable[[str, str, int], bytes]
    """The key of a deleted one, by account, name and the instant of its deletion."""
    decode: Callable[[bytes], Retired[R]]


def decoder(record_type: type[R]) -> Callable[[bytes], Retired[R]]:
    stored: Any = Retired[record_type]  # type: ignore[valid-type]
    decode: Callable[[bytes], Retired[R]] = msgspec.msgpack.Decoder(stored).decode
    return decode


def retire(tx: Transaction, kind: Kind[R], key: NamedKey, record: R, days: int) -> Retired[R]:
    """Keep a deleted one for so many days. The record has no lease."""
    retired = Retired(record, tx.now, retention.expiry_of(tx.now, days))
    tx.put(kind.retired_row(key.account, key.name, tx.now), encode(retired))
    return retired


def take_back(
    tx: Transaction,
    kind: Kind[R],
    key: NamedKey,
    deleted_at: Instant,
    *,
    not_found: Reason,
    already_exists: Reason,
) -> Retired[R]:
    """Give a deleted one up for restoring, unless its retention is over or another one has its name now."""
    row = kind.retired_row(key.account, key.name, deleted_at)
    stored, live = tx.get_many((row, kind.row(key.account, key.name)))
    if stored is None:
        raise Refused(not_found)
    retired = kind.decode(stored)
    if retention.is_over(retired.expires_at, tx.now):
        raise Refused(not_found)
    if live is not None:
        raise Refused(already_exists)
    tx.delete(row)
    return retired


# Listing


def scan(
    snap: Snapshot, kind: Kind[R], account: str, prefix: str, first: str, deleted_from: Instant, limit: int
) -> Iterator[tuple[str, Retired[R]]]:
    """So many deleted ones by name, and of one name the oldest first, those whose retention is over included.

    They begin at the name ``first``, with those of this name that were deleted at ``deleted_from`` or later.
    """
    base = kind.retired_rows(account)
    within = base + prefix.encode()
    start = max(within, kind.retired_row(account, first, deleted_from) if first else within)
    for key, value in snap.scan(start, keys.after(within), limit=limit):
        yield key[len(base) : -INSTANT_BYTES - 1].decode(), kind.decode(value)


class Listed(Protocol):
    """An item of a listing that may have deleted ones in it."""

    @property
    def position(self) -> tuple[str, int]:
        """Its name, and its place among the items of this name."""
        ...

    @property
    def retired(self) -> Retired[Any] | None: ...


I = TypeVar("I", bound=Listed)  # noqa: E741


def merged(snap: Snapshot, streams: Iterable[Iterator[I]], limit: int) -> Steps[tuple[list[I], I | None]]:
    """The items of a page from streams in the order of their positions, and the first item of the next page.

    A page is full, or ends early when it has read very many rows: items whose retention is over are read and not
    listed.
    """
    items: list[I] = []
    for rows_read, item in enumerate(merge(*streams, key=lambda each: each.position)):
        if len(items) == limit or rows_read == 2 * limit:
            return items, item
        if item.retired is None or not retention.is_over(item.retired.expires_at, snap.now):
            items.append(item)
        if rows_read % _ITEMS_PER_STEP == _ITEMS_PER_STEP - 1:
            yield
    return items, None
