"""Taking in a body that may come with checksums inside, as it is or structured."""

from collections.abc import Awaitable

from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import content_length_of, number_of, required
from kyanite.services.rest.uploads import PiecedBody, ReceivedBody, expected_of, receive_body, take
from kyanite.wire import structured_message
from kyanite.wire.malformed import bad_header

_HEADER = "x-ms-structured-body"
_LENGTH = "x-ms-structured-content-length"


def is_structured(context: RequestContext) -> bool:
    return _HEADER in context.headers and structured_message.is_structured(context.headers[_HEADER])


def data_length_of(context: RequestContext) -> int:
    """How many bytes of data the request brings."""
    length = content_length_of(context.request)
    if not is_structured(context):
        return length
    required(context.headers, _LENGTH)
    return number_of(context.headers, _LENGTH) or 0


def receive_data(
    context: RequestContext, length: int, *, md5: bytes | None = None
) -> Awaitable[ReceivedBody]:
    """The data, of which there are so many bytes; checked against ``md5`` if that is given."""
    store, request = context.store, context.request
    if not is_structured(context):
        return take(store, request, length, md5=md5)
    expected = expected_of(request.headers, "content-md5", "x-ms-content-crc64")
    if expected.md5 is not None or expected.crc64 is not None:
        raise bad_header(_HEADER, context.headers[_HEADER])
    body = PiecedBody(
        structured_message.decode(request.body.read, content_length_of(request), length), length
    )
    return receive_body(store, body, length, expected._replace(md5=md5))


def structured_headers(context: RequestContext) -> list[tuple[str, str]]:
    """An answer says that the checksums were looked at."""
    return [(_HEADER, structured_message.FORM)] if is_structured(context) else []
