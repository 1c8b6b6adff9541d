"""What SMB shows of a file or directory, from its entry."""

from kyanite.model.files.entry import Entry
from kyanite.model.files.opens.description import Description
from kyanite.model.files.scan import ScannedEntry
from kyanite.rules.file_attributes import Attributes
from kyanite.services.smb.state import Open
from kyanite.wire.smb2 import filetime
from kyanite.wire.smb2.create import (
    DELETE_ON_CLOSE,
    NO_INTERMEDIATE_BUFFERING,
    SEQUENTIAL_ONLY,
    SYNCHRONOUS_IO_ALERT,
    SYNCHRONOUS_IO_NONALERT,
    WRITE_THROUGH,
)
from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.info.file import FileInformation
from kyanite.wire.smb2.info.file_system import UNIT_BYTES

MODE_OPTIONS = (
    WRITE_THROUGH
    | SEQUENTIAL_ONLY
    | NO_INTERMEDIATE_BUFFERING
    | SYNCHRONOUS_IO_ALERT
    | SYNCHRONOUS_IO_NONALERT
    | DELETE_ON_CLOSE
)
"""The options of CREATE that FileModeInformation shows."""
NORMAL = int(Attributes.NORMAL)


def times_of(entry: Entry | ScannedEntry) -> FileTimes:
    return FileTimes(
        filetime.encode(entry.created_at),
        filetime.encode(entry.last_access_at),
        filetime.encode(entry.last_write_at),
        filetime.encode(entry.changed_at),
    )


def attributes_of(entry: Entry | ScannedEntry) -> int:
    """Never 0, which would mean that nothing is known."""
    return entry.attributes or NORMAL


def allocation_size(length: int) -> int:
    """The space of a file: whole units. A directory has none."""
    return -(-length // UNIT_BYTES) * UNIT_BYTES


def file_id_of(share_id: int, entry_id: int) -> int:
    """The root has the id of its share, since clients take 0 for no id."""
    return entry_id or share_id


def file_information(opened: Open, described: Description) -> FileInformation:
    location, entry = described.found
    is_pending = described.is_delete_pending
    return FileInformation(
        times=times_of(entry),
        file_attributes=attributes_of(entry),
        allocation_size=max(allocation_size(entry.length), opened.allocation_size),
        end_of_file=entry.length,
        number_of_links=0 if is_pending else entry.links,
        is_delete_pending=is_pending,
        is_directory=entry.is_directory,
        file_id=file_id_of(location.tree.id, entry.id),
        volume_id=location.tree.id,
        granted_access=opened.access,
        position=opened.position,
        mode=opened.options & MODE_OPTIONS,
        path="\\".join(described.names),
    )
