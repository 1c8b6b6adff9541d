"""Directories: the transactions over them. What is in them is listed by ``listing.py``."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files import handles, security_descriptors, tree
from kyanite.model.files.entry import DIRECTORY, Entry
from kyanite.model.files.properties import USUAL_OF_DIRECTORIES, SmbProperties, changed, new_entry
from kyanite.model.files.security_descriptors import PermissionRequest
from kyanite.model.files.share import ShareRecord
from kyanite.model.files.tree import ROOT_ID, FilePath
from kyanite.model.records import encode
from kyanite.rules import sddl
from kyanite.rules.file_attributes import Attributes, is_read_only
from kyanite.rules.refusals import Reason, Refused


def found_root(tx: Transaction, share: ShareRecord) -> None:
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
        location = tree.location_of(tx, tree.open_tree(tx, path.share), path.names)
        location, there = tree.look_up(tx, location)
        if there is not None:
            handles.check_not_pending(handles.handles_of(tx, location.tree.id, there.id))
            raise Refused(Reason.PATH_ALREADY_EXISTS if there.is_directory else Reason.PATH_TYPE_MISMATCH)
        parent = tree.parent_of(tx, location)
        entry = new_entry(tx, location, parent, request, kind=DIRECTORY, entry_id=tx.now, metadata=metadata)
        return tree.save(tx, location, entry), parent.id

    return engine.run(body)


def get_properties(engine: Engine, path: FilePath) -> Awaitable[tuple[Entry, int]]:
    """The directory and the id of its parent."""

    def body(snap: Snapshot) -> tuple[Entry, int]:
        location, entry = tree.load_to_see(snap, path, DIRECTORY)
        return entry, location.directory_id

    return engine.read(body)


def set_properties(engine: Engine, path: FilePath, request: SmbProperties) -> Awaitable[tuple[Entry, int]]:
    def body(tx: Transaction) -> tuple[Entry, int]:
        location, entry = tree.load(tx, path, DIRECTORY)
        handles.check_not_pending(handles.handles_of(tx, location.tree.id, entry.id))
        entry = changed(tx, location.tree.id, tree.preserve_for_snapshots(tx, location, entry), request)
        return tree.save(tx, location, entry), location.directory_id

    return engine.run(body)


def set_metadata(engine: Engine, path: FilePath, metadata: dict[str, str]) -> Awaitable[Entry]:
    def body(tx: Transaction) -> Entry:
        location, entry = tree.load(tx, path, DIRECTORY)
        handles.check_not_pending(handles.handles_of(tx, location.tree.id, entry.id))
        entry = tree.preserve_for_snapshots(tx, location, entry)
        return tree.save(
            tx, location, replace(entry, metadata=metadata, modified_at=tx.now, changed_at=tx.now)
        )

    return engine.run(body)


def delete(engine: Engine, path: FilePath) -> Awaitable[None]:
    """Only when there is nothing in it, and nobody has it open."""

    def body(tx: Transaction) -> None:
        location, entry = tree.load(tx, path, DIRECTORY)
        if entry.id == ROOT_ID:
            raise Refused(Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
        handles.check_unopened(tx, location.tree.id, entry.id, Reason.CANNOT_DELETE_FILE_OR_DIRECTORY)
        check_empty(tx, location.tree.id, entry.id)
        if is_read_only(entry.attributes):
            raise Refused(Reason.READ_ONLY_ATTRIBUTE)
        tree.remove(tx, location, entry)

    return engine.run(body)


def check_empty(snap: Snapshot, share_id: int, directory_id: int) -> None:
    base = keys.entries(share_id, directory_id)
    if any(True for _ in snap.scan(base, keys.after(base), limit=1)):
        raise Refused(Reason.DIRECTORY_NOT_EMPTY)
