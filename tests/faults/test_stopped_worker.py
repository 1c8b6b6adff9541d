"""A worker of a real server that is stopped while it holds the write lock. (What keeps the supervisor from taking a
slow disk for that is in ``tests/server/processes/test_supervisor.py``.)"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kyanite.engine.sqlite import write_lock
from tests.faults.client import BROKEN, PUT, Connection
from tests.faults.workers import connected, until
from tests.server_process import ServerProcess

ATTEMPTS_MAX = 3000


def holds_write_lock(server: ServerProcess, pid: int) -> bool:
    """Whether the system says that the process has locked the file."""
    inode = (server.location / "engine" / write_lock._LOCK_FILE).stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[4] == str(pid) and fields[5].endswith(f":{inode}"):
            return True
    return False


@asynccontextmanager
async def writing(connection: Connection) -> AsyncIterator[None]:
    """Requests that write, one after the other, until the worker is gone."""

    async def write() -> None:
        try:
            while True:
                await connection.request("PUT", "box/written", b"x" * 2000, PUT)
        except BROKEN:
            return

    task = asyncio.create_task(write())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def stopped_with_the_lock(server: ServerProcess, pid: int) -> bool:
    for _ in range(ATTEMPTS_MAX):
        os.kill(pid, signal.SIGSTOP)
        if holds_write_lock(server, pid):
            return True
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(0.001)
    return False


async def test_writes_of_the_others_resume(server: ServerProcess, token: str) -> None:
    async with connected(server, token) as workers:
        (victim, (doomed,)), (survivor, (other,)) = workers.items()
        async with writing(doomed):
            assert await stopped_with_the_lock(server, victim)
            began = time.monotonic()
            answer = await other.request("PUT", "box/other", b"at last", PUT)
        print(f"writes resumed after {time.monotonic() - began:.1f} s")
        assert answer.status == 201
        killed = [(line["pid"], line["why"]) for line in server.log if line["message"] == "process killed"]
        assert killed == [(victim, "was stopped by a signal")]
        assert (await other.request("GET", "box/other")).body == b"at last"
        await until(lambda: len(server.worker_pids()) == 2 and victim not in server.worker_pids())
        assert survivor in server.worker_pids()
