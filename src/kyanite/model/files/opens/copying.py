"""Copying ranges from one open file to another for an SMB client: by reference, so that no bytes are moved."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.content import content
from kyanite.model.files import tree, usage
from kyanite.model.files.actors import FileUse, SmbActor
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import changes
from kyanite.model.files.opens.changes import KeptTimes
from kyanite.model.files.opens.data import FILE_BYTES_MAX
from kyanite.model.files.tree import Found
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights

INTERVALS_MAX = 400
"""That one transaction copies. A file that was written in very small pieces takes several."""


class Chunk(NamedTuple):
    source_offset: int
    target_offset: int
    length: int


class OpenFound(NamedTuple):
    """A file as a client has it open."""

    found: Found
    actor: SmbActor | None
    """None for a file of a share snapshot, which no one locks."""

    @property
    def key(self) -> tuple[int, int, bool]:
        location, entry = self.found
        return location.tree.id, entry.id, self.actor is None


class Progress(NamedTuple):
    copied_bytes: int
    reason: Reason | None = None
    """Why the chunk behind these bytes was refused."""


def copy_chunks(
    tx: Transaction, source: OpenFound, target: OpenFound, chunks: Sequence[Chunk], kept: KeptTimes
) -> Progress:
    """Copy as many chunks as one transaction does, in their order: all of them, usually.

    A chunk that is refused leaves those before it copied; the first one raises instead.
    """
    location, entry = target.found
    is_same = source.key == target.key
    copied_bytes, intervals, reason = 0, 0, None
    for chunk in chunks:
        origin = entry if is_same else source.found.entry
        try:
            _check_source(tx, source, origin, chunk)
            _check_target(tx, target, entry, chunk)
        except Refused as refused:
            if not copied_bytes:
                raise
            reason = refused.reason
            break
        if not copied_bytes:
            entry = tree.preserve_for_snapshots(tx, location, entry)
            origin = entry if is_same else origin
        copied = content.copy(
            tx,
            entry.content,
            chunk.target_offset,
            origin.content,
            chunk.source_offset,
            chunk.length,
            limit=INTERVALS_MAX - intervals,
        )
        length = max(entry.length, chunk.target_offset + copied.length)
        usage.change(tx, location.tree.share, entry.id, length - entry.length)
        entry = replace(entry, content=copied.content, length=length)
        copied_bytes += copied.length
        intervals += copied.intervals
        if copied.length < chunk.length or intervals >= INTERVALS_MAX:
            break
    if copied_bytes:
        tree.save(tx, location, changes.written(tx, target.found.entry, entry, kept))
    return Progress(copied_bytes, reason)


def _check_source(snap: Snapshot, source: OpenFound, entry: Entry, chunk: Chunk) -> None:
    if chunk.source_offset + chunk.length > entry.length:
        raise Refused(Reason.INVALID_RANGE)
    if source.actor is not None:
        use = FileUse(Rights.READ, chunk.source_offset, chunk.length)
        source.actor.check(snap, source.found.location.tree.id, entry.id, use)


def _check_target(tx: Transaction, target: OpenFound, entry: Entry, chunk: Chunk) -> None:
    tree_of_target, end = target.found.location.tree, chunk.target_offset + chunk.length
    assert target.actor is not None, "A share snapshot cannot be changed."
    use = FileUse(Rights.WRITE, chunk.target_offset, chunk.length, event=Event.WRITE)
    target.actor.prepare(tx, tree_of_target.id, entry.id, use)
    if end > FILE_BYTES_MAX or end - entry.length > max(usage.room(tx, tree_of_target.share), 0):
        raise Refused(Reason.SHARE_SIZE_LIMIT_REACHED)
