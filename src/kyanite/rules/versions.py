"""Versioning: what becomes of the former state of a blob, and whether the new one has a version id.

A blob name is in one of four states. Nothing (–); a base blob without a version id, which was written while versioning
was off (U); a current version, perhaps with previous ones (C); or previous versions only (P), after Delete Blob.

    state, versioning   Put Blob and its kin      Set Metadata, Snapshot    other writes   Delete Blob
    –  or P, on         C                         not found                 not found      not found
    U, on               former is a version; C    former is a version; C    in place, U    former is a version; P
    C, on               former is a version; C    former is a version; C    in place, C    former is a version; P
    –  or P, off        U                         not found                 not found      not found
    U, off              former is lost, or a      in place, U               in place, U    lost, or a deleted blob
                        deleted snapshot
    C, off              former is a version; U    former is a version; U    in place, C    former is a version; P

Switching versioning off deletes nothing, and the first write afterwards still keeps the last version. A former state
is a deleted snapshot or a deleted blob only while soft delete is on; ``soft_delete.py`` has the rules of those.
"""

from enum import Enum
from typing import NamedTuple

from kyanite.rules.refusals import Reason, Refused


class History(NamedTuple):
    """What an account keeps of its blobs."""

    versioning: bool = False
    retention_days: int | None = None
    """For how long deleted blobs, snapshots and versions can be restored; None when soft delete is off."""
    allows_permanent_delete: bool = False


NO_HISTORY = History()


class Base(Enum):
    """The base blob of a name."""

    ABSENT = "absent"
    UNVERSIONED = "without a version id"
    CURRENT = "the current version"


class Former(Enum):
    """What becomes of the state that a request replaces or deletes."""

    NOTHING = "there is none, or it is changed in place"
    LOST = "lost"
    VERSION = "a previous version"
    DELETED_SNAPSHOT = "a deleted snapshot"
    DELETED_BLOB = "the deleted base blob"


KEPT = frozenset((Former.VERSION, Former.DELETED_SNAPSHOT, Former.DELETED_BLOB))


def replaced(base: Base, history: History, *, is_archived: bool = False) -> Former:
    """By Put Blob, Put Blob From URL, Put Block List, Copy Blob or Copy Blob From URL."""
    if base is Base.ABSENT:
        return Former.NOTHING
    if history.versioning or base is Base.CURRENT:
        return Former.VERSION
    if history.retention_days is None or is_archived:
        return Former.LOST
    return Former.DELETED_SNAPSHOT


def revised(base: Base, history: History) -> Former:
    """By Set Blob Metadata or Snapshot Blob. All other writes are in place, whatever the state."""
    if base is not Base.ABSENT and (history.versioning or base is Base.CURRENT):
        return Former.VERSION
    return Former.NOTHING


def deleted(base: Base, history: History) -> Former:
    """By Delete Blob of the base blob."""
    if base is Base.ABSENT:
        return Former.NOTHING
    if history.versioning or base is Base.CURRENT:
        return Former.VERSION
    return Former.LOST if history.retention_days is None else Former.DELETED_BLOB


def check_type(
    kind: int, *, former: int | None, becomes: Former, versions: int | None, deleted_versions: int | None
) -> bool:
    """Refuse a new blob of this kind where versions of another are: all versions of a name have one type.

    ``former`` is the kind of the blob that is replaced, ``versions`` that of the previous versions, and
    ``deleted_versions`` that of deleted ones or of the deleted base blob. Each is None when there are none. Returns
    whether everything deleted of the name has to be purged: it is when nothing but that has another type.
    """
    if former not in (None, kind) and becomes is Former.VERSION:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    if versions not in (None, kind):
        raise Refused(Reason.INVALID_BLOB_TYPE)
    if deleted_versions in (None, kind):
        return False
    if former is not None:
        raise Refused(Reason.INVALID_BLOB_TYPE)
    return True
