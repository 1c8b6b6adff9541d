"""The contract for bulk bytes: immutable extents, written and synced before a transaction refers to them.

An extent is a part of a *segment*: a file, or an object of an object store. A segment belongs to one process, its
*owner* (see ``membership``), whose id is part of the segment's name. This package does not know what refers to an
extent: ``model/content`` counts references in the engine, and ``model/maintenance`` frees space. Three promises make
that safe:

*Uploads.* ``Upload.finish`` and ``put`` return extents that no transaction refers to yet. The caller then calls
``commit``, when a transaction that refers to them has committed, or ``discard``, when none has. If it cannot know (the
outcome of the commit is unknown, the task was cancelled), it calls neither: the extents stay until their owner is dead,
and then the rows of the engine decide.

*Readers* pin before they take the snapshot in which they find an extent, and release when they have read its bytes.
With ``mark`` and ``passed`` garbage collection waits until all readers of some moment have finished. A store that
cannot know the readers of other machines keeps segments that are no longer needed for ``keep_seconds`` instead.

*Segments* are removed only when their owner has sealed them or is dead.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple, NewType, Protocol

import msgspec

SEGMENT_BYTES = 16
"""The length of a segment's name: twelve bytes for the owner, four for the count of its segments."""

PACK_MAX = 1024 * 1024
"""A body up to this size is best gathered in memory and passed to ``put``."""

EXTENT_MAX = 64 * 1024 * 1024
"""The maximal length of an extent, so that checking or freeing one is a small piece of work."""


BLOCK_BYTES = 256 * 1024
"""An extent is checked in blocks of this length, so that a range of it can be checked. They are not Azure's blocks."""


class Extent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes that never change, with their CRC-64/NVME. Part of stored records: new fields go to the end."""

    segment: bytes
    start: int
    length: int
    crc64: int

    def __str__(self) -> str:
        return f"extent {self.segment.hex()}+{self.start}"


class WrittenExtent(Extent, frozen=True, array_like=True, gc=False):
    """An extent that was just written. Its checksums are stored once, beside the count of its references; the
    intervals that refer to it hold an ``Extent``."""

    checksums: bytes = b""
    """The CRC-64 of each block, eight bytes each. Empty if the extent is one block."""


Mark = NewType("Mark", int)
"""A moment on the clock of pins. It has no meaning after a restart of the machine."""

Observer = Callable[[bytes | bytearray | memoryview], object]
"""Gets every byte of an upload in order, in a thread: ``hashlib.md5().update``."""


class Upload(Protocol):
    """One body while it is received. A bounded part of it is in memory, the rest on disk."""

    async def write(self, chunk: bytes) -> None:
        """Add the next chunk. Returns when the store can take more."""

    def buffer(self) -> memoryview | None:
        """Where the next bytes may be received without a copy; ``filled`` says how many came. None if chunks are to be
        written instead: the body is short, has just begun or comes slowly, or memory is."""

    async def filled(self, count: int) -> None:
        """Add the first bytes of the buffer, perhaps none, and give it up. Returns when the store can take more."""

    async def finish(self) -> list[WrittenExtent]:
        """The whole body, durably on disk. The caller commits or discards the extents."""

    async def abort(self) -> None:
        """Remove what was written. Harmless after an error; not to be called after ``finish`` returned."""


class Pin(Protocol):
    """Keeps the bytes that were readable when it was made."""

    def release(self) -> None: ...


class Stretch(NamedTuple):
    """A part of a segment."""

    start: int
    length: int


class OpenExtent(msgspec.Struct, frozen=True):
    """Bytes of an extent in an open file, for the kernel to send. The descriptor stays open until ``release`` is
    called, once."""

    fd: int
    offset: int
    length: int
    release: Callable[[], None]


class Extents(Protocol):
    @property
    def has_files(self) -> bool:
        """Whether extents are parts of files, which the kernel can send, and which stay as they were when checked.

        Without files, what is read twice comes over a network twice: readers check what they have fetched.
        """

    def upload(self, *, size_hint: int | None, observers: Sequence[Observer] = ()) -> Upload:
        """Begin a body; ``size_hint`` is its exact size if that is known.

        More bytes than ``size_hint`` are a ValueError.
        """

    async def put(
        self, data: bytes | memoryview, on_written: Callable[[], object] | None = None
    ) -> WrittenExtent:
        """Store a body of at most EXTENT_MAX bytes that is in memory. Calls that wait at the same time share a sync.

        ``on_written`` is called, on the loop, when the file has the bytes and only a power cut can lose them.
        """

    def commit(self, extents: Sequence[Extent]) -> None:
        """A transaction that refers to these extents has committed."""

    async def discard(self, extents: Sequence[Extent]) -> None:
        """No transaction refers to these extents, nor ever will: free their space."""

    def pin(self) -> Pin:
        """Called before a snapshot is taken. Costs no system call."""

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        """Bytes of the extent. A whole extent is checked against its CRC; raises Damaged."""

    async def read_into(self, extent: Extent, offset: int, buffer: memoryview) -> None:
        """Fill the buffer with bytes of the extent, without checking them."""

    async def checksums(self, extent: Extent, first: int, count: int) -> bytes:
        """The checksums of so many blocks of the extent from the first one on, computed from the stored bytes.

        Raises Damaged when bytes are missing or cannot be read.
        """

    def open_extent(self, extent: Extent, offset: int, length: int) -> OpenExtent:
        """Bytes of the extent as a part of an open file, unchecked. Raises Damaged when there is no such file.

        Only for extents that have files.
        """

    async def close(self) -> None:
        """Finish running uploads and release all resources."""


class Inspectable(Protocol):
    """What a check of all bytes needs of a store."""

    def pin(self) -> Pin: ...

    async def read_cold(self, extent: Extent, offset: int, length: int) -> bytes:
        """Bytes of the extent, unchecked, which other readers will hardly need. Raises Damaged if they are missing."""


class Reclaimable(Protocol):
    """What garbage collection needs of a store."""

    @property
    def keep_seconds(self) -> float:
        """How long a segment is kept after it was found that nothing refers to it; 0 if pins tell when to remove it."""

    def mark(self) -> Mark:
        """This moment."""

    def passed(self, mark: Mark) -> bool:
        """Whether every reader that may have pinned before the mark has released."""

    async def sealed(self, segments: Iterable[bytes]) -> set[bytes]:
        """Those of the segments that their owner has sealed, or whose owner is dead: they get no new references."""

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """Free the space of these stretches, as far as the store can. Nothing happens if the segment is gone."""

    async def keep_only(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """Free all space but that of these stretches, which are in order. For sealed segments."""

    async def remove(self, segment: bytes) -> None:
        """Remove a sealed segment. Nothing happens if it is gone."""

    def segments_of(self, owner: bytes) -> AsyncIterator[bytes]:
        """The segments of one owner that may have bytes which were never referred to, in no order.

        What is left of uploads that a dead owner never finished is removed.
        """

    async def drop_owner(self, owner: bytes) -> None:
        """All segments of this dead owner were cleaned up: drop whatever else the store keeps for it."""
