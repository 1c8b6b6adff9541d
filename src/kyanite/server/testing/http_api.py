"""``/testing/…`` on the admin port of a testing server: the clock, faults, recorded requests, fresh accounts.

Everything is JSON; what cannot be done is answered with ``{"error": sentence}``. Whoever reaches the port may use it,
so there is none of this without ``--testing``, which listens on loopback only; pages of browsers are kept out by the
headers that these send.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, urlsplit

import msgspec

from kyanite.server.clock import TestingClock
from kyanite.server.config import is_loopback
from kyanite.server.observability.admin import TESTING
from kyanite.server.testing.accounts import Accounts
from kyanite.server.testing.fault_table import FAULTS_MAX, Fault
from kyanite.server.testing.handler import Testing
from kyanite.server.testing.operations import definitions, operation_names
from kyanite.server.testing.recorder import RecordedRequest
from kyanite.server.testing.rules import Counts, FaultRule, problem_of
from kyanite.values import instant_from_datetime, iso_text, later
from kyanite.wire import iso_time
from kyanite.wire.http import Request, Response

_NUMBER_DIGITS_MAX = 18
_BODY_BYTES_MAX = 64 * 1024
_LAST_TIME = instant_from_datetime(datetime(3000, 1, 1, tzinfo=UTC))
"""How far the clock can be moved: instants and ids have to fit their 63 bits for a while after that."""
_JSON = ("Content-Type", "application/json")
_decode_rule = msgspec.json.Decoder(FaultRule).decode


class _Problem(Exception):
    """Why a request is not carried out."""

    def __init__(self, status: int, sentence: str, *headers: tuple[str, str]) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


@dataclass(frozen=True, slots=True)
class TestingApi:
    __test__ = False  # The name is no invitation to pytest.

    testing: Testing
    accounts: Accounts

    async def __call__(self, request: Request) -> Response:
        try:
            _check_caller(request)
            resource, _, name = request.path.removeprefix(TESTING).strip("/").partition("/")
            methods = self._methods(resource, name)
            if methods is None:
                raise _Problem(
                    404, "There is /testing/clock, /testing/faults, /testing/requests and /testing/accounts."
                )
            method = "GET" if request.method == "HEAD" else request.method
            if method not in methods:
                allowed = ", ".join(methods)
                raise _Problem(405, f"The methods are {allowed}.", ("Allow", allowed))
            return await methods[method](request, name)
        except _Problem as problem:
            return _json(problem.status, {"error": problem.sentence}, *problem.headers)

    def _methods(
        self, resource: str, name: str
    ) -> Mapping[str, Callable[[Request, str], Awaitable[Response]]] | None:
        match resource, bool(name):
            case "clock", False:
                return {"GET": self._time, "POST": self._move_clock}
            case "faults", False:
                return {"GET": self._faults, "POST": self._add_fault, "DELETE": self._clear_faults}
            case "faults", True:
                return {"GET": self._fault, "DELETE": self._remove_fault}
            case "requests", False:
                return {"GET": self._requests, "DELETE": self._clear_requests}
            case "accounts", False:
                return {"POST": self._add_account}
            case "accounts", True:
                return {"DELETE": self._remove_account}
        return None

    # The clock

    async def _time(self, _request: Request, _name: str) -> Response:
        clock = self.testing.clock
        return _json(200, {"now": iso_text(clock()), "offset_seconds": clock.offset_seconds})

    async def _move_clock(self, request: Request, name: str) -> Response:
        """By so many seconds, or to a time."""
        has_moved = _advance(self.testing.clock, await _body(request))
        if has_moved is None:
            raise _Problem(400, 'Give {"advance_seconds": 3600} or {"now": "2027-01-01T00:00:00Z"}.')
        if not has_moved:
            raise _Problem(409, "The clock does not go back.")
        return await self._time(request, name)

    # Faults

    async def _faults(self, _request: Request, _name: str) -> Response:
        return _json(200, {"faults": [_described(*each) for each in self.testing.faults.all()]})

    async def _add_fault(self, request: Request, _name: str) -> Response:
        try:
            rule = _decode_rule(await _body(request))
        except msgspec.DecodeError as error:
            raise _Problem(400, f"The fault cannot be read: {error}.") from None
        problem = problem_of(rule, operation_names(), tuple(definitions()))
        if problem is not None:
            raise _Problem(400, problem)
        fault = self.testing.faults.add(rule)
        if fault is None:
            raise _Problem(409, f"There is no room for more faults: {FAULTS_MAX} at most. Remove some.")
        return _json(201, _described(fault, Counts()))

    async def _fault(self, _request: Request, name: str) -> Response:
        for fault, counts in self.testing.faults.all():
            if str(fault.id) == name:
                return _json(200, _described(fault, counts))
        raise _no_fault(name)

    async def _remove_fault(self, _request: Request, name: str) -> Response:
        if not name.isascii() or not name.isdigit() or not self.testing.faults.remove(int(name)):
            raise _no_fault(name)
        return Response(204)

    async def _clear_faults(self, request: Request, _name: str) -> Response:
        self.testing.faults.clear(_filters(request, ("account",)).get("account"))
        return Response(204)

    # Requests

    async def _requests(self, request: Request, _name: str) -> Response:
        filters = _filters(request, (*_FILTERS, "after"))
        after = filters.pop("after", "0")
        if not after.isascii() or not after.isdigit() or len(after) > _NUMBER_DIGITS_MAX:
            raise _Problem(400, "after is to be the number of a request.")
        recorder = self.testing.recorder
        last = recorder.last
        requests, forgotten = recorder.all(int(after))
        found = [
            each for each in requests if all(_FILTERS[name](each, text) for name, text in filters.items())
        ]
        return _json(200, {"requests": found, "forgotten": forgotten, "last": last})

    async def _clear_requests(self, _request: Request, _name: str) -> Response:
        self.testing.recorder.clear()
        return Response(204)

    # Accounts

    async def _add_account(self, request: Request, _name: str) -> Response:
        body = await _body(request)
        try:
            given = msgspec.json.decode(body, type=dict[str, str]) if body else {}
        except msgspec.DecodeError:
            given = {"": ""}
        if given.keys() - {"name"}:
            raise _Problem(400, 'Give {"name": "myaccount"}, or nothing for a new name.')
        requests_before = self.testing.recorder.last
        added = await self.accounts.add(given.get("name"))
        if isinstance(added, str):
            raise _Problem(409, added)
        return _json(201, {**msgspec.structs.asdict(added), "requests_before": requests_before})

    async def _remove_account(self, _request: Request, name: str) -> Response:
        problem = await self.accounts.remove(name)
        if problem is not None:
            raise _Problem(409, problem)
        return Response(204)


_FILTERS: Mapping[str, Callable[[RecordedRequest, str], bool]] = {
    "service": lambda request, text: request.service == text,
    "operation": lambda request, text: request.operation == text,
    "account": lambda request, text: request.account == text,
    "method": lambda request, text: request.method == text.upper(),
    "path": lambda request, text: fnmatchcase(request.path, text.removeprefix("/")),
    "status": lambda request, text: str(request.status) == text,
    "code": lambda request, text: request.code == text,
    "client_request_id": lambda request, text: request.client_request_id == text,
    "request_id": lambda request, text: request.request_id == text,
}


def _check_caller(request: Request) -> None:
    """Pages of a browser can send requests to this machine, also under a name of theirs. None may reach the server."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if host != "localhost" and not is_loopback(host):
        raise _Problem(403, "The Host of a request to /testing is to be localhost or a loopback address.")
    if "origin" in request.headers:
        raise _Problem(403, "Pages of browsers may not use /testing.")


async def _body(request: Request) -> bytes:
    body = await request.body.read_all(_BODY_BYTES_MAX)
    if body is None:
        raise _Problem(413, f"The body is longer than {_BODY_BYTES_MAX} bytes.")
    return body


def _filters(request: Request, known: tuple[str, ...]) -> dict[str, str]:
    given = dict(parse_qsl(request.query, keep_blank_values=True))
    for name in given:
        if name not in known:
            raise _Problem(400, f"There is no filter {name!r}. There is {', '.join(known)}.")
    return given


def _no_fault(name: str) -> _Problem:
    return _Problem(404, f"There is no fault {name}.")


def _described(fault: Fault, counts: Counts) -> dict[str, object]:
    rule = msgspec.to_builtins(fault.rule)
    return {"id": fault.id, **rule, "matched": counts.matched, "fired": counts.fired}


def _advance(clock: TestingClock, body: bytes) -> bool | None:
    """Move the clock as a request says. Returns whether it has moved, and None if the request is malformed."""
    try:
        wanted = json.loads(body)
    except ValueError:
        return None
    match wanted:
        case {"advance_seconds": int() | float() as seconds, **others} if not others:
            if (
                not isinstance(seconds, bool)
                and math.isfinite(seconds)
                and later(clock(), seconds) <= _LAST_TIME
            ):
                return clock.advance(seconds)
        case {"now": str(text), **others} if not others:
            instant = iso_time.decode(text)
            if instant is not None and instant <= _LAST_TIME:
                return clock.advance_to(instant)
    return None


def _json(status: int, value: object, *headers: tuple[str, str]) -> Response:
    return Response(status, [_JSON, *headers], msgspec.json.encode(value) + b"\n")
