"""Soft delete: until when what was deleted can be restored, and changes of the whole history of a name.

What is deleted while soft delete is on can be restored for as long as ``retention.py`` says. From then on it is gone.

A change of the whole history of a name (Undelete Blob, Delete Blob with all snapshots) may concern any number of
snapshots and versions. So it is one entry in a short list, and maintenance changes the rows later, in the order of the
list. Until then the state of a row follows from its own deletion and from the changes since: ``deletion_of``.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from kyanite.rules.retention import expiry_of, is_over
from kyanite.values import Instant

MAX_CHANGES = 16
"""In the list of one name. More have to wait for maintenance."""


class Deletion(NamedTuple):
    """When something was deleted, and from when on it cannot be restored."""

    at: Instant
    gone_at: Instant

    def is_gone(self, now: Instant) -> bool:
        return is_over(self.gone_at, now)


class Effect(IntEnum):
    """What a change does. Stored: the numbers stay."""

    PURGE_SNAPSHOTS = 0
    """All snapshots are gone, the deleted ones too."""
    DELETE_SNAPSHOTS = 1
    """The snapshots are deleted, until an instant."""
    UNDELETE = 2
    """The deleted snapshots and versions are restored."""
    PURGE_DELETED = 3
    """The deleted snapshots and versions are gone."""


class Change(NamedTuple):
    """A change of everything of one kind that a name had at an instant. Stored: new fields go to the end."""

    effect: int
    at: Instant
    gone_at: Instant = Instant(0)
    """Of deleted snapshots."""
    position: bytes = b""
    """How far maintenance has come with it."""


def deleted_now(now: Instant, days: int) -> Deletion:
    return Deletion(now, expiry_of(now, days))


def deletion_of(
    own: Deletion | None, since: Instant, changes: Iterable[Change], *, is_snapshot: bool
) -> Deletion | None:
    """The deletion of a row after these changes; None when it is active.

    ``own`` is the deletion that is stored with it. The changes after ``since`` concern it: since its own deletion, or
    since it was made. What a change purges has a deletion that is over.
    """
    deletion = own
    for change in changes:
        if change.at < since:
            continue
        if change.effect == Effect.UNDELETE:
            if deletion is not None and change.at < deletion.gone_at:
                deletion = None
        elif change.effect == Effect.PURGE_DELETED:
            if deletion is not None:
                deletion = Deletion(deletion.at, min(deletion.gone_at, change.at))
        elif not is_snapshot:
            continue
        elif change.effect == Effect.PURGE_SNAPSHOTS:
            at, gone_at = deletion or Deletion(change.at, change.at)
            deletion = Deletion(at, min(gone_at, change.at))
        elif deletion is None:
            deletion = Deletion(change.at, change.gone_at)
    return deletion


class SnapshotRange(NamedTuple):
    """Snapshots that were taken in this range of time, the ends included: all have the same state."""

    first: Instant
    last: Instant
    deletion: Deletion | None


FOREVER = Instant((1 << 62) - 1)


def snapshot_ranges(changes: Sequence[Change]) -> Iterator[SnapshotRange]:
    """The states of the snapshots that have no deletion of their own, oldest first."""
    first = Instant(0)
    for last in (*(change.at for change in changes), FOREVER):
        yield SnapshotRange(first, last, deletion_of(None, first, changes, is_snapshot=True))
        first = Instant(last + 1)


def restores(changes: Iterable[Change]) -> bool:
    """Whether some of what has a deletion of its own may be active."""
    return any(change.effect == Effect.UNDELETE for change in changes)
