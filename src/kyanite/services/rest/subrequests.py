"""Requests inside a request: the parts of a batch, and the URLs of copy and rename sources.

A sub-request has the caller's address, scheme and port, and the version of the request that it is in. It is located,
authenticated and authorised by the functions that serve an outer request; a part of a table batch, which has no
credentials of its own, keeps the principal of the batch.
"""

from typing import NamedTuple

from kyanite.model.accounts import Account
from kyanite.rules.authorization import Access, AccessedResource, Principal, authorize, within
from kyanite.services.rest.authentication import AclLookup, authenticate
from kyanite.services.rest.context import Locate, Location, RequestContext
from kyanite.wire import uri
from kyanite.wire.http import Request
from kyanite.wire.uri import Target


class SourceKind(NamedTuple):
    """A service whose resources a sub-request may name."""

    word: str
    locate: Locate
    acl_lookup: AclLookup


def path_and_query(text: str) -> tuple[str, str]:
    """Of the target of a part: a path, or an absolute URL whose host does not count."""
    path, _, query = text.partition("?")
    if not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path, query


def subrequest(outer: RequestContext, method: str, path: str, query: str, headers: dict[str, str]) -> Request:
    request = Request(
        method,
        path,
        query,
        headers,
        [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        outer.request.body,
        outer.request.peer,
        outer.request.secure,
        outer.request.local_port,
    )
    request.request_id = outer.request_id
    return request


async def admit(
    outer: RequestContext,
    request: Request,
    target: Target,
    account: Account,
    location: Location,
    kind: SourceKind,
    access: Access,
    *,
    without_signature: Principal | None = None,
) -> RequestContext:
    """The context of a sub-request that is authenticated and authorised on its own.

    ``without_signature``: the principal of a sub-request whose URL has no signature, instead of an anonymous one.
    """
    query = uri.decode_query(request.query)
    context = RequestContext(
        outer.environment, request, target, account, query.first, outer.version, location
    )
    if without_signature is not None and "sig" not in query.first:
        context.principal = without_signature
    else:
        await authenticate(context, query, kind.word, kind.acl_lookup)
    authorize(context.principal, access, AccessedResource(kind.word, context.is_read_only))
    return context


def part_of(outer: RequestContext, request: Request, location: Location, access: Access) -> RequestContext:
    """The context of a part without credentials of its own, authorised as the principal of the batch."""
    query = uri.decode_query(request.query)
    target = outer.target
    context = RequestContext(
        outer.environment, request, target, outer.account, query.first, outer.version, location
    )
    context.principal = within(outer.principal, location.container)
    authorize(context.principal, access, AccessedResource(target.service, context.is_read_only))
    return context
