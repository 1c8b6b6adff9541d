"""The wall clock steps back, under a server and between two of its starts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.faults.altered_server import PROGRAM
from tests.faults.client import PUT, Connection, token_of
from tests.server_process import ServerProcess

HOUR = 3600
_MESSAGE = b"<QueueMessage><MessageText>hello</MessageText></QueueMessage>"


def altered(tmp_path: Path) -> tuple[ServerProcess, Path]:
    shift = tmp_path / "shift"
    shift.write_text("0")
    environment = {"ALTERED_CLOCK": str(shift)}
    server = ServerProcess(
        "--workers", "2", location=tmp_path / "store", program=PROGRAM, environment=environment
    )
    return server, shift


async def test_leases_and_hidden_messages_expire_after_a_step_back(tmp_path: Path) -> None:
    server, shift = altered(tmp_path)
    with server:
        token = token_of(server)
        async with Connection(server, token) as blobs, Connection(server, token, service="queue") as queues:
            assert (await blobs.request("PUT", "box", query="restype=container")).status == 201
            assert (await blobs.request("PUT", "box/leased", b"data", PUT)).status == 201
            lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
            assert (await blobs.request("PUT", "box/leased", headers=lease, query="comp=lease")).status == 201
            assert (await queues.request("PUT", "work")).status == 201
            assert (await queues.request("POST", "work/messages", _MESSAGE)).status == 201
            hidden = await queues.request("GET", "work/messages", query="visibilitytimeout=5")
            assert b"hello" in hidden.body

            shift.write_text(str(-HOUR))
            assert b"hello" not in (await queues.request("GET", "work/messages")).body
            assert (await blobs.request("PUT", "box/leased", b"new", PUT)).status == 412

            await _until_answer(queues, "GET", "work/messages", b"hello")
            states = []

            async def is_expired() -> bool:
                states.append((await blobs.request("HEAD", "box/leased")).headers["x-ms-lease-state"])
                return states[-1] == "expired"

            await until_true(is_expired)
            assert states[0] == "leased"
            assert (await blobs.request("PUT", "box/leased", b"new", PUT)).status == 201


async def test_etags_ascend_after_a_start_with_an_earlier_clock(tmp_path: Path) -> None:
    server, shift = altered(tmp_path)
    etags = []
    with server:
        for hours in (0, -1, -2):
            if hours:
                server.stop()
                shift.write_text(str(hours * HOUR))
                server.start()
            async with Connection(server, token_of(server)) as blobs:
                if not hours:
                    assert (await blobs.request("PUT", "box", query="restype=container")).status == 201
                for number in range(5):
                    answer = await blobs.request("PUT", f"box/{number % 2}", b"data", PUT)
                    assert answer.status == 201
                    etags.append(int(answer.headers["etag"].strip('"'), 16))
    assert etags == sorted(set(etags))


async def until_true(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.1)


async def _until_answer(connection: Connection, method: str, path: str, wanted: bytes) -> None:
    async def is_there() -> bool:
        return wanted in (await connection.request(method, path)).body

    await until_true(is_there)
