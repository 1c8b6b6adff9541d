"""The bytes of extents on their way to a client, or into a copy.

They follow as they are read, or the kernel sends them from the file. The pin keeps them until the client has them all,
whatever is written in the meantime. They are checked before they are sent: if the first of them are damaged, the
response is an error, and later damage cuts it off.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Generic, TypeVar

from kyanite.engine.api import Damaged, EngineBusy, EngineClosed, Snapshot
from kyanite.extents.api import Pin
from kyanite.model.accounts import Store
from kyanite.model.content.content import ExtentPart, PlanPart, Zeros
from kyanite.model.content.opening import Opened, Readable, Reading
from kyanite.model.content.reading import (
    KeptExtent,
    check_pinned,
    forget_extents,
    keep_extents,
    open_pinned,
    planned_parts,
    release_pinned,
)
from kyanite.model.content.spread import Run, joined
from kyanite.services.rest import damage
from kyanite.wire.http import FileSlice, Piece, Request, Unfinished

R = TypeVar("R", bound=Readable)
P = TypeVar("P", bound=Piece)

_log = logging.getLogger(__name__)
_READ_MAX = 128 * 1024
"""Parts up to this size are read into memory; the kernel sends longer ones."""
_ZEROS = bytes(64 * 1024)

pin_numbers = count(1)
"""Numbers for the pinned reads of this process."""
_background: set[asyncio.Future[None]] = set()
SLOW_SECONDS = 10.0
"""A read that takes longer keeps nothing but what it reads."""


def _done(task: asyncio.Future[None]) -> None:
    _background.discard(task)
    if (
        not task.cancelled()
        and (error := task.exception()) is not None
        and not isinstance(error, EngineClosed)
    ):
        _log.warning("a read could not be noted", exc_info=error)


async def begun(request: Request, pieces: AsyncGenerator[P, None]) -> AsyncGenerator[P, None]:
    """The same pieces. The first is there when this returns, so if it is damaged, the response can still say so."""
    same = _noting_damage(request, pieces)
    await anext(same, None)
    return same


async def _noting_damage(request: Request, pieces: AsyncGenerator[P, None]) -> AsyncGenerator[P, None]:
    """The same pieces, and the first one twice: once when it is there, and then for the client.

    Later damage, or a store that has gone away, can only cut the response off.
    """
    has_begun = False
    try:
        async for piece in pieces:
            if not has_begun:
                yield piece
                has_begun = True
            yield piece
    except Damaged as damaged:
        if not has_begun:
            raise
        damage.report(request, damaged)
        raise Unfinished(str(damaged)) from damaged
    except EngineBusy as busy:  # An object store has gone away.
        if not has_begun:
            raise
        raise Unfinished(str(busy)) from busy
    finally:
        await pieces.aclose()


class Stream(Generic[R]):
    """The bytes of one read, from ``open`` to ``release``. At most one file is open at a time.

    It pins the extents before the content is opened, and both are done once. Only content in so many parts that their
    plan does not fit one snapshot is opened again, as a pinned read.
    """

    __slots__ = (
        "_close_file",
        "_is_released",
        "_opened",
        "_pin",
        "_pinned_read",
        "_slow_read",
        "_store",
        "_timer",
    )

    def __init__(self, store: Store, pin: Pin | None = None) -> None:
        self._store = store
        self._pin: Pin | None = pin or store.extents.pin()
        self._close_file: Callable[[], None] | None = None
        self._pinned_read: int | None = None
        self._slow_read: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_released = False

    async def open(self, request: Reading[R]) -> Opened[R]:
        opened = await self._store.engine.read(request)
        return await self.resume(opened, request)

    async def resume(self, opened: Opened[R], request: Reading[R]) -> Opened[R]:
        """Go on with content that was opened under this pin."""
        if opened.plan.end < opened.offset + opened.length:
            self._pinned_read = next(pin_numbers)
            store = self._store
            opened = await open_pinned(store.engine, request, store.membership.id, self._pinned_read)
            self._unpin()  # The pinned read refers to all extents.
        else:
            self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._become_slow)
        self._opened = opened
        return opened

    async def keep_content(self, request: Reading[R]) -> Opened[R]:
        """Open the same once more as a pinned read, so that the rows of its layer can be read in other snapshots."""
        if self._pinned_read is None:
            self._pinned_read = next(pin_numbers)
            store = self._store
            self._opened = await open_pinned(store.engine, request, store.membership.id, self._pinned_read)
        return self._opened

    def check_kept(self, snap: Snapshot) -> None:
        """Whether the content is what it was when it was opened, if it has a layer."""
        if self._pinned_read is not None and self._opened.record.content.layer:
            check_pinned(snap, self._store.membership.id, self._pinned_read)

    def _unpin(self) -> None:
        if self._pin is not None:
            self._pin.release()
            self._pin = None

    def _become_slow(self) -> None:
        self._in_background(self._replace_pin())

    async def _replace_pin(self) -> None:
        """Keep the extents of the plan instead of everything. If that fails, the pin stays."""
        parts = (part for part in self._opened.plan.parts if isinstance(part, ExtentPart))
        found = {part.extent for part in parts}
        extents = [KeptExtent(extent.segment, extent.start, extent.length) for extent in found]
        store, number = self._store, next(pin_numbers)
        keep = partial(keep_extents, owner=store.membership.id, number=number, extents=extents)
        await store.engine.run(keep, durable=False)
        self._slow_read = number
        if self._is_released:
            self._forget_slow_read(number)
        else:
            self._unpin()

    def _forget_slow_read(self, number: int) -> None:
        store = self._store
        forget = partial(forget_extents, owner=store.membership.id, number=number)
        self._in_background(store.engine.run(forget, durable=False))

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        _background.add(task)
        task.add_done_callback(_done)

    async def read_short(self) -> bytes | None:
        """The bytes, if they are one part of an extent and short enough to be sent with the head."""
        part, *more = self._opened.plan.parts
        if more or self._pinned_read is not None:
            return None
        if isinstance(part, ExtentPart) and part.length <= _READ_MAX:
            return await self._store.reader.read(part.extent, part.offset, part.length)
        return None

    async def gathered(self) -> bytes:
        """All bytes, in memory."""
        gathered = bytearray()
        async for data in self.data():
            gathered += data
        return bytes(gathered)

    async def data(self) -> AsyncGenerator[bytes, None]:
        """All bytes, through memory."""
        async for part in self._parts():
            async for data in self._bytes_of(part):
                yield data

    async def runs(self) -> list[Run]:
        """Where bytes are, and not zeros."""
        found: list[Run] = []
        at = self._opened.offset
        async for part in self._parts():
            length = len(part) if isinstance(part, bytes) else part.length
            if not isinstance(part, Zeros):
                if found and found[-1].offset + found[-1].length == at:
                    found[-1] = Run(found[-1].offset, found[-1].length + length)
                else:
                    found.append(Run(at, length))
            at += length
        return joined(found)

    async def data_of(self, runs: Sequence[Run]) -> AsyncGenerator[bytes, None]:
        """The bytes of these runs, which cover everything but zeros, one after the other."""
        at = self._opened.offset
        async for part in self._parts():
            length = len(part) if isinstance(part, bytes) else part.length
            if not isinstance(part, Zeros):
                async for data in self._bytes_of(part):
                    yield data
            else:
                for run in runs:
                    first, end = max(run.offset, at), min(run.offset + run.length, at + length)
                    if first < end:
                        async for data in self._bytes_of(Zeros(end - first)):
                            yield data
            at += length

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """All bytes. Long parts are spans of files, to be sent by the kernel."""
        is_first = True
        sent_by_kernel_from = _READ_MAX if self._store.reader.sends_files else sys.maxsize
        async for part in self._parts():
            if isinstance(part, ExtentPart) and part.length > sent_by_kernel_from:
                extent, offset, length = part
                while length:
                    span = await self._store.reader.open_checked(extent, offset, length, is_first=is_first)
                    is_first = False
                    offset += span.length
                    length -= span.length
                    self._close_file = span.release
                    yield FileSlice(span.fd, span.offset, span.length)
                    self._close_file = None
                    span.release()
            else:
                is_first = False
                async for data in self._bytes_of(part):
                    yield data

    def release(self) -> None:
        """End the read, however far it came. Called once."""
        self._is_released = True
        if self._timer is not None:
            self._timer.cancel()
        if self._close_file is not None:
            self._close_file()
        self._unpin()
        if self._slow_read is not None:
            self._forget_slow_read(self._slow_read)
        if self._pinned_read is not None:
            store = self._store
            self._in_background(release_pinned(store.engine, store.membership.id, self._pinned_read))

    def _parts(self) -> AsyncIterator[PlanPart]:
        opened = self._opened
        end = opened.offset + opened.length
        store, content = self._store, opened.record.content
        return planned_parts(store.engine, content, opened.plan, end, store.membership.id, self._pinned_read)

    async def _bytes_of(self, part: PlanPart) -> AsyncIterator[bytes]:
        if isinstance(part, bytes):
            yield part
        elif isinstance(part, ExtentPart):
            async for data in self._store.reader.stream(part.extent, part.offset, part.length):
                yield data
        else:
            left = part.length
            while left > 0:
                yield _ZEROS if left >= len(_ZEROS) else _ZEROS[:left]
                left -= len(_ZEROS)
