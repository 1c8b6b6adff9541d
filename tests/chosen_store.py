"""Which store the servers under test have.

``pytest --store postgres`` gives each of them a schema of its own in the private PostgreSQL of the test process,
``--store s3`` the embedded engine and a prefix of its own in the private object store of the test run, and
``--store scale`` both. Without it they have the embedded store.
"""

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from kyanite.server.store.api import EMBEDDED, LOCAL, StoreKind
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:
    from tests.seaweed_server import SeaweedServer

OPTION = "--store"
CHOICES = ("embedded", "postgres", "s3", "scale")
WITH_POSTGRES = ("postgres", "scale")
WITH_S3 = ("s3", "scale")

_servers: list[PostgresServer] = []
_object_stores: "list[SeaweedServer]" = []


def use(server: PostgresServer) -> None:
    """From now on, the rows of the stores of this test process are in this server."""
    _servers.append(server)


def use_extents(server: "SeaweedServer") -> None:
    """The same for bulk bytes."""
    _object_stores.append(server)


def kind_of(location: Path) -> StoreKind:
    """The same for the same folder, so that a server can be started there again."""
    name = f"store_{sha256(bytes(location.resolve())).hexdigest()[:16]}"
    engine = _servers[-1].url(schema=name) if _servers else EMBEDDED
    extents = _object_stores[-1].url(f"{os.getpid()}/{name}") if _object_stores else LOCAL
    return StoreKind(engine, extents)


def options_for(location: Path) -> list[str]:
    kind = kind_of(location)
    options = ["--engine", kind.engine] if kind.engine != EMBEDDED else []
    return options + (["--extents", kind.extents] if kind.extents != LOCAL else [])
