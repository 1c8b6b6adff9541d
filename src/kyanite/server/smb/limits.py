"""What one client may take of the SMB front end, how progress is judged, and what the front end counts."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Bounds on space and time. They hold for a single connection, except ``connections`` and ``memory_bytes``."""

    connections: int = 10_000
    address_part: float = 0.5
    """How much of ``connections`` one address may have."""
    unsent_bytes: int = 16 * 1024 * 1024
    """When the client has so much to read, nothing more is received from it."""
    tight_unsent_bytes: int = 256 * 1024
    """The same while memory is tight."""
    memory_bytes: int = 256 * 1024 * 1024
    """All messages of all connections that are in memory at a time, unless they share the budget of HTTP."""
    logon_seconds: float = 45.0
    """How long a client may be connected without being logged on."""
    stall_seconds: float = 60.0
    stall_bytes: int = 1024
    """A message that has begun, or a response, must move by this much in ``stall_seconds``."""
    tight_seconds: float = 5.0
    tight_bytes: int = 64 * 1024
    """The same for a long message while memory is tight: one that comes slowly must not keep it from others."""
    tick_seconds: float = 1.0
    """How often these are checked: one timer for the process, none per connection."""


class Stats:
    """Plain counters, which the metrics read."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_open",
        "connections_refused",
        "connections_total",
        "malformed_total",
        "messages_total",
        "stalls_total",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_open = 0
        self.connections_refused = 0
        self.connections_total = 0
        self.malformed_total = 0
        self.messages_total = 0
        self.stalls_total = 0
