"""The format of a store: checked, recorded and brought up to date before the store is served or verified.

The format is a row of the engine (``model/store_format.py``). Versions that know format 1 only read a file ``format``
in the store's folder instead, so that file exists too: it holds the newest format that any row may have. It is raised
before the first row is upgraded, so an older version refuses the store from then on.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kyanite.engine.api import Engine
from kyanite.model.store_format import FORMAT, StoreFormat
from kyanite.server.failures import Failure
from kyanite.server.store import upgrades
from kyanite.server.store.upgrades import Upgrade

RESTORING = "restoring"
"""A file of this name says that a restore into the folder has not ended."""
_FILE = "format"
_LINE = re.compile(r"kyanite store, format ([0-9]{1,9})\n")


def make_folder(location: Path) -> None:
    try:
        location.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"Cannot make the folder {location}: {error.strerror}.") from None


def is_store(location: Path) -> bool:
    return (location / _FILE).exists()


def check_folder(location: Path) -> None:
    """Make the folder a store of the present format, or refuse it. The caller holds the store's lock."""
    path = location / _FILE
    if (location / RESTORING).exists():
        raise Failure(f"The store {location} is not whole: a restore into it has not ended. Run it again.")
    try:
        text = path.read_text("ascii", "replace")
    except FileNotFoundError:
        _write(path)
        return
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    match = _LINE.fullmatch(text)
    if match is None:
        raise Failure(f"The file {path} does not say which format the store has.")
    _check_not_newer(location, int(match[1]))


async def prepare(
    engine: Engine, location: Path, *, is_testing: bool | None, steps: Sequence[Upgrade] | None = None
) -> None:
    """Mark a new store and upgrade an older one. Raises a Failure for a store that cannot be used.

    ``is_testing`` is None for a caller that does not use the clock. The steps are those of the table, unless given.
    """
    await upgrades.prepare(
        engine,
        is_testing=bool(is_testing),
        check=_checker(location, is_testing),
        begin=lambda: _write(location / _FILE),
        steps=upgrades.UPGRADES if steps is None else steps,
        to_format=FORMAT,
    )


def _checker(location: Path, is_testing: bool | None) -> Callable[[StoreFormat], None]:
    def check(found: StoreFormat) -> None:
        _check_not_newer(location, found.format)
        if is_testing and not found.is_testing:
            raise Failure(f"The store {location} was made without --testing, so it cannot be served with it.")
        if found.is_testing and is_testing is False:
            raise Failure(f"The store {location} was made with --testing, so it cannot be served without it.")

    return check


def _check_not_newer(location: Path, found: int) -> None:
    if found > FORMAT:
        raise Failure(
            f"The store {location} has format {found}, and this version of Kyanite knows format {FORMAT} at most."
        )


def _write(path: Path) -> None:
    """Write the file whole or not at all, also across a power cut."""
    fresh = path.with_name("format.new")
    try:
        with fresh.open("w", encoding="ascii") as file:
            file.write(f"kyanite store, format {FORMAT}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error.strerror}.") from None
