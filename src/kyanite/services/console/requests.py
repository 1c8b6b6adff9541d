"""Requests of clients: a live view of them, and why one was refused."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from kyanite.engine.api import EngineError
from kyanite.model.requests.tail import RequestLine, Wanted
from kyanite.services.console import rendering
from kyanite.services.console.visit import Visit
from kyanite.values import iso_text
from kyanite.wire.http import Piece, Response

_OWN = "console"
"""The service whose requests are left out: those of the pages themselves."""
_WATCHED_MAX = 12
"""Streams of one worker."""
_REQUEST_ID_MAX = 64


class Streams:
    """How many there are in this worker."""

    def __init__(self) -> None:
        self.open = 0


_streams = Streams()


async def show_requests(visit: Visit) -> Response:
    """The page; its script asks for the stream."""
    return visit.page("requests.html", wanted=_wanted(visit), section="requests")


async def stream_requests(visit: Visit) -> Response:
    """Server-sent events, until the browser leaves or the server stops."""
    wanted = _wanted(visit)
    if _streams.open >= _WATCHED_MAX:
        return Response(503, [*rendering.SECURITY_HEADERS], b"")
    headers = [
        ("Content-Type", "text/event-stream"),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", rendering.POLICY),
        *rendering.SECURITY_HEADERS,
    ]
    return Response(200, headers, _events(visit, wanted))


def _wanted(visit: Visit) -> Wanted:
    """One who has signed in sees one account only, whatever the address says."""
    if visit.is_signed_in:
        account = visit.session.account
    else:
        account = visit.account.name if visit.get("account") else ""
    return Wanted(account, visit.get("operation").strip(), visit.get("status").strip())


async def _events(visit: Visit, wanted: Wanted) -> AsyncGenerator[Piece, None]:
    environment = visit.environment
    _streams.open += 1
    try:
        yield b"retry: 2000\n\n"
        async with aclosing(environment.watch(wanted)) as completed:
            async for part in completed:
                if environment.stopping.is_set():
                    return
                lines = [_fields_of(line) for line in part.lines if line.service != _OWN]
                if lines or part.left_out:
                    text = json.dumps({"lines": lines, "left_out": part.left_out})
                    yield f"data: {text}\n\n".encode()
                else:
                    # So that a browser that has left is noticed.
                    yield b":\n\n"
    except EngineError:
        return
    finally:
        _streams.open -= 1


def _fields_of(line: RequestLine) -> dict[str, object]:
    return {
        "at": iso_text(line.at)[11:23],
        "id": line.request_id,
        "service": line.service,
        "account": line.account,
        "operation": line.operation or line.method,
        "path": line.path,
        "status": str(line.status),
        "error": line.error_code,
        "is_error": line.is_error,
        "ms": round(line.seconds * 1000, 1),
        "client": line.client,
    }


async def explain_request(visit: Visit) -> Response:
    """Why a request was refused. Only one who may see its account is told."""
    request_id = visit.get("id").strip()[:_REQUEST_ID_MAX]
    account = visit.session.account if visit.is_signed_in else None
    found = await visit.environment.explain(request_id, account) if request_id else None
    return visit.page("explain.html", id=request_id, found=found, section="explain")
