"""The store's folder and the version of its layout.

A file ``format`` says which parts the folder has and where: an embedded engine in ``engine``, local extents in
``extents``. It is written once, when the folder becomes a store. A server refuses a layout that it does not know;
should the layout change, the number grows, and a newer server moves things to their new places before it serves. Each
part carries a version of its own for what is inside it.
"""

import os
import re
from pathlib import Path

from kyanite.server.failures import Failure

FORMAT = 1
_FILE = "format"
_LINE = re.compile(r"kyanite store, format ([0-9]{1,9})\n")


def make_folder(location: Path) -> None:
    try:
        location.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"Cannot make the folder {location}: {error.strerror}.") from None


def is_store(location: Path) -> bool:
    return (location / _FILE).exists()


def check_format(location: Path) -> None:
    """Make the folder a store of the present format, or refuse it. The caller holds the store's lock."""
    path = location / _FILE
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
    if int(match[1]) != FORMAT:
        raise Failure(
            f"The store {location} has format {match[1]}, and this version of Kyanite knows format {FORMAT}."
        )


def _write(path: Path) -> None:
    """Whole or not at all, also across a power cut."""
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
