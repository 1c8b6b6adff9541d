"""The formats of requests and responses: media types, how much metadata, and whether a response has a body.

``$format`` takes precedence over Accept. JSON without a metadata level means minimal metadata, and so does no Accept.
Azure has not sent Atom since version 2015-12-11.
"""

from enum import StrEnum
from functools import lru_cache
from typing import Final

from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import HeaderBlock, Response
from kyanite.wire.malformed import Malformed

NO_CONTENT: Final = "return-no-content"
_CONTENT: Final = "return-content"


class Level(StrEnum):
    """How much metadata JSON contains beside the data. A text, because other enumerations have a hash in Python."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


_LEVELS: Final = {level.value: level for level in Level}
_ANY_TYPE: Final = frozenset(("*/*", "application/*", "application/json", "json", "text/json"))
_ATOM_TYPES: Final = frozenset(("application/atom+xml", "application/xml", "text/xml", "atom"))
_CACHED_LENGTH: Final = 200

_HEADERS: Final[dict[Level, HeaderBlock]] = {
    level: HeaderBlock(
        [
            ("Content-Type", f"application/json;odata={level.value};streaming=true;charset=utf-8"),
            ("Cache-Control", "no-cache"),
            ("X-Content-Type-Options", "nosniff"),
        ]
    )
    for level in Level
}


def level_of(context: RequestContext) -> Level:
    return level_in(context.parameters.get("$format") or context.headers.get("accept", ""))


def level_in(accept: str) -> Level:
    return _cached(accept) if len(accept) <= _CACHED_LENGTH else _read(accept)


def json_headers(level: Level) -> list[tuple[str, str]]:
    """The headers of a response in JSON, as a new list."""
    return _HEADERS[level].headers.copy()


def json_response(level: Level, status: int, headers: list[tuple[str, str]], body: bytes) -> Response:
    """A response with those headers before these."""
    response = _HEADERS[level].response(status)
    response.headers += headers
    response.body = body
    return response


def _read(accept: str) -> Level:
    if not accept.strip():
        return Level.MINIMAL
    atom = False
    for media_range in accept.lower().split(","):
        type_, *parameters = (part.strip() for part in media_range.split(";"))
        atom = atom or type_ in _ATOM_TYPES
        if type_ in _ANY_TYPE:
            named = next((part[6:] for part in parameters if part.startswith("odata=")), "minimalmetadata")
            if named in _LEVELS:
                return _LEVELS[named]
            raise Malformed("JsonFormatNotSupported", Reason=f"JSON with odata={named} is not supported.")
    raise Malformed("AtomFormatNotSupported" if atom else "MediaTypeNotSupported")


_cached: Final = lru_cache(maxsize=256)(_read)


def check_content_type(headers: dict[str, str]) -> None:
    """Refuse a body whose content type is not JSON."""
    text = headers.get("content-type", "")
    if text.startswith("application/json") or not text:
        return
    type_ = text.partition(";")[0].strip().lower()
    if type_ not in _ANY_TYPE:
        raise Malformed("AtomFormatNotSupported" if type_ in _ATOM_TYPES else "MediaTypeNotSupported")


def preference_of(headers: dict[str, str]) -> str:
    """Whether the client wants the created entity in the response; empty without a preference."""
    text = headers.get("prefer", "").strip().lower()
    return text if text in (NO_CONTENT, _CONTENT) else ""
