"""The requests of one frame, answered in their order (MS-SMB2 §3.3.5.2.7, §3.3.4.1.3, §3.3.4.2)."""

import logging
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple, Protocol

from kyanite.engine.api import Damaged, EngineBusy, EngineError, EngineFull
from kyanite.model import damage
from kyanite.model.files.opens import owners
from kyanite.model.requests.refusals import Refusal
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb.connections.credits import CreditWindow
from kyanite.services.smb.connections.dispatch import ChainState, check
from kyanite.services.smb.connections.in_flight import cost_of
from kyanite.services.smb.connections.part_request import Handler, OwnClient, PartRequest
from kyanite.services.smb.environment import CompletedRequest, SmbEnvironment
from kyanite.services.smb.request import Failed
from kyanite.services.smb.sessions.security import SessionSecurity
from kyanite.services.smb.state import Session
from kyanite.services.smb.statuses import STATUSES
from kyanite.slices import next_slice
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import compound, error
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.compound import Part
from kyanite.wire.smb2.header import ASYNC, PRIORITY_MASK, RELATED, RESPONSE, SIGNED, Command, Header
from kyanite.wire.smb2.status import Status

WAITING_MAX = 512
"""Requests of one connection that wait."""

_PARTS_AT_ONCE = 4
"""How many requests of a chain are answered before other connections are served."""
_REPEATED_FLAGS = RELATED | PRIORITY_MASK
_log = logging.getLogger(__name__)


class ChainHost(OwnClient, Protocol):
    """The connection, as its chains use it."""

    window: CreditWindow
    waiting: dict[int, PartRequest]
    """The requests that wait, by their async ids."""

    def new_async_id(self) -> int: ...

    def running(self, message_id: int) -> PartRequest | None:
        """The request in progress that has this message id."""

    def suspended(self, chain: "Chain", request: PartRequest) -> None: ...

    def resumed(self, chain: "Chain", request: PartRequest) -> None: ...

    def transmit(self, buffers: Sequence[Data]) -> None: ...


class _Response(NamedTuple):
    request: PartRequest
    body: Sequence[Data]
    status: Status
    """PENDING for an interim response."""

    def header(self, granted: int) -> Header:
        request, status = self.request, self.status
        sent = request.header
        flags = RESPONSE | sent.flags & _REPEATED_FLAGS
        if self.signed_by is not None:
            flags |= SIGNED
        header = Header(
            sent.command,
            sent.message_id,
            0 if status is Status.PENDING else sent.credit_charge,
            status,
            granted,
            flags,
            0,
            sent.process_id,
            request.tree_id,
            request.session_id,
        )
        return header.with_async_id(request.async_id) if request.async_id else header

    @property
    def signed_by(self) -> SessionSecurity | None:
        """An interim response is not signed: with GMAC the final one would use the same nonce."""
        if self.status is Status.PENDING or self.request.encrypted_by is not None:
            return None
        return self.request.signed_by


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
        "is_refused",
        "kept_bytes",
        "message_bytes",
    )

    def __init__(
        self,
        host: ChainHost,
        environment: SmbEnvironment,
        parts: Sequence[Part],
        encrypted_by: Session | None,
        message_bytes: int,
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
        self.message_bytes = message_bytes
        self.cost_bytes = cost_of(parts, message_bytes)
        """The bytes that the requests and their responses may take."""
        self.kept_bytes = 0
        """What of them the memory of the process counts at present."""
        self.is_counted = False
        self.is_refused = False
        """Whether there was no memory for it."""

    @property
    def request(self) -> PartRequest | None:
        """The one that is being answered."""
        return self._request

    @property
    def message_ids(self) -> list[int]:
        """Of the requests that have one of their own: a CANCEL has that of another."""
        return [each.message_id for each, _ in self._parts if each.command != Command.CANCEL]

    async def run(self) -> None:
        on_completed = self._environment.on_completed
        began_at = 0.0 if on_completed is None else monotonic()
        last = len(self._parts) - 1
        for number, (header, message) in enumerate(self._parts):
            if number and not self._host.is_alive():
                break  # What the client still wanted does not begin: it could wait, and no one would end that.
            if number and not number % _PARTS_AT_ONCE:
                await next_slice()
            self._is_last = number == last
            request = PartRequest(self._environment, self._host, self, header, message, self._encrypted_by)
            self._request = request
            if header.command == Command.CANCEL:
                self._cancel(request)
                continue
            try:
                body, status = await self._handler(request)(request)
            except Exception as failure:
                body, status = await self._after(failure, request)
            if self._environment.breaks.is_pending:
                await self._deliver_breaks()
            self._state.advance(request, status)
            if not request.async_id:
                self._grant(header, status)
            self._responses.append(_Response(request, (body,) if isinstance(body, bytes) else body, status))
            if on_completed is not None:
                on_completed(_completed(request, status, monotonic() - began_at))
        self._request = None
        self._send()

    async def _after(self, failure: Exception, request: PartRequest) -> tuple[bytes | Sequence[Data], Status]:
        """The outcome of a request that failed, or of a second attempt if a dead process was in its way."""
        try:
            if isinstance(failure, Refused) and await _is_outdated(failure, request):
                return await self._handler(request)(request)
        except Exception as again:
            failure = again
        return _failed(failure, request)

    async def _deliver_breaks(self) -> None:
        """Clients learn of a break before anyone can know what has caused it."""
        try:
            await self._environment.breaks.deliver()
        except EngineError:
            _log.exception("breaks were not delivered")

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

    def _handler(self, request: PartRequest) -> Handler:
        row = check(request, self._state)
        if self.is_refused:
            raise Failed(Status.INSUFFICIENT_RESOURCES)
        command = request.header.command
        if command == Command.CLOSE:
            for waiting in list(request.open.waiting):
                waiting.interrupt_at_close()
        tree = request.found_tree
        if tree is None or tree.share is not None:
            return row.handler
        if row.pipe_handler is None:
            raise Failed(Status.INVALID_DEVICE_REQUEST)
        return row.pipe_handler

    # Responses

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
        credits_, self._responses, self._credits = self._credits, [], 0
        last = len(responses) - 1
        headers = [each.header(credits_ if at == last else 0) for at, each in enumerate(responses)]
        buffers: list[Data] = []
        for response, header, joined in zip(
            responses,
            headers,
            compound.join([(header, each.body) for header, each in zip(headers, responses, strict=True)]),
            strict=True,
        ):
            if (signing := response.signed_by) is not None:
                signing.sign(header, joined)
            if response.request.after_encoding is not None:
                response.request.after_encoding(joined)
                response.request.after_encoding = None  # It may refer to the request.
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
            self._grant(request.header, Status.PENDING)
            self._responses.append(_Response(request, (error.EMPTY,), Status.PENDING))
            self._send()
        host.suspended(self, request)

    def forget(self, request: PartRequest) -> None:
        self._host.resumed(self, request)


async def _is_outdated(refusal: Refused, request: PartRequest) -> bool:
    """Whether handles of a dead process may have caused the refusal, and are closed now."""
    if request.found_tree is None:
        return False
    store = request.found_tree.account.store
    return await owners.is_outdated(refusal, store.engine, store.membership)


def _completed(request: PartRequest, status: Status, seconds: float) -> CompletedRequest:
    session = request.found_session
    return CompletedRequest(
        request.header.command,
        status,
        "" if session is None else session.account.name,
        request.client.state.address,
        seconds,
        len(request.message),
        request.refusal_id,
        _share_of(request),
    )


_NOT_KEPT = frozenset((Reason.PATH_NOT_FOUND, Reason.PARENT_NOT_FOUND))
"""Clients search for many files that are not there. That needs no explanation, and would displace others."""


def _keep(refusal: Refused, request: PartRequest, status: Status) -> None:
    """Keep a refusal under an id of its own, which the request log tells: responses of SMB have no room for one."""
    environment, session = request.environment, request.found_session
    digits = environment.random_bytes(16).hex()
    request.refusal_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    share = _share_of(request)
    environment.refusals.add(
        Refusal(
            request.refusal_id,
            environment.clock(),
            "smb",
            "" if session is None else session.account.name,
            Command(request.header.command).name,
            "SMB",
            f"/{share}" if share else "",
            "",
            request.client.state.address,
            "",
            "",
            status.name,
            status.name,
            refusal.reason,
            refusal.detail,
            refusal.facts,
            length=_KEPT_BYTES,
        )
    )


_KEPT_BYTES = 1_000
"""About the most that the names in a refusal of SMB have."""


def _share_of(request: PartRequest) -> str:
    tree = request.found_tree
    return "" if tree is None or tree.share is None else tree.share.name


def _failed(failure: Exception, request: PartRequest) -> tuple[bytes, Status]:
    """The body and the status of a response to a request that failed."""
    if isinstance(failure, Failed):
        return failure.body, failure.status
    if isinstance(failure, Refused):
        status = STATUSES.get(failure.reason, Status.UNSUCCESSFUL)
        if failure.reason not in _NOT_KEPT:
            _keep(failure, request, status)
        return error.EMPTY, status
    if isinstance(failure, Malformed):
        return error.EMPTY, Status[failure.code]
    if isinstance(failure, EngineFull):
        return error.EMPTY, Status.DISK_FULL
    if isinstance(failure, EngineBusy):
        return error.EMPTY, Status.INSUFFICIENT_RESOURCES
    command = request.header.command
    if isinstance(failure, Damaged):
        account = "" if request.found_session is None else request.found_session.account.name
        damage.reports.add(failure, command=command, account=account, peer=request.client.state.address)
        return error.EMPTY, Status.DATA_ERROR
    _log.error("a request failed", exc_info=failure, extra={"command": command})
    return error.EMPTY, Status.UNSUCCESSFUL if isinstance(failure, EngineError) else Status.INTERNAL_ERROR
