"""The services of this server, one row each: name, default port, and the function that builds it.

``load`` imports a service and returns what builds its handler. It is a function so that ``kyanite --help`` need not
import everything, and so that the supervisor can import everything once before it starts its workers. SMB is not among
that: a worker imports it when its first client connects. A row without either is a service that the options know
already and that this version does not have.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Handler

if TYPE_CHECKING:
    from kyanite.services.smb.environment import SmbEnvironment
    from kyanite.wire.smb2.transport import Connect

Factory = Callable[[Environment], Handler]
SmbFactory = Callable[["SmbEnvironment"], "Connect"]


class ServiceRow(msgspec.Struct, frozen=True):
    name: str
    default_port: int
    load: Callable[[], Factory] | None = None
    load_smb: Callable[[], SmbFactory] | None = None
    """Of the service that is not spoken over HTTP."""

    @property
    def is_built(self) -> bool:
        return self.load is not None or self.load_smb is not None


def _blob() -> Factory:
    from kyanite.services.blob.service import blob_service

    return blob_service


def _queue() -> Factory:
    from kyanite.services.queue.service import queue_service

    return queue_service


def _table() -> Factory:
    from kyanite.services.table.service import table_service

    return table_service


def _file() -> Factory:
    from kyanite.services.files.service import file_service

    return file_service


def _smb() -> SmbFactory:
    from kyanite.services.smb.service import smb_service

    return smb_service


SERVICES: dict[str, ServiceRow] = {
    row.name: row
    for row in (
        ServiceRow("blob", 10000, _blob),
        ServiceRow("queue", 10001, _queue),
        ServiceRow("table", 10002, _table),
        ServiceRow("file", 10003, _file),
        ServiceRow("dfs", 10004),
        ServiceRow("smb", 10445, load_smb=_smb),
    )
}


def offered() -> tuple[str, ...]:
    """The services that exist, in the order of the table."""
    return tuple(row.name for row in SERVICES.values() if row.is_built)
