"""Taking in a body that may come with checksums inside, as it is or structured."""

from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import content_length_of, number_of
from kyanite.services.common.intake import Taken, keep, take
from kyanite.services.files.properties import Headers
from kyanite.wire import structured_message
from kyanite.wire.malformed import Malformed, bad_header

_HEADER = "x-ms-structured-body"
_LENGTH = "x-ms-structured-content-length"
_FRAMING_MAX_BYTES = 64 * 1024
"""More than the segments of any client add to a body."""


def is_structured(exchange: Exchange) -> bool:
    return structured_message.is_asked(exchange.headers.get(_HEADER))


def data_length_of(exchange: Exchange) -> int:
    """How many bytes of data the request brings."""
    length = content_length_of(exchange.request)
    if not is_structured(exchange):
        return length
    said = number_of(exchange.headers, _LENGTH)
    if said is None:
        raise Malformed("MissingRequiredHeader", HeaderName=_LENGTH)
    return said


async def take_data(exchange: Exchange, length: int) -> Taken:
    """The data, of which there are so many bytes."""
    if not is_structured(exchange):
        return await take(exchange.environment, exchange.request, length)
    most = length + _FRAMING_MAX_BYTES
    message = await exchange.request.body.read_all(most)
    if message is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(most))
    data = structured_message.decode(message)
    if len(data) != length:
        raise bad_header(_LENGTH, exchange.headers[_LENGTH])
    return await keep(exchange.environment, data)


def structured_headers(exchange: Exchange) -> Headers:
    """An answer says that the checksums were looked at."""
    return [(_HEADER, structured_message.FORM)] if is_structured(exchange) else []
