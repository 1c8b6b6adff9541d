"""Taking in a body that may come with checksums inside, as it is or structured."""

from collections.abc import Awaitable

from kyanite.services.rest.context import Exchange
from kyanite.services.rest.headers import content_length_of, number_of, required
from kyanite.services.rest.uploads import PiecedBody, Taken, expected_of, take, take_body
from kyanite.wire import structured_message
from kyanite.wire.malformed import bad_header

_HEADER = "x-ms-structured-body"
_LENGTH = "x-ms-structured-content-length"


def is_structured(exchange: Exchange) -> bool:
    return _HEADER in exchange.headers and structured_message.is_asked(exchange.headers[_HEADER])


def data_length_of(exchange: Exchange) -> int:
    """How many bytes of data the request brings."""
    length = content_length_of(exchange.request)
    if not is_structured(exchange):
        return length
    required(exchange.headers, _LENGTH)
    return number_of(exchange.headers, _LENGTH) or 0


def take_data(exchange: Exchange, length: int, *, md5: bytes | None = None) -> Awaitable[Taken]:
    """The data, of which there are so many bytes; checked against ``md5`` if that is given."""
    environment, request = exchange.environment, exchange.request
    if not is_structured(exchange):
        return take(environment, request, length, md5=md5)
    expected = expected_of(request.headers, "content-md5", "x-ms-content-crc64")
    if expected.md5 is not None or expected.crc64 is not None:
        raise bad_header(_HEADER, exchange.headers[_HEADER])
    body = PiecedBody(
        structured_message.decode(request.body.read, content_length_of(request), length), length
    )
    return take_body(environment, body, length, expected._replace(md5=md5))


def structured_headers(exchange: Exchange) -> list[tuple[str, str]]:
    """An answer says that the checksums were looked at."""
    return [(_HEADER, structured_message.FORM)] if is_structured(exchange) else []
