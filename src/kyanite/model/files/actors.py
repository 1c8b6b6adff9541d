"""Who acts on a file or directory: a REST request, or an SMB client through one of its open handles.

Operations take what was found and an actor. They state the access that they need, and the actor checks whether other
handles, locks or a lease forbid it to this caller, and whether clients cache what it needs. ``check`` is for reading;
a change calls ``prepare``, which also tells clients that what they cache is no longer true.
"""

from typing import ClassVar

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.files.opens import caching, handles, open_files
from kyanite.model.files.opens.records import OpenHandles
from kyanite.rules import byte_locks, leases, share_modes
from kyanite.rules.lease_records import Lease
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import EVERYTHING, Open, Rights
from kyanite.values import Instant, LeaseId


class FileUse(msgspec.Struct, frozen=True, gc=False):
    """What an operation does with a file or directory."""

    access: Rights
    start: int = 0
    length: int = 0
    """Of the bytes that it reads or writes."""
    share: Rights = EVERYTHING
    """What it lets other handles do."""
    event: Event | None = None
    """What it means to clients that cache the file."""


class RestActor(msgspec.Struct, frozen=True, gc=False):
    """A REST request. It opens the file for the time of its transaction, as it were, and shares everything; so every
    open handle can forbid it, by a pending delete, its share mode, or a lock on the range."""

    obeys_read_only: ClassVar[bool] = True

    lease_id: LeaseId | None = None

    def check(self, snap: Snapshot, share_id: int, file_id: int, use: FileUse) -> OpenHandles | None:
        """The open file, if clients cache it. A client that a share mode stands for may only cache its handle, so it
        is asked to close that first."""
        access, length = use.access, use.length
        if access is Rights.NONE:
            opened = handles.check_not_pending(snap, share_id, file_id)
            if opened is not None and opened.grants and use.event is not None:
                caching.check(opened, share_id, use.event, b"", snap.now)
            if opened is not None and opened.unwritten:
                caching.check_written(opened, share_id)
            return None
        present = open_files.load(snap, share_id, file_id)
        if present is None:
            return None
        opened, others = present
        if opened.is_delete_pending:
            raise open_files.delete_pending(opened)
        wanted = Open(access, use.share)
        if share_modes.conflict((each.open for each in others), wanted):
            caching.check(opened, share_id, Event.SHARING_VIOLATION, b"", snap.now)
            raise open_files.sharing_violation(others, wanted)
        if opened.grants and use.event is not None:
            caching.check(opened, share_id, use.event, b"", snap.now)
        if opened.unwritten:
            caching.check_written(opened, share_id)
        if length:
            locks = [lock for each in others for lock in each.locks]
            lock = byte_locks.conflict(locks, use.start, length, writes=bool(access & Rights.WRITE))
            if lock is not None:
                raise open_files.lock_conflict(others, lock, use.start, length)
        return present if opened.grants else None

    def prepare(self, tx: Transaction, share_id: int, file_id: int, use: FileUse) -> None:
        present = self.check(tx, share_id, file_id, use)
        if present is not None and use.event is not None:
            caching.break_grants(tx, share_id, present, use.event)

    def check_lease(self, lease: Lease, now: Instant) -> Lease:
        """A write needs the id of the lease that is in force. Returns the lease as the write leaves it."""
        return leases.check_write(lease, self.lease_id, now)


class SmbActor(msgspec.Struct, frozen=True, gc=False):
    """An SMB client, by its handle. Opening it has checked share modes, the lease and a pending delete, so only the
    locks of other handles forbid what it does now. The SMB service checks the access that the handle was granted."""

    obeys_read_only: ClassVar[bool] = False
    """The attribute forbids opening a file for writing, but not the client that made it so to go on."""

    handle_id: int

    def check(self, snap: Snapshot, share_id: int, file_id: int, use: FileUse) -> None:
        if not use.length:
            open_files.load_handle(snap, share_id, file_id, self.handle_id)
        else:
            self._load(snap, share_id, file_id, use)

    def prepare(self, tx: Transaction, share_id: int, file_id: int, use: FileUse) -> None:
        """Its own open has told other clients what it opened the file for. What else it does takes from them what they
        cache."""
        event = use.event if use.event in _AFTER_OPEN else None
        if event is None:
            self.check(tx, share_id, file_id, use)
            return
        present = self._load(tx, share_id, file_id, use)
        if present[0].grants:
            own = next(each.caching_key for each in present[1] if each.id == self.handle_id)
            if event is Event.RENAME_OR_DELETE:
                caching.check(present[0], share_id, event, own, tx.now)
            caching.break_grants(tx, share_id, present, event, own)

    def _load(self, snap: Snapshot, share_id: int, file_id: int, use: FileUse) -> OpenHandles:
        """The file with all its handles, if no lock of another one forbids this use."""
        present = open_files.load(snap, share_id, file_id)
        if present is None or all(each.id != self.handle_id for each in present[1]):
            raise Refused(Reason.HANDLE_CLOSED)
        if present[0].unwritten:
            caching.check_written(present[0], share_id, self.handle_id)
        if use.length:
            locks = [lock for each in present[1] for lock in each.locks]
            writes = bool(use.access & Rights.WRITE)
            lock = byte_locks.conflict(locks, use.start, use.length, writes=writes, handle=self.handle_id)
            if lock is not None:
                raise open_files.lock_conflict(present[1], lock, use.start, use.length)
        return present

    def check_lease(self, lease: Lease, now: Instant) -> Lease:
        """A lease that is in force leaves SMB clients only handles that cannot write."""
        return lease if leases.is_locked(lease, now) else leases.check_write(lease, None, now)


_AFTER_OPEN = (Event.WRITE, Event.RENAME_OR_DELETE)

Actor = RestActor | SmbActor
