"""The handler of a testing server: it records requests and lets faults happen to them, around the services."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from msgspec.structs import replace

from kyanite.server.clock import TestingClock
from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.streaming import size_of
from kyanite.server.testing.fault_table import Fault, FaultTable
from kyanite.server.testing.operations import definitions, identify, known_error
from kyanite.server.testing.recorder import RecordedRequest, Recorder
from kyanite.server.testing.rules import DEFAULT_CODES
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.service import Service
from kyanite.wire.http import FileSlice, Handler, Piece, Request, Response, Unfinished

_FLUSH_SECONDS = 0.01
"""A reset overtakes what is still to be sent, so the bytes before it get a moment to leave."""


@dataclass(frozen=True, slots=True)
class Testing:
    """What the processes of a testing server share. It is made before the first fork."""

    clock: TestingClock
    faults: FaultTable
    recorder: Recorder


class TestingHandler:
    __test__ = False  # The name is no invitation to pytest.

    def __init__(self, dispatcher: Dispatcher, testing: Testing) -> None:
        self._dispatcher = dispatcher
        self._clock = testing.clock
        self._faults = testing.faults
        self._recorder = testing.recorder

    async def __call__(self, request: Request) -> Response:
        service, handler = self._dispatcher.find(request)
        found = identify(request, service)
        now = self._clock()
        record = self._recorder.begin(request, found, now)
        fault = self._faults.next_fault(found, now)
        if fault is not None:  # A request that no service gets is logged and counted all the same.
            request.account, request.operation = found.account, found.operation
        response: Response | None = None
        try:
            response = await _respond(request, service, handler, fault)
        finally:
            self._recorder.end(_finished(record, request, response, fault))
        return response


def _finished(
    record: RecordedRequest, request: Request, response: Response | None, fault: Fault | None
) -> RecordedRequest:
    code = ""
    if response is not None:
        code = next((value for name, value in response.headers if name == "x-ms-error-code"), "")
    return replace(
        record,
        request_id=request.request_id,
        status=None if response is None else response.status,
        code=code,
        fault=None if fault is None else fault.id,
        done=True,
    )


async def _respond(request: Request, service: str, handler: Handler, fault: Fault | None) -> Response:
    if fault is None:
        return await handler(request)
    rule = fault.rule
    if rule.delay_seconds:
        await asyncio.sleep(rule.delay_seconds)
    if rule.after_commit:
        await _discard(await handler(request))
    if rule.drop:
        raise Unfinished
    if rule.status is not None:
        return _refusal(request, service, handler, fault, rule.status)
    response = await handler(request)
    if rule.truncate_bytes is not None and request.method != "HEAD":
        _truncate(response, rule.truncate_bytes)
    return response


async def _discard(response: Response) -> None:
    """The answer is not sent; what it holds is released as if it were."""
    try:
        if isinstance(response.body, AsyncGenerator):
            await response.body.aclose()
    finally:
        if response.release is not None:
            response.release()


def _refusal(request: Request, service: str, handler: Handler, fault: Fault, status: int) -> Response:
    """The error as the service would format it."""
    rule = fault.rule
    code = rule.code or DEFAULT_CODES[status]
    message = f"The tests of this server let the request fail with {code}."
    if isinstance(handler, Service):
        known = known_error(definitions()[service], code)
        error = WireError(status, code, message if known is None else known.message)
        why = f"Tests have asked this server for the error: it is fault {fault.id} of /testing/faults."
        response = handler.refuse_with(request, error, why)
    else:
        response = Response(status, [("Content-Type", "text/plain")], message.encode())
    if rule.retry_after_seconds is not None:
        response.headers.append(("Retry-After", str(rule.retry_after_seconds)))
    return response


def _truncate(response: Response, bytes_max: int) -> None:
    """Let the body end after so many bytes, with a reset, although the head announces all of it."""
    body = response.body
    if isinstance(body, bytes):
        if len(body) > bytes_max:
            response.length = len(body)
            response.body = _cut_short(_single(body), bytes_max)
    elif response.length is None or response.length > bytes_max:
        response.body = _cut_short(body, bytes_max)


async def _single(piece: Piece) -> AsyncIterator[Piece]:
    yield piece


async def _cut_short(pieces: AsyncIterator[Piece], bytes_max: int) -> AsyncIterator[Piece]:
    left = bytes_max
    try:
        async for piece in pieces:
            size = size_of(piece)
            if size > left:
                if left:
                    yield (
                        FileSlice(piece.fd, piece.offset, left)
                        if isinstance(piece, FileSlice)
                        else piece[:left]
                    )
                await asyncio.sleep(_FLUSH_SECONDS)
                raise Unfinished
            left -= size
            yield piece
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
