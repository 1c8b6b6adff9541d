"""Speaking to each worker of a server, and waiting for what they do."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from tests.faults.client import Connection
from tests.server_process import ServerProcess

CONNECTIONS_MAX = 200


@asynccontextmanager
async def connected(
    server: ServerProcess, token: str, each: int = 1
) -> AsyncIterator[dict[int, list[Connection]]]:
    """So many connections to each worker, by the worker's process, and a container ``box`` to work in."""
    async with AsyncExitStack() as at_end:
        found: dict[int, list[Connection]] = {pid: [] for pid in server.worker_pids()}
        for _ in range(CONNECTIONS_MAX):
            connection = await at_end.enter_async_context(Connection(server, token))
            answer = await connection.request("GET", "box", query="restype=container")
            if answer.status == 404:
                answer = await connection.request("PUT", "box", query="restype=container")
            assert answer.status in {200, 201}
            found[connection.worker(server)].append(connection)
            if all(len(connections) >= each for connections in found.values()):
                break
        yield {pid: connections[:each] for pid, connections in found.items()}


async def until(check: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something is so, while the tasks of the test go on."""
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.01)
