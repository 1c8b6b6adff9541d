"""The SMB service: makes a connection for each client."""

import asyncio
import threading
from functools import cache
from importlib import import_module

from kyanite.services.smb.connections.connection import Connection
from kyanite.services.smb.connections.in_flight import InFlight
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.sessions.logon_delays import LogonDelays
from kyanite.services.smb.sessions.registry import SessionRegistry
from kyanite.services.smb.sessions.sealed_keys import SealedKeys
from kyanite.wire.smb2.transport import Connect, Transport


def smb_service(environment: SmbEnvironment) -> Connect:
    """What the front end calls for each client that connects."""
    registry = SessionRegistry(SealedKeys(environment.secret, environment.random_bytes))
    environment.on_accounts_removed.append(registry.end_all_of)
    in_flight = InFlight(environment.memory)
    delays = LogonDelays(asyncio.get_running_loop().time)

    def connect(transport: Transport, address: str, port: int) -> Connection:
        _begin_to_load_ciphers()
        return Connection(
            environment, transport, address, port, registry=registry, delays=delays, in_flight=in_flight
        )

    return connect


@cache
def _begin_to_load_ciphers() -> None:
    """When the first client connects. Another thread loads the library while the client negotiates, so that the event
    loop hardly waits for it."""
    ciphers = ("kyanite.wire.smb2.ciphers",)
    threading.Thread(target=import_module, args=ciphers, name="ciphers", daemon=True).start()
