"""The time of the last access over REST, in accounts that keep track of it. In others nothing here is called."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from kyanite.engine.api import EngineError
from kyanite.model.blobs import last_access
from kyanite.model.blobs.listing import BlobItem
from kyanite.rules.last_access import visible
from kyanite.services.blob.container import key_of
from kyanite.services.rest.context import RequestContext
from kyanite.slices import next_slice
from kyanite.values import Instant
from kyanite.wire import http_date
from kyanite.wire.http import Response

Headers = list[tuple[str, str]]

_ITEMS_PER_SLICE = 250
_NEXT = "<ServerEncrypted>"
"""What comes behind the element. Every item has it, and no name or value can contain it."""


async def record_read(context: RequestContext, response: Response) -> None:
    """Record that the bytes are read, and show when they were read before.

    The response is sent whether or not this can be recorded.
    """
    if not _is_base(context):
        return
    engine, key, name = context.store.engine, key_of(context), context.object_name
    try:
        found = await last_access.find(engine, key, name)
        response.headers.extend(_headers(found.accessed_at))
        if found.is_due and not context.is_read_only:
            with suppress(EngineError):
                await last_access.record_read(engine, key, name)
    except BaseException:
        if response.release is not None:
            response.release()
        raise


async def header_of(context: RequestContext) -> Headers:
    if not _is_base(context):
        return []
    found = await last_access.find(context.store.engine, key_of(context), context.object_name)
    return _headers(found.accessed_at)


def _is_base(context: RequestContext) -> bool:
    return "snapshot" not in context.parameters and "versionid" not in context.parameters


def _headers(accessed_at: Instant | None) -> Headers:
    return [] if accessed_at is None else [("x-ms-last-access-time", http_date.encode(accessed_at))]


async def elements_of(context: RequestContext, items: Sequence[BlobItem]) -> Mapping[str, str]:
    """The elements for the blobs of a list, by their names."""
    created: dict[str, Instant] = {}
    for first in range(0, len(items), _ITEMS_PER_SLICE):
        for item in items[first : first + _ITEMS_PER_SLICE]:
            if item.record is not None and _has_time(item):
                created[item.name] = item.record.created_at
        await next_slice()
    found = await last_access.find_all(context.store.engine, key_of(context), list(created))
    return {
        name: f"<LastAccessTime>{http_date.encode(accessed_at)}</LastAccessTime>"
        for name, accessed_at in found.items()
        if visible(accessed_at, created[name]) is not None
    }


def with_element(elements: Mapping[str, str], write: Callable[[BlobItem], str], item: BlobItem) -> str:
    """The item of a list, with the element of its blob."""
    element = elements.get(item.name) if _has_time(item) else None
    text = write(item)
    return text if element is None else text.replace(_NEXT, element + _NEXT, 1)


def _has_time(item: BlobItem) -> bool:
    """Neither snapshots nor previous versions have one, and nothing that is deleted."""
    record = item.record
    is_base = record is not None and not record.is_previous and item.snapshot is None
    return is_base and item.deletion is None
