"""What an SMB client changes of a file or directory through its handle, other than by writing bytes."""

from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.model.files import directory, file, tree, usage
from kyanite.model.files.actors import FileUse, SmbActor
from kyanite.model.files.entry import Entry
from kyanite.model.files.file import FileChange, RangeWrite
from kyanite.model.files.opens.data import FILE_BYTES_MAX
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.tree import Found
from kyanite.rules.file_attributes import archived
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights


class KeptTimes(NamedTuple):
    """The times that changes through a handle leave alone, because its client has set them (MS-FSA §2.1.5.15.2)."""

    last_write: bool = False
    change: bool = False


def set_properties(
    tx: Transaction, found: Found, actor: SmbActor, properties: SmbProperties, kept: KeptTimes
) -> Entry:
    """Set attributes, times or the security descriptor. Anything that is set changes ChangeTime, too."""
    if kept.change and properties.changed_at is None:
        properties = replace(properties, changed_at=found.entry.changed_at)
    if found.entry.is_directory:
        return directory.change(tx, found, actor, properties)
    return file.change(tx, found, actor, FileChange(None, None, properties))


def set_length(tx: Transaction, found: Found, actor: SmbActor, length: int, kept: KeptTimes) -> Entry:
    """Cut the file, or let it grow with zeros. The length that it has already changes nothing."""
    if length > FILE_BYTES_MAX:
        raise Refused(Reason.SHARE_SIZE_LIMIT_REACHED)
    old = found.entry
    if length == old.length:
        actor.prepare(tx, found.location.tree.id, old.id, FileUse(Rights.WRITE, event=Event.WRITE))
        return old
    return _adjusted(tx, found, file.resize(tx, found, actor, length), kept)


def reserve(tx: Transaction, found: Found, actor: SmbActor, size: int, kept: KeptTimes) -> Entry:
    """Set the allocation size. Less than the length cuts the file; more only has to fit into the quota."""
    entry = found.entry
    if size < entry.length:
        return set_length(tx, found, actor, size, kept)
    if size > FILE_BYTES_MAX or size - entry.length > usage.room(tx, found.location.tree.share):
        raise Refused(Reason.SHARE_SIZE_LIMIT_REACHED)
    actor.prepare(tx, found.location.tree.id, entry.id, FileUse(Rights.WRITE, event=Event.WRITE))
    return entry


def clear(tx: Transaction, found: Found, actor: SmbActor, offset: int, length: int, kept: KeptTimes) -> Entry:
    """Write zeros over a range, as far as the file reaches."""
    length = min(length, found.entry.length - offset)
    if length <= 0:
        return found.entry
    return _adjusted(tx, found, file.write(tx, found, actor, RangeWrite(offset, length, None)), kept)


def _adjusted(tx: Transaction, found: Found, saved: Entry, kept: KeptTimes) -> Entry:
    """Adjust an entry that was saved already."""
    entry = written(tx, found.entry, saved, kept)
    return saved if entry == saved else tree.save(tx, found.location, entry)


def written(tx: Transaction, old: Entry, entry: Entry, kept: KeptTimes) -> Entry:
    """The entry after a change of its bytes, with the times that the client keeps."""
    return replace(
        entry,
        attributes=archived(entry.attributes),
        modified_at=tx.now,
        last_write_at=old.last_write_at if kept.last_write else tx.now,
        changed_at=old.changed_at if kept.change else tx.now,
    )
