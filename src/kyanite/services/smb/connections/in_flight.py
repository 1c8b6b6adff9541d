"""How much the requests in progress may take, of one client and of all clients of a process.

A request takes as many bytes as its credits pay for: its payload or that of its response. A client that has too much in
progress is not received from until some of it is done. What waits for other clients does not count.
"""

CLIENT_BYTES_MAX = 32 * 1024 * 1024
TOTAL_BYTES_MAX = 512 * 1024 * 1024
"""When all clients together have more in progress, each may have one request."""


class InFlight:
    __slots__ = ("total_bytes",)

    def __init__(self) -> None:
        self.total_bytes = 0

    @property
    def limit_bytes(self) -> int:
        """For one client."""
        return CLIENT_BYTES_MAX if self.total_bytes <= TOTAL_BYTES_MAX else 0
