"""Symbolic links, which only shares that speak NFS have: a text that says where to look instead."""

from collections.abc import Awaitable

from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model.files import tree
from kyanite.model.files.entry import SYMBOLIC_LINK, Entry
from kyanite.model.files.file import scope_of
from kyanite.model.files.properties import SmbProperties, new_entry
from kyanite.model.files.tree import FilePath
from kyanite.rules.refusals import Reason, Refused


def create(
    engine: Engine, path: FilePath, target: str, request: SmbProperties, metadata: dict[str, str]
) -> Awaitable[tuple[Entry, int]]:
    """The new link and the id of its directory. Where it leads need not be there."""

    def body(tx: Transaction) -> tuple[Entry, int]:
        location = tree.location_of(tx, tree.open_tree(tx, path.share), path.names)
        if not location.tree.share.speaks_nfs:
            raise Refused(Reason.SHARE_PROTOCOL_MISMATCH)
        if tree.look_up(tx, location)[1] is not None:
            raise Refused(Reason.PATH_ALREADY_EXISTS)
        parent = tree.parent_of(tx, location)
        entry = new_entry(
            tx, location, parent, request, kind=SYMBOLIC_LINK, entry_id=tx.now, metadata=metadata
        )
        return tree.save(tx, location, replace(entry, target=target)), location.directory_id

    return engine.run(body, scope_of(path))


def see(engine: Engine, path: FilePath) -> Awaitable[Entry]:
    def body(snap: Snapshot) -> Entry:
        return tree.load(snap, path, SYMBOLIC_LINK)[1]

    return engine.read(body)
