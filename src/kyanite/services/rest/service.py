"""The life of a request in any service: who is it for, what is asked, by whom, may they; then the handler; then the
headers that every answer carries.

Handlers neither catch nor build errors. Whatever is refused or cannot be read becomes an answer here, by the service's
own tables.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from kyanite.engine.api import EngineBusy, EngineError, EngineFull
from kyanite.rules import permissions
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest import cors
from kyanite.services.rest.access import AclLookup, at_once, looked_up
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.operations import Op, Router
from kyanite.services.rest.sources import Unverified
from kyanite.services.rest.versions import version_of
from kyanite.wire import uri, xml
from kyanite.wire.http import BodyError, Piece, Request, Response
from kyanite.wire.iso_time import encode as encode_time
from kyanite.wire.malformed import Malformed, bad_parameter

_IN_HEADERS = frozenset({"Content-Range", "ETag"})
"""Details of an error that are told in a header and not in its body."""
_CLIENT_REQUEST_ID_MAX = 1024
_log = logging.getLogger(__name__)


def xml_error_body(
    _: RequestContext, code: str, message: str, detail: Mapping[str, str]
) -> tuple[str, bytes]:
    return "application/xml", xml.error_body(code, message, detail)


@dataclass(frozen=True, slots=True)
class ServiceDefinition:
    """What tells one service from another, in tables."""

    word: str
    """Its word in host names and signatures: blob, queue, table, file."""
    server: str
    """What its Server header says."""
    operations: tuple[Op, ...]
    reasons: Mapping[Resource, Mapping[Reason, WireError]]
    """How each reason sounds, by what the request was about: lease refusals name the resource."""
    codes: Mapping[str, WireError]
    locate: Callable[[RequestContext], Resource]
    """Fills in the container and object that the path names, and says which of them is meant."""
    acl_lookup: AclLookup
    """Finds the stored policies and the public level that a request's container has."""
    error_body: Callable[[RequestContext, str, str, Mapping[str, str]], tuple[str, bytes]] = xml_error_body
    """Content type and body of an error, from its code, message and details."""
    message_as_reason: bool = True
    """Whether the status line of an error tells its message; otherwise it tells what HTTP calls the status."""


class _NoPieces:
    """The body of an error to HEAD. It is framed as chunked, so that the head names neither a type nor a length.

    The live service answers so. Clients on the C++ library parse a body wherever a type is named, and find none.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        raise StopAsyncIteration


class Service:
    """A handler of HTTP requests, made from a dialect."""

    def __init__(self, environment: Environment, definition: ServiceDefinition, version: str = "") -> None:
        """``version``: what a request speaks that does not say; the parts of a batch do not."""
        self._environment = environment
        self._definition = definition
        self._version = version
        self._router = Router(definition.operations)
        self._decorate = cors.Decorator(definition.word)

    async def __call__(self, request: Request) -> Response:
        context = RequestContext()
        context.request = request
        context.environment = self._environment
        context.headers = request.headers
        context.request_id = request.request_id = self._environment.fresh_guid()
        context.version = request.headers.get("x-ms-version", "")
        context.resource = Resource.SERVICE
        try:
            self._address(context)
            if request.method == "OPTIONS":
                response = await cors.preflight(context, self._definition.word)
            else:
                query = uri.decode_query(request.query)
                op = self._find(context, query)
                context.grant, context.overrides = at_once(
                    context, query, self._definition.word
                ) or await looked_up(context, query, self._definition.word, self._definition.acl_lookup)
                permissions.check(context.grant, op.access)
                if op.writes and context.target.secondary:
                    raise Refused(Reason.WRITE_ON_SECONDARY)
                response = await op.handle(context)
                if self._decorate.is_needed(context):
                    await self._decorate(context, response)
        except Exception as error:
            response = self._answer_to(error, context)
        self._finish(context, response)
        return response

    def _find(self, context: RequestContext, query: uri.Query) -> Op:
        """Find out what is asked for."""
        request = context.request
        context.parameters = query.first
        context.version = version_of(request.headers, query.first) or self._version
        context.resource = self._definition.locate(context)
        op = self._router.find(context.resource, request.method, query.first, request.headers)
        request.operation = op.name
        if "timeout" in query.first:
            _check_timeout(query.first["timeout"])
        return op

    def _answer_to(self, error: Exception, context: RequestContext) -> Response:
        """The answer that an error amounts to. One that is nobody's but ours is logged."""
        codes = self._definition.codes
        match error:
            case Refused():
                reasons = self._definition.reasons[context.resource]
                return self._error(context, reasons[error.reason], error.detail)
            case Malformed():
                return self._error(context, codes[error.code], error.detail)
            case Unverified():
                return self._unverified(context, error.cause)
            case EngineFull():
                return self._error(context, codes["InsufficientStorage"], {})
            case EngineBusy():
                return self._error(context, codes["ServerBusy"], {})
            case BodyError():
                return self._error(context, codes["RequestTimeout"], {})
            case EngineError():
                _log.exception("the engine failed; request %s", context.request_id)
            case _:
                _log.exception("a request broke; request %s", context.request_id)
        return self._error(context, codes["InternalError"], {})

    def _address(self, context: RequestContext) -> None:
        """Find the account that the request is for. That it does not exist looks like a wrong key, as it should."""
        request = context.request
        target = uri.decode_target(request.headers.get("host", ""), request.path, self._definition.word)
        context.target = target
        account = self._environment.accounts.get(target.account)
        if account is None:
            if not target.account:
                raise Malformed("InvalidUri")
            raise Refused(Reason.AUTHENTICATION_FAILED)
        context.account, context.store = account, account.store
        request.account = account.name

    def _error(self, context: RequestContext, error: WireError, detail: Mapping[str, str]) -> Response:
        now = encode_time(self._environment.clock())
        message = f"{error.message}\nRequestId:{context.request_id}\nTime:{now}"
        headers = [("x-ms-error-code", error.code)]
        headers += [(name, value) for name, value in detail.items() if name in _IN_HEADERS]
        detail = {name: value for name, value in detail.items() if name not in _IN_HEADERS}
        if error.status == 401:
            headers.append(("WWW-Authenticate", _CHALLENGE))
        reason = error.message if self._definition.message_as_reason else None
        if error.status == 304:
            return Response(304, headers, reason=reason)
        if context.request.method == "HEAD":
            return Response(error.status, headers, _NoPieces(), reason=reason)
        content_type, body = self._definition.error_body(context, error.code, message, detail)
        headers.append(("Content-Type", content_type))
        return Response(error.status, headers, body, reason=reason)

    def _unverified(self, context: RequestContext, cause: Refused | Malformed) -> Response:
        """The source of a copy answered with an error: its status becomes that of the request."""
        if isinstance(cause, Refused):
            error = self._definition.reasons[Resource.OBJECT][cause.reason]
        else:
            error = self._definition.codes[cause.code]
        detail = {
            "CopySourceStatusCode": str(error.status),
            "CopySourceErrorCode": error.code,
            "CopySourceErrorMessage": error.message,
        }
        response = self._error(
            context, WireError(error.status, "CannotVerifyCopySource", error.message), detail
        )
        response.headers.append(("x-ms-copy-source-status-code", str(error.status)))
        response.headers.append(("x-ms-copy-source-error-code", error.code))
        return response

    def _finish(self, context: RequestContext, response: Response) -> None:
        headers = response.headers
        headers.append(("Server", self._definition.server))
        headers.append(("x-ms-request-id", context.request_id))
        if context.version:
            headers.append(("x-ms-version", context.version))
        client_id = context.headers.get("x-ms-client-request-id")
        if (
            client_id
            and len(client_id) <= _CLIENT_REQUEST_ID_MAX
            and client_id.isascii()
            and client_id.isprintable()
        ):
            headers.append(("x-ms-client-request-id", client_id))


def _check_timeout(text: str) -> None:
    """How long a client would wait at most, in seconds. All answers come sooner, so only its form counts."""
    if not (text.isascii() and text.isdecimal()):
        raise bad_parameter("timeout", text)


_CHALLENGE = (
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)
