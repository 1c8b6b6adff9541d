"""A worker killed in the middle of anything affects no other, and is replaced."""

import asyncio
import os
import random
import signal
from collections import Counter

import pytest

from tests.faults.client import BROKEN, PUT, Connection, files_of
from tests.faults.workers import connected, until
from tests.server_process import ServerProcess, is_alive

MIB = 1024 * 1024
LARGE = random.Random(6).randbytes(24 * MIB)
HALF = len(LARGE) // 2


async def test_in_the_middle_of_uploads(server: ServerProcess, token: str) -> None:
    async with connected(server, token) as workers:
        (victim, (doomed,)), (_, (other,)) = workers.items()
        assert (await other.request("PUT", "box/kept", LARGE, PUT)).status == 201
        files = set(files_of(server.location))
        for connection, name in ((doomed, "box/half"), (other, "box/whole")):
            await connection.begin("PUT", name, len(LARGE), PUT)
            await connection.send(LARGE[:HALF])
        await until(lambda: len(set(files_of(server.location)) - files) == 2)

        os.kill(victim, signal.SIGKILL)
        with pytest.raises(BROKEN):
            await _finish(doomed)
        assert await _finish(other) == 201
        assert (await other.request("GET", "box/whole")).body == LARGE
        assert (await other.request("GET", "box/kept")).body == LARGE
        assert (await other.request("HEAD", "box/half")).status == 404
        await until(lambda: len(server.worker_pids()) == 2 and victim not in server.worker_pids())
        await until(lambda: len(set(files_of(server.location)) - files) == 1, 60)
    async with connected(server, token) as workers:
        for (connection,) in workers.values():
            assert (await connection.request("GET", "box/kept")).body == LARGE
            assert (await connection.request("PUT", "box/half", b"whole now", PUT)).status == 201


async def _finish(connection: Connection) -> int:
    """Send the second half of the upload; the status of the answer."""
    await connection.send(LARGE[HALF:])
    return (await connection.head())[0]


async def test_in_the_middle_of_downloads(server: ServerProcess, token: str) -> None:
    async with connected(server, token) as workers:
        (victim, (doomed,)), (_, (other,)) = workers.items()
        assert (await other.request("PUT", "box/blob", LARGE, PUT)).status == 201
        for connection in (doomed, other):
            await connection.begin("GET", "box/blob", 0)
            assert (await connection.head())[0] == 200
            assert await connection.receive(MIB) == LARGE[:MIB]
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(BROKEN):
            await doomed.receive(len(LARGE) - MIB)
        assert await other.receive(len(LARGE) - MIB) == LARGE[MIB:]
        assert (await other.request("GET", "box/blob")).body == LARGE


async def test_in_the_middle_of_commits(server: ServerProcess, token: str) -> None:
    """One worker after the other is killed under load. Connections to the others hold, and every put that was
    acknowledged is there in the end.
    """
    stored: dict[str, bytes] = {}
    broken: Counter[int] = Counter()
    stop = asyncio.Event()

    async def write_until_broken(connection: Connection, number: int) -> None:
        pid = connection.worker(server)
        try:
            while not stop.is_set():
                name = f"box/{number}-{len(stored)}"
                data = random.Random(name).randbytes(random.choice((1024, 65536)))
                answer = await connection.request("PUT", name, data, PUT)
                assert answer.status == 201, answer
                stored[name] = data
        except BROKEN:
            await until(lambda: not is_alive(pid))  # A dying process lets go of its connections first.
            broken[pid] += 1

    async def write(number: int) -> None:
        while not stop.is_set():
            try:
                async with Connection(server, token) as connection:
                    # The first answer shows that a worker has taken the connection.
                    await connection.request("GET", "box", query="restype=container")
                    await write_until_broken(connection, number)
            except BROKEN:
                continue  # No worker had accepted it, or one that has just died.

    async with connected(server, token):
        pass
    writers = [asyncio.create_task(write(number)) for number in range(8)]
    killed = set()
    for _ in range(4):
        stored_before = len(stored)
        await until(lambda before=stored_before: len(stored) > before + 20)  # type: ignore[misc]
        victim = random.choice(server.worker_pids())
        killed.add(victim)
        os.kill(victim, signal.SIGKILL)
        await until(lambda pid=victim: not is_alive(pid) and len(server.worker_pids()) == 2)  # type: ignore[misc]
    stop.set()
    await asyncio.wait_for(asyncio.gather(*writers), 60)
    print(f"{len(stored)} puts acknowledged, {broken.total()} connections broken by {len(killed)} deaths")
    assert set(broken) <= killed
    async with connected(server, token) as workers:
        (reader,) = next(iter(workers.values()))
        for name, data in stored.items():
            assert (await reader.request("GET", name)).body == data
