"""Listing the shares of an account: by name, and of one name its snapshots, the share itself, then deleted ones."""

from collections.abc import Awaitable, Iterator
from heapq import merge
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot
from kyanite.model import keys
from kyanite.model.files.deleted_shares import RetiredShare, retired
from kyanite.model.files.share import ShareRecord, decode_share
from kyanite.model.files.share_snapshots import snapshots
from kyanite.values import Instant

_ITSELF = 1 << 63
"""Stands for the share itself where its snapshots stand for their instants: it is listed behind them."""


class SharePageStart(NamedTuple):
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
    def location(self) -> SharePageStart:
        if self.retired is not None:
            return SharePageStart(self.name, _ITSELF + self.retired.deleted_at)
        return SharePageStart(self.name, _ITSELF if self.snapshot is None else self.snapshot)


class ShareListing(msgspec.Struct, frozen=True, gc=False):
    prefix: str = ""
    first: SharePageStart = SharePageStart("")
    limit: int = 5000
    snapshots: bool = False
    deleted: bool = False


class SharePage(msgspec.Struct, frozen=True, gc=False):
    items: list[ShareItem]
    next_start: SharePageStart | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


def list_shares(engine: Engine, account: str, request: ShareListing) -> Awaitable[SharePage]:
    def body(snap: Snapshot) -> SharePage:
        streams = [_live(snap, account, request)]
        if request.deleted:
            streams.append(_deleted(snap, account, request))
        items: list[ShareItem] = []
        for item in merge(*streams, key=lambda item: item.location):
            if item.location < request.first:
                continue
            if len(items) == request.limit:
                return SharePage(items, item.location, snap.now)
            items.append(item)
        return SharePage(items, None, snap.now)

    return engine.read(body)


def _live(snap: Snapshot, account: str, request: ShareListing) -> Iterator[ShareItem]:
    base = keys.shares(account)
    within = base + request.prefix.encode()
    start = max(within, base + request.first.name.encode())
    for key, value in snap.scan(start, keys.after(within), limit=request.limit + 2):
        name, record = key[len(base) :].decode(), decode_share(value)
        if request.snapshots:
            for instant, kept in snapshots(snap, record.id):
                yield ShareItem(name, instant, kept)
        yield ShareItem(name, None, record)


def _deleted(snap: Snapshot, account: str, request: ShareListing) -> Iterator[ShareItem]:
    for name, each in retired(snap, account, request.prefix):
        yield ShareItem(name, None, each.record, each)
