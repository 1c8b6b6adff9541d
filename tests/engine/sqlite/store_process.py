"""A process that uses a store, and the test's end of the line to it.

The test sends commands, which are the names of the functions below, and waits for their results. What a worker was
told is committed, it notes in a file at once, so that the note outlives the worker.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop

from kyanite.engine.api import Snapshot, Transaction
from kyanite.engine.sqlite.engine import SqliteEngine
from kyanite.values import Instant

START_SECONDS = 60
ANSWER_SECONDS = 60


class Worker:
    def __init__(self, folder: Path, name: str = "worker") -> None:
        self.notes = folder.parent / f"{folder.name}-{name}.notes"
        context = multiprocessing.get_context("spawn")
        self._line, far_end = context.Pipe()
        self._process = context.Process(target=_live, args=(folder, self.notes, far_end))
        self._process.start()
        far_end.close()
        assert self._answer(START_SECONDS) == "open"

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def begin(self, command: Callable[..., Any], *arguments: object) -> None:
        self._line.send((command.__name__, arguments))

    def end(self) -> Any:
        return self._answer(ANSWER_SECONDS)

    def call(self, command: Callable[..., Any], *arguments: object) -> Any:
        self.begin(command, *arguments)
        return self.end()

    def noted(self) -> list[str]:
        """Whole lines only: the last may be cut off by the end of the worker."""
        return self.notes.read_text().split("\n")[:-1] if self.notes.exists() else []

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        self.begin(stop)
        self._reap()

    def _reap(self) -> None:
        self._process.join(ANSWER_SECONDS)
        assert self._process.exitcode is not None
        self._line.close()

    def _answer(self, seconds: float) -> Any:
        assert self._line.poll(seconds), "the worker does not answer"
        return self._line.recv()


def _live(folder: Path, notes: Path, line: Connection) -> None:
    uvloop.run(_serve(folder, notes, line))


async def _serve(folder: Path, notes: Path, line: Connection) -> None:
    engine = SqliteEngine.open(folder, log_bytes=1_000_000)
    with notes.open("a", buffering=1) as file:

        def note(text: str) -> None:
            file.write(text + "\n")

        line.send("open")
        while True:
            name, arguments = await asyncio.to_thread(line.recv)
            if name == stop.__name__:
                break
            line.send(await globals()[name](engine, note, *arguments))
    await engine.close()


Note = Callable[[str], None]


def stop() -> None:
    """A command without a function: the worker closes the engine and ends."""


async def put(engine: SqliteEngine, _note: Note, key: bytes, value: bytes) -> None:
    await engine.run(lambda tx: tx.put(key, value))


async def get(engine: SqliteEngine, _note: Note, key: bytes) -> bytes | None:
    return await engine.read(lambda state: state.get(key))


async def count_up(engine: SqliteEngine, note: Note, own: bytes, tasks: int, steps: int) -> list[Instant]:
    """Raise a shared counter and one of our own together, many times; note the latter after each commit."""
    instants: list[Instant] = []

    def body(tx: Transaction) -> tuple[int, Instant]:
        for key in (b"shared", own):
            tx.put(key, (value_of(tx, key) + 1).to_bytes(8, "big"))
        return value_of(tx, own), tx.now

    async def client() -> None:
        for _ in range(steps):
            value, instant = await engine.run(body)
            note(str(value))
            instants.append(instant)

    await asyncio.gather(*(client() for _ in range(tasks)))
    return instants


def value_of(state: Snapshot, key: bytes) -> int:
    return int.from_bytes(state.get(key) or b"", "big")


async def fill(engine: SqliteEngine, note: Note, own: bytes, tasks: int) -> None:
    """Until killed, write rows and large bodies whose content follows from their key; note those committed."""

    def body(number: int) -> Callable[[Transaction], bytes]:
        def run(tx: Transaction) -> bytes:
            stored = b"b" + tx.now.to_bytes(8, "big")
            tx.put(own + b"/%08d" % number, stored)
            tx.put(stored, content(own, number))
            return stored

        return run

    async def client(first: int) -> None:
        for number in range(first, 10_000_000, tasks):
            await engine.run(body(number))
            note(str(number))

    await asyncio.gather(*(client(first) for first in range(tasks)))


def content(own: bytes, number: int) -> bytes:
    return b"%s %d " % (own, number) * (50 + number % 400)


async def write_for(engine: SqliteEngine, _note: Note, seconds: float) -> tuple[int, float]:
    """How many commits a process gets in that time that always has some waiting, and the longest wait for one."""
    count = 0
    longest = 0.0
    until = time.monotonic() + seconds

    async def client(key: bytes) -> None:
        nonlocal count, longest
        while (before := time.monotonic()) < until:
            await engine.run(lambda tx: tx.put(key, b"x" * 500))
            longest = max(longest, time.monotonic() - before)
            count += 1

    await asyncio.gather(*(client(b"%d/%d" % (os.getpid(), number)) for number in range(4)))
    return count, longest


async def keep_the_write_lock(engine: SqliteEngine, note: Note) -> None:
    def body(tx: Transaction) -> None:
        tx.put(b"never", b"committed")
        note("inside")
        time.sleep(ANSWER_SECONDS)

    await engine.run(body)


async def subscribe(engine: SqliteEngine, note: Note, topic: bytes, notifications: int) -> int:
    heard = 0
    subscriber = engine.subscribe(topic)
    note("listening")
    async for _ in subscriber:
        heard += 1
        note("heard")
        if heard == notifications:
            break
    return heard


async def notify(engine: SqliteEngine, _note: Note, topic: bytes) -> None:
    await engine.run(lambda tx: tx.notify(topic))
