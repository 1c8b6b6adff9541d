"""The test kit: a server for tests whose clock can be moved, with faults, recorded requests and fresh accounts.

    from kyanite.testing import Server

    with Server() as server:
        account = server.fresh_account()
        blobs = account.blob_service()
        server.clock.advance(60)
        server.faults.add(operation="Put Blob", times=2, status=503)

With pytest the fixtures of ``plugin.py`` do that. ``docs/testing.md`` is the guide. Nothing but the standard library is
imported here, and only when a name is used, since pytest imports this package wherever it is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kyanite.testing.account import Account, MissingClient
    from kyanite.testing.admin import KitError
    from kyanite.testing.clock import Clock
    from kyanite.testing.faults import Fault, Faults
    from kyanite.testing.requests import RecordedRequest, Requests
    from kyanite.testing.server import Server, ServerFailed

_MODULES = {
    "Account": "account",
    "Clock": "clock",
    "Fault": "faults",
    "Faults": "faults",
    "KitError": "admin",
    "MissingClient": "account",
    "RecordedRequest": "requests",
    "Requests": "requests",
    "Server": "server",
    "ServerFailed": "server",
}

__all__ = [
    "Account",
    "Clock",
    "Fault",
    "Faults",
    "KitError",
    "MissingClient",
    "RecordedRequest",
    "Requests",
    "Server",
    "ServerFailed",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
