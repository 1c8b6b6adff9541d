"""What one client may take of the HTTP front end, how progress is judged, and what the front end counts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on space and time. They hold for a single connection, except ``connections`` and ``memory_bytes``."""

    head_bytes: int = 64 * 1024
    """Request line and headers together, and whatever lies between the chunks of a body."""
    header_count: int = 256
    body_buffer_bytes: int = 1024 * 1024
    """Body bytes that wait for the handler before the connection stops reading."""
    memory_bytes: int = 256 * 1024 * 1024
    """All bodies of all connections that are in memory at a time."""
    drain_bytes: int = 64 * 1024
    """An unread body of at most this size is read and dropped, so that the connection lives on."""
    connections: int = 10_000
    idle_seconds: float = 240.0
    head_seconds: float = 30.0
    """From the first byte of a head to its last."""
    stall_seconds: float = 60.0
    stall_bytes: int = 1024
    """A body that a handler waits for, or a response, must move by this much in ``stall_seconds``."""
    linger_seconds: float = 30.0
    """How long a client that is still sending may read the response before the connection is closed."""
    linger_idle_seconds: float = 5.0
    tick_seconds: float = 1.0
    """How often all of the above are checked: one timer for the process, none per connection."""


class Progress:
    """Tells a slow transfer from a stalled one: bytes must keep moving while they are waited for.

    Time in which they are not waited for does not count, but does not reset the count either. So a client cannot
    block a handler for ever by sending a byte now and then.
    """

    __slots__ = ("_mark", "_waited_seconds")

    def __init__(self) -> None:
        self._mark = 0
        self._waited_seconds = 0.0

    def stalled(self, moved_bytes: int, elapsed_seconds: float, limits: Limits) -> bool:
        """To be called once per tick while a transfer is waited for, with the bytes that it has moved in all."""
        if moved_bytes - self._mark >= limits.stall_bytes:
            self._mark = moved_bytes
            self._waited_seconds = 0.0
            return False
        self._waited_seconds += elapsed_seconds
        return self._waited_seconds > limits.stall_seconds


class Stats:
    """Plain counters, which the metrics read."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections_open",
        "connections_refused",
        "connections_total",
        "requests_in_flight",
        "requests_malformed",
        "requests_total",
        "stalls_total",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections_open = 0
        self.connections_refused = 0
        self.connections_total = 0
        self.requests_in_flight = 0
        self.requests_malformed = 0
        self.requests_total = 0
        self.stalls_total = 0
