"""Bringing a store to the present format, before it is served.

An upgrade to a format is one step or several, in the order of the table. A step is a function of a transaction and a
cursor. It rewrites a bounded number of rows from the cursor on, and returns the cursor for its next call, or None when
it is done. Its first cursor is empty. Each call is committed together with the progress, so an upgrade may end at any
point and continues there when the store is opened again.

A step works on rows as the previous format left them, so it keeps its own copy of every struct that has changed since.
Steps of a format that was released are never changed, and none is added to it.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kyanite.engine.api import Engine, Transaction
from kyanite.model import members, store_format
from kyanite.model.files.upgrade import upgrade_handles
from kyanite.model.store_format import StoreFormat
from kyanite.server.failures import Failure
from kyanite.server.store.upgrade_blob_names import upgrade_blob_names
from kyanite.server.store.upgrade_settings import upgrade_settings

Step = Callable[[Transaction, bytes], bytes | None]


class Upgrade(NamedTuple):
    to_format: int
    description: str
    """What the log says, such as "rewrite open handles"."""
    step: Step


UPGRADES: tuple[Upgrade, ...] = (
    Upgrade(2, "service properties become typed records", upgrade_settings),
    Upgrade(2, "open handles get an index", upgrade_handles),
    Upgrade(3, "backslashes in names of blobs become slashes", upgrade_blob_names),
)

_log = logging.getLogger("kyanite.upgrade")


async def prepare(
    engine: Engine,
    *,
    is_testing: bool,
    check: Callable[[StoreFormat], None],
    begin: Callable[[], None],
    steps: Sequence[Upgrade],
    to_format: int,
) -> StoreFormat:
    """Mark a new store, upgrade an older one, and return its format.

    ``check`` refuses a store by raising, before anything is changed. ``begin`` is called before the first row of an
    older store is changed.
    """
    found = await engine.read(partial(store_format.load, is_testing=is_testing))
    check(found)
    if found.format == to_format:
        await engine.run(partial(_mark, is_testing=is_testing))
        return found
    if await engine.read(members.is_served):
        raise Failure(
            f"The store has format {found.format}, and nodes of another version serve it: stop them all, so that it "
            "can be upgraded."
        )
    begin()
    _log.info("upgrade begins", extra={"from_format": found.format, "to_format": to_format})
    while found.format < to_format:
        found = await _run_next(engine, found, steps)
    _log.info("upgrade complete", extra={"format": found.format})
    return found


def _mark(tx: Transaction, is_testing: bool) -> None:
    if tx.get(store_format.KEY) is None:
        store_format.save(tx, store_format.load(tx, is_testing=is_testing))


async def _run_next(engine: Engine, found: StoreFormat, steps: Sequence[Upgrade]) -> StoreFormat:
    """Run the next step to its end, or complete the upgrade to the next format if no step is left."""
    steps = [each for each in steps if each.to_format == found.format + 1]
    if found.steps_done == len(steps):
        return await engine.run(partial(_complete, format_before=found.format))
    upgrade, steps_done = steps[found.steps_done], found.steps_done
    _log.info(
        "upgrade step",
        extra={"to_format": upgrade.to_format, "step": upgrade.description, "resumed": bool(found.cursor)},
    )
    while (found.format + 1, found.steps_done) == (upgrade.to_format, steps_done):
        found = await engine.run(
            partial(_call_step, step=upgrade.step, to_format=upgrade.to_format, steps_done=steps_done)
        )
    return found


def _call_step(tx: Transaction, step: Step, to_format: int, steps_done: int) -> StoreFormat:
    """Does nothing if another node has completed the step. Two that call it in turn share the work."""
    found = store_format.load(tx)
    if (found.format + 1, found.steps_done) != (to_format, steps_done):
        return found
    cursor = step(tx, found.cursor)
    assert cursor != found.cursor, "An upgrade step made no progress."
    if cursor is None:
        found = replace(found, steps_done=found.steps_done + 1, cursor=b"")
    else:
        found = replace(found, cursor=cursor)
    store_format.save(tx, found)
    return found


def _complete(tx: Transaction, format_before: int) -> StoreFormat:
    found = store_format.load(tx)
    if found.format != format_before:  # Another node has completed it.
        return found
    found = replace(found, format=found.format + 1, steps_done=0, cursor=b"")
    store_format.save(tx, found)
    return found
