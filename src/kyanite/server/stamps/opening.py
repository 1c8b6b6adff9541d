"""Opening a stamp that is not the main one: prepared by one process, opened by each."""

from collections.abc import Sequence
from pathlib import Path

from kyanite.engine.api import Engine, EngineError, Snapshot
from kyanite.model import store_format
from kyanite.server.accounts.start import apply_stated
from kyanite.server.clock import TestingClock
from kyanite.server.config import StatedAccount
from kyanite.server.failures import Failure
from kyanite.server.stamps.stamp import Stamp
from kyanite.server.store.api import Clock
from kyanite.server.store.factory import StoreFactory, factory_of
from kyanite.server.store.format import check_folder, make_folder, prepare


def factory_for(stamp: Stamp, location: Path, dead_after_seconds: float) -> StoreFactory:
    """Raises a Failure if the stamp cannot be used. ``location`` is the folder of the main store."""
    folder = stamp.folder(location)
    make_folder(folder)
    check_folder(folder)
    return factory_of(stamp.kind, folder, dead_after_seconds=dead_after_seconds)


async def prepare_stamp(
    factory: StoreFactory, engine: Engine, clock: Clock, stated: Sequence[StatedAccount]
) -> None:
    """Check and upgrade it, and apply what is stated about its accounts. Raises a Failure."""
    try:
        await factory.check_extents()
        await factory.check_rows(engine)
        testing_clock = clock if isinstance(clock, TestingClock) else None
        await prepare(engine, factory.folder, is_testing=testing_clock is not None)
        if testing_clock is not None:
            testing_clock.advance_to(await engine.read(lambda snap: snap.now))
        await apply_stated(engine, stated)
    except EngineError as error:
        raise Failure(f"The store {factory.folder} cannot be opened. {error}") from error


def is_prepared(snap: Snapshot) -> bool:
    stored = snap.get(store_format.KEY)
    return stored is not None and store_format.decode(stored).format == store_format.FORMAT
