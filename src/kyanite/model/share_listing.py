"""Listing the shares of an account, each after its snapshots if these are asked for."""

from collections.abc import Awaitable

import msgspec

from kyanite.engine import keys
from kyanite.engine.api import Engine, Snapshot
from kyanite.model.share import ShareRecord, decode_share
from kyanite.model.share_snapshot import snapshots
from kyanite.values import Instant

_BEYOND_ALL = Instant((1 << 63) - 1)
"""Stands for the share itself, which is listed behind its snapshots."""


class Item(msgspec.Struct, frozen=True, gc=False):
    name: str
    snapshot: Instant | None
    record: ShareRecord


class SharePage(msgspec.Struct, frozen=True, gc=False):
    items: list[Item]
    next_name: str | None
    """The share with which the next page begins, or None when this was the last."""
    next_snapshot: Instant | None
    """The first of its snapshots to be listed, or an instant beyond all of them; None where none are listed."""
    at: Instant


def list_shares(
    engine: Engine,
    account: str,
    *,
    prefix: str,
    first: str,
    first_snapshot: Instant | None,
    limit: int,
    with_snapshots: bool,
) -> Awaitable[SharePage]:
    def body(snap: Snapshot) -> SharePage:
        base = keys.shares(account)
        within = base + prefix.encode()
        items: list[Item] = []
        for key, value in snap.scan(max(within, base + first.encode()), keys.after(within), limit=limit + 1):
            name, record = key[len(base) :].decode(), decode_share(value)
            taken = snapshots(snap, record.id) if with_snapshots else []
            found = [Item(name, instant, kept) for instant, kept in taken]
            if name == first and first_snapshot is not None:
                found = [item for item in found if item.snapshot and item.snapshot >= first_snapshot]
            for item in (*found, Item(name, None, record)):
                if len(items) == limit:
                    from_snapshot = (item.snapshot or _BEYOND_ALL) if with_snapshots else None
                    return SharePage(items, name, from_snapshot, snap.now)
                items.append(item)
        return SharePage(items, None, None, snap.now)

    return engine.read(body)
