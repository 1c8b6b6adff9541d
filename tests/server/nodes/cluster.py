"""Processes of several nodes on one engine in memory, with clocks that the test moves."""

import asyncio
from pathlib import Path

from kyanite.engine.api import Engine
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.membership.local import LocalMembership
from kyanite.server.nodes.fenced_engine import FencedEngine
from kyanite.server.nodes.membership import EngineMembership
from kyanite.values import Instant

SECOND = 10_000_000
START = Instant(638_000_000_000_000_000)
DEAD_AFTER_SECONDS = 15


class Clock:
    """The time of the engine, and that of the machines."""

    def __init__(self) -> None:
        self.engine = START
        self.machines = 1000 * SECOND

    def pass_seconds(self, seconds: float) -> None:
        self.engine = Instant(self.engine + round(seconds * SECOND))
        self.machines += round(seconds * SECOND)


class LockFile(LocalMembership):
    """The kernel unlocks it when the process ends, and not because a test has stopped the process."""

    def close(self) -> None:
        pass

    def unlock(self) -> None:
        super().close()


class Process:
    """A process of a node that has joined."""

    def __init__(self, cluster: "Cluster", node: str, engine: Engine) -> None:
        self.local = LockFile(cluster.folder / node)
        self.is_lost = False
        self.membership = EngineMembership(
            engine,
            self.local,
            node=node,
            process="worker 1",
            dead_after_seconds=DEAD_AFTER_SECONDS,
            on_lost=self._lose,
            ticks=lambda: cluster.clock.machines,
        )
        self.engine = FencedEngine(engine, self.membership)

    @property
    def id(self) -> bytes:
        return self.membership.id

    def _lose(self) -> None:
        self.is_lost = True

    async def beat(self) -> None:
        """What the process does every few seconds. Notifications have arrived by then."""
        for _ in range(3):
            await asyncio.sleep(0)
        await self.membership._step_or_log()

    def stop(self) -> None:
        """The process does not run any more, until the test lets it beat: it is paused, or was killed."""
        self.membership._running.cancel()

    def kill(self) -> None:
        self.stop()
        self.local.unlock()


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.memory = MemoryEngine(clock=lambda: self.clock.engine)

    async def join(self, node: str, engine: Engine | None = None) -> Process:
        process = Process(self, node, engine or self.memory)
        await process.membership.joined
        return process

    async def pass_time(self, seconds: float, *beating: Process, step_seconds: float = 1.0) -> None:
        """Let time pass, in which these processes run."""
        for _ in range(round(seconds / step_seconds)):
            self.clock.pass_seconds(step_seconds)
            for process in beating:
                await process.beat()
