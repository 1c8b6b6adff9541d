"""Oplocks and leases of open files: granting them, breaking them, and ending a break.

Whatever reads or changes a file asks here first whether clients cache what it needs. ``rules/oplocks.py`` decides; this
module loads and saves. A break that nothing waits for is part of the transaction that causes it. For one that must be
waited for, a transaction raises ``BreakNeeded``: nothing of it is written, and ``waits.py`` sends the breaks, waits,
and runs it again. CREATE returns a ``Wait`` instead, since it has sent the breaks itself.

A client that has lost its connection cannot answer. If it must, its handles are closed instead (MS-SMB2 §3.3.4.7).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.opens import grants, handles, open_files
from kyanite.model.files.opens.records import (
    CLIENT_BYTES,
    Grant,
    Handle,
    OpenFile,
    OpenHandles,
    decode_open_file,
    key_of_oplock,
)
from kyanite.model.records import encode
from kyanite.rules import oplocks
from kyanite.rules.oplocks import AcknowledgementError, Caching, Event, OtherOpen
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import OpenFileFacts
from kyanite.values import Instant

_BROKEN_TOGETHER = 100
"""Files below a directory that is renamed whose handles are broken in one transaction."""


class BreakNeeded(Exception):
    """Clients cache what a transaction needs, and must give it up first."""

    def __init__(self, share_id: int, file_ids: tuple[int, ...], event: Event | None, own: bytes) -> None:
        super().__init__("flush" if event is None else event.name)
        self.share_id = share_id
        self.file_ids = file_ids
        self.event = event
        """None when only WRITEs are waited for that were answered already."""
        self.own = own
        """The key of the client that causes it; empty for a request of REST."""

    @property
    def topic(self) -> bytes:
        """Notified when the break of the first file may be over."""
        return open_files.changed_topic(self.share_id, self.file_ids[0])


class CachingRequest(msgspec.Struct, frozen=True, gc=False):
    """What a client asks for when it opens a file."""

    wanted: Caching = Caching.NONE
    lease: bytes = b""
    """Of a lease: the guid of the client and its lease key; empty for an oplock."""
    version: int = 0
    """1 or 2 of a lease; 0 of an oplock."""
    epoch: int = 0

    @property
    def lease_key(self) -> bytes:
        return self.lease[16:]


NO_CACHING = CachingRequest()


class Granted(NamedTuple):
    state: Caching
    epoch: int = 0
    is_breaking: bool = False
    version: int = 0
    """Of a lease: that of the open which began it."""


NOTHING_GRANTED = Granted(Caching.NONE)


class Broken(NamedTuple):
    present: OpenHandles | None
    """What is left of the open file; None when all its handles were closed."""
    waits: bool


# --- Breaking


def check(opened: OpenFile, share_id: int, event: Event, own: bytes, now: Instant) -> None:
    """Whether an event can happen now. What need not be waited for is broken by ``break_grants``."""
    if opened.grants and grants.must_wait(opened.grants, event, own, now):
        raise BreakNeeded(share_id, (opened.file_id,), event, own)


def check_written(opened: OpenFile, share_id: int, own_handle: int = 0) -> None:
    """Whether all WRITEs through other handles that were answered are committed."""
    if opened.unwritten and opened.unwritten != own_handle:
        raise BreakNeeded(share_id, (opened.file_id,), None, b"")


def check_unopened(snap: Snapshot, share_id: int, file_id: int) -> None:
    """Refuse to delete a file that has any handle, once clients have closed those that they only cache."""
    opened = open_files.load_open_file(snap, share_id, file_id)
    if opened is not None:
        if opened.is_delete_pending:
            raise open_files.delete_pending(opened)
        check(opened, share_id, Event.RENAME_OR_DELETE, b"", snap.now)
        raise Refused(Reason.SHARING_VIOLATION, facts=OpenFileFacts(opened.path, opened.handle_count))


def check_none_open_below(snap: Snapshot, share_id: int, directory_id: int) -> None:
    """Refuse to move a directory when anything below it is open, once clients have closed what they only cache."""
    base = keys.open_entries(share_id, directory_id)
    rows = snap.scan(base, keys.after(base), limit=_BROKEN_TOGETHER)
    file_ids = [keys.parts_of_open_entry(key)[1] for key, _ in rows]
    if not file_ids:
        return
    found = snap.get_many([keys.handles(share_id, file_id) for file_id in file_ids])
    all_opened = [decode_open_file(each) for each in found if each is not None]
    event = Event.RENAME_OR_DELETE
    cached = [each for each in all_opened if grants.must_wait(each.grants, event, b"", snap.now)]
    if len(cached) < len(all_opened):  # Another one is open in any case.
        raise Refused(Reason.SHARING_VIOLATION)
    raise BreakNeeded(share_id, tuple(each.file_id for each in cached), event, b"")


def break_grants(
    tx: Transaction,
    share_id: int,
    present: OpenHandles,
    event: Event,
    own: bytes = b"",
    *,
    opens_with: int | None = None,
    has_waited: bool = False,
) -> Broken:
    """Break what the event takes from clients, and say whether it must wait for them.

    ``own`` is the key of the client that causes it. ``opens_with`` is the access mask of an open, if the event is one,
    and ``has_waited`` says that the open has waited before.
    """
    opened, others = present
    waits = False
    closed: list[Handle] = []
    for grant in opened.grants:
        if opens_with is not None and oplocks.is_stat_open(opens_with, against_lease=bool(grant.version)):
            continue
        rule = grants.rule_of(grant, tx.now)
        broken = oplocks.break_for(event, rule, tx.now, is_own=grant.key == own, has_waited=has_waited)
        changed = grants.changed(grant, broken.grant)
        if broken.message is not None:
            receiver = _receiver(others, grant)
            if receiver is not None:
                grants.send(tx, receiver.owner, receiver.id, changed, broken.message)
            elif broken.message.is_acknowledged:
                closed += [each for each in others if each.caching_key == grant.key]
                continue
        waits = waits or broken.waits
        if changed != grant:
            opened = replace(opened, grants=grants.replaced(opened.grants, changed))
    if opened is not present[0]:
        tx.put(keys.handles(share_id, opened.file_id), encode(opened))
    if not closed:
        return Broken((opened, others), waits)
    return Broken(_without(tx, share_id, (opened, others), closed), waits)


def _receiver(present: Sequence[Handle], grant: Grant) -> Handle | None:
    """The handle whose client is sent a break; None when none of the grant is connected. Of a lease it may be any of
    the client: as in Windows it is the oldest, over whichever connection that came."""
    if not any(each.caching_key == grant.key and each.is_connected for each in present):
        return None
    if not grant.version:
        return next(each for each in present if each.caching_key == grant.key)
    client = grant.key[:CLIENT_BYTES]
    return next(
        each for each in present if each.lease_key and each.client_guid == client and each.is_connected
    )


def break_by_handles(
    tx: Transaction, share_id: int, present: OpenHandles, handle_ids: Iterable[int], event: Event
) -> None:
    """Break what a write or a lock through each of these handles takes from others. Nothing waits for that."""
    left: OpenHandles | None = present
    for handle_id in handle_ids:
        if left is None or not left[0].grants:
            return
        own = next((each.caching_key for each in left[1] if each.id == handle_id), b"")
        left = break_grants(tx, share_id, left, event, own).present


def _without(
    tx: Transaction, share_id: int, present: OpenHandles, closed: Sequence[Handle]
) -> OpenHandles | None:
    """Close these handles, whose clients are gone."""
    left: OpenFile | None = present[0]
    for handle in closed:
        assert left is not None, "More handles are closed than a file has."
        left = handles.force_close(tx, share_id, left, handle)
    gone = {each.id for each in closed}
    others = [each for each in present[1] if each.id not in gone]
    return None if left is None else (left, others)


def send_breaks(tx: Transaction, needed: BreakNeeded) -> bool:
    """Send the breaks that a transaction needs. False when there is nothing to wait for."""
    waits = False
    for file_id in needed.file_ids:
        present = open_files.load(tx, needed.share_id, file_id)
        if present is not None and needed.event is not None:
            broken = break_grants(tx, needed.share_id, present, needed.event, needed.own)
            waits = waits or broken.waits
            present = broken.present
        if present is not None and present[0].unwritten:
            handles.want_flush(tx, needed.share_id, present[0])
            waits = True
    return waits


# --- Granting


def check_lease_key(snap: Snapshot, request: CachingRequest, share_id: int, file_id: int) -> None:
    """A lease key of a client is for one file, as long as one of its handles names it."""
    leased = grants.load_leased_file(snap, request.lease) if request.lease else None
    if leased is None or (leased.share_id, leased.file_id) == (share_id, file_id):
        return
    opened = open_files.load_open_file(snap, leased.share_id, leased.file_id)
    if opened is not None and grants.find(opened.grants, request.lease) is not None:
        raise Refused(Reason.LEASE_KEY_IN_USE)


def grant(
    tx: Transaction,
    share_id: int,
    present: OpenHandles,
    handle: Handle,
    request: CachingRequest,
    *,
    is_emptied: bool = False,
) -> tuple[OpenFile, Granted]:
    """Let a new handle cache what it can of what it requests. ``present`` is the file with its other handles, and
    ``is_emptied`` says that opening it has made or overwritten the file."""
    opened, others = present
    if request is NO_CACHING:
        return opened, NOTHING_GRANTED
    is_lease = bool(request.lease)
    is_stat = oplocks.is_stat_open(handle.granted, against_lease=is_lease)
    if not is_lease and is_stat and not is_emptied:
        return opened, NOTHING_GRANTED
    possible = oplocks.grantable(
        request.wanted,
        _other_opens(present, handle.caching_key, tx.now),
        is_lease=is_lease,
        has_byte_locks=any(each.locks for each in others),
    )
    old = grants.find(opened.grants, request.lease) if is_lease else None
    if old is not None:
        rule = oplocks.upgrade(grants.rule_of(old, tx.now), request.wanted, possible)
        new = replace(grants.changed(old, rule), handle_count=old.handle_count + 1)
        granted = Granted(rule.state, rule.epoch, rule.is_breaking, new.version)
        return replace(opened, grants=grants.replaced(opened.grants, new)), granted
    if is_lease:
        grants.save_leased_file(tx, request.lease, share_id, opened.file_id)
    elif not possible:
        return opened, NOTHING_GRANTED
    epoch = (request.epoch + 1) & 0xFFFF if request.version > 1 else 0
    new = Grant(handle.caching_key, possible.value, request.version, epoch=epoch)
    return replace(opened, grants=(*opened.grants, new)), Granted(possible, epoch, version=request.version)


def _other_opens(present: OpenHandles, own: bytes, now: Instant) -> list[OtherOpen]:
    states = {each.key: grants.rule_of(each, now).state for each in present[0].grants}
    return [
        OtherOpen(
            states.get(each.caching_key, Caching.NONE),
            is_lease=bool(each.lease_key),
            is_stat=oplocks.is_stat_open(each.granted, against_lease=bool(each.lease_key)),
        )
        for each in present[1]
        if each.caching_key != own
    ]


# --- Ending a break


def acknowledge_lease(tx: Transaction, key: bytes, kept: Caching) -> Caching | AcknowledgementError:
    """The owner of a lease keeps so much of it. Refused when no file has the key."""
    leased = grants.load_leased_file(tx, key)
    if leased is None:
        raise Refused(Reason.LEASE_KEY_NOT_FOUND)
    return _acknowledge(tx, leased.share_id, leased.file_id, key, kept)


def acknowledge_oplock(
    tx: Transaction, share_id: int, file_id: int, handle_id: int, kept: Caching
) -> Caching | AcknowledgementError:
    return _acknowledge(tx, share_id, file_id, key_of_oplock(handle_id), kept)


def _acknowledge(
    tx: Transaction, share_id: int, file_id: int, key: bytes, kept: Caching
) -> Caching | AcknowledgementError:
    present = open_files.load(tx, share_id, file_id)
    old = None if present is None else grants.find(present[0].grants, key)
    if present is None or old is None:
        return AcknowledgementError.NOT_BREAKING
    opened, others = present
    outcome = oplocks.acknowledge(grants.rule_of(old, tx.now), kept, tx.now)
    if isinstance(outcome, AcknowledgementError):
        return outcome
    new = grants.changed(old, outcome.grant)
    opened = replace(opened, grants=grants.replaced(opened.grants, new))
    tx.put(keys.handles(share_id, file_id), encode(opened))
    receiver = _receiver(others, new)
    if outcome.message is not None and receiver is not None:
        grants.send(tx, receiver.owner, receiver.id, new, outcome.message)
    tx.notify(open_files.changed_topic(share_id, file_id))
    return kept
