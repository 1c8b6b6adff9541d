"""Preparing the store in a process of its own, before the first worker starts.

The supervisor must not open a store before it forks, and an upgrade may take longer than a worker has to become ready.
So a short-lived process does it. The supervisor imports the services meanwhile, and then waits for its end.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop

from kyanite.engine.api import EngineError
from kyanite.server.accounts.start import apply_stated
from kyanite.server.clock import TestingClock
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.server.processes.child import Child
from kyanite.server.processes.process import ProcessContext, Role
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.stamps.opening import factory_for, prepare_stamp
from kyanite.server.stamps.stamp import MAIN, Stamp, all_stamps
from kyanite.server.store.api import Clock
from kyanite.server.store.factory import StoreFactory
from kyanite.server.store.format import prepare

_NAME = "upgrade"
_STAMP_SECONDS = 3.0
_log = logging.getLogger("kyanite.stamps")


class Preparation(msgspec.Struct, frozen=True):
    """What the process needs; calling it runs the process."""

    factory: StoreFactory
    location: Path
    clock: Clock
    accounts: tuple[StatedAccount, ...] = ()
    """What is stated about accounts."""
    stamps: tuple[Stamp, ...] = ()
    """The stamps besides the main one that are stated."""

    def __call__(self, _context: ProcessContext) -> None:
        uvloop.run(self._prepare())

    async def _prepare(self) -> None:
        await self.factory.check_extents()
        # The engine is not closed: that would copy its whole log, and every commit is on disk.
        engine = self.factory.open_engine(self.clock)
        testing_clock = self.clock if isinstance(self.clock, TestingClock) else None
        try:
            await self.factory.check_rows(engine)
            await prepare(engine, self.location, is_testing=testing_clock is not None)
        except EngineError as error:
            raise Failure(f"The store {self.location} cannot be opened. {error}") from error
        if testing_clock is not None:
            # The store may have seen later times than the wall clock shows. Its clock goes on from there.
            testing_clock.advance_to(await engine.read(lambda snap: snap.now))
        await apply_stated(engine, [account for account in self.accounts if account.stamp == MAIN])
        for stamp in all_stamps(self.location, self.stamps):
            await self._prepare_stamp(stamp)

    async def _prepare_stamp(self, stamp: Stamp) -> None:
        """One that is away is left to the workers, which try again."""
        stated = [account for account in self.accounts if account.stamp == stamp.name]
        try:
            factory = factory_for(stamp, self.location, self.factory.dead_after_seconds)
            async with asyncio.timeout(_STAMP_SECONDS):
                await prepare_stamp(factory, factory.open_engine(self.clock), self.clock, stated)
        except (Failure, TimeoutError, OSError) as error:
            why = error.sentence if isinstance(error, Failure) else str(error)
            _log.warning("stamp not prepared", extra={"stamp": stamp.name, "why": why})


@contextmanager
def preparing(
    preparation: Preparation, close_inherited: Callable[[], None], log_level: str
) -> Iterator[None]:
    """Run the process while the block runs, and wait for its end. Raises a Failure with its reason if it fails.

    ``close_inherited`` closes in the new process what it must not keep.
    """
    reading, writing = os.pipe()

    def close_all_inherited(_child: Child) -> None:
        os.close(writing)
        close_inherited()

    child = Child(Role(_NAME, preparation, ()), ProcessTable([_NAME]).slots[_NAME])
    try:
        if not child.start(reading, close_all_inherited, log_level):
            raise Failure("The system refuses another process.")
        yield
        while child.report >= 0:
            child.read_report()
        how = child.reap(wait=True)
        if child.reason:
            raise Failure(child.reason)
        if how != "ended with exit code 0":
            raise Failure(f"The process that prepares the store {preparation.location} {how}.")
    finally:
        if child.pid:
            os.kill(child.pid, signal.SIGKILL)
            child.reap(wait=True)
        os.close(reading)
        os.close(writing)
