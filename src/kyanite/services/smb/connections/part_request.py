"""One request of a chain: the connection's side of ``request.Request``.

Most chains have one request only. The handlers that change the connection itself (NEGOTIATE, SESSION_SETUP, LOGOFF,
TREE_CONNECT, TREE_DISCONNECT) take this class and not the contract.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.request import Answer, Client, Failed
from kyanite.services.smb.sessions.logon_delays import LogonDelays
from kyanite.services.smb.sessions.registry import SessionRegistry
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.state import ClientState, Open, Session, TreeConnect
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.header import Header
from kyanite.wire.smb2.status import Status

T = TypeVar("T")


class OwnClient(Client, Protocol):
    """The connection, as its own handlers use it."""

    state: ClientState
    registry: SessionRegistry
    delays: LogonDelays

    async def end_session(self, session: Session) -> None:
        """Forget the session, end its requests that wait, and close everything that it has open but durable handles."""

    async def end_tree(self, session: Session, tree: TreeConnect) -> None:
        """The same for one of its shares."""

    def close(self) -> None: ...


class Suspending(Protocol):
    """The chain of a request."""

    def suspend(self, request: "PartRequest") -> None:
        """Send the responses so far and an interim one for this request; Failed if it may not wait."""

    def forget(self, request: "PartRequest") -> None:
        """The request waits no more."""


class PartRequest:
    __slots__ = (
        "_at_close",
        "_chain",
        "_interrupted",
        "_interrupted_by",
        "after_encoding",
        "async_id",
        "client",
        "encrypted_by",
        "environment",
        "found_open",
        "found_session",
        "found_tree",
        "header",
        "message",
        "refusal_id",
        "session_id",
        "signed_by",
        "tree_id",
    )

    def __init__(
        self,
        environment: SmbEnvironment,
        client: OwnClient,
        chain: Suspending,
        header: Header,
        message: memoryview,
        encrypted_by: Session | None,
    ) -> None:
        self.refusal_id = ""
        """Under which the refusal of this request is kept, if it was refused."""
        self.environment = environment
        self.client = client
        self.header = header
        self.message = message
        self.encrypted_by = encrypted_by
        """The session whose keys have encrypted the chain."""
        self.session_id = header.session_id
        """Of the response, as is ``tree_id``."""
        self.tree_id = header.tree_id
        self.found_session: Session | None = None
        self.found_tree: TreeConnect | None = None
        self.found_open: Open | None = None
        self.signed_by: SessionSecurity | None = None
        """Who signs the response, if anyone does."""
        self.after_encoding: Callable[[Sequence[Data]], None] | None = None
        """Called with the response as it is sent."""
        self.async_id = 0
        """Not 0 once an interim response was sent."""
        self._chain = chain
        self._at_close: Status | None = None
        self._interrupted: asyncio.Future[None] | None = None
        self._interrupted_by: Status | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.encrypted_by is not None

    @property
    def session(self) -> Session:
        if self.found_session is None:
            raise Failed(Status.USER_SESSION_DELETED)
        return self.found_session

    @property
    def tree(self) -> TreeConnect:
        if self.found_tree is None:
            raise Failed(Status.NETWORK_NAME_DELETED)
        return self.found_tree

    @property
    def open(self) -> Open:
        if self.found_open is None:
            raise Failed(Status.FILE_CLOSED)
        return self.found_open

    def opened(self, new: Open) -> None:
        new.tree.opens[new.id.volatile] = new
        self.found_open = new

    # Waiting

    async def wait(self, waiting: Awaitable[T], *, at_close: Status | None = None) -> T:
        try:
            if self._interrupted_by is not None:
                raise Failed(self._interrupted_by)
            self._chain.suspend(self)
        except Failed:
            if isinstance(waiting, Coroutine):
                waiting.close()
            raise
        self._at_close = at_close
        if at_close is not None:
            self.open.waiting.add(self)
        try:
            return await self._wait_or_be_interrupted(asyncio.ensure_future(waiting))
        finally:
            if at_close is not None:
                self.open.waiting.discard(self)
            self._chain.forget(self)

    async def wait_silently(self, waiting: Awaitable[T]) -> T:
        if self._interrupted_by is not None:
            if isinstance(waiting, Coroutine):
                waiting.close()
            raise Failed(self._interrupted_by)
        self.open.waiting.add(self)
        try:
            return await self._wait_or_be_interrupted(asyncio.ensure_future(waiting))
        finally:
            self.open.waiting.discard(self)

    async def _wait_or_be_interrupted(self, waiting: asyncio.Future[T]) -> T:
        self._interrupted = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait((waiting, self._interrupted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._interrupted = None
            if not waiting.done():
                waiting.cancel()
        if self._interrupted_by is not None and (waiting.cancelled() or not waiting.done()):
            await asyncio.wait((waiting,))
            raise Failed(self._interrupted_by)
        return waiting.result()

    def interrupt(self, status: Status) -> None:
        """End the wait of the request with this status; if it does not wait yet, its next one."""
        if self._interrupted_by is None:
            self._interrupted_by = status
        if self._interrupted is not None and not self._interrupted.done():
            self._interrupted.set_result(None)

    def interrupt_at_close(self) -> None:
        self.interrupt(self._at_close or Status.CANCELLED)


Handler = Callable[[PartRequest], Coroutine[Any, Any, Answer]]
