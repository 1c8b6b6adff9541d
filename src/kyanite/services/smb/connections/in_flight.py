"""How much the requests in progress may take, of one client and of all clients of a process.

A request takes its message and, if its command has long responses, what its credits pay for. A client that has too much
in progress is not received from until some of it is done. What waits for other clients does not count there; in the
memory of the process its message does.
"""

from collections.abc import Sequence

from kyanite.wire.smb2.compound import Part
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.transport import Memory

CLIENT_BYTES_MAX = 32 * 1024 * 1024
SHORT_BYTES = 128 * 1024
"""Requests up to this size never wait for memory."""
REQUEST_BYTES = 4 * 1024
"""For what belongs to a request besides its message and its response."""
CREDIT_BYTES = 64 * 1024
"""What one credit pays for."""
ROOM_SECONDS = 10.0
"""How long a request waits for memory before it is refused."""
ROOM_AGAIN_SECONDS = 0.02
"""How soon it tries again."""

_LONG_RESPONSES = frozenset({Command.READ, Command.QUERY_DIRECTORY, Command.QUERY_INFO, Command.IOCTL})


def cost_of(parts: Sequence[Part], message_bytes: int) -> int:
    """What the requests of a message take."""
    cost = message_bytes + len(parts) * REQUEST_BYTES
    for header, _ in parts:
        if header.command in _LONG_RESPONSES:
            cost += (header.credit_charge or 1) * CREDIT_BYTES
    return cost


class InFlight:
    """Requests in progress end by themselves, so their memory becomes free."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def limit_bytes(self) -> int:
        """For one client. When half of the memory is used, each may have one request."""
        memory = self._memory
        return CLIENT_BYTES_MAX if memory.used_bytes * 2 <= memory.limit_bytes else 0

    def add(self, size: int) -> None:
        """Or subtract, if it is negative."""
        self._memory.used_bytes += size

    def has_room(self, size: int) -> bool:
        memory = self._memory
        return size <= SHORT_BYTES or memory.used_bytes + size <= memory.limit_bytes or not memory.used_bytes
