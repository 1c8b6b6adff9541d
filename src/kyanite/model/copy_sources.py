"""Sources of copies: the one module where blobs read files and files read blobs."""

from collections.abc import Callable

from kyanite.engine.api import Snapshot
from kyanite.model.blobs import blob, rows
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.content.intervals import ENDLESS
from kyanite.model.files import file
from kyanite.model.files.entry import Entry
from kyanite.model.files.tree import FilePath
from kyanite.rules import preconditions
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.tags import Tags
from kyanite.values import ETag, Instant

__all__ = ["BlobKey", "CheckSource", "SourceKey", "load", "load_blob"]

CheckSource = Callable[[Conditions, ETag, Instant, Tags], None]
SourceKey = BlobKey | FilePath

_MISSING = frozenset(
    (
        Reason.BLOB_NOT_FOUND,
        Reason.CONTAINER_NOT_FOUND,
        Reason.PARENT_NOT_FOUND,
        Reason.PATH_NOT_FOUND,
        Reason.PATH_TYPE_MISMATCH,
        Reason.SHARE_NOT_FOUND,
        Reason.SHARE_SNAPSHOT_NOT_FOUND,
    )
)


def load(
    snap: Snapshot,
    source: SourceKey,
    conditions: Conditions,
    *,
    first: int = 0,
    last: int | None = None,
    check: CheckSource = preconditions.check_source_read,
    may_be_archived: bool = False,
) -> BlobRecord:
    """The source as a blob: a file becomes a block blob. Refused when it cannot be read now or a condition fails.

    ``first`` and ``last`` are the bytes that will be read. Other bytes of a file may be locked.
    """
    try:
        found = _find(snap, source, first, ENDLESS if last is None else last + 1)
        if not may_be_archived:
            blob.check_online(snap, found)
    except Refused as refusal:
        is_missing = refusal.reason in _MISSING
        reason = Reason.COPY_SOURCE_NOT_FOUND if is_missing else Reason.COPY_SOURCE_NOT_AVAILABLE
        raise Refused(reason) from None
    check(conditions, found.etag, found.modified_at, found.tags)
    return found


def _find(snap: Snapshot, source: SourceKey, start: int, end: int) -> BlobRecord:
    if isinstance(source, BlobKey):
        return rows.load(snap, source)[1]
    _, entry = file.load_for_read(snap, source, None, start=start, length=end - start)
    return _as_blob(entry)


def _as_blob(entry: Entry) -> BlobRecord:
    return BlobRecord(
        modified_at=entry.modified_at,
        created_at=entry.created_at,
        kind=BLOCK_BLOB,
        length=entry.length,
        content=entry.content,
        http=entry.http,
        metadata=entry.metadata,
    )


def load_blob(snap: Snapshot, source: BlobKey) -> BlobRecord:
    """A blob that is copied into a file. Refused when it does not exist or is archived."""
    return blob.load_to_be_read(snap, source, blob.UNCONDITIONAL)
