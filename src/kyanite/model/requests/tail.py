"""A live view of the requests of all processes and nodes, for as long as somebody watches.

A *watch* is a row that its watcher renews every second and that expires a few seconds after the last time. While there
is one, each process collects what it has completed, as far as a watch asks for it, and writes it in a batch a few times
a second. The batches of a process are numbered; a watcher reads those that it has not seen yet. Everything is bounded:
what does not fit into a batch is left out and counted, and each process keeps its last batches only. Without a watch a
process has a subscription and nothing else, and no row is there.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, EngineClosed, EngineError, Snapshot, Subscription, Transaction
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys
from kyanite.model.records import Record, encode
from kyanite.values import Instant, later

TOPIC = b"watches"
"""Notified when a watch begins or is renewed."""
_COMPLETED = b"completed requests"
"""Notified when a process has written a batch."""
BATCH_LINES_MAX = 400
BATCHES_MAX = 16
"""How many batches of each process are kept, for watchers that are slow."""
BATCH_SECONDS = 0.25
RENEW_SECONDS = 1.0
EXPIRES_SECONDS = 5.0
WATCHES_MAX = 32
PATH_CHARACTERS_MAX = 300
"""Longer paths are cut, so that a batch fits into a row."""
_PROCESSES_MAX = 256
_STALE_SECONDS = 60.0
_STALE_MAX = 100
_FAILED_SECONDS = 1.0

_log = logging.getLogger("kyanite.tail")


class RequestLine(Record, frozen=True):
    """A request that was completed. It has no secrets: no query, and no header but those below."""

    at: Instant
    """When it was completed."""
    request_id: str
    service: str
    account: str
    operation: str
    method: str
    path: str
    status: int | str
    """Of HTTP, or the name of a status of SMB."""
    error_code: str
    seconds: float
    received_bytes: int
    sent_bytes: int
    client: str
    """The address."""
    user_agent: str = ""
    client_request_id: str = ""

    @property
    def is_error(self) -> bool:
        return self.status >= 400 if isinstance(self.status, int) else bool(self.error_code)


class Wanted(Record, frozen=True):
    """Which requests a watcher wants to see. What is empty does not matter."""

    account: str = ""
    operation: str = ""
    """As the REST reference has it, in any case; or a part of it."""
    status: str = ""
    """``404``, ``4xx``, ``error`` for all that failed, or the name of a status of SMB."""

    def includes(self, line: RequestLine) -> bool:
        return (
            (not self.account or self.account == line.account)
            and (not self.operation or self.operation.lower() in line.operation.lower())
            and (not self.status or self._is_status(line))
        )

    def _is_status(self, line: RequestLine) -> bool:
        wanted, status = self.status.lower(), str(line.status).lower()
        if wanted in ("error", "errors"):
            return line.is_error
        if len(wanted) == 3 and wanted.endswith("xx"):
            return status[:1] == wanted[0] and len(status) == 3
        return status == wanted


class Watch(Record, frozen=True):
    expires_at: Instant
    wanted: Wanted


class Batch(Record, frozen=True):
    at: Instant
    lines: tuple[RequestLine, ...]
    left_out: int
    """How many more there were."""


class Completed(NamedTuple):
    """What a watcher sees next."""

    lines: list[RequestLine]
    """The earliest first; may be empty."""
    left_out: int
    """How many requests are not shown, because there were too many."""


decode_watch: Callable[[bytes], Watch] = msgspec.msgpack.Decoder(Watch).decode
decode_batch: Callable[[bytes], Batch] = msgspec.msgpack.Decoder(Batch).decode


class Collector:
    """Collects the requests of this process while somebody watches."""

    def __init__(self, engine: Engine, owner: bytes) -> None:
        self.on_watched: list[Callable[[bool], None]] = []
        """Called when the first watch begins, with true, and when the last one has ended. What calls ``add`` can be
        switched on and off by it."""
        self._engine = engine
        self._owner = owner
        self._wanted: tuple[Wanted, ...] = ()
        self._lines: list[RequestLine] = []
        self._left_out = 0
        self._batches = 0

    @property
    def is_watched(self) -> bool:
        return bool(self._wanted)

    def add(self, line: RequestLine) -> None:
        if not any(wanted.includes(line) for wanted in self._wanted):
            return
        if len(self._lines) >= BATCH_LINES_MAX:
            self._left_out += 1
        else:
            self._lines.append(line)

    async def follow(self) -> None:
        """Write batches whenever there is a watch, until the engine is closed."""
        notifications = self._engine.subscribe(TOPIC)
        while True:
            try:
                await anext(notifications)
                await self._while_watched()
            except (StopAsyncIteration, EngineClosed):
                return
            except EngineError as error:
                _log.warning("requests cannot be shown", extra={"why": str(error)})
                await asyncio.sleep(_FAILED_SECONDS)
            except Exception:
                _log.exception("requests cannot be shown")
                await asyncio.sleep(_FAILED_SECONDS)
            finally:
                self._switch(())

    async def _while_watched(self) -> None:
        while True:
            self._switch(await self._engine.read(_live))
            if not self._wanted:
                await self._engine.run(partial(_forget_batches, owner=self._owner), durable=False)
                return
            await asyncio.sleep(BATCH_SECONDS)
            if self._lines or self._left_out:
                await self._write()

    async def _write(self) -> None:
        lines, left_out = tuple(self._lines), self._left_out
        self._lines, self._left_out = [], 0
        self._batches += 1
        await self._engine.run(
            partial(_put_batch, owner=self._owner, number=self._batches, lines=lines, left_out=left_out),
            durable=False,
        )

    def _switch(self, wanted: tuple[Wanted, ...]) -> None:
        was_watched, self._wanted = self.is_watched, wanted
        if not wanted:
            self._lines, self._left_out = [], 0
        if was_watched != self.is_watched:
            for call in self.on_watched:
                call(self.is_watched)


async def watch(engine: Engine, wanted: Wanted) -> AsyncGenerator[Completed, None]:
    """The requests that all processes complete from now on; something at least every second, perhaps empty.

    Close the iterator (``aclose``) to end the watch; otherwise it expires by itself.
    """
    notifications = engine.subscribe(_COMPLETED)
    last_read = await engine.read(_last_batches)
    watch_id = await engine.run(partial(_begin, wanted=wanted), durable=False)
    loop = asyncio.get_running_loop()
    renewed = loop.time()
    try:
        while True:
            if not await _is_notified(notifications, RENEW_SECONDS - (loop.time() - renewed)):
                renewed = loop.time()
                await engine.run(partial(_renew, watch_id=watch_id, wanted=wanted), durable=False)
            batches, last_read = await engine.read(partial(_unread, last_read=last_read))
            lines = [line for batch in batches for line in batch.lines if wanted.includes(line)]
            lines.sort(key=lambda line: line.at)
            yield Completed(lines, sum(batch.left_out for batch in batches))
    finally:
        await engine.run(lambda tx: tx.delete(keys.watch(watch_id)), durable=False)


async def _is_notified(notifications: Subscription, seconds: float) -> bool:
    """Whether a notification comes within this time. At the end of the engine the watch ends with an error."""
    if seconds <= 0:
        return False
    try:
        await asyncio.wait_for(anext(notifications), seconds)
    except TimeoutError:
        return False
    except StopAsyncIteration:
        raise EngineClosed("The engine was closed.") from None
    return True


# Rows


def _live(snap: Snapshot) -> tuple[Wanted, ...]:
    rows = snap.scan(keys.WATCHES, keys.after(keys.WATCHES), limit=WATCHES_MAX)
    watches = (decode_watch(value) for _, value in rows)
    return tuple(each.wanted for each in watches if snap.now < each.expires_at)


def _begin(tx: Transaction, wanted: Wanted) -> int:
    """Begin a watch, and delete what those have left behind that ended without notice."""
    for key, value in list(tx.scan(keys.WATCHES, keys.after(keys.WATCHES), limit=WATCHES_MAX)):
        if decode_watch(value).expires_at <= tx.now:
            tx.delete(key)
    stale_at = later(tx.now, -_STALE_SECONDS)
    start = keys.COMPLETED_REQUESTS
    for key, value in list(tx.scan(start, keys.after(start), limit=_STALE_MAX)):
        if decode_batch(value).at < stale_at:
            tx.delete(key)
    watch_id = tx.new_id()
    _renew(tx, watch_id, wanted)
    return watch_id


def _renew(tx: Transaction, watch_id: int, wanted: Wanted) -> None:
    tx.put(keys.watch(watch_id), encode(Watch(later(tx.now, EXPIRES_SECONDS), wanted)))
    tx.notify(TOPIC)


def _put_batch(
    tx: Transaction, owner: bytes, number: int, lines: tuple[RequestLine, ...], left_out: int
) -> None:
    tx.put(keys.completed_requests(owner, number), encode(Batch(tx.now, lines, left_out)))
    if number > BATCHES_MAX:
        tx.delete(keys.completed_requests(owner, number - BATCHES_MAX))
    tx.notify(_COMPLETED)


def _forget_batches(tx: Transaction, owner: bytes) -> None:
    start = keys.completed_requests(owner)
    end = keys.after(start[:-8])
    for key, _ in list(tx.scan(start, end, limit=2 * BATCHES_MAX)):
        tx.delete(key)


def _last_batches(snap: Snapshot) -> dict[bytes, int]:
    """The number of the last batch of each process."""
    return {keys.owner_of_completed(key): keys.number_at_end(key) for key in _last_keys(snap)}


def _last_keys(snap: Snapshot) -> Iterator[bytes]:
    end = keys.after(keys.COMPLETED_REQUESTS)
    for _ in range(_PROCESSES_MAX):
        last = next(snap.scan(keys.COMPLETED_REQUESTS, end, reverse=True, limit=1), None)
        if last is None:
            return
        yield last[0]
        end = last[0][:-8]


def _unread(snap: Snapshot, last_read: dict[bytes, int]) -> tuple[list[Batch], dict[bytes, int]]:
    """The batches behind the last ones that were read, and the last of those."""
    last = _last_batches(snap)
    batches = []
    for owner, number in last.items():
        start = keys.completed_requests(owner, last_read.get(owner, 0) + 1)
        rows = snap.scan(start, keys.completed_requests(owner, number + 1), limit=BATCHES_MAX)
        batches += [decode_batch(value) for _, value in rows]
    return batches, last


def check_row(key: bytes, value: bytes) -> bool:
    """Whether a row of a watch or a batch is as it should be."""
    if key.startswith(keys.WATCHES):
        decode_watch(value)
        return len(key) == len(keys.watch(0))
    decode_batch(value)
    return len(key) == len(keys.completed_requests(bytes(OWNER_BYTES)))
