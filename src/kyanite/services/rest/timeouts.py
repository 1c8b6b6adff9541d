"""How long a request waits: only for SMB clients to write back what they have cached of a file.

A handler without a body runs again, since it is a function of its context. One with a body has received it, so only
the transaction at its end runs again (``repeated_after_breaks``).
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kyanite.model.files.opens import owners, waits
from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.rules.refusals import Refused
from kyanite.services.rest.context import RequestContext
from kyanite.wire.malformed import bad_parameter

T = TypeVar("T")


def check_timeout(text: str) -> None:
    """How many seconds the client waits at most, in the parameter ``timeout``. Nearly all responses come sooner."""
    if not (text.isascii() and text.isdecimal()):
        raise bad_parameter("timeout", text)


def after_breaks(
    context: RequestContext, needed: BreakNeeded, attempt: Callable[[], Awaitable[T]]
) -> Awaitable[T]:
    """Repeat the attempt when SMB clients have given up what they cache, or refuse it when that takes too long."""
    seconds = min(waits.REST_SECONDS, float(context.parameters.get("timeout") or waits.REST_SECONDS))
    store = context.store
    return waits.after_breaks(store.engine, store.membership, needed, attempt, seconds)


async def after_refusal(context: RequestContext, refusal: Refused, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat what was refused because of handles whose process has died."""
    if await owners.is_outdated(refusal, context.store.engine, context.store.membership):
        return await attempt()
    raise refusal


async def repeated_after_breaks(context: RequestContext, transaction: Callable[[], Awaitable[T]]) -> T:
    try:
        return await transaction()
    except BreakNeeded as needed:
        return await after_breaks(context, needed, transaction)
    except Refused as refusal:
        return await after_refusal(context, refusal, transaction)
