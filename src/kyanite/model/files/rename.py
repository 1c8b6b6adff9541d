"""Renaming a file or a directory: one row moves, whatever a directory contains.

The entry keeps its id, so everything in a directory moves along untouched, and open handles follow the entry.
"""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model.files import tree
from kyanite.model.files.actors import Actor, FileUse, RestActor
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.history import leave_location
from kyanite.model.files.opens import caching, handles, watches
from kyanite.model.files.properties import SmbProperties, changed
from kyanite.model.files.tree import ROOT_ID, FilePath, Found, Location
from kyanite.rules import leases
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.lease_records import NO_LEASE
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.values import LeaseId


class Rename(msgspec.Struct, frozen=True, gc=False):
    """What becomes of the entry that is renamed."""

    names: tuple[str, ...]
    """Its new path, in the same share."""
    replaces: bool = False
    ignores_read_only: bool = False
    target_lease_id: LeaseId | None = None
    properties: SmbProperties = SmbProperties()
    metadata: dict[str, str] | None = None
    content_type: str = ""


def rename(
    engine: Engine, path: FilePath, kind: int, request: Rename, lease_id: LeaseId | None = None
) -> Awaitable[tuple[Entry, int]]:
    """The entry under its new name, and the id of the directory that contains it now."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        location, entry = move(tx, tree.load(tx, path, kind), RestActor(lease_id), request)
        return entry, location.directory_id

    return engine.run(body, scope_of(path), scope_of(FilePath(path.share, request.names)))


def move(tx: Transaction, found: Found, actor: Actor, request: Rename) -> Found:
    """Give the entry its new name, in place of a file that has this name if the request allows it."""
    source, entry = found
    if entry.id == ROOT_ID:
        raise Refused(Reason.SHARING_VIOLATION)
    actor.prepare(tx, source.tree.id, entry.id, FileUse(Rights.DELETE, event=Event.RENAME_OR_DELETE))
    if entry.is_directory:
        caching.check_none_open_below(tx, source.tree.id, entry.id)
    actor.check_lease(entry.lease, tx.now)
    target = tree.location_of(tx, source.tree, request.names, outside=source)
    if target.key != source.of_name.key:
        _remove_target(tx, target, request)
        if source.file_id:  # The name that was removed may have been another name of the same file.
            entry = tree.follow(tx, source.tree, entry)
    handles.follow_rename(tx, entry, target)
    moved, target = _moved(tx, source, target, entry)
    moved = replace(changed(tx, target.tree.id, moved, request.properties), name=target.name)
    if request.metadata:
        moved = replace(moved, metadata=request.metadata)
    if request.content_type:
        moved = replace(moved, http=replace(moved.http, content_type=request.content_type))
    if source.tree.share.is_watched:
        watches.renamed(tx, source.tree.id, source.path, target.path, entry)
    return Found(target, tree.store(tx, target, moved))


def _moved(tx: Transaction, source: Location, target: Location, entry: Entry) -> tuple[Entry, Location]:
    """The entry, free to be saved at the returned location, with its row at the source removed. Of a file with
    several names only the name moves."""
    if source.file_id:
        tree.remove_name(tx, source)
        target = target._replace(file_id=source.file_id)
        tree.save_name(tx, target)
        return tree.preserve_for_snapshots(tx, source, entry), target
    free = tree.preserve_for_snapshots(tx, source, entry)
    tx.delete(source.key)
    return leave_location(tx, source, free) if entry.kind == FILE else free, target


def _remove_target(tx: Transaction, target: Location, request: Rename) -> None:
    """Check that no entry has the new name, or delete the file that has it. A directory may replace a file too. An
    open file cannot be deleted."""
    target, old = tree.look_up(tx, target)
    if old is None:
        leases.check_write(NO_LEASE, request.target_lease_id, tx.now)
        return
    handles.check_not_pending(tx, target.tree.id, old.id)
    if not request.replaces:
        raise Refused(Reason.PATH_ALREADY_EXISTS)
    if old.is_directory:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    if is_read_only(old.attributes) and not request.ignores_read_only:
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    caching.check_unopened(tx, target.tree.id, old.id)
    leases.check_write(old.lease, request.target_lease_id, tx.now)
    tree.remove(tx, target, old)
