"""Copying into a file, from a file or a blob of this store: by reference and in one transaction.

A source in another store is read first, as it is at one moment, and its bytes are stored here (``Streamed``).
"""

from collections.abc import Awaitable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import copy_sources
from kyanite.model.content import content, spread
from kyanite.model.content.content import Content
from kyanite.model.content.spread import NewContent
from kyanite.model.copy_sources import BlobKey
from kyanite.model.files import file, security_descriptors, tree
from kyanite.model.files.actors import RestActor
from kyanite.model.files.entry import FILE, Entry, Posix
from kyanite.model.files.file import NewFile
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.security_descriptors import PermissionRequest
from kyanite.model.files.tree import FilePath
from kyanite.model.records import CopyState, HttpHeaders
from kyanite.rules import leases
from kyanite.rules.file_attributes import archived
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import LeaseId


class FileCopy(msgspec.Struct, frozen=True, gc=False):
    source: FilePath | BlobKey
    source_url: str
    copy_id: str
    metadata: dict[str, str]
    """Replaces the source's; when empty, that is copied."""
    properties: SmbProperties
    copied: frozenset[str] = frozenset()
    """The fields of ``properties`` that are copied from the source, if it is a file; ``owner`` for owner and group."""
    ignores_read_only: bool = False
    sets_archive: bool = False


class Source(msgspec.Struct, frozen=True, gc=False):
    content: Content
    length: int
    http: HttpHeaders
    metadata: dict[str, str]
    entry: Entry | None = None
    permission: str = ""
    """The security descriptor of a file, if it is copied: its key means nothing in another share, the text does."""


class Streamed(NamedTuple):
    """A source in another store, and its bytes, which are in this one now."""

    source: Source
    content: NewContent


def copy(
    engine: Engine,
    path: FilePath,
    request: FileCopy,
    lease_id: LeaseId | None,
    *,
    may_overwrite: bool,
    streamed: Streamed | None = None,
) -> Awaitable[Entry]:
    """Copy onto a path, where it makes a file or replaces one as Create File does."""

    def body(tx: Transaction) -> Entry:
        source = load_source(tx, request, path.share.account) if streamed is None else streamed.source
        location, old = tree.find(tx, path, tree.open_path(tx, path, with_root=True))
        new_file = NewFile(
            source.length, source.http, request.metadata or source.metadata, _properties(request, source)
        )
        return file.put(
            tx,
            location,
            old,
            RestActor(lease_id),
            new_file,
            content.share(tx, source.content) if streamed is None else spread.create(tx, streamed.content),
            may_overwrite=may_overwrite,
            ignores_read_only=request.ignores_read_only,
            copy=CopyState(request.copy_id, request.source_url, tx.now, source.length),
        )

    return engine.run(body, file.scope_of(path))


def load_source(snap: Snapshot, request: FileCopy, account: str) -> Source:
    """The source of a copy into an account. A missing file of the same account is reported as missing; any other source
    cannot be verified."""
    key = request.source
    try:
        if isinstance(key, BlobKey):
            record = copy_sources.load_blob(snap, key)
            return Source(record.content, record.length, record.http, record.metadata)
        location, entry = file.load_for_read(snap, key, None, length=1)
        permission = ""
        if "permission" in request.copied:
            permission = security_descriptors.load(snap, location.tree.id, entry.permission)
        return Source(entry.content, entry.length, entry.http, entry.metadata, entry, permission)
    except Refused as refusal:
        if refusal.reason in _MISSING:
            is_own = isinstance(key, FilePath) and key.share.account == account
            raise Refused(Reason.PATH_NOT_FOUND if is_own else Reason.COPY_SOURCE_NOT_FOUND) from None
        if isinstance(key, BlobKey):
            raise Refused(Reason.COPY_SOURCE_NOT_AVAILABLE) from None
        raise


_MISSING = frozenset(
    (
        Reason.BLOB_NOT_FOUND,
        Reason.CONTAINER_NOT_FOUND,
        Reason.PARENT_NOT_FOUND,
        Reason.PATH_NOT_FOUND,
        Reason.SHARE_NOT_FOUND,
        Reason.SHARE_SNAPSHOT_NOT_FOUND,
    )
)


def _properties(request: FileCopy, source: Source) -> SmbProperties:
    """The properties that the request sets, and those that it copies from the source."""
    properties, entry = request.properties, source.entry
    if entry is not None:
        values: dict[str, object] = {name: getattr(entry, name) for name in request.copied - _BY_THEMSELVES}
        if entry.posix is not None and request.copied & {"mode", "owner"}:
            values["posix"] = _posix(request, entry.posix)
        if "permission" in request.copied:
            values["permission"] = PermissionRequest(source.permission)
        properties = replace(properties, **values)
    if request.sets_archive and properties.attributes is not None:
        properties = replace(properties, attributes=archived(properties.attributes))
    return properties


_BY_THEMSELVES = frozenset(("permission", "mode", "owner"))


def _posix(request: FileCopy, source: Posix) -> Posix:
    own = request.properties.posix or Posix()
    mode = source.mode if "mode" in request.copied else own.mode
    owner, group = (source.owner, source.group) if "owner" in request.copied else (own.owner, own.group)
    return Posix(mode, owner, group)


def abort(engine: Engine, path: FilePath, copy_id: str, lease_id: LeaseId | None) -> Awaitable[None]:
    """Every copy is complete when it is committed, so none can be aborted; the reason depends on the copy id."""

    def body(tx: Transaction) -> None:
        _, entry = tree.load(tx, path, FILE)
        leases.check_write(entry.lease, lease_id, tx.now)
        if entry.copy is not None and entry.copy.id != copy_id:
            raise Refused(Reason.COPY_ID_MISMATCH)
        raise Refused(Reason.NO_PENDING_COPY_OPERATION)

    return engine.run(body)
