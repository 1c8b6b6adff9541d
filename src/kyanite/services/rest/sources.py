"""The second resource of a request: the source of a copy or a rename, a URL of this server; or the target of a link.

It is reached without leaving the process, as a sub-request that is authenticated and authorised on its own;
``rules/second_resources.py`` says with which credentials, and what they must allow. What is wrong with a URL is
answered as ``CannotVerifyCopySource`` with the source's own status.
"""

from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from kyanite.model.accounts import Account
from kyanite.rules.account_settings import has_readable_secondary
from kyanite.rules.authorization import KeyPrincipal, Principal, RolePrincipal, within
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.second_resources import SECOND_RESOURCES, Credentials
from kyanite.rules.served_hosts import Host, is_served
from kyanite.services.rest import bearer_tokens, blob_paths, file_paths
from kyanite.services.rest.context import Location, RequestContext, Resource
from kyanite.services.rest.headers import required
from kyanite.services.rest.subrequests import SourceKind, admit, subrequest
from kyanite.wire import uri
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed, bad_header

COPY_SOURCE = "x-ms-copy-source"
SOURCE_AUTHORIZATION = "x-ms-copy-source-authorization"
_URL_MAX_CHARACTERS = 2048
_NOT_SECRET = ("snapshot=", "versionid=", "sharesnapshot=")

BLOB_SOURCE = SourceKind("blob", blob_paths.locate, blob_paths.acl_lookup)
FILE_SOURCE = SourceKind("file", file_paths.locate, file_paths.acl_lookup)


class CannotVerifySource(Exception):
    """The source cannot be read by this request: ``cause`` is what a request for it would be refused with."""

    def __init__(self, cause: Refused | Malformed) -> None:
        super().__init__(str(cause))
        self.cause = cause


def kind_of(context: RequestContext, kinds: Sequence[SourceKind]) -> SourceKind:
    """The service of the source, by its host name or its port; the first kind when neither says."""
    url = _split(required(context.headers, COPY_SOURCE), COPY_SOURCE)
    target = _target_of(url, "", COPY_SOURCE)
    word = target.service or context.environment.services_by_port.get(_host_of(url).port or 0, "")
    return next((kind for kind in kinds if kind.word == word), kinds[0])


async def source_of(
    context: RequestContext, kind: SourceKind, *, header: str = COPY_SOURCE
) -> RequestContext:
    """The context of a request for the source. Refused when the caller may not do to it what the operation does."""
    text = required(context.headers, header)
    if len(text) > _URL_MAX_CHARACTERS:
        raise bad_header(header, text)
    url = _split(text, header)
    target = _target_of(url, kind.word, header)
    headers = _headers_for(context, url.netloc)
    try:
        account = _account_of(context, kind, target, _host_of(url))
        if account.settings.require_https and url.scheme == "http":
            raise Refused(Reason.ACCOUNT_REQUIRES_HTTPS)
        request = subrequest(context, "GET", url.path, url.query, headers)
        location = kind.locate(request, target, uri.decode_query(url.query).first)
        if location.resource is not Resource.OBJECT:
            raise Malformed("InvalidUri")
        return await _admit(context, kind, request, target, account, location)
    except (Refused, Malformed) as cause:
        raise CannotVerifySource(cause) from cause


def _headers_for(context: RequestContext, host: str) -> dict[str, str]:
    """The headers of the request for the source: the bearer token that is meant for it, if there is one."""
    headers = {"host": host}
    token = context.headers.get(SOURCE_AUTHORIZATION)
    if token is not None:
        if not token.lower().startswith("bearer "):
            raise bad_header(SOURCE_AUTHORIZATION, "")  # Whatever it is, it may be a secret.
        headers["authorization"] = token
        if bearer_tokens.INTENT in context.headers:
            headers[bearer_tokens.INTENT] = context.headers[bearer_tokens.INTENT]
    return headers


async def neighbour_of(context: RequestContext, kind: SourceKind, name: str) -> RequestContext:
    """The context of a request for another object of the same container, which the request names by its path."""
    location = Location(Resource.OBJECT, context.container, name)
    request = subrequest(context, "GET", context.request.path, "", {"host": context.headers.get("host", "")})
    return await _admit(context, kind, request, context.target, context.account, location)


async def container_of(context: RequestContext, kind: SourceKind, name: str) -> RequestContext:
    """The context of a request for another container of the same account, which the request names."""
    location = Location(Resource.CONTAINER, name)
    request = subrequest(context, "GET", context.request.path, "", {"host": context.headers.get("host", "")})
    return await _admit(context, kind, request, context.target, context.account, location)


async def _admit(
    context: RequestContext,
    kind: SourceKind,
    request: Request,
    target: uri.Target,
    account: Account,
    location: Location,
) -> RequestContext:
    """Authenticate and authorise the second resource as the table says."""
    credentials, access = SECOND_RESOURCES[context.request.operation, kind.word]
    assert access is not None
    lent: Principal | None = None
    has_own = "authorization" in request.headers
    if credentials is not Credentials.OWN and account.name == context.account.name and not has_own:
        if isinstance(context.principal, KeyPrincipal | RolePrincipal):
            lent = within(context.principal, location.container)
        elif credentials is Credentials.OF_REQUEST and "sig" not in uri.decode_query(request.query).first:
            request.query = context.request.query  # Its token is checked again, for this resource.
    return await admit(context, request, target, account, location, kind, access, without_signature=lent)


def without_signature(url: str) -> str:
    """The URL of a source as it is stored and shown later: a signature is a secret."""
    parts = urlsplit(url)
    kept = "&".join(part for part in parts.query.split("&") if part.startswith(_NOT_SECRET))
    return parts._replace(query=kept).geturl()


def _account_of(context: RequestContext, kind: SourceKind, target: uri.Target, host: Host) -> Account:
    """The account of a URL of this server; a URL of another server is not found."""
    account = context.environment.accounts.get(target.account)
    if account is None or target.service != kind.word or not _is_ours(context, kind, target, host):
        raise Refused(Reason.RESOURCE_NOT_FOUND)
    if target.secondary and not has_readable_secondary(account.settings.sku):
        raise Refused(Reason.RESOURCE_NOT_FOUND)
    return account


def _is_ours(context: RequestContext, kind: SourceKind, target: uri.Target, host: Host) -> bool:
    """Whether the URL leads to the service on this server. The port of a path-style URL must not be another's."""
    environment = context.environment
    ports = environment.services_by_port
    if target.path_style and host.port is not None and ports.get(host.port, kind.word) != kind.word:
        return False
    try:
        own = Host(*uri.decode_authority(context.headers.get("host", "")))
    except Malformed:
        own = Host("")
    return is_served(host, own, environment.names, ports, names_account=not target.path_style)


def _split(url: str, header: str) -> SplitResult:
    """The parts of a URL whose host is a name or an address, and nothing else."""
    try:
        parts = urlsplit(url)
        uri.decode_query(parts.query)
        _host_of(parts)
    except (Malformed, ValueError):
        raise bad_header(header, url) from None
    if "\t" in url:  # The library removes it, so what it returns is not what was sent.
        raise bad_header(header, url)
    return parts


def _host_of(url: SplitResult) -> Host:
    if url.scheme not in {"http", "https"}:
        raise Malformed("InvalidUri")
    return Host(*uri.decode_authority(url.netloc, url.scheme))


def _target_of(url: SplitResult, service: str, header: str) -> uri.Target:
    try:
        return uri.decode_target(url.netloc, url.path or "/", service)
    except Malformed:
        raise bad_header(header, url.geturl()) from None
