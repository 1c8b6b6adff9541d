"""Bodies with checksums inside: the ``x-ms-structured-body`` of requests and responses."""

from collections.abc import AsyncIterator
from typing import Final

from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import content_length_of, number_of, required
from kyanite.wire import structured_message
from kyanite.wire.malformed import bad_header

_HEADER: Final = "x-ms-structured-body"
_LENGTH: Final = "x-ms-structured-content-length"


def is_structured(context: RequestContext) -> bool:
    return _HEADER in context.headers and structured_message.is_structured(context.headers[_HEADER])


def data_length_of(context: RequestContext) -> int:
    """How many bytes of data the body of the request has."""
    length = content_length_of(context.request)
    if not is_structured(context):
        return length
    required(context.headers, _LENGTH)
    return number_of(context.headers, _LENGTH) or 0


def check_no_hashes(context: RequestContext, md5: bytes | None, crc64: int | None) -> None:
    """A structured body brings its own checksums; a header with another one is refused."""
    if md5 is not None or crc64 is not None:
        raise bad_header(_HEADER, context.headers[_HEADER])


def data_of(context: RequestContext, length: int) -> AsyncIterator[bytes]:
    """The data of a structured body, checked piece by piece."""
    request = context.request
    return structured_message.decode(request.body.read, content_length_of(request), length)


def structured_headers(context: RequestContext) -> list[tuple[str, str]]:
    """The header by which a response confirms that the checksums were checked."""
    return [(_HEADER, structured_message.FORM)] if is_structured(context) else []
