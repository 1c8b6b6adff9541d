"""Messages over REST: put, get, peek, update, delete, clear."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from kyanite.model.queues import message, queue
from kyanite.model.queues.message import Message, NewMessage, Receipt
from kyanite.rules.visibility import DEFAULT_TIME_TO_LIVE_SECONDS, FOREVER
from kyanite.services.queue.queue import key_of
from kyanite.services.rest.context import RequestContext
from kyanite.slices import first_slice, next_slice
from kyanite.wire import http_date, pop_receipt, queue_message
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_parameter, missing_parameter, parameter_out_of_range
from kyanite.wire.xml import escape

TEXT_MAX_BYTES: Final = 64 * 1024
BODY_MAX_BYTES: Final = 128 * 1024 + 512
"""Azure's limit for a request with a message, markup and escapes included."""

MESSAGES_MAX: Final = 32
TIMEOUT_MAX_SECONDS: Final = 7 * 24 * 3600
DEFAULT_TIMEOUT_SECONDS: Final = 30
TIME_TO_LIVE_MAX_SECONDS: Final = 2**63 - 1
"""Any positive number is allowed. No message outlives the calendar, though."""

_ANY_TIME_TO_LIVE_SINCE: Final = "2017-07-29"
"""Before this version seven days was the maximum, and no message could live forever."""
_PUT_HAS_BODY_SINCE: Final = "2016-05-31"
"""Before this version the response to Put Message had no body."""

_BYTES_PER_CHARACTER_MAX: Final = 4
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_XML: Final = ("Content-Type", "application/xml")
_BEGIN: Final = b'<?xml version="1.0" encoding="utf-8"?><QueueMessagesList>'
_END: Final = b"</QueueMessagesList>"
_BYTES_PER_SLICE: Final = 128 * 1024
_FEW_MESSAGES: Final = 4


async def put_message(context: RequestContext) -> Response:
    parameters = context.parameters
    delay = _number(parameters, "visibilitytimeout", 0, TIMEOUT_MAX_SECONDS)
    time_to_live = _time_to_live_of(context)
    text = _checked(queue_message.decode(await _document_of(context)))
    fresh_guid = context.environment.fresh_guid
    new_message = NewMessage(fresh_guid(), text, delay or 0, time_to_live, _secret(fresh_guid))
    store = context.store
    put = await message.put(store.engine, key_of(context), new_message, process=store.membership.id)
    if context.version < _PUT_HAS_BODY_SINCE:
        return Response(201)
    return await _response(201, (put,), with_text=False)


async def get_messages(context: RequestContext) -> Response:
    parameters = context.parameters
    if parameters.get("peekonly", "false").lower() != "false":
        raise bad_parameter("peekonly", parameters["peekonly"])
    timeout = _number(parameters, "visibilitytimeout", 1, TIMEOUT_MAX_SECONDS)
    store = context.store
    got = await message.get(
        store.engine,
        key_of(context),
        count=_count_of(parameters),
        timeout_seconds=timeout or DEFAULT_TIMEOUT_SECONDS,
        secret=_secret(context.environment.fresh_guid),
        process=store.membership.id,
    )
    return await _response(200, got)


async def peek_messages(context: RequestContext) -> Response:
    store, count = context.store, _count_of(context.parameters)
    if count > _FEW_MESSAGES:
        await first_slice()
    peeked = await message.peek(store.engine, key_of(context), count=count, process=store.membership.id)
    return await _response(200, peeked, with_receipt=False)


async def clear_messages(context: RequestContext) -> Response:
    await queue.clear(context.store.engine, key_of(context))
    return Response(204)


async def update_message(context: RequestContext) -> Response:
    """Without a body the message keeps its text."""
    receipt = _receipt_of(context.parameters)
    timeout = _number(context.parameters, "visibilitytimeout", 0, TIMEOUT_MAX_SECONDS)
    if timeout is None:
        raise missing_parameter("visibilitytimeout")
    document = await _document_of(context)
    updated = await message.update(
        context.store.engine,
        key_of(context),
        context.object_name,
        receipt,
        text=_checked(queue_message.decode(document)) if document else None,
        timeout_seconds=timeout,
        secret=_secret(context.environment.fresh_guid),
    )
    receipt = updated.receipt
    text = pop_receipt.encode(receipt.visible_at, receipt.put_at, receipt.secret)
    return Response(
        204,
        [
            ("x-ms-popreceipt", text),
            ("x-ms-time-next-visible", http_date.encode(updated.state.visible_at)),
        ],
    )


async def delete_message(context: RequestContext) -> Response:
    store, receipt = context.store, _receipt_of(context.parameters)
    await message.delete(
        store.engine, key_of(context), context.object_name, receipt, process=store.membership.id
    )
    return Response(204)


# Requests


async def _document_of(context: RequestContext) -> bytes:
    document = await context.request.body.read_all(BODY_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(BODY_MAX_BYTES))
    return document


def _checked(text: str) -> str:
    """The text. Raises Malformed when it is too long as UTF-8."""
    if len(text) > TEXT_MAX_BYTES // _BYTES_PER_CHARACTER_MAX and len(text.encode()) > TEXT_MAX_BYTES:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(TEXT_MAX_BYTES))
    return text


def _number(parameters: dict[str, str], name: str, minimum: int, maximum: int) -> int | None:
    text = parameters.get(name)
    if text is None:
        return None
    if _INTEGER.fullmatch(text) is None:
        raise bad_parameter(name, text)
    number = int(text)
    if not minimum <= number <= maximum:
        raise parameter_out_of_range(name, text, minimum, maximum)
    return number


def _count_of(parameters: dict[str, str]) -> int:
    return _number(parameters, "numofmessages", 1, MESSAGES_MAX) or 1


def _time_to_live_of(context: RequestContext) -> int | None:
    if context.version < _ANY_TIME_TO_LIVE_SINCE:
        return _number(context.parameters, "messagettl", 1, DEFAULT_TIME_TO_LIVE_SECONDS)
    if context.parameters.get("messagettl") == str(FOREVER):
        return FOREVER
    return _number(context.parameters, "messagettl", 1, TIME_TO_LIVE_MAX_SECONDS)


def _receipt_of(parameters: dict[str, str]) -> Receipt:
    text = parameters.get("popreceipt")
    if not text:
        raise missing_parameter("popreceipt")
    return Receipt(*pop_receipt.decode(text))


def _secret(fresh_guid: Callable[[], str]) -> bytes:
    """The random bytes of a receipt, from the parts of a GUID that are entirely random."""
    guid = fresh_guid()
    return bytes.fromhex(guid[:8] + guid[28:])


# Responses


async def _response(
    status: int, messages: Sequence[Message], *, with_receipt: bool = True, with_text: bool = True
) -> Response:
    """Long texts are written in slices."""
    pieces = [_BEGIN]
    written = 0
    for each in messages:
        if written > _BYTES_PER_SLICE:
            written = 0
            await next_slice()
        piece = _item(each, with_receipt, with_text).encode()
        written += len(piece)
        pieces.append(piece)
    pieces.append(_END)
    return Response(status, [_XML], b"".join(pieces))


def _item(found: Message, with_receipt: bool, with_text: bool) -> str:
    """In one function, because it is hot: a peek has no receipt, and the response to a put no text."""
    put_at, state = found.put_at, found.state
    visible_at = state.visible_at
    receipt = dequeued = ""
    if with_receipt:
        receipt = (
            f"<PopReceipt>{pop_receipt.encode(visible_at, put_at, state.secret)}</PopReceipt>"
            f"<TimeNextVisible>{http_date.encode(visible_at)}</TimeNextVisible>"
        )
    if with_text:
        dequeued = f"<DequeueCount>{state.dequeue_count}</DequeueCount><MessageText>{escape(found.text)}</MessageText>"
    return (
        f"<QueueMessage><MessageId>{found.id}</MessageId>"
        f"<InsertionTime>{http_date.encode(put_at)}</InsertionTime>"
        f"<ExpirationTime>{http_date.encode(state.expires_at)}</ExpirationTime>"
        f"{receipt}{dequeued}</QueueMessage>"
    )
