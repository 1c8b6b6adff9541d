"""Directories: creating, describing and deleting them. ``listing.py`` lists what they contain.

As in ``file.py``, one function acts on a directory that was found, for an actor, and one finds it for a REST request.
"""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import security_descriptors, tree
from kyanite.model.files.actors import Actor, FileUse, RestActor
from kyanite.model.files.entry import DIRECTORY, Entry
from kyanite.model.files.opens import handles
from kyanite.model.files.properties import USUAL_OF_DIRECTORIES, SmbProperties, changed, new_entry
from kyanite.model.files.security_descriptors import PermissionRequest
from kyanite.model.files.share import ShareRecord
from kyanite.model.files.tree import ROOT_ID, FilePath, Found, Location
from kyanite.model.records import encode
from kyanite.rules import sddl
from kyanite.rules.file_attributes import Attributes, is_read_only
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights


def create_root(tx: Transaction, share: ShareRecord) -> None:
    """Make the root directory of a new share."""
    granted = security_descriptors.grant(tx, share.id, PermissionRequest(sddl.ROOT), to_directory=True)
    root = Entry(
        name="",
        id=ROOT_ID,
        kind=DIRECTORY,
        written_at=tx.now,
        modified_at=tx.now,
        created_at=tx.now,
        last_write_at=tx.now,
        changed_at=tx.now,
        attributes=int(Attributes.DIRECTORY),
        permission=granted.own,
        metadata={},
        posix=USUAL_OF_DIRECTORIES if share.speaks_nfs else None,
        for_files=granted.for_files,
        for_directories=granted.for_directories,
    )
    tx.put(keys.entry(share.id, ROOT_ID, ""), encode(root))


def create(
    engine: Engine, path: FilePath, request: SmbProperties, metadata: dict[str, str]
) -> Awaitable[tuple[Entry, int]]:
    """The new directory and the id of its parent."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        share_tree, rows = tree.open_path(tx, path, with_root=True)
        location = tree.location_of(tx, share_tree, path.names, rows)
        return put(tx, location, request, metadata), location.directory_id

    return engine.run(body)


def put(tx: Transaction, location: Location, request: SmbProperties, metadata: dict[str, str]) -> Entry:
    """Make a directory at a location that has no entry."""
    location, old = tree.look_up(tx, location)
    if old is not None:
        handles.check_not_pending(tx, location.tree.id, old.id)
        raise Refused(Reason.PATH_ALREADY_EXISTS if old.is_directory else Reason.PATH_TYPE_MISMATCH)
    parent = tree.parent_of(tx, location)
    entry = new_entry(tx, location, parent, request, kind=DIRECTORY, entry_id=tx.new_id(), metadata=metadata)
    return tree.save(tx, location, entry)


def get_properties(engine: Engine, path: FilePath) -> Awaitable[tuple[Entry, int]]:
    """The directory and the id of its parent."""

    def body(snap: Snapshot) -> tuple[Entry, int]:
        location, entry = tree.load_for_properties(snap, path, DIRECTORY)
        return entry, location.directory_id

    return engine.read(body)


def set_properties(engine: Engine, path: FilePath, request: SmbProperties) -> Awaitable[tuple[Entry, int]]:
    def body(tx: Transaction) -> tuple[Entry, int]:
        found = tree.load(tx, path, DIRECTORY)
        return change(tx, found, RestActor(), request), found.location.directory_id

    return engine.run(body)


def change(tx: Transaction, found: Found, actor: Actor, request: SmbProperties) -> Entry:
    location, entry = found
    actor.check(tx, location.tree.id, entry.id, FileUse(Rights.NONE))
    entry = changed(tx, location.tree.id, tree.preserve_for_snapshots(tx, location, entry), request)
    return tree.save(tx, location, entry)


def set_metadata(engine: Engine, path: FilePath, metadata: dict[str, str]) -> Awaitable[Entry]:
    def body(tx: Transaction) -> Entry:
        location, entry = tree.load(tx, path, DIRECTORY)
        handles.check_not_pending(tx, location.tree.id, entry.id)
        entry = tree.preserve_for_snapshots(tx, location, entry)
        entry = replace(entry, metadata=metadata, modified_at=tx.now, changed_at=tx.now)
        return tree.save(tx, location, entry)

    return engine.run(body)


def delete(engine: Engine, path: FilePath) -> Awaitable[None]:
    """Delete an empty directory that is not open. An SMB client marks it for deletion and closes its handle."""

    def body(tx: Transaction) -> None:
        location, entry = tree.load(tx, path, DIRECTORY)
        if entry.id == ROOT_ID:
            raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
        handles.check_unopened(tx, location.tree.id, entry.id, Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
        tree.check_empty(tx, location.tree.id, entry.id)
        if is_read_only(entry.attributes):
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
        tree.remove(tx, location, entry)

    return engine.run(body)
