"""Hard links, which only shares that speak NFS have: a further name for a file that is there."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model.files import handles
from kyanite.model.files import tree as file_tree
from kyanite.model.files.entry import FILE, Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.history import leaving
from kyanite.model.files.tree import FilePath, Location
from kyanite.rules import leases
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.values import LeaseId


def create(
    engine: Engine, path: FilePath, target: FilePath, lease_id: LeaseId | None
) -> Awaitable[tuple[Entry, int]]:
    """The file, and the id of the directory in which it has its new name."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        tree = file_tree.open_tree(tx, path.share)
        if not tree.share.speaks_nfs:
            raise Refused(Reason.SHARE_PROTOCOL_MISMATCH)
        location = file_tree.location_of(tx, tree, path.names)
        if file_tree.look_up(tx, location)[1] is not None:
            raise Refused(Reason.PATH_ALREADY_EXISTS)
        there, entry = file_tree.load(tx, target, FILE)
        handles.check_virtual_open(tx, tree.id, entry.id, Rights.NONE)
        lease = leases.check_write(entry.lease, lease_id, tx.now)
        entry = replace(file_tree.preserve_for_snapshots(tx, there, entry), lease=lease)
        if not there.file_id:
            entry, there = leaving(tx, there, entry), _apart(tx, there, entry)
        file_tree.save_name(tx, location._replace(file_id=entry.id))
        entry = replace(entry, links=entry.links + 1, modified_at=tx.now, changed_at=tx.now)
        return file_tree.save(tx, there, entry), location.directory_id

    return engine.run(body, scope_of(path), scope_of(target))


def _apart(tx: Transaction, location: Location, entry: Entry) -> Location:
    """Where the file is from now on: by itself, with its first name as one of several."""
    location = location._replace(file_id=entry.id)
    file_tree.save_name(tx, location)
    return location
