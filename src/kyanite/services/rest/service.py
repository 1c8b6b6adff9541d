"""The life of a request in any service: find the account, the resource and the operation, authenticate, authorise,
handle; then the headers of every response.

Handlers neither catch nor build errors. A refusal or a request that cannot be read becomes a response here, by the
tables of the service.
"""

from contextlib import suppress
from functools import partial
from typing import Final

from kyanite.engine.api import EngineError
from kyanite.model.accounts import Account, AccountSettings
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.rules.account_settings import has_readable_secondary
from kyanite.rules.authorization import AccessedResource, authorize
from kyanite.rules.refusals import NameFacts, Reason, Refused
from kyanite.rules.system_containers import check_write
from kyanite.services.rest import cors
from kyanite.services.rest.authentication import admit_as, authenticate
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.rest.environment import Environment
from kyanite.services.rest.error_responses import CHALLENGE, Formatted, error_response, format_error
from kyanite.services.rest.errors import WireError
from kyanite.services.rest.operations import Router
from kyanite.services.rest.refused_requests import refusal_of
from kyanite.services.rest.timeouts import after_breaks, after_refusal, check_timeout
from kyanite.services.rest.versions import version_of
from kyanite.values import Instant
from kyanite.wire import uri
from kyanite.wire.http import HeaderBlock, Request, Response
from kyanite.wire.malformed import Malformed

_CLIENT_REQUEST_ID_MAX: Final = 1024
_ENDINGS_MAX: Final = 64
"""Clients choose the version."""


class Service:
    """A handler of HTTP requests, made from a definition."""

    def __init__(
        self, environment: Environment, definition: ServiceDefinition, default_version: str = ""
    ) -> None:
        """``default_version`` is for requests that name no version, as the parts of a batch do."""
        self._environment = environment
        self._definition = definition
        # What every request needs of both, which are not compiled and hence slow to look into.
        self._accounts = environment.accounts
        self._fresh_guid = environment.fresh_guid
        self._refusals = environment.refusals
        self._word = definition.word
        self._locate = definition.locate
        self._acl_lookup = definition.acl_lookup
        self._server_written = definition.server_written
        self._server_header = ("Server", definition.server)
        self._endings: dict[str, HeaderBlock] = {}
        """Of responses, by version."""
        self._default_version = default_version
        admitted = environment.principal
        self._authenticate = authenticate if admitted is None else partial(admit_as, admitted)
        self._router = Router(definition.operations)
        self._accessed = {
            is_read_only: AccessedResource(definition.word, is_read_only) for is_read_only in (False, True)
        }
        identity = environment.identity
        self._challenge = CHALLENGE if identity is None else identity.challenge
        self._cors = cors.Decorator(definition.word, environment.clock)

    async def __call__(self, request: Request) -> Response:
        environment = self._environment
        request.request_id = self._fresh_guid()
        version, resource = request.headers.get("x-ms-version", ""), Resource.SERVICE
        account: Account | None = None
        try:
            target = uri.decode_target(request.headers.get("host", ""), request.path, self._word)
            account = self._accounts.get(target.account)
            if account is None:
                request.account = target.account
                raise _unknown_account(target)
            request.account = account.name
            if target.secondary or account.settings.require_https:
                _check_settings(account.settings, target, secure=request.secure)
            if request.method == "OPTIONS":
                location = Location(Resource.SERVICE)
                context = RequestContext(environment, request, target, account, {}, version, location)
                response = await cors.preflight(context, self._word)
            else:
                query = uri.decode_query(request.query)
                version = version_of(request.headers, query.first) or self._default_version
                location = self._locate(request, target, query.first)
                resource = location.resource
                op = self._router.find(resource, request.method, query.first, request.headers)
                request.operation = op.name
                if "timeout" in query.first:
                    check_timeout(query.first["timeout"])
                context = RequestContext(
                    environment, request, target, account, query.first, version, location
                )
                await self._authenticate(context, query, self._word, self._acl_lookup)
                is_read_only = target.secondary or account.settings.read_only
                authorize(context.principal, op.access, self._accessed[is_read_only])
                if op.access.writes and location.container in self._server_written:
                    check_write(location.container, op.name)
                try:
                    response = await op.handle(context)
                except BreakNeeded as needed:
                    response = await after_breaks(context, needed, partial(op.handle, context))
                except Refused as refusal:
                    if request.body.length != 0:  # It is received, so the handler itself has tried again.
                        raise refusal
                    response = await after_refusal(context, refusal, partial(op.handle, context))
                if self._cors.is_needed(request, account, context.now):
                    await self._cors(request, account, response)
        except Exception as error:
            now = environment.clock()
            response = error_response(self._definition, request, error, resource, now, self._challenge)
            self._refusals.add(refusal_of(self._word, request, error, response.status, now))
            if account is not None and request.method != "OPTIONS":
                await self._decorate_error(request, account, response)
        self._finish(request, version, response)
        return response

    def refuse(self, request: Request, error: Exception) -> Response:
        """The response to a request that cannot be served, for a reason that only its caller knows."""
        request.request_id = self._environment.fresh_guid()
        now = self._environment.clock()
        response = error_response(self._definition, request, error, Resource.SERVICE, now, self._challenge)
        self._refusals.add(refusal_of(self._word, request, error, response.status, now))
        self._finish(request, self._default_version, response)
        return response

    def refuse_with(self, request: Request, error: WireError, why: str) -> Response:
        """A response with this error to a request that is not served, as the service formats it. ``why`` is a sentence
        for those who ask later."""
        request.request_id = self._environment.fresh_guid()
        now = self._environment.clock()
        response = format_error(self._definition, request, Formatted(error), now, self._challenge)
        cause = Malformed(error.code)
        cause.why = why
        self._refusals.add(refusal_of(self._word, request, cause, response.status, now))
        self._finish(request, request.headers.get("x-ms-version", ""), response)
        return response

    async def _decorate_error(self, request: Request, account: Account, response: Response) -> None:
        """A browser shows an error to its page only with these headers. If they cannot be read, it goes without."""
        with suppress(EngineError):
            if self._cors.is_needed(request, account, Instant(0)):
                await self._cors(request, account, response)

    def _finish(self, request: Request, version: str, response: Response) -> None:
        """Add the headers that every response has."""
        known = self._endings.get(version) or self._ending_of(version)
        headers = [*known.headers, ("x-ms-request-id", request.request_id)]
        lines = f"{known.lines}x-ms-request-id: {request.request_id}\r\n"
        client_id = request.headers.get("x-ms-client-request-id")
        if (
            client_id
            and len(client_id) <= _CLIENT_REQUEST_ID_MAX
            and client_id.isascii()
            and client_id.isprintable()
        ):
            headers.append(("x-ms-client-request-id", client_id))
            lines = f"{lines}x-ms-client-request-id: {client_id}\r\n"
        response.end_with(headers, lines)

    def _ending_of(self, version: str) -> HeaderBlock:
        headers = [self._server_header]
        if version:
            headers.append(("x-ms-version", version))
        ending = HeaderBlock(headers)
        if len(self._endings) < _ENDINGS_MAX:
            self._endings[version] = ending
        return ending


def _check_settings(settings: AccountSettings, target: uri.Target, *, secure: bool) -> None:
    """Refuse plain HTTP, and the secondary, where the account has none of it."""
    if settings.require_https and not secure:
        raise Refused(Reason.ACCOUNT_REQUIRES_HTTPS)
    if target.secondary and not has_readable_secondary(settings.sku):
        raise _unknown_account(target)


def _unknown_account(target: uri.Target) -> Exception:
    """An account that does not exist is refused like a wrong key."""
    if not target.account:
        return Malformed("InvalidUri")
    return Refused(Reason.AUTHENTICATION_FAILED, facts=NameFacts(target.account, "account"))
