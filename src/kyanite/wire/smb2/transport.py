"""What a connection and the server of its socket need of each other.

The front end (``server.smb``) knows sockets and frames. The service (``services.smb``) knows what messages mean.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kyanite.wire.smb2.body import Data


class Transport(Protocol):
    """The socket of one client, as its connection uses it."""

    def send(self, message: Sequence[Data], *, at_once: bool = False) -> None:
        """Send one message, as a frame of its own. The buffers must not change afterwards. It may leave together with
        short ones to other clients, unless it has to leave ``at_once``."""

    def close(self) -> None:
        """Close the socket after what was sent. ``ClientConnection.lost`` follows."""

    def pause(self) -> None:
        """Receive nothing more until ``resume``: the client has enough in progress."""

    def resume(self) -> None: ...


class Memory(Protocol):
    """What all connections of a process share. Those that take some of it add to ``used_bytes`` and subtract again."""

    used_bytes: int
    limit_bytes: int


class OwnMemory:
    """For a service that shares it with no front end."""

    def __init__(self, limit_bytes: int = 512 * 1024 * 1024) -> None:
        self.used_bytes = 0
        self.limit_bytes = limit_bytes


class ClientConnection(Protocol):
    """One client, as the front end knows it."""

    @property
    def longest_message(self) -> int:
        """The longest message that is received now; the front end closes the socket before a longer one."""

    @property
    def is_authenticated(self) -> bool:
        """Whether anyone is logged on. A client that has not been for a while is disconnected."""

    def received(self, message: bytearray) -> None:
        """One message without the prefix of its frame. The connection keeps the buffer."""

    def lost(self) -> None:
        """The socket is closed, whichever side did it. Called once."""

    async def finished(self) -> None:
        """Wait until everything that belonged to the lost connection is cleaned up."""


Connect = Callable[[Transport, str, int], ClientConnection]
"""A client has connected, from this address and port."""
