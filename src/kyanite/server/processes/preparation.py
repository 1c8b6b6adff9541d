"""Preparing the store in a process of its own, before the first worker starts.

The supervisor must not open a store before it forks, and an upgrade may take longer than a worker has to become ready.
So a short-lived process does it, and the supervisor waits for its end.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import uvloop

from kyanite.server.clock import TestingClock
from kyanite.server.failures import Failure
from kyanite.server.processes.child import Child
from kyanite.server.processes.process import ProcessContext, Role
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.store.api import Clock, StoreFactory
from kyanite.server.store.format import prepare

_NAME = "upgrade"


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the process needs; calling it runs the process."""

    factory: StoreFactory
    location: Path
    clock: Clock

    def __call__(self, _context: ProcessContext) -> None:
        uvloop.run(self._prepare())

    async def _prepare(self) -> None:
        # The engine is not closed: that would copy its whole log, and every commit is on disk.
        engine = self.factory.open_engine(self.clock)
        testing_clock = self.clock if isinstance(self.clock, TestingClock) else None
        await prepare(engine, self.location, is_testing=testing_clock is not None)
        if testing_clock is not None:
            # The store may have seen later times than the wall clock shows. Its clock goes on from there.
            testing_clock.advance_to(await engine.read(lambda snap: snap.now))


def prepare_store(preparation: Preparation, listeners: Sequence[socket], log_level: str) -> None:
    """Run the process to its end. Raises a Failure with its reason if it fails."""
    reading, writing = os.pipe()

    def close_inherited(_child: Child) -> None:
        os.close(writing)
        for listener in listeners:
            listener.close()

    role = Role(_NAME, preparation, ())
    child = Child(role, ProcessTable([_NAME]).slots[_NAME])
    try:
        if not child.start(reading, close_inherited, log_level):
            raise Failure("The system refuses another process.")
        while child.report >= 0:
            child.read_report()
        how = child.reap(wait=True)
        if child.reason:
            raise Failure(child.reason)
        if how != "ended with exit code 0":
            raise Failure(
                f"The store {preparation.location} cannot be opened: the process that prepares it {how}."
            )
    finally:
        if child.pid:
            os.kill(child.pid, signal.SIGKILL)
            child.reap(wait=True)
        os.close(reading)
        os.close(writing)
