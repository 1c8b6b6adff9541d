"""Several workers on one store: each reads what any other has acknowledged, and they share the write lock fairly."""

import asyncio
import random
import time
from collections import Counter

import pytest

from tests.faults.client import PUT, Connection, files_of
from tests.faults.workers import connected, until
from tests.server_process import ServerProcess

MIB = 1024 * 1024
SIZES = (1024, 100_000, 3 * MIB)
LARGE = random.Random(5).randbytes(24 * MIB)


async def test_what_one_worker_acknowledged_every_other_reads_at_once(
    server: ServerProcess, token: str
) -> None:
    async with connected(server, token) as workers:
        everyone = [connection for (connection,) in workers.values()]
        for number in range(100):
            writer = everyone[number % 2]
            data = random.Random(number).randbytes(SIZES[number % 3])
            put = await writer.request("PUT", "box/blob", data, {**PUT, "x-ms-meta-Number": str(number)})
            fresh = f"new-{number}"
            assert (put.status, (await writer.request("PUT", f"box/{fresh}", b"", PUT)).status) == (201, 201)
            for reader in everyone:
                read = await reader.request("GET", "box/blob")
                assert (read.body, read.headers["x-ms-meta-number"]) == (data, str(number))
                assert read.headers["etag"] == put.headers["etag"]
                listed = await reader.request(
                    "GET", "box", query=f"restype=container&comp=list&prefix={fresh}"
                )
                assert f"<Name>{fresh}</Name>".encode() in listed.body
            assert (await writer.request("DELETE", f"box/{fresh}")).status == 202
            for reader in everyone:
                assert (await reader.request("HEAD", f"box/{fresh}")).status == 404


async def test_conditions_hold_between_workers(server: ServerProcess, token: str) -> None:
    """A counter kept by compare-and-set, by clients of all workers at once, loses no step."""

    async def count(connection: Connection, steps: int) -> None:
        while steps:
            read = await connection.request("GET", "box/counter")
            condition = {**PUT, "If-Match": read.headers["etag"]}
            answer = await connection.request("PUT", "box/counter", b"%d" % (int(read.body) + 1), condition)
            assert answer.status in {201, 412}
            steps -= answer.status == 201

    async with connected(server, token, each=2) as workers:
        everyone = [connection for connections in workers.values() for connection in connections]
        assert (await everyone[0].request("PUT", "box/counter", b"0", PUT)).status == 201
        await asyncio.gather(*(count(connection, 25) for connection in everyone))
        assert (await everyone[0].request("GET", "box/counter")).body == b"100"


async def test_writers_of_all_workers_share_the_write_lock_fairly(server: ServerProcess, token: str) -> None:
    """With equal load on each worker none is left behind; the spread is printed."""
    done: Counter[int] = Counter()
    longest: Counter[int] = Counter()

    async def write(pid: int, connection: Connection, name: str) -> None:
        while time.monotonic() < until_then:
            began = time.perf_counter_ns()
            assert (await connection.request("PUT", name, b"x" * 1024, PUT)).status == 201
            longest[pid] = max(longest[pid], time.perf_counter_ns() - began)
            done[pid] += 1

    async with connected(server, token, each=4) as workers:
        until_then = time.monotonic() + 3.0
        await asyncio.gather(
            *(
                write(pid, connection, f"box/{pid}-{number}")
                for pid, connections in workers.items()
                for number, connection in enumerate(connections)
            )
        )
    waits = [f"{longest[pid] / 1e6:.0f} ms" for pid in done]
    print(f"puts by worker {list(done.values())}, longest waits {waits}")
    assert len(done) == 2
    assert min(done.values()) > max(done.values()) / 3


@pytest.mark.parametrize("deed", ["overwrite", "delete", "delete container", "recreate container"])
async def test_a_download_delivers_the_version_it_began_with(
    server: ServerProcess, token: str, deed: str
) -> None:
    """The client is slow and the other worker quick; garbage collection has time to run more than once."""
    async with connected(server, token) as workers:
        (reader,), (writer,) = workers.values()
        assert (await writer.request("PUT", "box/blob", LARGE, PUT)).status == 201
        await reader.begin("GET", "box/blob", 0)
        status, headers = await reader.head()
        assert (status, headers["content-length"]) == (200, str(len(LARGE)))
        received = await reader.receive(100)
        await _do(writer, deed)
        for _ in range(4):
            await asyncio.sleep(0.7)
            received += await reader.receive(MIB)
        received += await reader.receive(len(LARGE) - len(received))
        assert received == LARGE
        after = await reader.request("GET", "box/blob")
        expected = {"overwrite": (200, b"short"), "recreate container": (200, b"new")}
        assert (after.status, after.body if after.status == 200 else b"") == expected.get(deed, (404, b""))
        await until(lambda: not any(files_of(server.location).values()), 60)


async def _do(writer: Connection, deed: str) -> None:
    """Take away what the other one is reading."""
    if deed == "overwrite":
        assert (await writer.request("PUT", "box/blob", LARGE[::-1], PUT)).status == 201
        assert (await writer.request("PUT", "box/blob", b"short", PUT)).status == 201
    elif deed == "delete":
        assert (await writer.request("DELETE", "box/blob")).status == 202
    else:
        assert (await writer.request("DELETE", "box", query="restype=container")).status == 202
    if deed == "recreate container":
        assert (await writer.request("PUT", "box", query="restype=container")).status == 201
        assert (await writer.request("PUT", "box/blob", b"new", PUT)).status == 201
