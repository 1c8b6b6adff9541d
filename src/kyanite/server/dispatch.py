"""Which service a request is for.

A host of the form ``{account}.{service}.anything`` names the service on any port; any other host means the service of
the port that the request came in on. The port of the console is the console's, whatever the host. Dispatching adds no
coroutine of its own to a request: it returns the service's.
"""

from collections.abc import Awaitable, Mapping
from typing import Final

from kyanite.wire.http import Handler, NoPieces, Request, Response
from kyanite.wire.uri import SERVICES, decode_target

_KNOWN_MAX: Final = 1024
"""How many hosts are remembered for each port: bounded, because clients choose them."""


class Dispatcher:
    def __init__(self, handlers: Mapping[str, Handler], ports: Mapping[int, str]) -> None:
        self._handlers = handlers
        self.ports = ports
        self._known: dict[int, dict[str, tuple[str, Handler]]] = {port: {} for port in ports}
        """By port and host: a text alone is looked up faster than a pair."""

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self.find(request)[1](request)

    def find(self, request: Request) -> tuple[str, Handler]:
        """The name of the service that a request is for, and its handler."""
        host, port = request.headers.get("host", ""), request.local_port
        return self._known[port].get(host) or self._find_new(host, port)

    def _find_new(self, host: str, port: int) -> tuple[str, Handler]:
        service = self.ports[port]
        if service in SERVICES:
            service = decode_target(host, "/", service).service
        found = service, self._handlers.get(service, _not_offered)
        if len(self._known[port]) < _KNOWN_MAX:
            self._known[port][host] = found
        return found


async def _not_offered(request: Request) -> Response:
    """The host names a service that this server does not offer."""
    if request.method == "HEAD":
        return Response(404, [], NoPieces())
    return Response(
        404, [("Content-Type", "text/plain")], b"This server does not offer the service of that host.\n"
    )
