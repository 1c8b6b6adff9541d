"""The properties that REST and SMB share, as requests set them: attributes, four times, the security descriptor."""

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model.files import security_descriptors
from kyanite.model.files.entry import DIRECTORY, Entry, Posix
from kyanite.model.files.security_descriptors import Granted, PermissionRequest
from kyanite.model.files.tree import Location
from kyanite.rules.file_attributes import Attributes
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

NOW = Instant(-1)
"""Stands for the instant of the transaction."""

USUAL_OF_FILES = Posix("0664", "0", "0")
USUAL_OF_DIRECTORIES = Posix("0755", "0", "0")
"""On NFS shares."""


class SmbProperties(msgspec.Struct, frozen=True, gc=False):
    """What a request sets. None means the usual value for a new entry, and no change for an old one."""

    attributes: int | None = None
    created_at: Instant | None = None
    last_write_at: Instant | None = None
    changed_at: Instant | None = None
    permission: PermissionRequest | None = None
    posix: Posix | None = None
    last_access_at: Instant | None = None


def new_entry(
    tx: Transaction,
    location: Location,
    parent: Entry,
    request: SmbProperties,
    *,
    kind: int,
    entry_id: int,
    metadata: dict[str, str],
) -> Entry:
    """A new entry. Properties that the request does not set are the present time, usual values, or inherited."""
    is_directory = kind == DIRECTORY
    granted = _granted(tx, location, parent, request, is_directory)
    usual = Attributes.DIRECTORY if is_directory else Attributes.ARCHIVE
    return Entry(
        name=location.name,
        id=entry_id,
        kind=kind,
        written_at=tx.now,
        modified_at=tx.now,
        created_at=_time(request.created_at, tx.now, tx.now),
        last_write_at=_time(request.last_write_at, tx.now, tx.now),
        changed_at=_time(request.changed_at, tx.now, tx.now),
        attributes=int(usual if request.attributes is None else request.attributes),
        permission=granted.own,
        metadata=metadata,
        posix=_posix(location, request.posix, is_directory),
        for_files=granted.for_files,
        for_directories=granted.for_directories,
        named_at=tx.now,
    )


def _posix(location: Location, wanted: Posix | None, is_directory: bool) -> Posix | None:
    """On an NFS share every entry has owner, group and mode; on an SMB share none has."""
    if not location.tree.share.speaks_nfs:
        if wanted is not None:
            raise Refused(Reason.SHARE_PROTOCOL_MISMATCH)
        return None
    return _changed_posix(USUAL_OF_DIRECTORIES if is_directory else USUAL_OF_FILES, wanted)


def _granted(
    tx: Transaction, location: Location, parent: Entry, request: SmbProperties, is_directory: bool
) -> Granted:
    share_id = location.tree.share.id
    if request.permission is not None:
        return security_descriptors.grant(tx, share_id, request.permission, to_directory=is_directory)
    if not is_directory:
        return Granted(parent.for_files)
    return security_descriptors.grant(
        tx, share_id, PermissionRequest(key=parent.for_directories), to_directory=True
    )


def changed(tx: Transaction, share_id: int, entry: Entry, request: SmbProperties) -> Entry:
    """The entry with what the request sets; it counts as modified."""
    entry = replace(
        entry,
        attributes=entry.attributes if request.attributes is None else request.attributes,
        created_at=_time(request.created_at, tx.now, entry.created_at),
        last_write_at=_time(request.last_write_at, tx.now, entry.last_write_at),
        changed_at=_time(request.changed_at, tx.now, tx.now),
        modified_at=tx.now,
        posix=_changed_posix(entry.posix, request.posix),
        set_last_access_at=_time(request.last_access_at, tx.now, entry.set_last_access_at),
    )
    if request.permission is None:
        return entry
    granted = security_descriptors.grant(tx, share_id, request.permission, to_directory=entry.is_directory)
    return replace(
        entry,
        permission=granted.own,
        for_files=granted.for_files,
        for_directories=granted.for_directories,
    )


def _changed_posix(present: Posix | None, wanted: Posix | None) -> Posix | None:
    if wanted is None:
        return present
    if present is None:
        raise Refused(Reason.SHARE_PROTOCOL_MISMATCH)
    return Posix(wanted.mode or present.mode, wanted.owner or present.owner, wanted.group or present.group)


def _time(wanted: Instant | None, now: Instant, otherwise: Instant) -> Instant:
    if wanted is None:
        return otherwise
    return now if wanted == NOW else wanted
