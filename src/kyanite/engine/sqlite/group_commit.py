"""Group commit: bodies that wait while one commit is in flight share the next one.

A cycle has three steps. *Begin* acquires Kyanite's write lock and SQLite's: on the loop if both are free, else in the
thread. *Bodies* run on the loop, one after another; each sees the rows and the writes of the bodies before it in the
batch. *Commit* waits for the disk, in the thread, while the loop serves other requests and the next batch gathers. Only
then are the outcomes of all bodies of the batch returned. A short batch that needs no sync is committed on the loop,
and so is the single write of a lone client (``lone_client.py``).

Bodies run on the loop because a thread would compete with it for the interpreter lock at every row; the commit runs in
a thread because the loop must not wait for a disk. There is one thread, and at most one batch in flight.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Final, TypeVar

import apsw

from kyanite.engine.api import (
    Damaged,
    EngineBusy,
    EngineClosed,
    EngineError,
    EngineFailed,
    EngineFull,
    OutcomeUnknown,
    Transaction,
)
from kyanite.engine.outcome import Failed
from kyanite.engine.sqlite.batch import Batch, PendingBody
from kyanite.engine.sqlite.database import save_last_instant
from kyanite.engine.sqlite.errors import engine_error
from kyanite.engine.sqlite.lone_client import LoneClient
from kyanite.engine.sqlite.rows import Rows
from kyanite.engine.sqlite.shared_state import SharedState
from kyanite.engine.sqlite.write_lock import WriteLock
from kyanite.engine.transaction import BodyRunner, Clock
from kyanite.values import Instant

T = TypeVar("T")

_SMALL_BATCH_BYTES: Final = 256 * 1024
_RESERVED_TICKS: Final = 20_000_000
"""How many instants are stored as given at a time: those of two seconds."""
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one batch, and of the queue before it."""

    bodies: int = 512
    size_bytes: int = 4 * 1024 * 1024
    seconds: float = 0.004
    waiting: int = 20_000


DEFAULT_LIMITS: Final = Limits()


class Commits:
    """How much was committed, for metrics."""

    __slots__ = ("batches", "transactions")

    def __init__(self) -> None:
        self.batches = 0
        self.transactions = 0


class _Next(Enum):
    """What the thread did for the next batch after a commit."""

    NOTHING = auto()
    BEGUN = auto()
    COMING = auto()


class GroupCommit:
    def __init__(
        self,
        connection: apsw.Connection,
        write_lock: WriteLock,
        shared_state: SharedState,
        body_runner: BodyRunner,
        *,
        clock: Clock,
        notify: Callable[[Sequence[bytes]], None],
        lone_client: LoneClient,
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._rows = Rows(connection)
        self._write_lock = write_lock
        self._shared_state = shared_state
        self._body_runner = body_runner
        self.clock = clock
        self._notify = notify
        self._lone_client = lone_client
        self._limits = limits
        self.commits = Commits()
        self._loop = asyncio.get_running_loop()
        self._queues: dict[bool, deque[PendingBody]] = {True: deque(), False: deque()}
        self._durable = True
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._commit_thread = Thread(target=self._work, name="kyanite-commit", daemon=True)
        self._commit_thread.start()

    def submit(self, body: Callable[[Transaction], T], durable: bool) -> Awaitable[T]:
        self._body_runner.check_outside_bodies()
        if self._closed:
            return Failed(EngineClosed("the engine was closed"))
        self._lone_client.has_company = True
        queue = self._queues[durable]
        if len(queue) >= self._limits.waiting:
            return Failed(EngineBusy("too many transactions are waiting"))
        future: asyncio.Future[T] = self._loop.create_future()
        queue.append(PendingBody(body, future))
        if self._idle.is_set():
            self._idle.clear()
            if durable:
                # Deferred, so that all transactions of this iteration of the loop share the sync.
                self._loop.call_soon(self._begin)
            else:
                self._begin()  # Often done when it returns, and then the caller need not wait.
        return future

    async def close(self) -> None:
        """Finish submitted transactions, then stop."""
        self._closed = True
        await self._idle.wait()
        self._jobs.put(self._return_reserved)
        self._jobs.put(None)
        await asyncio.to_thread(self._commit_thread.join)

    # On the loop

    def _begin(self) -> None:
        if not self._write_lock.try_acquire():
            self._jobs.put(self._begin_in_thread)
            return
        self._begun(self._open())

    def _begun(self, error: EngineError | None) -> None:
        batch = self._new_batch()
        if error is not None:
            self._refuse_some(batch, error)
            return
        self._run_bodies(batch)
        is_small = batch.size_bytes < _SMALL_BATCH_BYTES
        if not batch.wrote or (is_small and not self._durable):
            # A commit without a sync is shorter than waking the thread.
            self._end(batch)
            self._committed(batch, _Next.NOTHING)
        elif is_small and len(batch.members) == 1 and self._lone_client.may_commit_on_loop():
            began_at = perf_counter()
            self._end(batch)
            self._lone_client.committed_on_loop(perf_counter() - began_at)
            self._committed(batch, _Next.NOTHING)
        else:
            if is_small:
                # The thread would compete with the loop for the interpreter at every statement, with the lock held.
                try:  # noqa: SIM105 (a context manager would be three calls)
                    batch.flush()
                except apsw.Error:
                    pass  # It fails again in the thread, which handles it.
            self._lone_client.has_company, self._lone_client.is_in_thread = False, True
            self._jobs.put(partial(self._commit_in_thread, batch))

    def _new_batch(self) -> Batch:
        return Batch(self._rows, self._body_runner, self.clock, self._shared_state.last_instant)

    def _run_bodies(self, batch: Batch) -> None:
        queue = self._queues[self._durable]
        limits = self._limits
        deadline = perf_counter() + limits.seconds
        while queue:
            if queue[0].runs_alone and batch.members:
                break
            pending = queue.popleft()
            if pending.is_cancelled:
                continue
            batch.run(pending)
            if (
                pending.runs_alone
                or len(batch.members) >= limits.bodies
                or batch.size_bytes >= limits.size_bytes
                or perf_counter() >= deadline
            ):
                break

    def _refuse_some(self, batch: Batch, error: EngineError) -> None:
        queue = self._queues[self._durable]
        while queue and len(batch.members) < self._limits.bodies:
            batch.members.append(queue.popleft())
        batch.fail(type(error), str(error))
        self._committed(batch, _Next.NOTHING)

    def _committed(self, batch: Batch, following: _Next) -> None:
        if self._lone_client.is_in_thread:
            self._lone_client.committed_in_thread()
        for pending in batch.members:
            pending.resolve()
        if batch.notifications:
            self._notify(batch.notifications)
        if following is _Next.BEGUN:
            self._begun(None)
        elif following is _Next.NOTHING:
            if self._queues[True] or self._queues[False]:
                self._loop.call_soon(self._begin)
            else:
                self._idle.set()

    # In the thread

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _begin_in_thread(self) -> None:
        self._write_lock.acquire()
        self._loop.call_soon_threadsafe(self._begun, self._open())

    def _commit_in_thread(self, batch: Batch) -> None:
        began_at = perf_counter()
        self._end(batch)
        self._lone_client.seconds_in_thread = perf_counter() - began_at
        following = self._begin_next()
        self._loop.call_soon_threadsafe(self._committed, batch, following)
        if following is _Next.COMING:
            self._begin_in_thread()

    def _return_reserved(self) -> None:
        """Store which of the reserved instants were given in fact."""
        self._write_lock.acquire()
        if self._open() is not None:
            return
        try:
            save_last_instant(self._cursor, self._shared_state.last_instant)
            self._commit(visibly=True)
            self._shared_state.set_reserved(self._shared_state.last_instant)
        except apsw.Error:
            pass  # The instants stay reserved.
        finally:
            self._write_lock.release()

    def _begin_next(self) -> _Next:
        """Begin the next batch without waiting for the loop, which is busy, if bodies are waiting."""
        if not (self._queues[True] or self._queues[False]):
            return _Next.NOTHING
        if not self._write_lock.try_acquire():
            return _Next.COMING
        return _Next.BEGUN if self._open() is None else _Next.NOTHING

    # On the loop or in the thread, with the write lock

    def _open(self) -> EngineError | None:
        """Begin the transaction of the next batch, or release the write lock and return the error."""
        try:
            if self._shared_state.failed:
                raise EngineFailed(
                    "a commit failed: the store takes no writes until it has been opened again"
                )
            self._choose_queue()
            self._cursor.execute("BEGIN IMMEDIATE")
        except EngineError as error:
            self._write_lock.release()
            return error
        except apsw.Error as error:
            self._write_lock.release()
            return self._translated(error)
        return None

    def _choose_queue(self) -> None:
        """Alternate between durable batches and others. The kind of commit can change only outside a transaction."""
        durable = not self._durable
        if not self._queues[durable]:
            durable = self._durable
        if durable != self._durable:
            self._cursor.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _end(self, batch: Batch) -> None:
        """Commit, or roll back and make the error every outcome; then release the write lock."""
        committing = False
        try:
            self._shared_state.set_last_instant(batch.last)
            reserved = self._shared_state.reserved_until
            if batch.wrote:
                batch.flush()
                if batch.last > reserved:
                    reserved = Instant(batch.last + _RESERVED_TICKS)
                    save_last_instant(self._cursor, reserved)
            committing = batch.wrote and self._connection.in_transaction
            self._commit(visibly=batch.wrote)
            self._shared_state.set_reserved(reserved)
            self.commits.batches += 1
            self.commits.transactions += len(batch.members)
        except apsw.Error as error:
            self._undo(batch, error, committing)
        finally:
            self._write_lock.release()

    def _commit(self, *, visibly: bool) -> None:
        """The shared state must announce a change before any process can read it."""
        if visibly:
            self._shared_state.begin_commit()
        try:
            self._cursor.execute("COMMIT")
        finally:
            if visibly:
                self._shared_state.end_commit()

    def _undo(self, batch: Batch, error: apsw.Error, committing: bool) -> None:
        """Roll back. When a page is damaged that some body has written to, each body is run again by itself."""
        reason = self._translated(error)
        if committing and not isinstance(reason, EngineFull):
            self._shared_state.fail()
            reason = OutcomeUnknown(str(reason))
        try:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except apsw.Error as second:
            self._shared_state.fail()
            reason = OutcomeUnknown(f"{reason}; {second}")
        if isinstance(reason, Damaged) and len(batch.members) > 1:
            self._queues[self._durable].extendleft(reversed(batch.take_back()))
            return
        batch.fail(type(reason), str(reason))

    def _translated(self, error: apsw.Error) -> EngineError:
        extended = getattr(error, "extendedresult", 0)
        if extended == apsw.SQLITE_IOERR_WRITE and self._connection.system_errno in _NO_SPACE:
            return EngineFull(f"SQLite: {error}")
        return engine_error(error)
