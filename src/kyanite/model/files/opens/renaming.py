"""Renaming what a client has open. Other handles of the same file do not matter: they share deleting."""

from collections.abc import Iterator
from contextlib import contextmanager

from kyanite.engine.api import Transaction
from kyanite.model.files import tree
from kyanite.model.files.actors import SmbActor
from kyanite.model.files.opens import caching, handles, open_files
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename, move
from kyanite.model.files.tree import ROOT_ID, Found, Location
from kyanite.rules.file_attributes import archived, is_read_only
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Open, Rights

_ADDS_ENTRY = Open(Rights.WRITE, Rights.READ | Rights.WRITE)
"""How a rename opens the directory that gets the entry."""


def rename(tx: Transaction, found: Found, handle_id: int, names: tuple[str, ...], *, replaces: bool) -> Found:
    """Give what was found by its handle a new path, in place of a closed file if the client wants that."""
    source, entry = found
    share_id = source.tree.id
    open_files.load_handle(tx, share_id, entry.id, handle_id)
    if entry.id == ROOT_ID:
        raise Refused(Reason.ACCESS_DENIED)
    target = tree.location_of(tx, source.tree, names, outside=source)
    if entry.is_directory:
        with _denied():
            caching.check_none_open_below(tx, share_id, entry.id)
    _check_directory(tx, target)
    if target.key != source.of_name.key:
        _check_target(tx, target, replaces=replaces)
    attributes = None if entry.is_directory else archived(entry.attributes)
    request = Rename(names, replaces, properties=SmbProperties(attributes))
    return move(tx, found, SmbActor(handle_id), request)


def _check_directory(tx: Transaction, target: Location) -> None:
    """Whether the directory that gets the entry, if it is open, may get one."""
    present = open_files.load(tx, target.tree.id, target.directory_id)
    if present is not None and present[0].is_delete_pending:
        raise Refused(Reason.DELETE_PENDING)
    handles.check_sharing(present, _ADDS_ENTRY)


def _check_target(tx: Transaction, target: Location, *, replaces: bool) -> None:
    """Only a file that is closed and not read-only is replaced."""
    _, old = tree.look_up(tx, target)
    if old is None:
        return
    if not replaces:
        raise Refused(Reason.PATH_ALREADY_EXISTS)
    if old.is_directory or is_read_only(old.attributes):
        raise Refused(Reason.ACCESS_DENIED)
    with _denied():
        caching.check_unopened(tx, target.tree.id, old.id)


@contextmanager
def _denied() -> Iterator[None]:
    """What REST is refused because something is open is denied to SMB clients."""
    try:
        yield
    except Refused:
        raise Refused(Reason.ACCESS_DENIED) from None
