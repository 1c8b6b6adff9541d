"""Stored access policies over REST, the same for containers, queues, tables and shares: document in, document out."""

from collections.abc import Iterable

from kyanite.model.records import Policy
from kyanite.services.rest.context import RequestContext
from kyanite.wire import acl
from kyanite.wire.malformed import Malformed

_MAX_BYTES = 64 * 1024


async def policies_of(context: RequestContext, letters: str = acl.EVERY_LETTER) -> tuple[Policy, ...]:
    """The policies in the body, with permissions that the service has; without a body there are none."""
    body = await context.request.body.read_all(_MAX_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_MAX_BYTES))
    return tuple(
        Policy(item.id, item.starts_at, item.expires_at, item.permissions)
        for item in acl.decode(body, letters)
    )


def policies_document(policies: Iterable[Policy]) -> bytes:
    return acl.encode(
        acl.SignedIdentifier(policy.id, policy.starts_at, policy.expires_at, policy.permissions)
        for policy in policies
    )
