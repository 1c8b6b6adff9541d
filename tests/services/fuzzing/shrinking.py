"""From a world that fails to the few requests that are needed for the failure."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.services.fuzzing.client import FuzzConnection
from tests.services.fuzzing.local_server import LocalServer
from tests.services.fuzzing.run import Checker, Sent


async def shrink(sent: Sequence[Sent], problem: str) -> list[Sent]:
    """Leave out as many requests as possible, first in large groups, as long as the last one fails in the same way."""
    *before, last = sent
    wanted = _kind(problem)
    size = max(1, len(before) // 2)
    while size:
        at = 0
        while at < len(before):
            fewer = before[:at] + before[at + size :]
            if await _problem_of([*fewer, last]) == wanted:
                before = fewer
            else:
                at += size
        size //= 2
    return [*before, last]


async def _problem_of(sent: Sequence[Sent]) -> str:
    """What is wrong with the answer to the last request of a new world, or with its store."""
    with tempfile.TemporaryDirectory(prefix="kyanite-fuzz-") as folder:
        server = LocalServer(Path(folder))
        await server.start()
        connections = {word: FuzzConnection(port) for word, port in server.ports.items()}
        checker = Checker(server, connections)
        problem = ""
        try:
            for each in sent:
                server.clock.now = each.now
                _, problem = await checker.send(each.request, each.octets)
            if not problem:
                findings = await server.findings()
                problem = f"verification finds {findings[0]}" if findings else ""
        finally:
            for connection in connections.values():
                await connection.close()
            await server.close()
    return _kind(problem)


def _kind(problem: str) -> str:
    """Without numbers, which depend on the requests before."""
    first = problem.partition("\n")[0]
    return "".join(letter for letter in first if not letter.isdigit())[:60]
