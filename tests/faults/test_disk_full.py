"""A disk that is full: a clear refusal, reads go on, nothing acknowledged is lost, and space makes everything well
again without a restart.
"""

import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.faults.client import PUT, Answer, Connection, token_of
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.workers import connected, until
from tests.server_process import SERVE, ServerProcess, is_alive

KIB = 1024
MIB = KIB * KIB
SIZES = {"small": KIB, "middling": 64 * KIB, "large": 6 * MIB}
ATTEMPTS_MAX = 3000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 128 * MIB) as made:
        if made is None:
            if os.environ.get("CI"):
                pytest.fail("no file system can be mounted here, and in CI that is a failure")
            pytest.skip("no file system can be mounted here")
        yield made


@pytest.fixture
def disk_server(disk: SmallDisk) -> Iterator[ServerProcess]:
    """A server of two workers whose store is on the small disk."""
    server = ServerProcess("--workers", "2", location=disk.folder / "store", program=(*disk.enter, *SERVE))
    try:
        server.start()
        yield server
    finally:
        server.close()


def content_of(name: str) -> bytes:
    return random.Random(name).randbytes(SIZES[name.partition("-")[0]])


async def put(connection: Connection, name: str) -> Answer:
    return await connection.request("PUT", f"box/{name}", content_of(name), PUT)


def check_refusal(answer: Answer) -> None:
    assert answer.status == 507, answer
    assert answer.headers["x-ms-error-code"] == "InsufficientStorage"
    error = ElementTree.fromstring(answer.body.decode("utf-8-sig"))
    assert error.findtext("Code") == "InsufficientStorage"
    assert "no space" in (error.findtext("Message") or "")


async def write_until_refused(connection: Connection, kind: str, tag: str) -> tuple[list[str], str]:
    """Names that were stored, and the first that was not."""
    stored: list[str] = []
    for number in range(ATTEMPTS_MAX):
        name = f"{kind}-{tag}-{number}"
        answer = await put(connection, name)
        if answer.status != 201:
            check_refusal(answer)
            return stored, name
        stored.append(name)
    raise AssertionError("the disk is never full")


async def check_stored(connection: Connection, stored_names: list[str], refused: list[str]) -> None:
    for name in stored_names:
        answer = await connection.request("GET", f"box/{name}")
        assert (answer.status, answer.body == content_of(name)) == (200, True), name
    for name in refused:
        assert (await connection.request("HEAD", f"box/{name}")).status == 404, name
    listing = await connection.request("GET", "box", query="restype=container&comp=list")
    root = ElementTree.fromstring(listing.body.decode("utf-8-sig"))
    assert {name.text for name in root.iter("Name")} == set(stored_names)


async def test_nothing_is_lost_and_reads_go_on_and_space_makes_it_well(
    disk: SmallDisk, disk_server: ServerProcess
) -> None:
    token = token_of(disk_server)
    pids = disk_server.worker_pids()
    stored_names: list[str] = []
    refused: list[str] = []
    async with connected(disk_server, token, each=2) as workers:
        everyone = [connection for connections in workers.values() for connection in connections]
        for number, kind in enumerate([*SIZES] * 4):
            assert (await put(everyone[number % 4], f"{kind}-before-{number}")).status == 201
            stored_names.append(f"{kind}-before-{number}")
        for round_number in range(2):
            disk.fill()
            for kind in ("large", "middling", "small"):
                outcomes = await asyncio.gather(
                    *(
                        write_until_refused(connection, kind, f"{round_number}-{number}")
                        for number, connection in enumerate(everyone)
                    )
                )
                stored_names += [name for stored, _ in outcomes for name in stored]
                refused += [name for _, name in outcomes]
            await check_stored(everyone[0], stored_names, refused)
            await check_stored(everyone[-1], stored_names, refused)
            disk.empty()
            for number, kind in enumerate(SIZES):
                name = f"{kind}-after-{round_number}"
                assert (await put(everyone[number], name)).status == 201
                stored_names.append(name)
            await check_stored(everyone[0], stored_names, refused)
    assert disk_server.worker_pids() == pids, "a worker did not survive"
    print(f"{len(stored_names)} blobs stored_names, {len(refused)} refused")
    disk_server.kill9()
    disk_server.start()
    async with connected(disk_server, token) as workers:
        for (connection,) in workers.values():
            await check_stored(connection, stored_names, refused)
    assert disk_server.stop() == 0
    verify = [*disk.enter, sys.executable, "-m", "kyanite.server.cli", "verify"]
    subprocess.run([*verify, "--location", str(disk_server.location)], check=True, timeout=60)


async def test_workers_and_servers_start_on_a_full_disk_and_serve_reads(
    disk: SmallDisk, disk_server: ServerProcess
) -> None:
    token = token_of(disk_server)
    stored_names = [f"{kind}-{number}" for kind in SIZES for number in range(3)]
    async with connected(disk_server, token) as workers:
        (writer,), _ = workers.values()
        for name in stored_names:
            assert (await put(writer, name)).status == 201
    disk.fill()
    for victim in disk_server.worker_pids():
        os.kill(victim, signal.SIGKILL)
        await until(lambda pid=victim: not is_alive(pid) and len(disk_server.worker_pids()) == 2)  # type: ignore[misc]
        async with connected(disk_server, token) as workers:
            for (connection,) in workers.values():
                await check_stored(connection, stored_names, [])
        disk.fill()  # The dead leave space that they had taken ahead.
    disk_server.kill9()
    disk_server.start()
    async with connected(disk_server, token) as workers:
        for (connection,) in workers.values():
            await check_stored(connection, stored_names, [])
    disk.empty()
    async with Connection(disk_server, token) as connection:
        assert (await put(connection, "large-after")).status == 201
        await check_stored(connection, [*stored_names, "large-after"], [])


async def test_a_full_disk_in_the_middle_of_an_upload(disk: SmallDisk, disk_server: ServerProcess) -> None:
    """The client gets an error, the rest of its body is not waited for, and what was written of it goes."""
    async with connected(disk_server, token_of(disk_server)) as workers:
        (doomed,), (other,) = workers.values()
        assert (await put(other, "large-kept")).status == 201
        free = disk.free_bytes
        answer = await doomed.request("PUT", "box/large-huge", bytes(200 * MIB), PUT)
        check_refusal(answer)
        await check_stored(other, ["large-kept"], ["large-huge"])
        await until(lambda: disk.free_bytes > free - MIB)
        assert (await put(other, "large-next")).status == 201


async def test_a_file_that_may_not_grow_is_a_full_disk_too(server: ServerProcess, token: str) -> None:
    async with connected(server, token) as workers:
        (first,), (second,) = workers.values()
        assert (await put(first, "large-kept")).status == 201
        _limit_files(server, 4 * MIB)
        for connection in (first, second):
            check_refusal(await put(connection, "large-refused"))
            assert (await put(connection, "small-stored")).status == 201
        await check_stored(second, ["large-kept", "small-stored"], ["large-refused"])
        _limit_files(server, resource.RLIM_INFINITY)
        assert (await put(first, "large-after")).status == 201
        await check_stored(second, ["large-kept", "small-stored", "large-after"], ["large-refused"])


def _limit_files(server: ServerProcess, size_bytes: int) -> None:
    for pid in server.worker_pids():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))
