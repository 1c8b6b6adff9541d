"""The contract for bulk bytes: immutable extents, written and synced before a transaction refers to them.

An extent is a stretch of a *segment*: a file, or an object of an object store. A segment belongs to one
incarnation of one process, its *owner*, and the name of the segment says which. Nothing here knows who refers
to an extent; that is counted in the engine by ``model/content``, and ``model/maintenance`` gives space back.
Three promises make that safe:

*Bytes on their way in* are the caller's. ``Upload.finish`` and ``put`` hand extents out; the caller then
either ``commit``s them, when the transaction that refers to them has committed, or ``discard``s them, when it
has certainly not. When it cannot know (the outcome of the commit is unknown, the task was cancelled), it does
neither: they stay until their owner is dead, and then the rows of the engine decide.

*Readers* pin before they take the snapshot from which they learn of an extent, and release when they have
done with its bytes. ``mark`` and ``passed`` let the sweeper wait until all that were reading at some moment
have finished.

*A segment* is taken away only when its owner has let go of it or is dead.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NewType, Protocol

import msgspec

from kyanite.engine.api import EngineError

SEGMENT_BYTES = 16
"""How long the name of a segment is: twelve bytes for the owner, four for the count of its segments."""

PACK_MAX = 1024 * 1024
"""A body up to this size is best gathered in memory and given to ``put``."""

EXTENT_MAX = 64 * 1024 * 1024
"""No extent is longer, so that one check, one hole and one row stay small."""


class Extent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes that never change, with their CRC-64/NVME. A part of stored records: fields are only ever added
    at the end."""

    segment: bytes
    start: int
    length: int
    crc64: int


Mark = NewType("Mark", int)
"""A moment on the clock by which pins are kept. Means nothing to other incarnations of the machine."""

Observer = Callable[[bytes | bytearray | memoryview], object]
"""Sees every byte of an upload in order, away from the event loop: ``hashlib.md5().update``."""


class Damaged(EngineError):
    """The bytes of an extent are not those that were written, or are not there."""


class Upload(Protocol):
    """One body on its way in. A bounded part of it is in memory, the rest on the disk."""

    async def write(self, piece: bytes) -> None:
        """Take the next piece. Returns when the store can take more."""

    async def finish(self) -> list[Extent]:
        """The whole body, on the disk for good. The extents are now the caller's, to settle or to discard."""

    async def abort(self) -> None:
        """Leave nothing behind. Harmless after an error; not to be called after ``finish`` returned."""


class Pin(Protocol):
    """Keeps what was readable when it was made."""

    def release(self) -> None: ...


class Stretch(NamedTuple):
    """A part of a segment."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of an open file for the kernel to send. The descriptor stays open until the span is released,
    once."""

    fd: int
    offset: int
    length: int
    release: Callable[[], None]


class Extents(Protocol):
    def upload(self, *, size_hint: int | None, observers: Sequence[Observer] = ()) -> Upload:
        """Begin a body; ``size_hint`` is its exact size if that is known. The observers run beside the CRC.

        More bytes than were announced are a ValueError.
        """

    async def put(self, data: bytes) -> Extent:
        """Store a body of at most EXTENT_MAX bytes that is in memory already. The sync is shared with all
        that wait for one."""

    def commit(self, extents: Sequence[Extent]) -> None:
        """The transaction that refers to these extents has committed."""

    async def discard(self, extents: Sequence[Extent]) -> None:
        """No transaction refers to these extents, nor ever will: give their space back."""

    def pin(self) -> Pin:
        """To be called before the snapshot is taken. Costs no system call."""

    async def read(self, extent: Extent, offset: int, length: int) -> bytes:
        """Bytes of the extent. Checked when it is the whole; raises Damaged."""

    def stream(self, extent: Extent, offset: int, length: int) -> AsyncIterator[bytes]:
        """The same piece by piece. A whole extent is checked before its last piece is given out."""

    def span(self, extent: Extent, offset: int, length: int) -> Span:
        """The same as a place in an open file. Raises Damaged when there is no such file."""

    async def close(self) -> None:
        """Finish what was begun, let go of everything."""


class Reclaimable(Protocol):
    """What the sweeper needs of a store, beside what everybody does."""

    def mark(self) -> Mark:
        """This moment."""

    def passed(self, mark: Mark) -> bool:
        """Whether every reader that may have pinned before the mark has released."""

    async def sealed(self, segments: Iterable[bytes]) -> set[bytes]:
        """Those of the segments whose owner has let go of them or is dead: no new references to them will
        come."""

    async def punch(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """Give back the space of these stretches, as far as the store can. Nothing happens if it is gone."""

    async def keep_only(self, segment: bytes, stretches: Sequence[Stretch]) -> None:
        """Give back all space but that of these stretches, which are in order. For segments that were let go."""

    async def remove(self, segment: bytes) -> None:
        """Remove a segment that was let go. Nothing happens if it is gone."""

    def segments_of(self, owner: bytes) -> Iterator[bytes]:
        """The segments that are there of one owner, in no order."""

    def drop_owner(self, owner: bytes) -> None:
        """All segments of this dead owner were cleaned up: drop whatever else the store keeps for it."""
