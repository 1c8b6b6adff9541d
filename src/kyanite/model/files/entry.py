"""The stored form of files and directories: one row each, keyed by the directory that contains it."""

from collections.abc import Callable

import msgspec

from kyanite.model.content.content import NO_CONTENT, Content
from kyanite.model.records import CopyState, HttpHeaders
from kyanite.rules.lease_records import NO_LEASE, Lease
from kyanite.values import ETag, Instant, etag_of

DIRECTORY = 0
FILE = 1
SYMBOLIC_LINK = 2
NAME = 3
"""One of several names of a file, whose row is elsewhere: see ``tree.look_up``."""

NO_HEADERS = HttpHeaders()


class Posix(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What an NFS share keeps instead of attributes."""

    mode: str = ""
    owner: str = ""
    group: str = ""


class Former(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A location that a file left, and the latest snapshot that has it there."""

    until: Instant
    directory_id: int
    folded_name: str


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Fields are only ever added at the end, with a default."""

    name: str
    """As it was given; the key has it folded."""
    id: int
    """Stays when the entry is renamed."""
    kind: int
    written_at: Instant
    """When this row was written, for any reason: decides which snapshots contain it."""
    modified_at: Instant
    """The instant of ETag and Last-Modified. Lease actions do not change it."""
    created_at: Instant
    last_write_at: Instant
    changed_at: Instant
    attributes: int
    permission: bytes
    """The key of its security descriptor."""
    metadata: dict[str, str]
    length: int = 0
    content: Content = NO_CONTENT
    http: HttpHeaders = NO_HEADERS
    lease: Lease = NO_LEASE
    copy: CopyState | None = None
    posix: Posix | None = None
    target: str = ""
    """Of a symbolic link: the path it points to."""
    for_files: bytes = b""
    """Of a directory: the key of the descriptor that files in it inherit."""
    for_directories: bytes = b""
    links: int = 1
    """Of a file: how many names it has."""
    former: tuple[Former, ...] = ()
    """Of a file that was renamed: the locations at which snapshots contain it, the oldest first."""
    named_at: Instant = Instant(0)
    """When it got its present name. 0 for an entry of an older store that was never renamed: its id is that instant."""
    set_last_access_at: Instant = Instant(0)
    """The time of the last access, if an SMB client has set it. Reading does not change it."""

    @property
    def last_access_at(self) -> Instant:
        return self.set_last_access_at or self.last_write_at

    @property
    def etag(self) -> ETag:
        return etag_of(self.modified_at)

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY


decode_entry: Callable[[bytes], Entry] = msgspec.msgpack.Decoder(Entry).decode


def name_entry(name: str, file_id: int, now: Instant) -> Entry:
    """The row of one of several names: the file's own row has everything else."""
    return Entry(name, file_id, NAME, now, now, now, now, now, attributes=0, permission=b"", metadata={})
