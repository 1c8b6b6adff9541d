"""Listing the containers of an account: by name, and of one name the container itself, then deleted ones."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import NamedTuple

from kyanite.engine.api import Engine, Snapshot, Steps
from kyanite.model import keys
from kyanite.model.blobs.deleted_containers import CONTAINERS, RetiredContainer
from kyanite.model.blobs.records import ContainerRecord, decode_container
from kyanite.model.page import Page, page_by_name
from kyanite.model.records import Value
from kyanite.model.retired import merged, scan
from kyanite.values import Instant


class ContainerPosition(NamedTuple):
    """Where a page begins: at a name, and among what is listed under that name."""

    name: str
    position: int = 0
    """The instant of a deletion; 0 for the container itself."""


class ContainerItem(Value, frozen=True):
    name: str
    record: ContainerRecord
    retired: RetiredContainer | None = None
    """Of a container that was deleted and can be restored."""

    @property
    def position(self) -> ContainerPosition:
        return ContainerPosition(self.name, 0 if self.retired is None else self.retired.deleted_at)


class ContainerListing(Value, frozen=True):
    prefix: str = ""
    first: ContainerPosition = ContainerPosition("")
    limit: int = 5000
    hidden: frozenset[str] = frozenset()
    """Names that are not listed: a few."""


class ContainerPage(Value, frozen=True):
    items: list[ContainerItem]
    next_start: ContainerPosition | None
    """Where the next page begins, or None when this was the last."""
    at: Instant


def list_containers(
    engine: Engine, account: str, *, prefix: str, first: str, limit: int, hidden: frozenset[str] = frozenset()
) -> Awaitable[Page[ContainerRecord]]:
    """The containers of an account in the order of their names, from ``first`` on, without the hidden ones."""

    def body(snap: Snapshot) -> Steps[Page[ContainerRecord]]:
        base = keys.containers(account)
        unlisted = frozenset(keys.container(account, name) for name in hidden)
        return page_by_name(
            snap, base, decode_container, prefix=prefix, first=first, limit=limit, hidden=unlisted
        )

    return engine.read_in_steps(body)


def list_with_deleted(engine: Engine, account: str, request: ContainerListing) -> Awaitable[ContainerPage]:
    """Also those that were deleted and can be restored."""

    def body(snap: Snapshot) -> Steps[ContainerPage]:
        streams = (_live(snap, account, request), _deleted(snap, account, request))
        items, following = yield from merged(snap, streams, request.limit)
        return ContainerPage(items, None if following is None else following.position, snap.now)

    return engine.read_in_steps(body)


def _live(snap: Snapshot, account: str, request: ContainerListing) -> Iterator[ContainerItem]:
    base = keys.containers(account)
    within = base + request.prefix.encode()
    start = max(within, base + request.first.name.encode())
    limit = request.limit + 2 + len(request.hidden)
    for key, value in snap.scan(start, keys.after(within), limit=limit):
        item = ContainerItem(key[len(base) :].decode(), decode_container(value))
        if item.position >= request.first and item.name not in request.hidden:
            yield item


def _deleted(snap: Snapshot, account: str, request: ContainerListing) -> Iterator[ContainerItem]:
    first, position = request.first
    limit = 2 * request.limit + 2
    for name, each in scan(snap, CONTAINERS, account, request.prefix, first, Instant(position), limit):
        yield ContainerItem(name, each.record, each)
