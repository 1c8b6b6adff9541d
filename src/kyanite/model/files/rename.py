"""Renaming a file or a directory: one row moves, whatever a directory holds.

The entry keeps its id, so open handles, and what is in a directory, go along without being touched.
"""

from collections.abc import Awaitable

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model.files import handles
from kyanite.model.files import tree as file_tree
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.history import leaving
from kyanite.model.files.properties import SmbProperties, changed
from kyanite.model.files.tree import ROOT_ID, FilePath, Location, Tree
from kyanite.rules import leases
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.values import LeaseId


class Rename(msgspec.Struct, frozen=True, gc=False):
    source: FilePath
    target: FilePath
    """In the same share."""
    kind: int
    replaces: bool = False
    ignores_read_only: bool = False
    source_lease_id: LeaseId | None = None
    target_lease_id: LeaseId | None = None
    properties: SmbProperties = SmbProperties()
    metadata: dict[str, str] | None = None
    content_type: str = ""


def rename(engine: Engine, request: Rename) -> Awaitable[tuple[Entry, int]]:
    """The entry under its new name, and the id of the directory that holds it now."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        source, entry = file_tree.load(tx, request.source, request.kind)
        if entry.id == ROOT_ID or _is_inside(source.tree, request):
            raise Refused(Reason.SHARING_VIOLATION)
        handles.check_virtual_open(tx, source.tree.id, entry.id, Rights.DELETE)
        if entry.is_directory:
            handles.check_none_inside(tx, source.tree.id, "/".join(request.source.names))
        leases.check_write(entry.lease, request.source_lease_id, tx.now)
        target = file_tree.location_of(tx, source.tree, request.target.names)
        if target.key != source.of_name.key:
            _make_room(tx, target, request)
            if source.file_id:  # The name that made room may have been another of the same file.
                source, entry = file_tree.load(tx, request.source, request.kind)
        moved, target = _moved(tx, source, target, entry)
        moved = replace(changed(tx, target.tree.id, moved, request.properties), name=target.name)
        if request.metadata:
            moved = replace(moved, metadata=request.metadata)
        if request.content_type:
            moved = replace(moved, http=replace(moved.http, content_type=request.content_type))
        return file_tree.save(tx, target, moved), target.directory_id

    return engine.run(body, scope_of(request.source), scope_of(request.target))


def _is_inside(tree: Tree, request: Rename) -> bool:
    """Whether a directory would be moved into itself."""
    above = [tree.fold(name) for name in request.source.names]
    return (
        len(request.target.names) > len(above)
        and [tree.fold(name) for name in request.target.names[: len(above)]] == above
    )


def _moved(tx: Transaction, source: Location, target: Location, entry: Entry) -> tuple[Entry, Location]:
    """The entry, free to be saved at the place that comes with it; nothing is left at the source. Of a file with
    several names only the name moves."""
    if source.file_id:
        file_tree.remove_name(tx, source)
        target = target._replace(file_id=source.file_id)
        file_tree.save_name(tx, target)
        return file_tree.preserve_for_snapshots(tx, source, entry), target
    loose = file_tree.preserve_for_snapshots(tx, source, entry)
    tx.delete(source.key)
    return leaving(tx, source, loose) if entry.kind == FILE else loose, target


def _make_room(tx: Transaction, target: Location, request: Rename) -> None:
    """See that nothing is where the entry goes, or that it is a file which may be replaced, by a directory too: that
    deletes it, so nobody may have it open."""
    target, there = file_tree.look_up(tx, target)
    if there is None:
        leases.check_write(leases.NO_LEASE, request.target_lease_id, tx.now)
        return
    handles.check_not_pending(handles.handles_of(tx, target.tree.id, there.id))
    if not request.replaces:
        raise Refused(Reason.PATH_ALREADY_EXISTS)
    if there.is_directory:
        raise Refused(Reason.PATH_TYPE_MISMATCH)
    if is_read_only(there.attributes) and not request.ignores_read_only:
        raise Refused(Reason.READ_ONLY_ATTRIBUTE)
    handles.check_unopened(tx, target.tree.id, there.id, Reason.SHARING_VIOLATION)
    leases.check_write(there.lease, request.target_lease_id, tx.now)
    file_tree.remove(tx, target, there)
