"""Pages of containers, queues and shares, in the order of their names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.values import Instant

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    items: list[tuple[str, R]]
    next_name: str | None
    """The first name that did not fit, or None when this was the last page."""
    at: Instant


def page_by_name(
    snap: Snapshot, base: bytes, decode: Callable[[bytes], R], *, prefix: str, first: str, limit: int
) -> Page[R]:
    """A page of the rows whose key is ``base`` and a name: names that begin with the prefix, from ``first`` on."""
    start = max(base + prefix.encode(), base + first.encode())
    items: list[tuple[str, R]] = []
    for key, value in snap.scan(start, keys.after(base + prefix.encode()), limit=limit + 1):
        name = key[len(base) :].decode()
        if len(items) == limit:
            return Page(items, name, snap.now)
        items.append((name, decode(value)))
    return Page(items, None, snap.now)
