"""Request headers that several operations share, and response headers that most of them have."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from kyanite.model.records import CopyState
from kyanite.rules import metadata as metadata_rules
from kyanite.rules.preconditions import NONE, Conditions
from kyanite.values import Instant, LeaseId
from kyanite.wire import crc64, http_date, numbers, ranges
from kyanite.wire.http import Request
from kyanite.wire.malformed import Malformed, bad_header, missing_header
from kyanite.wire.ranges import ByteRange

METADATA_PREFIX: Final = b"x-ms-meta-"
_METADATA_NAME: Final = "x-ms-meta-"
_OWN_MD5: Final = frozenset(("content-md5", "x-ms-blob-content-md5"))
"""The hashes that have an error code of their own."""
_GUID_DIGITS: Final = frozenset("0123456789abcdef")
_GUID_LENGTH_MAX: Final = 128
"""With blanks, brackets and as many hyphens as anybody writes."""


def metadata_of(request: Request) -> dict[str, str]:
    """The metadata of the request, names in the sender's case; refused when a name or the size is not allowed."""
    for lower_name in request.headers:
        if lower_name.startswith(_METADATA_NAME):
            break
    else:
        return {}
    pairs = [
        (name[10:].decode("latin-1"), value.decode("latin-1").strip())
        for name, value in request.raw_headers
        if name[:10].lower() == METADATA_PREFIX
    ]
    metadata_rules.check(pairs)
    return dict(pairs)


def metadata_headers(metadata: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in metadata.items()]


def copy_headers(state: CopyState) -> list[tuple[str, str]]:
    return [
        ("x-ms-copy-id", state.id),
        ("x-ms-copy-source", state.source),
        ("x-ms-copy-status", "success"),
        ("x-ms-copy-progress", f"{state.length}/{state.length}"),
        ("x-ms-copy-completion-time", http_date.encode(state.completed_at)),
    ]


def aborted_copy_of(headers: dict[str, str], parameters: dict[str, str]) -> str:
    """The id of the copy that a request aborts."""
    if required(headers, "x-ms-copy-action").lower() != "abort":
        raise bad_header("x-ms-copy-action", headers["x-ms-copy-action"])
    copy_id = parameters.get("copyid")
    if not copy_id:
        raise Malformed("MissingRequiredQueryParameter", QueryParameterName="copyid")
    return copy_id


def written_range_of(headers: dict[str, str]) -> ByteRange:
    """The range of a write, which is required and has an end."""
    text = headers.get("x-ms-range") or headers.get("range")
    if not text:
        raise missing_header("x-ms-range")
    wanted = ranges.decode(text)
    if wanted is None or wanted.last is None:
        raise bad_header("x-ms-range", text)
    return wanted


def delete_snapshots_of(headers: dict[str, str], allowed: Sequence[str], snapshot: Instant | None) -> str:
    """What a delete does with the snapshots; empty when it does not say. A snapshot itself has none."""
    choice = one_of(headers, "x-ms-delete-snapshots", allowed)
    if choice and snapshot is not None:
        raise bad_header("x-ms-delete-snapshots", choice)
    return choice


def conditions_of(headers: dict[str, str]) -> Conditions:
    """The four conditional headers. A time that does not parse is ignored, as the service does."""
    if_match = headers.get("if-match")
    if_none_match = headers.get("if-none-match")
    modified = headers.get("if-modified-since")
    unmodified = headers.get("if-unmodified-since")
    if if_match is None and if_none_match is None and modified is None and unmodified is None:
        return NONE
    return Conditions(
        if_match=_etags(if_match),
        if_none_match=_etags(if_none_match),
        if_modified_since=_time("If-Modified-Since", modified),
        if_unmodified_since=_time("If-Unmodified-Since", unmodified),
    )


def _etags(text: str | None) -> tuple[str, ...] | None:
    if text is None or not text:
        return None
    return tuple(tag.strip().strip('"') for tag in text.split(","))


def _time(name: str, text: str | None) -> Instant | None:
    if not text:
        return None
    if "GMT" in text and text.count("GMT") > 1:
        raise bad_header(name, text)
    return http_date.decode(text)


def lease_id_of(headers: dict[str, str], name: str = "x-ms-lease-id") -> LeaseId | None:
    """A lease id in its canonical spelling, whatever spelling of a GUID the client chose."""
    text = headers.get(name)
    if text is None:
        return None
    lease_id = _read_lease_id(text) if len(text) <= _GUID_LENGTH_MAX else None
    if lease_id is None:
        raise bad_header(name, text)
    return lease_id


@lru_cache(maxsize=1024)
def _read_lease_id(text: str) -> LeaseId | None:
    """Cached, because the holder of a lease repeats its id with every request."""
    digits = text.strip().strip("{}()").replace("-", "").lower()
    if len(digits) != 32 or not _GUID_DIGITS.issuperset(digits):
        return None
    return LeaseId(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")


def content_length_of(request: Request) -> int:
    """The length of a body. A missing Content-Length is an error, not zero."""
    length = request.body.length
    if length is None or "content-length" not in request.headers:
        raise Malformed("MissingContentLengthHeader")
    return length


def md5_of(headers: dict[str, str], name: str) -> bytes | None:
    """An MD5 hash given in base64."""
    text = headers.get(name)
    if not text:
        return None
    digest = _base64(text)
    if digest is None or len(digest) != 16:
        raise _bad_md5(name, text)
    return digest


def stored_md5_of(headers: dict[str, str], name: str = "x-ms-blob-content-md5") -> bytes | None:
    """The hash to store with a blob or file. It is not checked against the content, so it may be anything."""
    text = headers.get(name)
    if not text:
        return None
    digest = _base64(text)
    if digest is None:
        raise _bad_md5(name, text)
    return digest


def _bad_md5(name: str, text: str) -> Malformed:
    return Malformed("InvalidMd5") if name in _OWN_MD5 else bad_header(name, text)


def crc64_of(headers: dict[str, str], name: str = "x-ms-content-crc64") -> int | None:
    text = headers.get(name)
    return crc64.decode(text, name) if text else None


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def base64_text(digest: bytes) -> str:
    return binascii.b2a_base64(digest, newline=False).decode("ascii")


def flag_of(headers: dict[str, str], name: str, *, default: bool = False) -> bool:
    """A header with the value true or false."""
    text = headers.get(name)
    if text is None:
        return default
    if text.lower() not in {"true", "false"}:
        raise bad_header(name, text)
    return text.lower() == "true"


def number_of(headers: dict[str, str], name: str, most: int = 2**63 - 1) -> int | None:
    """A header with a whole number, from 0 to ``most``."""
    text = headers.get(name)
    if text is None or not text:
        return None
    number = numbers.decode(text)
    if number is None or text[0] == "-" or number > most:
        raise bad_header(name, text)
    return number


def required(headers: dict[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise missing_header(name)
    return value


def one_of(headers: dict[str, str], name: str, allowed: Sequence[str], default: str = "") -> str:
    """A header with a closed set of values, compared without case; returned in the spelling of ``allowed``."""
    text = headers.get(name)
    if text is None or not text:
        return default
    for value in allowed:
        if value.lower() == text.lower():
            return value
    raise bad_header(name, text)
