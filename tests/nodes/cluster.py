"""Several nodes on one PostgreSQL: each is a ``kyanite serve`` of its own, with a folder of its own."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from tests.server_process import ServerProcess

TIMEOUT_SECONDS = 6
"""``--node-timeout`` of the nodes: short, because tests wait for it, and long enough for a busy machine."""
PATIENCE_SECONDS = 60
"""How long anything may take on a busy machine before a test fails."""


@contextmanager
def running_nodes(
    engine: str,
    extents: str,
    *args: str,
    count: int = 2,
    workers: int = 1,
    ports: Callable[[], Sequence[str]] = lambda: ("--admin-port", "0"),
) -> Iterator[list[ServerProcess]]:
    """``ports`` are more options for each node, by default only those that no test minds."""
    with ExitStack() as stack:
        nodes = [
            ServerProcess(
                "--engine",
                engine,
                "--extents",
                extents,
                "--workers",
                str(workers),
                "--node-timeout",
                str(TIMEOUT_SECONDS),
                *args,
                *ports(),
            )
            for _ in range(count)
        ]
        for node in nodes:
            stack.callback(node.close)
            node.launch()
        for node in nodes:
            node.wait_ready()
        yield nodes


def new_prefix() -> str:
    """For the extents of one store in the bucket of all tests."""
    return f"nodes-{uuid.uuid4().hex}"


def pause(node: ServerProcess) -> list[int]:
    """Stop every process of a node, as a suspended machine does. Returns what ``wake`` needs."""
    pids = [node.pid]
    os.kill(node.pid, signal.SIGSTOP)  # First, or it would replace its workers.
    pids += node.child_pids()
    for pid in pids[1:]:
        os.kill(pid, signal.SIGSTOP)
    return pids


def wake(pids: list[int]) -> None:
    for pid in reversed(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
