"""Extents with several processes: garbage collection keeps what another process reads or writes until it is dead."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from kyanite.engine.api import Damaged
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.api import Extent
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model.content import content
from kyanite.model.content.content import Content
from tests.extents.local.extents_process import decode
from tests.model.maintenance.garbage_collection import GarbageCollector

ROOT = Path(__file__).parents[3]
KIB = 1024
MIB = 1024 * KIB


class Other:
    """Another process with the same store open."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.extents.local.extents_process", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._answer() == "ready"

    def send(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        self._process.wait(30)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def end(self) -> None:
        if self._process.poll() is None:
            self.kill()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    process = Other(tmp_path)
    yield process
    process.end()


class Here:
    """This process: a store, an engine, and garbage collection over both."""

    def __init__(self, folder: Path) -> None:
        self.membership = LocalMembership(folder / "owners")
        self.extents = LocalExtents(folder, self.membership)
        self.engine = MemoryEngine()
        self.garbage_collector = GarbageCollector(self.engine, self.extents, self.membership)

    async def create(self, *stored: Extent) -> Content:
        return await self.engine.run(lambda tx: content.create(tx, stored))

    async def drop(self, what: Content) -> None:
        await self.engine.run(lambda tx: content.drop(tx, what))

    async def collect_garbage(self) -> None:
        """Until nothing more happens for a while."""
        idle = 0
        for _ in range(500):
            idle = 0 if await self.garbage_collector.step() else idle + 1
            if idle > 5:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("Garbage collection never ends.")


def run(folder: Path, body: Callable[[Here], Awaitable[None]]) -> None:
    async def main() -> None:
        here = Here(folder)
        try:
            await body(here)
        finally:
            await here.extents.close()
            here.membership.close()

    asyncio.run(main())


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "segments").rglob("*") if path.is_file()]


async def dropped(here: Here) -> Extent:
    """An extent in a file of its own that was committed, and then dropped by everybody."""
    upload = here.extents.upload(size_hint=None)
    for _ in range(20):
        await upload.write(bytes(100 * KIB))
    (stored,) = await upload.finish()
    what = await here.create(stored)
    here.extents.commit([stored])
    await here.drop(what)
    return stored


def test_a_reader_in_another_process_keeps_what_it_reads(tmp_path: Path, other: Other) -> None:
    async def body(here: Here) -> None:
        assert other.send("pin") == "ok"
        stored = await dropped(here)
        assert other.send("pin") == "ok"
        await here.collect_garbage()
        assert await here.extents.read(stored, 0, stored.length) == bytes(stored.length)
        assert other.send("release") == "ok"
        await here.collect_garbage()
        assert await here.extents.read(stored, 0, 100) == bytes(100), (
            "the second reader began before the collection"
        )
        assert other.send("release") == "ok"
        await here.collect_garbage()
        assert files(tmp_path) == []
        with pytest.raises(Damaged):
            await here.extents.read(stored, 0, 100)

    run(tmp_path, body)


def test_a_dead_reader_keeps_nothing(tmp_path: Path, other: Other) -> None:
    async def body(here: Here) -> None:
        assert other.send("pin") == "ok"
        await dropped(here)
        await here.collect_garbage()
        assert len(files(tmp_path)) == 1
        other.kill()
        await here.collect_garbage()
        assert files(tmp_path) == []

    run(tmp_path, body)


def test_an_upload_in_another_process_is_left_alone_until_that_dies(tmp_path: Path, other: Other) -> None:
    async def body(here: Here) -> None:
        assert other.send(f"begin {5 * MIB}") == "ok"
        uncommitted = decode(other.send(f"leave {64 * KIB}"))
        await here.collect_garbage()
        assert len(files(tmp_path)) == 2
        committed = decode(other.send(f"leave {64 * KIB}"))
        assert committed.segment == uncommitted.segment
        what = await here.create(committed)
        other.kill()
        await here.collect_garbage()
        (file,) = files(tmp_path)
        assert await here.extents.read(committed, 0, committed.length) == bytes(64 * KIB)
        assert file.stat().st_size == committed.start + committed.length
        assert here.membership.dead_owners() == []
        await here.drop(what)
        await here.collect_garbage()
        assert files(tmp_path) == []

    run(tmp_path, body)


def test_what_another_process_wrote_and_closed_is_collected_like_the_rest(
    tmp_path: Path, other: Other
) -> None:
    async def body(here: Here) -> None:
        first, second = (decode(other.send(f"put {64 * KIB}")) for _ in range(2))
        contents = [await here.create(first), await here.create(second)]
        await here.drop(contents[0])
        await here.collect_garbage()
        assert len(files(tmp_path)) == 1
        assert other.send("close") == "ok"
        other.wait()
        await here.drop(contents[1])
        await here.collect_garbage()
        assert files(tmp_path) == []
        assert list((tmp_path / "owners").iterdir()) == [tmp_path / "owners" / here.membership.id.hex()]
        assert list((tmp_path / "segments").iterdir()) == []

    run(tmp_path, body)


def test_slots_of_dead_readers_are_used_again(tmp_path: Path) -> None:
    readers = tmp_path / "readers"
    for _ in range(3):
        process = Other(tmp_path)
        process.send("pin")
        process.kill()
    slots = readers.read_bytes()
    assert slots[:32] != bytes(32)
    assert slots[32:] == bytes(len(slots) - 32)
