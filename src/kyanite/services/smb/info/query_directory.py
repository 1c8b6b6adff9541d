"""QUERY_DIRECTORY: the entries of a directory that match a pattern, a buffer at a time (MS-SMB2 §3.3.5.18).

Each buffer is one snapshot of the store. Entries are packed while they are read, so nothing is read that does not fit.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from kyanite.engine.api import Snapshot
from kyanite.model.files import scan, tree
from kyanite.model.files.entry import DIRECTORY, Entry
from kyanite.model.files.opens.description import Description
from kyanite.model.files.scan import DirectoryScan, ScannedEntry
from kyanite.model.files.tree import FilePath
from kyanite.rules import wildcards
from kyanite.rules.access_masks import LIST_DIRECTORY
from kyanite.rules.file_names import MAX_NAME_UNITS, fold
from kyanite.services.smb.handler_checks import check_access, check_size
from kyanite.services.smb.info.entry import NORMAL, file_id_of, times_of
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open, Scan
from kyanite.slices import first_slice
from kyanite.wire.smb2 import query_directory as codec
from kyanite.wire.smb2.body import encode_output
from kyanite.wire.smb2.filetime import TICKS_TO_1601
from kyanite.wire.smb2.info import directory
from kyanite.wire.smb2.info.directory import DirectoryEntry, EntryLayout, Packed
from kyanite.wire.smb2.info.file_system import UNIT_BYTES
from kyanite.wire.smb2.query_directory import (
    REOPEN,
    RESTART_SCANS,
    RETURN_SINGLE_ENTRY,
    QueryDirectoryRequest,
)
from kyanite.wire.smb2.status import Status

_LEAST_BYTES = 9
_DOTS = (".", "..")
"""They come before the entries, in this order: the directory itself and the one that contains it."""


class _Buffer(NamedTuple):
    packed: Packed
    dots: int
    first: str | None
    """Where the next buffer begins, as in ``Scan``."""


async def query_directory(request: Request) -> Answer:
    query = codec.decode(request.message)
    opened = request.open
    check_size(request, query.output_bytes)
    if query.output_bytes < _LEAST_BYTES or not opened.is_directory:
        raise Failed(Status.INVALID_PARAMETER)
    check_access(opened, LIST_DIRECTORY)
    layout = directory.layout_of(query.information_class)
    state = _begin(opened, query)
    async with state.lock:
        packed = await _advance(opened, state, layout, query)
        if packed.last_name is None and packed.is_full:
            raise Failed(Status.INFO_LENGTH_MISMATCH)
        is_first, state.is_begun = not state.is_begun, True
    if packed.last_name is None:
        raise Failed(Status.NO_SUCH_FILE if is_first else Status.NO_MORE_FILES)
    return Answer(encode_output(packed.data))


def _begin(opened: Open, query: QueryDirectoryRequest) -> Scan:
    """The scan of the open. The first request gives the pattern, and so does one that reopens the directory."""
    state = opened.scan
    if state is None or (query.flags & REOPEN and query.pattern):
        pattern = query.pattern
        if not pattern or "\\" in pattern or "/" in pattern or len(pattern) > MAX_NAME_UNITS:
            raise Failed(Status.OBJECT_NAME_INVALID)
        state = opened.scan = Scan(wildcards.parse(fold(pattern)))
    elif query.flags & (RESTART_SCANS | REOPEN):
        state.dots, state.first = 0, ""
    return state


async def _advance(opened: Open, state: Scan, layout: EntryLayout, query: QueryDirectoryRequest) -> Packed:
    """Pack the next buffer. A scan that finds nothing in many rows goes on in another snapshot."""
    while state.first is not None:
        await first_slice()
        packed, dots, first = await opened.tree.account.store.engine.read(
            lambda snap: _pack(snap, opened, state, layout, query)
        )
        if packed.last_name is None and packed.is_full:
            return packed
        state.dots, state.first = dots, first
        if packed.last_name is not None:
            return packed
    return Packed(b"", None, False)


def _pack(
    snap: Snapshot, opened: Open, state: Scan, layout: EntryLayout, query: QueryDirectoryRequest
) -> _Buffer:
    described = opened.describe(snap)
    location, entry = described.found
    assert state.first is not None
    scanned = DirectoryScan(
        snap,
        location.tree,
        entry.id,
        state.pattern,
        first=state.first,
        limit=query.output_bytes // layout.fixed_bytes + 1,
    )
    entries: Iterable[DirectoryEntry] = map(_listed, scanned)
    if state.dots < len(_DOTS):
        entries = chain(_dots(snap, opened, described, state), entries)
    is_single = bool(query.flags & RETURN_SINGLE_ENTRY)
    packed = directory.pack(layout, islice(entries, 1) if is_single else entries, query.output_bytes)
    if packed.last_name in _DOTS:
        return _Buffer(packed, _DOTS.index(packed.last_name) + 1, state.first)
    if packed.last_name is not None and (packed.is_full or is_single):
        return _Buffer(packed, len(_DOTS), scan.behind(location.tree.fold(packed.last_name)))
    return _Buffer(packed, len(_DOTS), scanned.next)


def _dots(snap: Snapshot, opened: Open, described: Description, state: Scan) -> Iterator[DirectoryEntry]:
    """Those of the two that match and were not returned yet."""
    location, entry = described.found
    for name in _DOTS[state.dots :]:
        if not state.pattern.matches(name):
            continue
        if name == ".." and described.names:
            share = opened.tree.share if opened.snapshot is None else opened.snapshot.share
            assert share is not None
            entry = tree.load(snap, FilePath(share, described.names[:-1]), DIRECTORY).entry
        file_id = file_id_of(location.tree.id, entry.id)
        yield _listed(entry)._replace(name=name, file_id=file_id)


def _listed(entry: Entry | ScannedEntry) -> DirectoryEntry:
    """What ``entry.py`` says of a file, in one function, since a directory may have very many."""
    creation = entry.created_at - TICKS_TO_1601
    last_write = entry.last_write_at - TICKS_TO_1601
    change = entry.changed_at - TICKS_TO_1601
    last_access = entry.set_last_access_at - TICKS_TO_1601 if entry.set_last_access_at else last_write
    if creation < 0 or last_access < 0 or last_write < 0 or change < 0:
        creation, last_access, last_write, change = times_of(entry)
    length = entry.length
    return DirectoryEntry(
        entry.name,
        creation,
        last_access,
        last_write,
        change,
        length,
        -(-length // UNIT_BYTES) * UNIT_BYTES,
        entry.attributes or NORMAL,
        entry.id,
    )
