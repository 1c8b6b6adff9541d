"""The process that answers on the ports of the development issuer."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable

import msgspec
import uvloop

from kyanite.server.guids import FreshGuids
from kyanite.server.http.limits import Limits
from kyanite.server.http.server import serve
from kyanite.server.issuer.endpoints import Endpoints
from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.managed_identity import ManagedIdentity
from kyanite.server.processes.process import ProcessContext, until_stopped
from kyanite.wire.http import Request, Response

_LIMITS = Limits(connections=256, memory_bytes=16 * 1024 * 1024)
_STOP_SECONDS = 1.0


class IssuerProcess(msgspec.Struct, frozen=True):
    """What the process needs to begin; calling it runs the process."""

    issuer: Issuer
    identity_header: str
    tls: ssl.SSLContext
    listener: socket.socket
    """For clients that prove who they are, over TLS."""
    managed_identity: socket.socket
    """For clients that need not, over plain HTTP."""

    def __call__(self, context: ProcessContext) -> None:
        uvloop.run(self._serve(context))

    async def _serve(self, context: ProcessContext) -> None:
        endpoints = Endpoints(self.issuer, FreshGuids())
        managed_identity = ManagedIdentity(self.issuer, self.identity_header)

        async def answer_without_credentials(request: Request) -> Response:
            return managed_identity(request)

        def answer(request: Request) -> Awaitable[Response]:
            return endpoints(request) if request.secure else answer_without_credentials(request)

        server = await serve(answer, [self.managed_identity], limits=_LIMITS)
        await server.accept_on(self.listener, self.tls)
        heart = asyncio.create_task(context.beat())
        context.ready()
        await until_stopped()
        await server.stop(_STOP_SECONDS)
        heart.cancel()
