"""Writes: speculative batches, committed by one function in the database.

All waiting bodies run on the loop against what is known of the rows, each after the writes of those before it. What
they miss is fetched for all of them together, and those that missed something run again. Then one call validates
everything that was read and writes everything that was written (``commit_batch`` in ``schema.py``), while it holds the
lock of the store. Only then are outcomes released.

*Instants.* Each body gets instants that are later than all that this process knows to be used. If another process has
used later ones meanwhile, the call refuses the batch if that one has written what this one has read or written, or has
read what this one writes (``order.py``). So instants ascend as far as transactions are ordered by what they read and
wrote. A batch that was refused, for that or because something that it read has changed, takes the lock first and runs
its bodies again under it, where nothing changes. After a refusal the next batches do so at once: those of processes
that write the same rows would be refused more often than not. Each refusal makes it four times as many batches, and
each batch that is not refused half as many. The server ends a session that keeps the lock and is idle, so a process
that stalls under the lock stops the others for a few seconds at most.

*Batches of several processes* wait for one another at the lock, and one of twice the size takes little longer. So
while other processes write, a batch waits a moment for the clients that got their answers just before.

*Rows that others write.* While other processes write, what is known of rows is out of date more often. So when a
batch has to fetch something anyway, it asks in the same statement whether all that it has read is still so.

*Unknown outcomes.* A batch has a number, which its commit inserts into a table. If the connection is lost during the
commit, another one inserts the same number. That waits for a commit that is still under way; it is refused if the batch
was committed; and otherwise it makes sure that the batch never will be.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from kyanite.engine.api import (
    Damaged,
    EngineBusy,
    EngineClosed,
    EngineError,
    OutcomeUnknown,
    Transaction,
)
from kyanite.engine.postgres.batch import Batch, PendingBody
from kyanite.engine.postgres.clock import DatabaseClock
from kyanite.engine.postgres.connections import PATIENCE_SECONDS, Connection, Connections
from kyanite.engine.postgres.errors import ConnectionLost
from kyanite.engine.postgres.known import ABSENT, Absences, Guesses, Known, Stored, Version, Wanted
from kyanite.engine.postgres.long_reads import LongReads
from kyanite.engine.postgres.notifications import DatabaseNotifications
from kyanite.engine.postgres.reader import ROUNDS_MAX, fetch, set_error
from kyanite.engine.postgres.schema import LATE_TICKS_MAX, LOCK_STATEMENT
from kyanite.engine.postgres.source import Reads, ranges_to_confirm
from kyanite.engine.postgres.statements import (
    COMMIT,
    RESOLVE,
    UNKNOWN,
    Answer,
    Request,
    changed_rows,
    commit_values,
)
from kyanite.engine.transaction import BodyRunner
from kyanite.values import Instant

T = TypeVar("T")

_BODIES_MAX: Final = 256
_BYTES_MAX: Final = 8 * 1024 * 1024
_WAITING_MAX: Final = 20_000
_ROWS_PER_SLICE: Final = 2_000
_SLICE_SECONDS: Final = 0.004
_TOGETHER_ROWS_MAX: Final = 256
_OTHERS_SECONDS = 0.5
"""For so long after another process has committed, batches confirm what they know when they fetch something."""
_GATHER_SECONDS = 0.002
_NO_GATHER_SECONDS: Final = 0.1
"""For so long after clients that were answered did not come back, none are waited for."""
_LOCKED_BATCHES_MAX: Final = 64
"""How many batches take the lock first after a refusal, at most."""
_OLD_BATCHES: Final = 32, 256
"""How many a commit deletes, if any: a statement for each one would cost more than it is worth."""
_LOCKED_RUNS_MAX: Final = 20
_COMMITTED: Final = 0


class Commits:
    """How much was committed, for metrics."""

    __slots__ = ("batches", "locked", "refused", "statements", "transactions")

    def __init__(self) -> None:
        self.batches = 0
        self.transactions = 0
        self.refused = 0
        """Batches whose bodies had to run again."""
        self.locked = 0
        """Batches that took the lock first."""
        self.statements = 0


class Writer:
    def __init__(
        self,
        connections: Connections,
        guesses: Guesses,
        clock: DatabaseClock,
        body_runner: BodyRunner,
        notifications: DatabaseNotifications,
        long_reads: LongReads,
    ) -> None:
        self._connections = connections
        self._guesses = guesses
        self._absences = Absences()
        self._clock = clock
        self._body_runner = body_runner
        self._notifications = notifications
        self._long_reads = long_reads
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[PendingBody] = deque()
        self._task: asyncio.Task[None] | None = None
        self._gathered: asyncio.Future[None] | None = None
        """Done when enough bodies wait:"""
        self._enough = 0
        self._gather_from = 0.0
        """Not before this time of the loop."""
        self._others: set[asyncio.Task[None]] = set()
        self._closed = False
        self._prefix = os.urandom(8)
        self._count = 0
        self._committed: deque[tuple[bytes, Instant]] = deque()
        """Batches that the database still has, with their last instants."""
        self._last_known = Instant(0)
        """The last instant that this process knows of by its own statements."""
        self._others_until = 0.0
        self._locked_batches = 1
        """How many take the lock first after the next refusal; and how many are still to do so:"""
        self._locked_left = 0
        self.commits = Commits()

    def submit(self, body: Callable[[Transaction], T], durable: bool) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(EngineClosed("the engine was closed"))
        elif len(self._waiting) >= _WAITING_MAX:
            future.set_exception(EngineBusy("too many transactions wait for the database"))
        else:
            self._add(PendingBody(body, durable, future))
        return future

    def _add(self, pending: PendingBody) -> None:
        self._waiting.append(pending)
        if self._gathered is not None and len(self._waiting) >= self._enough:
            self._end_gathering()
        if self._task is None:
            self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        answered = 0
        try:
            while True:
                if answered > 1 or (answered and self._waiting):
                    await self._gather(answered)
                group: list[PendingBody] = []
                while self._waiting and len(group) < _BODIES_MAX:
                    pending = self._waiting.popleft()
                    if not pending.future.cancelled():
                        group.append(pending)
                if not group:
                    return
                await self._commit_group(group)
                answered = len(group)
        finally:
            self._task = None

    async def _gather(self, answered: int) -> None:
        """While other processes write too, wait a moment for the next requests of clients that were just answered."""
        enough = min(len(self._waiting) + answered, _BODIES_MAX)
        now = self._loop.time()
        if (
            self._closed
            or now > self._others_until
            or now < self._gather_from
            or len(self._waiting) >= enough
        ):
            return
        before = len(self._waiting)
        self._enough = enough
        self._gathered = self._loop.create_future()
        timer = self._loop.call_later(_GATHER_SECONDS, self._end_gathering)
        try:
            await self._gathered
        finally:
            timer.cancel()
            self._gathered = None
        if len(self._waiting) - before < answered // 2:
            self._gather_from = self._loop.time() + _NO_GATHER_SECONDS

    def _end_gathering(self) -> None:
        if self._gathered is not None and not self._gathered.done():
            self._gathered.set_result(None)

    async def _commit_group(self, group: Sequence[PendingBody]) -> None:
        try:
            await self._try_group(group)
        except Damaged as error:
            # Which of them has read the damaged row?
            for pending in group if len(group) > 1 else ():
                await self._commit_group([pending])
            if len(group) == 1:
                set_error(group[0].future, error)
        except Exception as error:
            for pending in group:
                set_error(pending.future, error)

    async def _try_group(self, group: Sequence[PendingBody]) -> None:
        deadline = self._loop.time() + PATIENCE_SECONDS
        if not self._clock.is_known:
            await self._fetch(Request(), None)
        while group := [each for each in group if not each.is_alone and not each.future.done()]:
            try:
                group = await self._commit_some(group, Known(self._guesses, self._absences))
            except ConnectionLost as error:
                if self._loop.time() > deadline:
                    raise EngineBusy(f"The connection to the database was lost: {error}.") from error

    async def _commit_some(self, group: Sequence[PendingBody], known: Known) -> Sequence[PendingBody]:
        """Commit as many of them as a batch has room for, and return the others."""
        if self._locked_left > 0:
            self._locked_left -= 1
            # One run says what to fetch under the lock.
            batch = Batch(known, self._clock, self._body_runner)
            missed, others = await self._run_each(batch, group)
            all_reads = [*(each.reads for each in batch.finished), *(reads for _, reads in missed)]
            request = _confirmation(known, all_reads)
            _add_missing(request, [reads for _, reads in missed])
            group = [*(each.pending for each in batch.finished), *(pending for pending, _ in missed)]
        else:
            batch, others = await self._run_bodies(known, group, None)
            changed = await self._commit_unlocked(batch)
            if changed is not None and known.correct(changed):
                # Nobody has interfered: rows that were assumed not to be there are.
                self.commits.refused += 1
                batch, more_others = await self._run_bodies(
                    known, [each.pending for each in batch.finished], None
                )
                others = [*more_others, *others]
                changed = await self._commit_unlocked(batch)
            if changed is None:
                return others
            self._note_refusal()
            request = _confirmation(known, [each.reads for each in batch.finished])
            group = [each.pending for each in batch.finished]
        known.assume_nothing()
        return [*await self._commit_under_lock(known, group, request), *others]

    async def _commit_unlocked(self, batch: Batch) -> Mapping[bytes, Stored] | None:
        """Commit the batch and finish it; otherwise as ``_commit``."""
        if not batch.finished:
            return None
        async with self._connections.lend() as connection:
            changed = await self._commit(connection, batch)
        if changed is None:
            self._locked_batches = max(self._locked_batches // 2, 1)
            self._finish(batch)
        return changed

    def _note_refusal(self) -> None:
        self.commits.refused += 1
        self._others_until = self._loop.time() + _OTHERS_SECONDS
        self._locked_left = self._locked_batches
        self._locked_batches = min(4 * self._locked_batches, _LOCKED_BATCHES_MAX)

    async def _commit_under_lock(
        self, known: Known, group: Sequence[PendingBody], request: Request
    ) -> Sequence[PendingBody]:
        """Commit them while no other process can commit. Returns those that a batch has no room for."""
        self.commits.locked += 1
        async with self._connections.lend() as connection:
            try:
                batch, others = await self._run_under_lock(connection, known, group, request)
            except BaseException:
                self._connections.drop(connection)
                raise
        self._finish(batch)
        return others

    async def _run_bodies(
        self, known: Known, group: Sequence[PendingBody], connection: Connection | None
    ) -> tuple[Batch, Sequence[PendingBody]]:
        """A batch of the bodies, and those that found no room in it.

        Without a connection what they miss is fetched on any. One that misses too often is fetched for separately.
        """
        batch = Batch(known, self._clock, self._body_runner)
        waiting = group
        may_confirm = connection is None
        while True:
            missed, others = await self._run_each(batch, waiting)
            if others:
                return batch, [*(pending for pending, _ in missed), *others]
            for pending, _ in missed:
                pending.rounds += 1
                if pending.rounds > ROUNDS_MAX and not pending.is_alone:
                    self._fetch_alone(pending)
            missed = [each for each in missed if each[0].rounds <= ROUNDS_MAX]
            if not missed:
                return batch, ()
            waiting = [pending for pending, _ in missed]
            if may_confirm and self._loop.time() < self._others_until:
                # What the finished ones have read may have changed too. They run again, with what is so now.
                may_confirm = False
                waiting = [*(each.pending for each in batch.finished), *waiting]
                reads = [*(each.reads for each in batch.finished), *(reads for _, reads in missed)]
                answer = await self._fetch_missing(_confirmation(known, reads), missed, known, None)
                after = max(batch.after, answer.latest_version())
                batch = Batch(known, self._clock, self._body_runner, after)
            else:
                await self._fetch_missing(Request(), missed, known, connection)

    async def _fetch_missing(
        self,
        request: Request,
        missed: Iterable[tuple[PendingBody, Reads]],
        known: Known,
        connection: Connection | None,
    ) -> Answer:
        _add_missing(request, [reads for _, reads in missed])
        answer = await self._fetch(request, connection)
        for _, reads in missed:
            for key in reads.missing_keys:
                self._absences.note(key, answer.rows[key] == ABSENT)
        _add_answer(known, answer)
        return answer

    async def _run_each(
        self, batch: Batch, waiting: Sequence[PendingBody]
    ) -> tuple[list[tuple[PendingBody, Reads]], Sequence[PendingBody]]:
        """Run each body once. Returns those that miss something, and those that the batch has no room for."""
        missed: list[tuple[PendingBody, Reads]] = []
        slice_end = self._loop.time() + _SLICE_SECONDS
        for index, pending in enumerate(waiting):
            if batch.size_bytes > _BYTES_MAX:
                return missed, waiting[index:]
            reads = batch.run(pending)
            if reads is not None:
                missed.append((pending, reads))
            if batch.rows > _ROWS_PER_SLICE or self._loop.time() > slice_end:
                batch.rows = 0
                await asyncio.sleep(0)
                slice_end = self._loop.time() + _SLICE_SECONDS
        return missed, ()

    def _fetch_alone(self, pending: PendingBody) -> None:
        """Read in a thread what the body reads, so that it misses nothing when it runs in a batch of its own."""
        pending.is_alone = True
        task = self._loop.create_task(self._commit_alone(pending))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _commit_alone(self, pending: PendingBody) -> None:
        deadline = self._loop.time() + PATIENCE_SECONDS
        try:
            while not pending.future.done() and self._loop.time() < deadline:
                rows = await self._long_reads.rows_of(pending.body)
                known = Known(self._guesses)
                known.rows.update(rows.rows)
                for found in rows.ranges:
                    known.add_range(*found)
                pending.rounds = 0
                with suppress(ConnectionLost):
                    await self._commit_some([pending], known)
            set_error(pending.future, EngineBusy("what the transaction reads keeps changing"))
        except Exception as error:
            set_error(pending.future, error)

    async def _fetch(self, request: Request, connection: Connection | None) -> Answer:
        async def work(connection: Connection) -> Answer:
            return await fetch(connection, request, self._clock)

        self.commits.statements += 1
        answer = await (self._connections.repeat(work) if connection is None else work(connection))
        self._observe(answer.last)
        return answer

    def _observe(self, last: Instant) -> None:
        """What an answer of the database says to be the last instant that was used."""
        if last > self._last_known:
            self._last_known = last
            self._others_until = self._loop.time() + _OTHERS_SECONDS

    async def _run_under_lock(
        self, connection: Connection, known: Known, group: Sequence[PendingBody], request: Request
    ) -> tuple[Batch, Sequence[PendingBody]]:
        """``request`` asks for what the bodies are known to read. What they read beyond that is validated as always:
        if it is not as it is, they run once more."""
        lock = LOCK_STATEMENT.format(channel=self._notifications.channel)
        await connection.execute(f"BEGIN; {lock}")
        others: list[PendingBody] = []
        for _ in range(_LOCKED_RUNS_MAX):
            _add_answer(known, await self._fetch(request, connection))
            for pending in group:
                pending.rounds = 0
            batch, more_others = await self._run_bodies(known, group, connection)
            others += more_others
            if await self._commit(connection, batch, is_locked=True) is None:
                return batch, others
            request = _confirmation(known, [each.reads for each in batch.finished])
            group = [each.pending for each in batch.finished]
        raise EngineBusy("what the transactions read keeps changing")

    async def _commit(
        self, connection: Connection, batch: Batch, *, is_locked: bool = False
    ) -> Mapping[bytes, Stored] | None:
        """None if it was committed. Otherwise something that it has read was not as it is, and nothing was written:
        returns what is there instead, as far as that was found out."""
        reads = batch.reads()
        if reads is None:
            return {}
        if not batch.changes_nothing:
            return await self._write(connection, batch, reads, is_locked)
        answer = await self._fetch(Request(dict(reads), confirmed=batch.ranges()), connection)
        if answer.rows or answer.changed:
            return answer.rows
        if is_locked:
            await connection.execute("ROLLBACK")
        return None

    async def _write(
        self, connection: Connection, batch: Batch, reads: Mapping[bytes, Version], is_locked: bool
    ) -> Mapping[bytes, Stored] | None:
        self._count += 1
        number = self._prefix + self._count.to_bytes(8, "big")
        if not batch.instants:
            batch.add_instant()  # For the versions of rows.
        old = self._take_old_batches()
        values = commit_values(
            batch=number,
            old_batches=[each for each, _ in old],
            is_durable=batch.is_durable,
            reads=reads,
            ranges=batch.ranges(),
            instants=batch.instants,
            writes=batch.written.writes,
            channel=self._notifications.channel,
            payloads=self._notifications.payloads(batch.notifications),
        )
        self.commits.statements += 1
        try:
            ((status, last, clock, *changed),) = await connection.call(COMMIT, *values)
            if is_locked and status == _COMMITTED:
                await connection.execute("COMMIT")
        except ConnectionLost as error:
            if await self._was_committed(number, error):
                return None
            raise error
        self._clock.observe(last, clock)
        if status == _COMMITTED:
            self._committed.append((number, batch.last_instant))
            self._last_known = max(self._last_known, batch.last_instant)
            self._observe(last)
            return None
        self._committed.extendleft(reversed(old))
        self._observe(last)
        return changed_rows(reads, *changed)

    def _take_old_batches(self) -> list[tuple[bytes, Instant]]:
        """Those that no batch can come too late for any more."""
        kept_from = self._clock.last - 2 * LATE_TICKS_MAX
        least, most = _OLD_BATCHES
        old: list[tuple[bytes, Instant]] = []
        if len(self._committed) < least or self._committed[least - 1][1] >= kept_from:
            return old
        while self._committed and self._committed[0][1] < kept_from and len(old) < most:
            old.append(self._committed.popleft())
        return old

    async def _was_committed(self, number: bytes, error: Exception) -> bool:
        """What became of a commit whose connection was lost."""

        async def work(connection: Connection) -> bool:
            ((is_new,),) = await connection.call(RESOLVE, number)
            return not is_new

        try:
            return await self._connections.repeat(work)
        except EngineError as unresolved:
            raise OutcomeUnknown(
                f"The connection to the database was lost during a commit ({error}), and it is not back."
            ) from unresolved

    def _finish(self, batch: Batch) -> None:
        self.commits.batches += 1
        self.commits.transactions += len(batch.finished)
        self._clock.last = max(self._clock.last, batch.last_instant)
        batch.known.keep_guesses()
        for key, value in batch.written.writes.items():
            self._guesses.keep(key, (None, None) if value is None else (batch.last_instant, value))
        self._notifications.notify(dict.fromkeys(batch.notifications))
        for each in batch.finished:
            each.release()

    async def close(self) -> None:
        self._closed = True
        self._end_gathering()
        while self._task is not None or self._others:
            await asyncio.wait([task for task in (self._task, *self._others) if task is not None])
            await asyncio.sleep(0)


def _confirmation(known: Known, all_reads: Iterable[Reads]) -> Request:
    """Ask whether everything that was read is still so. What the answer does not mention is."""
    request = Request()
    all_reads = list(all_reads)
    for reads in all_reads:
        for key, stored in reads.rows.items():
            known.rows[key] = stored
            request.rows[key] = stored[0]
    request.confirmed = ranges_to_confirm(all_reads)
    return request


def _add_missing(request: Request, missed: Iterable[Reads]) -> None:
    ranges: dict[tuple[bytes, bool], list[Wanted]] = {}
    for reads in missed:
        request.rows |= dict.fromkeys(reads.missing_keys, UNKNOWN)
        if (wanted := reads.missing_range) is not None:
            end = wanted.high if wanted.reverse else wanted.low
            ranges.setdefault((end, wanted.reverse), []).append(wanted)
    request.ranges = [_together(wanted) for wanted in ranges.values()]


def _together(wanted: Sequence[Wanted]) -> Wanted:
    """One range for several bodies, of which each may consume rows that the next one then cannot have."""
    rows = max(*(each.rows for each in wanted), min(sum(each.rows for each in wanted), _TOGETHER_ROWS_MAX))
    return Wanted(
        min(each.low for each in wanted), max(each.high for each in wanted), wanted[0].reverse, rows
    )


def _add_answer(known: Known, answer: Answer) -> None:
    for low, high in answer.changed:
        known.forget_range(low, high)
    known.rows.update(answer.rows)
    for found in answer.ranges:
        known.add_range(*found)
