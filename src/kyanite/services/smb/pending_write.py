"""One WRITE from its arrival to its commit, and those of one open that are on their way."""

import asyncio
import logging
from typing import NamedTuple

from kyanite.extents.api import Extent
from kyanite.model.files.opens.data import HandleWrite, Payload
from kyanite.rules.refusals import Refused

_log = logging.getLogger(__name__)


class NewWrite(NamedTuple):
    """A WRITE as it arrives, with at least one byte. The data must not change until it is done."""

    handle_id: int
    offset: int
    data: memoryview
    keeps_last_write: bool = False
    keeps_change: bool = False
    may_be_behind: bool = False
    """Whether it may be answered before it is committed."""


class PendingWrite:
    """One WRITE in the queue of its file. Its futures must not be cancelled."""

    __slots__ = ("answered", "done", "error", "is_written", "new", "payload")

    def __init__(self, new: NewWrite, loop: asyncio.AbstractEventLoop) -> None:
        self.new = new
        self.done: asyncio.Future[None] = loop.create_future()
        """When it is committed. Has the exception that refuses it."""
        self.answered: asyncio.Future[None] = loop.create_future() if new.may_be_behind else self.done
        """When the client can be answered: at the same time or earlier."""
        self.is_written = False
        """Whether a file has the bytes; they need not be synced."""
        self.payload: Payload | None = None
        """None until they are on disk."""
        self.error: Exception | None = None
        """Why they never will be."""

    @property
    def is_ready(self) -> bool:
        return self.payload is not None or self.error is not None

    @property
    def is_behind(self) -> bool:
        """Whether it was answered and is not committed."""
        return self.answered.done() and not self.done.done()

    @property
    def extents(self) -> tuple[Extent, ...]:
        return self.payload if isinstance(self.payload, tuple) else ()

    @property
    def stored(self) -> HandleWrite:
        """The same, with its bytes on disk."""
        assert self.payload is not None, "A WRITE is committed before its bytes are on disk."
        new = self.new
        return HandleWrite(
            new.handle_id, new.offset, len(new.data), self.payload, new.keeps_last_write, new.keeps_change
        )

    def answer(self) -> None:
        """Answer the client before the commit."""
        if not self.answered.done():
            self.answered.set_result(None)

    def finish(self, error: Exception | None) -> None:
        """The WRITE is committed, or was refused."""
        for future in {self.answered, self.done}:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()  # Marked as retrieved: the client may be gone.


class PendingWrites:
    """The WRITEs of one open that are not committed yet. Whoever reads, flushes or closes it waits for them."""

    __slots__ = ("_pending", "late_error")

    def __init__(self) -> None:
        self._pending: dict[asyncio.Future[None], PendingWrite] = {}
        self.late_error: BaseException | None = None
        """Of the first WRITE that was answered and could not be committed."""

    def add(self, write: PendingWrite) -> None:
        self._pending[write.done] = write
        write.done.add_done_callback(self._finished)

    async def drained(self) -> None:
        """Wait until every WRITE that has arrived by now is committed or refused."""
        if self._pending:
            await asyncio.wait(list(self._pending))

    def _finished(self, done: "asyncio.Future[None]") -> None:
        write = self._pending.pop(done)
        error = done.exception()
        if error is not None and write.answered.exception() is None:
            _log_late(error)
            self.late_error = self.late_error or error


def _log_late(error: BaseException) -> None:
    """A refusal is no fault of the server: the handle was closed by force, or its share deleted."""
    if isinstance(error, Refused):
        _log.warning("a WRITE that was answered was refused", extra={"why": error.reason.name})
    else:
        _log.error("a WRITE that was answered could not be committed", exc_info=error)
