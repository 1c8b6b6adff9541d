"""The console as a worker serves it: imported and built when the first page is asked for, and not before."""

import asyncio
import hashlib
import hmac
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kyanite.rules.authorization import ACCOUNT_KEY
from kyanite.server.config import DEVELOPMENT_KEY, Config, ConsoleConfig
from kyanite.server.identity.config import Development
from kyanite.server.observability.requests_of_worker import RequestsOfWorker
from kyanite.server.service_table import SERVICES
from kyanite.server.sockets import address_of, names_of
from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Handler, Request, Response

if TYPE_CHECKING:
    from kyanite.services.console.service import Console

CONSOLE = "console"
"""What the dispatcher, logs and metrics call it."""

_PURPOSE = b"kyanite console sessions"


class LazyConsole:
    def __init__(
        self,
        server: Config,
        config: ConsoleConfig,
        listener: socket.socket,
        environment: Environment,
        *,
        handlers: Mapping[str, Handler],
        listeners: Mapping[str, socket.socket],
        secret: bytes,
        requests: RequestsOfWorker,
    ) -> None:
        self._server = server
        self._config = config
        self._listener = listener
        self.port: int = listener.getsockname()[1]
        self._environment = environment
        self._handlers = handlers
        self._listeners = listeners
        self._secret = hmac.digest(secret, _PURPOSE, hashlib.sha256)
        self._requests = requests
        self._stopping = asyncio.Event()
        self._built: asyncio.Future[Console] | None = None

    async def __call__(self, request: Request) -> Response:
        if self._built is None:
            # In a thread, since the imports take longer than a step of the loop may.
            self._built = asyncio.ensure_future(asyncio.to_thread(self._build))
        # A client that leaves does not end what others wait for.
        console = await asyncio.shield(self._built)
        return await console(request)

    def end_streams(self) -> None:
        """End the responses that have no end of their own, so that a stop need not wait for them."""
        self._stopping.set()

    def _build(self) -> "Console":
        from kyanite.services.console.environment import ConsoleEnvironment
        from kyanite.services.console.service import Console

        # The console has admitted its caller, so what it asks of a service is asked as the owner of the account.
        as_owner = replace(self._environment, principal=ACCOUNT_KEY)
        own = {name: load()(as_owner) for name in self._handlers if (load := SERVICES[name].load)}
        return Console(
            ConsoleEnvironment(
                accounts=self._environment.accounts,
                clock=self._environment.clock,
                fresh_guid=self._environment.fresh_guid,
                own=own,
                public=self._handlers,
                addresses={name: address_of(listener) for name, listener in self._listeners.items()},
                secret=self._secret,
                needs_sign_in=self._config.needs_sign_in,
                hosts=names_of(self._listener) | set(self._config.names) | {self._config.host},
                proxied=frozenset(self._config.names),
                stopping=self._stopping,
                watch=self._requests.watch,
                explain=self._requests.questions.explain,
                identity=self._environment.identity,
                # Whoever reaches a development issuer gets a token, so its tokens prove nothing.
                signs_in_by_token=self._server.identity.is_on
                and self._server.identity.development is Development.OFF,
                well_known_keys=frozenset()
                if self._server.allow_development_key
                else frozenset((DEVELOPMENT_KEY,)),
            )
        )
