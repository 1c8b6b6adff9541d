"""The SMB service: makes a connection for each client."""

import asyncio

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
        return Connection(
            environment, transport, address, port, registry=registry, delays=delays, in_flight=in_flight
        )

    return connect
