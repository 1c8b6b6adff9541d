"""Symbolic and hard links, which only NFS shares have: a path to another entry, and a further name of a file."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.files import tree
from kyanite.model.files.actors import Actor, FileUse, RestActor
from kyanite.model.files.entry import FILE, SYMBOLIC_LINK, Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.history import leave_location
from kyanite.model.files.properties import SmbProperties, new_entry
from kyanite.model.files.tree import FilePath, Found, Location
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.values import LeaseId


def create_symbolic_link(
    engine: Engine, path: FilePath, target: str, request: SmbProperties, metadata: dict[str, str]
) -> Awaitable[tuple[Entry, int]]:
    """The new link and the id of its directory. Its target need not exist."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        location = _new_location(tx, path)
        parent = tree.parent_of(tx, location)
        entry = new_entry(
            tx, location, parent, request, kind=SYMBOLIC_LINK, entry_id=tx.new_id(), metadata=metadata
        )
        return tree.save(tx, location, replace(entry, target=target)), location.directory_id

    return engine.run(body, scope_of(path))


def read_symbolic_link(engine: Engine, path: FilePath) -> Awaitable[Entry]:
    def body(snap: Snapshot) -> Entry:
        return tree.load(snap, path, SYMBOLIC_LINK).entry

    return engine.read(body)


def create_hard_link(
    engine: Engine, path: FilePath, target: FilePath, lease_id: LeaseId | None
) -> Awaitable[tuple[Entry, int]]:
    """The file, and the id of the directory in which it has its new name."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        location = _new_location(tx, path)
        return link(tx, tree.load(tx, target, FILE), RestActor(lease_id), location), location.directory_id

    return engine.run(body, scope_of(path), scope_of(target))


def link(tx: Transaction, found: Found, actor: Actor, new: Location) -> Entry:
    """Give a file a further name at a location that has no entry."""
    location, entry = found
    actor.check(tx, location.tree.id, entry.id, FileUse(Rights.NONE))
    lease = actor.check_lease(entry.lease, tx.now)
    entry = replace(tree.preserve_for_snapshots(tx, location, entry), lease=lease)
    if not location.file_id:  # From now on the file has its own row, and its first name is one of several.
        entry = leave_location(tx, location, entry)
        location = location._replace(file_id=entry.id)
        tree.save_name(tx, location)
    tree.save_name(tx, new._replace(file_id=entry.id))
    entry = replace(entry, links=entry.links + 1, modified_at=tx.now, changed_at=tx.now)
    return tree.save(tx, location, entry)


def _new_location(tx: Transaction, path: FilePath) -> Location:
    opened = tree.open_path(tx, path, with_root=True)
    if not opened[0].share.speaks_nfs:
        raise Refused(Reason.SHARE_PROTOCOL_MISMATCH)
    location, old = tree.find(tx, path, opened)
    if old is not None:
        raise Refused(Reason.PATH_ALREADY_EXISTS)
    return location
