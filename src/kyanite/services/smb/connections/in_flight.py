"""How much the requests in progress take, and how much of one client may be in progress.

A request takes its message and what its response may be: as much as its credits pay for, if the command has long
responses. A client that has too much in progress is not received from until some of it is done. What waits for other
clients does not count there; in the memory of the process its message does.
"""

from collections.abc import Sequence

from kyanite.wire.smb2.compound import Part
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.transport import Memory

CLIENT_BYTES_MAX = 32 * 1024 * 1024
TIGHT_CLIENT_BYTES_MAX = 1024 * 1024
"""The same while the memory of the process is tight."""
REQUEST_BYTES = 4 * 1024
"""For what belongs to a request besides its message and its response."""
CREDIT_BYTES = 64 * 1024
"""What one credit pays for."""

_LONG_RESPONSES = frozenset({Command.READ, Command.QUERY_DIRECTORY, Command.QUERY_INFO, Command.IOCTL})


def bytes_of(parts: Sequence[Part], message_bytes: int) -> int:
    """What the requests of a message take."""
    total = message_bytes
    for header, _ in parts:
        total += REQUEST_BYTES
        if header.command in _LONG_RESPONSES:
            total += (header.credit_charge or 1) * CREDIT_BYTES
    return total


def client_bytes_max(memory: Memory) -> int:
    return TIGHT_CLIENT_BYTES_MAX if memory.is_tight else CLIENT_BYTES_MAX
