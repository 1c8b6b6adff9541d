"""The requests of one frame, answered in their order (MS-SMB2 §3.3.5.2.7, §3.3.4.1.3, §3.3.4.2)."""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kyanite.engine.api import EngineBusy, EngineError, EngineFull
from kyanite.model.files.opens import owners
from kyanite.rules.refusals import Refused
from kyanite.services.smb.connections.credits import CreditWindow
from kyanite.services.smb.connections.dispatch import ChainState, check
from kyanite.services.smb.connections.part_request import Handler, OwnClient, PartRequest
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.request import Failed
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.state import Session
from kyanite.services.smb.statuses import STATUSES
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import compound, error
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.compound import Part
from kyanite.wire.smb2.header import ASYNC, PRIORITY_MASK, RELATED, RESPONSE, SIGNED, Command, Header
from kyanite.wire.smb2.status import Status

WAITING_MAX = 512
"""Requests of one connection that wait."""

_REPEATED_FLAGS = RELATED | PRIORITY_MASK
_log = logging.getLogger(__name__)


class ChainHost(OwnClient, Protocol):
    """The connection, as its chains use it."""

    window: CreditWindow
    waiting: dict[int, PartRequest]
    """The requests that wait, by their async ids."""

    def own_handler(self, command: int) -> Handler | None:
        """The handler of a command that only the connection can handle."""

    def new_async_id(self) -> int: ...

    def running(self, message_id: int) -> PartRequest | None:
        """The request in progress that has this message id."""

    def suspended(self, chain: "Chain", request: PartRequest) -> None: ...

    def resumed(self, chain: "Chain", request: PartRequest) -> None: ...

    def transmit(self, buffers: Sequence[Data]) -> None: ...


class _Response(NamedTuple):
    header: Header
    body: Sequence[Data]
    signed_by: SessionSecurity | None = None
    after_encoding: Callable[[Sequence[Data]], None] | None = None


class Chain:
    __slots__ = (
        "_credits",
        "_encrypted_by",
        "_environment",
        "_host",
        "_is_last",
        "_parts",
        "_request",
        "_responses",
        "_state",
        "cost_bytes",
        "is_counted",
    )

    def __init__(
        self,
        host: ChainHost,
        environment: SmbEnvironment,
        parts: Sequence[Part],
        encrypted_by: Session | None,
        cost_bytes: int,
    ) -> None:
        self._host = host
        self._environment = environment
        self._parts = parts
        self._encrypted_by = encrypted_by
        self._state = ChainState()
        self._responses: list[_Response] = []
        self._credits = 0
        """Granted by responses that are not sent yet."""
        self._request: PartRequest | None = None
        self._is_last = False
        self.cost_bytes = cost_bytes
        """The bytes that the requests and their responses may take."""
        self.is_counted = False

    @property
    def request(self) -> PartRequest | None:
        """The one that is being answered."""
        return self._request

    async def run(self) -> None:
        last = len(self._parts) - 1
        for number, (header, message) in enumerate(self._parts):
            self._is_last = number == last
            request = PartRequest(self._environment, self._host, self, header, message, self._encrypted_by)
            self._request = request
            if header.command == Command.CANCEL:
                self._cancel(request)
            else:
                await self._answer(request)
        self._request = None
        self._send()

    def _cancel(self, request: PartRequest) -> None:
        """A CANCEL is not answered, whatever is wrong with it (§3.3.5.16)."""
        try:
            check(request, self._state)
        except Failed:
            return
        header = request.header
        if header.flags & ASYNC:
            target = self._host.waiting.get(header.async_id)
        else:
            target = self._host.running(header.message_id)
        if target is not None and target.session_id == request.session_id:
            target.interrupt(Status.CANCELLED)

    async def _answer(self, request: PartRequest) -> None:
        body, status = await self._outcome(request)
        breaks = self._environment.breaks
        if breaks.is_pending:
            await breaks.deliver()
        self._state.advance(request, status)
        self._add(request, (body,) if isinstance(body, bytes) else body, status)

    async def _outcome(self, request: PartRequest) -> tuple[bytes | Sequence[Data], Status]:
        try:
            handler = self._handler(request)
            try:
                return await handler(request)
            except Refused as refusal:
                if await _is_outdated(refusal, request):
                    return await handler(request)
                raise
        except Failed as failed:
            return failed.body, failed.status
        except Refused as refused:
            return error.EMPTY, STATUSES.get(refused.reason, Status.UNSUCCESSFUL)
        except Malformed as malformed:
            return error.EMPTY, Status[malformed.code]
        except EngineFull:
            return error.EMPTY, Status.DISK_FULL
        except EngineBusy:
            return error.EMPTY, Status.INSUFFICIENT_RESOURCES
        except EngineError:
            _log.exception("the engine failed", extra={"command": request.header.command})
            return error.EMPTY, Status.UNSUCCESSFUL
        except Exception:
            _log.exception("a request failed", extra={"command": request.header.command})
            return error.EMPTY, Status.INTERNAL_ERROR

    def _handler(self, request: PartRequest) -> Handler:
        row = check(request, self._state)
        command = request.header.command
        if command == Command.CLOSE:
            for waiting in list(request.open.waiting):
                waiting.interrupt_at_close()
        if (own := self._host.own_handler(command)) is not None:
            return own
        tree = request.found_tree
        if tree is None or tree.share is not None:
            return row.handler
        if row.pipe_handler is None:
            raise Failed(Status.INVALID_DEVICE_REQUEST)
        return row.pipe_handler

    # Responses

    def _add(self, request: PartRequest, body: Sequence[Data], status: Status) -> None:
        header = request.header
        if not request.async_id:
            self._grant(header, status)
        security = None
        flags = RESPONSE | header.flags & _REPEATED_FLAGS
        if request.signed_by is not None and not request.is_encrypted:
            security = request.signed_by
            flags |= SIGNED
        answered = Header(
            header.command,
            header.message_id,
            header.credit_charge,
            status,
            0,
            flags,
            0,
            header.process_id,
            request.tree_id,
            request.session_id,
        )
        if request.async_id:
            answered = answered.with_async_id(request.async_id)
        self._responses.append(_Response(answered, body, security, request.after_encoding))

    def _grant(self, header: Header, status: Status) -> None:
        grants_more = header.command != Command.NEGOTIATE and (
            header.command != Command.SESSION_SETUP or status is Status.SUCCESS
        )
        self._credits += self._host.window.grant(
            header.credit_charge or 1, header.credits, grants_more=grants_more
        )

    def _send(self) -> None:
        """Send the responses so far, as one compound; the last one has the credits of all."""
        responses = self._responses
        if not responses:
            return
        last = responses[-1]
        responses[-1] = last._replace(header=last.header._replace(credits=self._credits))
        self._responses, self._credits = [], 0
        buffers: list[Data] = []
        for response, joined in zip(
            responses, compound.join([(each.header, each.body) for each in responses]), strict=True
        ):
            if response.signed_by is not None:
                response.signed_by.sign(response.header, joined)
            if response.after_encoding is not None:
                response.after_encoding(joined)
            buffers += joined
        encrypting = self._encrypted_by
        if encrypting is not None and encrypting.security is not None:
            buffers = encrypting.security.encrypt(encrypting.id, buffers)
        self._host.transmit(buffers)

    # Waiting

    def suspend(self, request: PartRequest) -> None:
        host = self._host
        if not request.async_id:
            if not self._is_last and request.header.command != Command.CREATE:
                raise Failed(Status.INTERNAL_ERROR)
            if len(host.waiting) >= WAITING_MAX:
                raise Failed(Status.INSUFFICIENT_RESOURCES)
            request.async_id = host.new_async_id()
            self._add_interim(request)
            self._send()
        host.suspended(self, request)

    def _add_interim(self, request: PartRequest) -> None:
        header = request.header
        self._grant(header, Status.PENDING)
        interim = Header(
            header.command,
            header.message_id,
            status=Status.PENDING,
            flags=RESPONSE | header.flags & _REPEATED_FLAGS,
            session_id=request.session_id,
        ).with_async_id(request.async_id)
        self._responses.append(_Response(interim, (error.EMPTY,)))

    def forget(self, request: PartRequest) -> None:
        self._host.resumed(self, request)


async def _is_outdated(refusal: Refused, request: PartRequest) -> bool:
    """Whether handles of a dead process may have caused the refusal, and are closed now."""
    if request.found_tree is None:
        return False
    store = request.found_tree.account.store
    return await owners.is_outdated(refusal, store.engine, store.membership)
