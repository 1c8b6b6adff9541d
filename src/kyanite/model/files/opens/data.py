"""The bytes of a file, read and written through its open handles, as SMB clients do.

Opening a handle has checked share modes, the lease and the read-only attribute. What is left to check is that the
handle is still open and that no lock forbids the range.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.extents.api import Extent
from kyanite.model.content import content
from kyanite.model.content.content import INLINE_MAX, Content, PlanPart, read_plan
from kyanite.model.files import tree, usage
from kyanite.model.files.actors import SmbActor
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import caching, open_files
from kyanite.model.files.opens.records import OpenHandles
from kyanite.model.files.tree import Found, Tree
from kyanite.rules import byte_locks
from kyanite.rules.byte_locks import Lock
from kyanite.rules.file_attributes import archived
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused

FILE_BYTES_MAX = 4 << 40
"""Azure's limit."""

_PLANS_MAX = 4
"""How many plans one snapshot makes for a read of content in very many parts."""

Payload = bytes | tuple[Extent, ...]


class HandleWrite(msgspec.Struct, frozen=True, gc=False):
    """One WRITE: at least one byte, which is in memory or in extents already."""

    handle_id: int
    offset: int
    length: int
    payload: Payload
    keeps_last_write: bool = False
    """The client has set the time itself and stopped its updates by this handle."""
    keeps_change: bool = False
    """The same for the time of the last change."""


class PlannedRead(NamedTuple):
    """Where the bytes of a READ come from."""

    parts: list[PlanPart]
    end: int
    """How far the parts go: not to ``until`` if they would be too many."""
    until: int
    """The end of the range, or of the file if that is less."""


class Written(NamedTuple):
    """What became of a group of WRITEs."""

    refusals: list[Reason | None]
    """For each of them, in order."""
    is_flush_wanted: bool
    """Whether others wait until nothing is answered that is not committed."""


class _Opened(NamedTuple):
    """An open file with all its handles, by their ids, and their locks."""

    found: Found
    present: OpenHandles
    handle_ids: set[int]
    locks: list[Lock]


def _load(snap: Snapshot, share_tree: Tree, file_id: int) -> _Opened:
    present = open_files.load(snap, share_tree.id, file_id)
    if present is None:
        raise Refused(Reason.HANDLE_CLOSED)
    found = open_files.find_opened(snap, share_tree, present[0])
    locks = [lock for each in present[1] for lock in each.locks]
    return _Opened(found, present, {each.id for each in present[1]}, locks)


# --- Reading


def read(
    snap: Snapshot, share_tree: Tree, file_id: int, handle_id: int, offset: int, length: int
) -> PlannedRead:
    """Plan a READ. The caller has pinned the extents before it took the snapshot."""
    opened = _load(snap, share_tree, file_id)
    if handle_id not in opened.handle_ids:
        raise Refused(Reason.HANDLE_CLOSED)
    caching.check_written(opened.present[0], share_tree.id, handle_id)
    locks = opened.locks if length else ()
    if locks:
        lock = byte_locks.conflict(locks, offset, length, writes=False, handle=handle_id)
        if lock is not None:
            raise open_files.lock_conflict(opened.present[1], lock, offset, length)
    return plan(snap, opened.found.entry, offset, length)


def plan(snap: Snapshot, entry: Entry, offset: int, length: int) -> PlannedRead:
    """The same without a handle: a file of a share snapshot has none."""
    until = min(offset + length, entry.length)
    if until <= offset:
        return PlannedRead([], until, until)
    first = read_plan(snap, entry.content, offset, until - offset)
    parts, end = first.parts, first.end
    for _ in range(_PLANS_MAX - 1):
        if end == until:
            break
        more = read_plan(snap, entry.content, end, until - end)
        parts += more.parts
        end = more.end
    return PlannedRead(parts, end, until)


# --- Writing


def write_all(tx: Transaction, share_tree: Tree, file_id: int, writes: Sequence[HandleWrite]) -> Written:
    """Write in this order, and make the file longer where a write reaches beyond its end.

    Each write is checked by itself. One that is refused changes nothing: its reason is returned in its place.
    """
    opened = _load(tx, share_tree, file_id)
    _check_written(opened, share_tree.id, writes)
    location, entry = opened.found
    length_max = _length_max(tx, share_tree, entry, writes)
    refusals = [_refusal(opened, write, length_max) for write in writes]
    granted = [write for write, reason in zip(writes, refusals, strict=True) if reason is None]
    outcome = Written(refusals, opened.present[0].is_flush_wanted)
    if not granted:
        return outcome
    if opened.present[0].grants:
        writers = {write.handle_id for write in granted}
        caching.break_by_handles(tx, share_tree.id, opened.present, writers, Event.WRITE)
    entry = tree.preserve_for_snapshots(tx, location, entry)
    length = max(entry.length, *(write.offset + write.length for write in granted))
    usage.change(tx, share_tree.share, entry.id, length - entry.length)
    keeps_last_write = all(write.keeps_last_write for write in granted)
    keeps_change = all(write.keeps_change for write in granted)
    written = replace(
        entry,
        length=length,
        content=_written(tx, entry.content, granted),
        lease=SmbActor(granted[0].handle_id).check_lease(entry.lease, tx.now),
        attributes=archived(entry.attributes),
        modified_at=tx.now,
        changed_at=entry.changed_at if keeps_change else tx.now,
        last_write_at=entry.last_write_at if keeps_last_write else tx.now,
    )
    tree.save(tx, location, written)
    return outcome


def can_write_behind(
    snap: Snapshot, share_tree: Tree, file_id: int, handle_id: int, offset: int, length: int
) -> bool:
    """Whether a WRITE can be answered before it is committed: no other client caches the file or waits for it.

    Refused when the WRITE would be refused if it were committed now.
    """
    opened = _load(snap, share_tree, file_id)
    write = HandleWrite(handle_id, offset, length, b"")
    reason = _refusal(opened, write, _length_max(snap, share_tree, opened.found.entry, [write]))
    if reason is not None:
        raise Refused(reason)
    own = next(each.caching_key for each in opened.present[1] if each.id == handle_id)
    file = opened.present[0]
    return not file.is_flush_wanted and all(grant.key == own for grant in file.grants)


def _check_written(opened: _Opened, share_id: int, writes: Sequence[HandleWrite]) -> None:
    """WRITEs that another process has answered come first. Those of one process are in one queue."""
    file, present = opened.present
    if file.unwritten:
        owners = {each.owner for each in present if each.id in (file.unwritten, writes[0].handle_id)}
        if len(owners) > 1:
            caching.check_written(file, share_id)


def _length_max(snap: Snapshot, share_tree: Tree, entry: Entry, writes: Iterable[HandleWrite]) -> int:
    """How long the file may become."""
    if all(write.offset + write.length <= entry.length for write in writes):
        return entry.length
    return max(entry.length, min(FILE_BYTES_MAX, entry.length + usage.room(snap, share_tree.share)))


def _refusal(opened: _Opened, write: HandleWrite, length_max: int) -> Reason | None:
    if write.handle_id not in opened.handle_ids:
        return Reason.HANDLE_CLOSED
    if opened.locks and byte_locks.conflict(
        opened.locks, write.offset, write.length, writes=True, handle=write.handle_id
    ):
        return Reason.FILE_LOCK_CONFLICT
    return Reason.SHARE_SIZE_LIMIT_REACHED if write.offset + write.length > length_max else None


def _written(tx: Transaction, old: Content, writes: Iterable[HandleWrite]) -> Content:
    for offset, payload in _joined(writes):
        old = content.write(tx, old, offset, payload)
    return old


def _joined(writes: Iterable[HandleWrite]) -> Iterator[tuple[int, Payload]]:
    """The payloads with their offsets. Those that continue each other become one: a client that writes a file from
    its beginning to its end sends many."""
    start, end = 0, -1
    payload: Payload = b""
    for write in writes:
        longer = _continued(payload, write.payload) if write.offset == end else None
        if longer is None:
            if payload:
                yield start, payload
            start, longer = write.offset, write.payload
        payload, end = longer, write.offset + write.length
    if payload:
        yield start, payload


def _continued(payload: Payload, more: Payload) -> Payload | None:
    if isinstance(payload, tuple) and isinstance(more, tuple):
        return payload + more
    if isinstance(payload, bytes) and isinstance(more, bytes) and len(payload) + len(more) <= INLINE_MAX:
        return payload + more
    return None
