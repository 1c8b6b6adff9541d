"""One request, as a command's handler gets it, and what the handler returns.

A handler is a coroutine function of a ``Request``. It returns an ``Answer``, or it raises: ``Failed`` with a status, a
rule's ``Refused``, or a decoder's ``Malformed``. The connection has checked what every request needs (``commands.py``
says what that is for each command): the credits, the signature, the session, the tree and the open. It signs,
encrypts and sends the response.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.state import Open, Session, TreeConnect
from kyanite.wire.smb2 import error
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.header import Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

T = TypeVar("T")


class Answer(NamedTuple):
    """The body of a response. A list of buffers is sent as it is, without a copy."""

    body: bytes | Sequence[Data]
    status: Status = Status.SUCCESS


class Failed(Exception):
    """The request fails with this status, and with an error body."""

    def __init__(self, status: Status, body: bytes = error.EMPTY) -> None:
        super().__init__(status.name)
        self.status = status
        self.body = body


class Client(Protocol):
    """The connection that a request came from, as far as handlers use it."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def client_guid(self) -> bytes: ...

    @property
    def client_address(self) -> str: ...

    def is_alive(self) -> bool: ...

    def notify(self, session: Session | None, body: bytes) -> None:
        """Send a message that answers no request: an OPLOCK_BREAK with this body, encrypted if the session is."""


class Request(Protocol):
    """What a handler may use. The connection's class has these members."""

    @property
    def environment(self) -> SmbEnvironment: ...

    @property
    def client(self) -> Client: ...

    @property
    def header(self) -> Header: ...

    @property
    def message(self) -> memoryview:
        """From its header to the next of the chain: what the decoders of ``wire.smb2`` take."""

    @property
    def session(self) -> Session: ...

    @property
    def tree(self) -> TreeConnect: ...

    @property
    def open(self) -> Open:
        """The open that the request names, or that the chain has."""

    def opened(self, new: Open) -> None:
        """CREATE has made this open: register it, and let the rest of the chain use it."""

    async def wait(self, waiting: Awaitable[T], *, at_close: Status | None = None) -> T:
        """Wait for what may take long. The client gets an interim response, and may cancel the request.

        Raises ``Failed(CANCELLED)`` when it does, and ``Failed(at_close)`` when the open of the request is closed
        meanwhile. Within a chain only the last request may wait, and CREATE: for others ``Failed(INTERNAL_ERROR)``.
        """

    async def wait_silently(self, waiting: Awaitable[T]) -> T:
        """The same without an interim response, anywhere in a chain: clients expect none for SET_INFO."""
