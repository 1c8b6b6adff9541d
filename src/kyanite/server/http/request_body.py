"""The body of a request on its way from the parser to the handler.

The parser's side feeds, finishes or fails it; the handler's side pulls. Between the two lies a bounded buffer: when it
is full the connection stops reading from the socket, and when the handler has pulled half of it, it goes on. What all
bodies buffer together is bounded as well.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

from kyanite.server.http.limits import Limits, Progress
from kyanite.server.memory_budget import MemoryBudget
from kyanite.wire.http import BodyError

_TIGHT_BYTES: Final = 64 * 1024
"""What a body may buffer while all bodies together take much memory."""


class Flow(Protocol):
    """What a body requests of its connection."""

    def body_wanted(self) -> None:
        """The handler waits for bytes that have not come: send 100-continue if the client waits for it."""

    def pause_body(self) -> None: ...

    def resume_body(self) -> None: ...

    def receive_directly(self, body: "DirectBody") -> None:
        """Receive the next bytes into the room that the body has."""

    def receive_pieces(self) -> None:
        """Receive the next bytes in pieces again."""


class NoBody:
    """The body of a request that has none."""

    __slots__ = ()

    length = 0

    async def read(self) -> bytes:
        return b""

    async def read_all(self, limit: int) -> bytes | None:
        return b""


NO_BODY: Final = NoBody()


class IncomingBody:
    """A body of known length or in chunks."""

    __slots__ = (
        "_bound",
        "_budget",
        "_budget_limit",
        "_buffered",
        "_discarding",
        "_error",
        "_flow",
        "_held",
        "_paused",
        "_pieces",
        "_progress",
        "_waiter",
        "complete",
        "length",
        "received",
    )

    def __init__(self, length: int | None, flow: Flow, buffer_bytes: int, budget: MemoryBudget) -> None:
        self.length = length
        self._budget = budget
        self._budget_limit = budget.limit_for(length)
        self._held = 0
        """What this body takes of the budget: what is buffered, and what ``read_all`` has returned."""
        self.received = 0
        self.complete = False
        self._flow = flow
        self._bound = buffer_bytes
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._discarding = False
        self._error: BodyError | None = None
        self._progress: Progress | None = None
        self._waiter: asyncio.Future[None] | None = None

    # The handler's side.

    async def read(self) -> bytes:
        while True:
            self._check_error()
            if self._pieces:
                piece = self._take()
                self._held -= len(piece)
                self._budget.used_bytes -= len(piece)
                return piece
            if self.complete:
                return b""
            await self._more()

    async def read_all(self, limit: int) -> bytes | None:
        if self.length is not None and self.length > limit:
            return None
        if self.complete and len(self._pieces) == 1 and self.received <= limit and self._error is None:
            return self._take()  # The common case: a small body that came along with its head.
        pieces: list[bytes] = []
        size = 0
        while piece := await self.read():
            size += len(piece)
            if size > limit:
                return None
            self._held += len(piece)  # Until the request is answered.
            self._budget.used_bytes += len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_error(self) -> None:
        if self._error is not None:
            # A copy: the traceback of the original would refer to the body, which would be a cycle.
            raise BodyError(str(self._error), self._error.status)

    def _take(self) -> bytes:
        piece = self._pieces.popleft()
        self._buffered -= len(piece)
        if self._paused and self._buffered <= self._bound // 2:
            self._paused = False
            self._flow.resume_body()
        return piece

    async def _more(self) -> None:
        assert self._waiter is None, "a body has one reader"
        self._flow.body_wanted()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # The parser's side.

    @property
    def awaited(self) -> bool:
        """Whether the handler is waiting for bytes at this moment."""
        return self._waiter is not None

    @property
    def failed(self) -> bool:
        return self._error is not None

    def tick(self) -> None:
        """Called now and then."""

    def stalled(self, elapsed_seconds: float, limits: Limits) -> bool:
        """To be called at every tick in which the handler waits for the body."""
        if self._progress is None:
            self._progress = Progress()
        return self._progress.stalled(self.received, elapsed_seconds, limits)

    def feed(self, piece: bytes) -> None:
        self.received += len(piece)
        if self._discarding:
            return
        size = len(piece)
        self._held += size
        budget = self._budget
        used = budget.used_bytes = budget.used_bytes + size
        budget.peak_bytes = max(budget.peak_bytes, used)
        if used > self._budget_limit:
            self.fail(BodyError("there is no memory left for the body", 503))
            return
        self._pieces.append(piece)
        self._buffered += size
        if not self._paused and self._buffered > (_TIGHT_BYTES if self._budget.is_tight else self._bound):
            self._paused = True
            self._flow.pause_body()
        self._wake()

    def finish(self) -> None:
        self.complete = True
        self._wake()

    def fail(self, error: BodyError) -> None:
        """The rest will not come, so what is buffered is dropped."""
        if self.complete or self._error is not None:
            return
        self._error = error
        self._wake()
        self.discard()

    def discard(self) -> None:
        """The handler will not pull the rest: drop it as it comes."""
        self._discarding = True
        self._pieces.clear()
        self._budget.used_bytes -= self._held
        self._held = 0
        if self._paused:
            self._paused = False
            self._flow.resume_body()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class DirectBody(IncomingBody):
    """A long body of known length. Its reader may have it received into buffers of its own, without a copy.

    Only what came along with the head is in pieces, and what comes while the reader has no buffer.
    """

    __slots__ = ("_filled", "_is_late", "_room")

    def __init__(self, length: int, flow: Flow, buffer_bytes: int, budget: MemoryBudget) -> None:
        # Little is received ahead of the reader, because that is copied.
        super().__init__(length, flow, min(buffer_bytes, _TIGHT_BYTES), budget)
        self._room: memoryview | None = None
        """Where the next bytes belong."""
        self._filled = 0
        self._is_late = False

    async def read_into(self, buffer: memoryview) -> int:
        copied = 0
        while self._pieces and copied < len(buffer):
            copied += self._copy_into(buffer[copied:])
        self._check_error()
        if copied == len(buffer) or self.complete:
            return copied
        assert self.length is not None
        self._room = buffer[copied : copied + self.length - self.received]
        self._filled, self._is_late = 0, False
        self._paused = False
        self._flow.receive_directly(self)
        try:
            await self._more()
        finally:
            self._room = None
            if not self._paused and not self.complete:
                self._flow.receive_pieces()
        self._check_error()
        return copied + self._filled

    async def _more(self) -> None:
        if self._paused:  # The last buffer was filled, and this time the reader has none.
            self._paused = False
            self._flow.resume_body()
        await super()._more()

    def _copy_into(self, room: memoryview) -> int:
        piece = self._pieces[0]
        count = min(len(piece), len(room))
        room[:count] = memoryview(piece)[:count]
        self._held -= count
        self._budget.used_bytes -= count
        if count == len(piece):
            self._take()
        else:
            self._pieces[0] = piece[count:]
            self._buffered -= count
        return count

    def room(self) -> memoryview:
        room = self._room
        assert room is not None, "nothing is received directly without room"
        return room[self._filled :] if self._filled else room

    def fill(self, count: int) -> None:
        """So many bytes were received into the room. When it is full, nothing more is received before there is more."""
        room = self._room
        assert room is not None
        self.received += count
        self._filled += count
        if self._filled == len(room):
            if self.received != self.length:
                self._paused = True
                self._flow.pause_body()
            self._wake()

    def tick(self) -> None:
        """A slow client does not keep a buffer for longer than two ticks."""
        if self._room is not None:
            if self._is_late:
                self._wake()
            self._is_late = True

    def discard(self) -> None:
        if self._room is not None:
            self._room = None
            self._flow.receive_pieces()
        super().discard()
