"""Listing the shares of an account: by name, and of one name its snapshots, the share itself, then deleted ones.

A page is full, or ends early when it has read very many rows: deleted shares that have expired are read and not listed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.files.deleted_shares import SHARES, RetiredShare
from kyanite.model.files.share import ShareRecord, decode_share
from kyanite.model.files.share_snapshots import snapshots
from kyanite.model.retired import merged, scan
from kyanite.values import Instant

_ITSELF = 1 << 63
"""The position of the share itself, where its snapshots have their instants: it is listed behind them."""


class SharePosition(NamedTuple):
    """Where a page begins: at a name, and among what is listed under that name."""

    name: str
    position: int = 0


class ShareItem(msgspec.Struct, frozen=True, gc=False):
    name: str
    snapshot: Instant | None
    record: ShareRecord
    retired: RetiredShare | None = None
    """Of a share that was deleted and can be restored."""

    @property
    def position(self) -> SharePosition:
        if self.retired is not None:
            return SharePosition(self.name, _ITSELF + self.retired.deleted_at)
        return SharePosition(self.name, _ITSELF if self.snapshot is None else self.snapshot)


class ShareListing(msgspec.Struct, frozen=True, gc=False):
    prefix: str = ""
    first: SharePosition = SharePosition("")
    limit: int = 5000
    snapshots: bool = False
    deleted: bool = False


class SharePage(msgspec.Struct, frozen=True, gc=False):
    items: list[ShareItem]
    next_start: SharePosition | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


def list_shares(engine: Engine, account: str, request: ShareListing) -> Awaitable[SharePage]:
    def body(snap: Snapshot) -> Steps[SharePage]:
        streams = [_live(snap, account, request)]
        if request.deleted:
            streams.append(_deleted(snap, account, request))
        items, following = yield from merged(snap, streams, request.limit)
        return SharePage(items, None if following is None else following.position, snap.now)

    return engine.read_in_steps(body)


def _live(snap: Snapshot, account: str, request: ShareListing) -> Iterator[ShareItem]:
    base = keys.shares(account)
    within = base + request.prefix.encode()
    start = max(within, base + request.first.name.encode())
    for key, value in snap.scan(start, keys.after(within), limit=request.limit + 2):
        name, record = key[len(base) :].decode(), decode_share(value)
        found = [ShareItem(name, None, record)]
        if request.snapshots:
            found = [ShareItem(name, *each) for each in snapshots(snap, record.id)] + found
        yield from (item for item in found if item.position >= request.first)


def _deleted(snap: Snapshot, account: str, request: ShareListing) -> Iterator[ShareItem]:
    first, position = request.first
    deleted_from = Instant(max(position - _ITSELF, 0))
    limit = 2 * request.limit + 2
    for name, each in scan(snap, SHARES, account, request.prefix, first, deleted_from, limit):
        yield ShareItem(name, None, each.record, each)
