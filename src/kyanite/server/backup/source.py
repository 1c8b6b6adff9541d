"""An embedded store that is backed up, as a process beside its server, or without one.

It writes no row. It appears among the readers of extents, so that garbage collection waits for its pins, and among the
processes of the store, since a reader must be known.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kyanite.engine.sqlite import integrity
from kyanite.engine.sqlite.copies import DatabaseReader, open_live
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model import keys
from kyanite.server.accounts import sealed_keys
from kyanite.server.failures import Failure
from kyanite.server.issuer.private_files import identity_folder
from kyanite.server.stamps import stamp
from kyanite.server.store.format import check_folder, is_store

ENGINE = "engine"
EXTENTS = "extents"
OWNERS = "extents/owners"
SEGMENTS = "extents/segments"


@dataclass(frozen=True, slots=True)
class Source:
    location: Path
    database: DatabaseReader
    extents: LocalExtents

    def check_content(self) -> None:
        """Refuse a store whose content is in a bucket."""
        has_extents = bool(self.database.page(keys.EXTENTS, keys.after(keys.EXTENTS), 1))
        if has_extents and not any(True for _ in (self.location / SEGMENTS).glob("*/*")):
            raise Failure(
                f"The content of the store {self.location} is not in its folder."
                " docs/backup.md says how to back up a bucket."
            )

    def owners(self) -> set[str]:
        """The processes that have something in the store, or may have."""
        return {name for name in os.listdir(self.location / OWNERS) if "." not in name}

    def private_files(self) -> list[Path]:
        """The small files that the store needs besides its database, relative to its folder."""
        found = [Path("format")]
        found += [Path(name) for name in (sealed_keys.NAME, stamp.FILE) if (self.location / name).exists()]
        identity = identity_folder(self.location)
        if identity.is_dir():
            found += [
                path.relative_to(self.location) for path in sorted(identity.rglob("*")) if path.is_file()
            ]
        return found


def check_source(location: Path) -> None:
    """Refuse what is no store that this process can back up."""
    if not is_store(location):
        raise Failure(f"There is no store in {location}.")
    if not integrity.exists(location / ENGINE):
        raise Failure(
            f"The store {location} has no database of its own. docs/backup.md says how to back up PostgreSQL."
        )
    if location.stat().st_uid != os.geteuid():
        # It would make files there that the server could not open.
        raise Failure(f"The store {location} belongs to another user. Run the command as that user.")
    check_folder(location)


@contextmanager
def open_source(location: Path) -> Iterator[Source]:
    """On the running loop, which closes the extents later."""
    with open_live(location / ENGINE) as database:
        membership = LocalMembership(location / OWNERS)
        try:
            yield Source(location, database, LocalExtents(location / EXTENTS, membership))
        finally:
            membership.close()
