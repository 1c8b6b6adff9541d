"""What one client may take of the SMB front end, how progress is judged, and what the front end counts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on space and time. Every one of them holds for a single connection, except ``connections``."""

    connections: int = 10_000
    address_part: float = 0.5
    """How much of ``connections`` one address may have."""
    unsent_bytes: int = 16 * 1024 * 1024
    """When the client has so much to read, nothing more is received from it."""
    tight_unsent_bytes: int = 1024 * 1024
    """The same while the memory of the process is tight."""
    memory_wait_seconds: float = 10.0
    """When connections wait for memory for so long, the one is closed that keeps the most and moves the least."""
    logon_seconds: float = 45.0
    """How long a client may be connected without being logged on."""
    stall_seconds: float = 60.0
    stall_bytes: int = 1024
    """A message that has begun, or a response, must move by this much in ``stall_seconds``."""
    tick_seconds: float = 1.0
    """How often these are checked: one timer for the process, none per connection."""


class Stats:
    """Plain counters, which the metrics read."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_evicted",
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
        self.connections_evicted = 0
        self.connections_open = 0
        self.connections_refused = 0
        self.connections_total = 0
        self.malformed_total = 0
        self.messages_total = 0
        self.stalls_total = 0
