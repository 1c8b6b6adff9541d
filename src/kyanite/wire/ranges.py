"""Byte ranges: ``Range`` and ``x-ms-range`` in, ``Content-Range`` out.

Azure accepts two forms, ``bytes=first-`` and ``bytes=first-last``. Anything else (a suffix ``bytes=-500``, several
ranges, an end before the start, another unit) is ignored as if it had not been sent, which RFC 9110 §14.2 allows: the
documentation of the range header lists no other form, clients for several object stores know that Azure ignores
suffixes, and the Java client sends ``bytes=0--1`` for an empty blob and relies on a response without a range.
``x-ms-range`` takes precedence over ``Range``. Operations that *need* a range (Put Page, Put Range) refuse what this
module ignores.
"""

import re
from dataclasses import dataclass
from typing import Final

_FORM: Final = re.compile(r"bytes=(\d{1,19})-(\d{1,19})?", re.ASCII)
_MAX_OFFSET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From ``first`` to ``last`` inclusive; to the end when ``last`` is None."""

    first: int
    last: int | None

    @property
    def length(self) -> int | None:
        """The number of bytes, if the range has an end."""
        return None if self.last is None else self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class ResolvedRange:
    """The part of a resource that a range covers. Never empty."""

    offset: int
    length: int


def from_headers(headers: dict[str, str]) -> ByteRange | None:
    """The range in a request, or None for the whole."""
    text = headers.get("x-ms-range") or headers.get("range")
    return None if text is None else decode(text)


def decode(text: str) -> ByteRange | None:
    """One range, or None when the text is not one that Azure accepts."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    first = int(match[1])
    last = None if match[2] is None else int(match[2])
    if first > _MAX_OFFSET or (last is not None and (last < first or last > _MAX_OFFSET)):
        return None
    return ByteRange(first, last)


def encode(requested: ByteRange) -> str:
    return f"bytes={requested.first}-{'' if requested.last is None else requested.last}"


def resolve(requested: ByteRange, total: int) -> ResolvedRange | None:
    """What the range covers of ``total`` bytes; None when it begins beyond the end (416 InvalidRange)."""
    if requested.first >= total:
        return None
    end = total if requested.last is None else min(requested.last + 1, total)
    return ResolvedRange(requested.first, end - requested.first)


def content_range(part: ResolvedRange, total: int) -> str:
    return f"bytes {part.offset}-{part.offset + part.length - 1}/{total}"


def unsatisfied_content_range(total: int) -> str:
    """For a response 416, so that the client learns the size."""
    return f"bytes */{total}"
