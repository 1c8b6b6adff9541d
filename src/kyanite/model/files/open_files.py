"""List Handles and Force Close Handles: what REST can see and do of the handles that others have open."""

from collections.abc import Awaitable, Iterator

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.entry import Entry
from kyanite.model.files.handles import Handle, close, decode
from kyanite.model.files.tree import FilePath, Location
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import Reason, Refused

_CLOSED_AT_ONCE = 1000


class HandlePage(msgspec.Struct, frozen=True, gc=False):
    handles: list[Handle]
    next_id: int | None
    """The id of the handle with which the next page begins, or None when this was the last."""


class Closing(msgspec.Struct, frozen=True, gc=False):
    closed: int
    has_more: bool


def list_handles(
    engine: Engine, path: FilePath, *, recursive: bool, first_id: int, limit: int
) -> Awaitable[HandlePage]:
    def body(snap: Snapshot) -> HandlePage:
        location, entry = tree.load(snap, path, None)
        found = sorted(
            (each for _, each in _handles(snap, path, location, entry, recursive) if each.id >= first_id),
            key=lambda each: each.id,
        )
        more = found[limit].id if len(found) > limit else None
        return HandlePage(found[:limit], more)

    return engine.read(body)


def close_handles(
    engine: Engine, path: FilePath, *, recursive: bool, handle_id: int | None
) -> Awaitable[Closing]:
    """Close one handle, or as many of all as one transaction should. Their locks go with them."""

    def body(tx: Transaction) -> Closing:
        location, entry = tree.load(tx, path, None)
        found = [
            (key, each)
            for key, each in _handles(tx, path, location, entry, recursive)
            if handle_id is None or each.id == handle_id
        ]
        for key, each in found[:_CLOSED_AT_ONCE]:
            close(tx, key, each)
        return Closing(min(len(found), _CLOSED_AT_ONCE), len(found) > _CLOSED_AT_ONCE)

    return engine.run(body, durable=False)


def _handles(
    snap: Snapshot, path: FilePath, location: Location, entry: Entry, recursive: bool
) -> Iterator[tuple[bytes, Handle]]:
    if recursive and not entry.is_directory:
        raise Refused(Reason.NOT_RECURSIVE)
    if not recursive:
        base = keys.handles(location.tree.id, entry.id)
        yield from ((key, decode(value)) for key, value in snap.scan(base, keys.after(base)))
        return
    within = "".join(f"{fold(name)}/" for name in path.names)
    base = keys.handles_of_share(location.tree.id)
    for key, value in snap.scan(base, keys.after(base)):
        each = decode(value)
        if each.file_id == entry.id or fold(each.path).startswith(within):
            yield key, each
