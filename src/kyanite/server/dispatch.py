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
"""How many pairs of host and port are remembered: bounded, because clients choose the hosts."""


class Dispatcher:
    def __init__(self, handlers: Mapping[str, Handler], ports: Mapping[int, str]) -> None:
        self._handlers = handlers
        self.ports = ports
        self._known: dict[tuple[str, int], tuple[str, Handler]] = {}

    def __call__(self, request: Request) -> Awaitable[Response]:
        return self.find(request)[1](request)

    def find(self, request: Request) -> tuple[str, Handler]:
        """The name of the service that a request is for, and its handler."""
        key = request.headers.get("host", ""), request.local_port
        return self._known.get(key) or self._find_new(key)

    def _find_new(self, key: tuple[str, int]) -> tuple[str, Handler]:
        host, port = key
        service = self.ports[port]
        if service in SERVICES:
            service = decode_target(host, "/", service).service
        found = service, self._handlers.get(service, _not_offered)
        if len(self._known) < _KNOWN_MAX:
            self._known[key] = found
        return found


async def _not_offered(request: Request) -> Response:
    """The host names a service that this server does not offer."""
    if request.method == "HEAD":
        return Response(404, [], NoPieces())
    return Response(
        404, [("Content-Type", "text/plain")], b"This server does not offer the service of that host.\n"
    )
