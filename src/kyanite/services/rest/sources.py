"""Sources of copies: a URL inside a request that names something of this server.

Such a URL is read without leaving the process. It is resolved and authorised like a request of its own: by the
signature it carries, by public access, or, where the operation allows that, by the key that the request itself was
signed with. What goes wrong there is told as ``CannotVerifyCopySource`` with the source's own status.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kyanite.rules import permissions
from kyanite.rules.permissions import OWNER, Access
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.access import AclLookup, authenticate
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.services.rest.headers import required
from kyanite.wire import uri
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed, bad_header

_URL_MAX_CHARACTERS = 2048
_NO_HEADERS: Mapping[str, str] = {}


class Unverified(Exception):
    """The source cannot be read by this request: ``cause`` is what its own answer would have been."""

    def __init__(self, cause: Refused | Malformed) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A service whose resources may be a source."""

    word: str
    locate: Callable[[RequestContext], Resource]
    acl_lookup: AclLookup
    access: Access


COPY_SOURCE = "x-ms-copy-source"


def kind_of(context: RequestContext, kinds: Sequence[SourceKind]) -> SourceKind:
    """Which service the source belongs to, by its host name or its port; the first, where neither tells."""
    parts = _split(required(context.headers, COPY_SOURCE), COPY_SOURCE)
    target = _target_of(parts, "", COPY_SOURCE)
    word = target.service or context.environment.services_by_port.get(_port_of(parts.netloc), "")
    return next((kind for kind in kinds if kind.word == word), kinds[0])


async def source_of(
    context: RequestContext, kind: SourceKind, *, with_own_key: bool, header: str = COPY_SOURCE
) -> RequestContext:
    """The exchange that reading the source of a copy would be. Refused if it would be.

    ``with_own_key``: a source in the same account may be read with the account key that signed the request.
    """
    url = required(context.headers, header)
    source = _resolve(context, kind, url, header)
    try:
        if source is None:
            raise Refused(Reason.RESOURCE_NOT_FOUND)
        if kind.locate(source) is not Resource.OBJECT:
            raise Malformed("InvalidUri")
        query = uri.decode_query(source.request.query)
        signed_for_both = with_own_key and context.grant == OWNER and source.account == context.account
        if "sig" not in query.first and signed_for_both:
            source.grant = OWNER
        else:
            source.grant, source.overrides = await authenticate(source, query, kind.word, kind.acl_lookup)
        permissions.check(source.grant, kind.access)
    except (Refused, Malformed) as cause:
        raise Unverified(cause) from cause
    return source


def _resolve(context: RequestContext, kind: SourceKind, url: str, header: str) -> RequestContext | None:
    """An exchange for the URL, or None when it is not one of this server's."""
    if len(url) > _URL_MAX_CHARACTERS:
        raise bad_header(header, url)
    parts = _split(url, header)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise bad_header(header, url)
    target = _target_of(parts, kind.word, header)
    query = uri.decode_query(parts.query)
    account = context.environment.accounts.get(target.account)
    if account is None or target.service != kind.word or not _is_ours(context, kind, target, parts.netloc):
        return None
    source = RequestContext()
    source.environment, source.store = context.environment, account.store
    source.request = Request(
        "GET",
        parts.path,
        parts.query,
        {"host": parts.netloc},
        (),
        context.request.body,
        context.request.peer,
        context.request.secure,
        context.request.local_port,
    )
    source.headers = _NO_HEADERS
    source.target, source.account = target, account
    source.parameters, source.version = query.first, context.version
    source.request_id = context.request_id
    return source


def _split(url: str, header: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        uri.decode_query(parts.query)
    except (Malformed, ValueError):
        raise bad_header(header, url) from None
    return parts


def _target_of(parts: SplitResult, service: str, header: str) -> uri.Target:
    try:
        return uri.decode_target(parts.netloc, parts.path or "/", service)
    except Malformed:
        raise bad_header(header, parts.geturl()) from None


def _is_ours(context: RequestContext, kind: SourceKind, target: uri.Target, host: str) -> bool:
    """Whether the URL comes back to this server. A host-style name with an account of ours always does."""
    if not target.path_style:
        return True
    if context.environment.services_by_port.get(_port_of(host)) == kind.word:
        return True
    name, _, port = host.partition(":")
    own_name, _, own_port = context.headers.get("host", "").partition(":")
    is_loopback = name in {"127.0.0.1", "localhost", "[::1]"}
    return name == own_name or (is_loopback and (port == own_port or not context.target.path_style))


def _port_of(host: str) -> int:
    """The port of a host as a URL names it; 0 when it names none."""
    port = host.rpartition(":")[2]
    return int(port) if port.isascii() and port.isdecimal() else 0
