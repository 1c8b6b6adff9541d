"""Byte ranges: ``Range`` and ``x-ms-range`` in, ``Content-Range`` out.

The service reads two forms, ``bytes=first-`` and ``bytes=first-last``. Anything else (a suffix
``bytes=-500``, several ranges, an end before the start, another unit) is passed over as if it had not been
sent, which RFC 9110 §14.2 allows: the documentation of the range header lists no other form, object stores'
clients know that suffixes do nothing here, and the Java client sends ``bytes=0--1`` for an empty blob and
counts on the plain answer. ``x-ms-range`` wins over ``Range``. Operations that *need* a range (Put Page, Put
Range) refuse what this module passes over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FORM = re.compile(r"bytes=(\d{1,19})-(\d{1,19})?", re.ASCII)
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From ``first`` to ``last`` inclusive; to the end when ``last`` is None."""

    first: int
    last: int | None

    @property
    def length(self) -> int | None:
        """How many bytes were asked for, if that was said."""
        return None if self.last is None else self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a resource that a range covers. Never empty."""

    offset: int
    length: int


def from_headers(headers: Mapping[str, str]) -> ByteRange | None:
    """The range a request asks for, or None for the whole."""
    text = headers.get("x-ms-range") or headers.get("range")
    return None if text is None else decode(text)


def decode(text: str) -> ByteRange | None:
    """One range, or None when the text is not one that the service reads."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    first = int(match[1])
    last = None if match[2] is None else int(match[2])
    if first > _MAX_OFFSET or (last is not None and (last < first or last > _MAX_OFFSET)):
        return None
    return ByteRange(first, last)


def encode(asked: ByteRange) -> str:
    return f"bytes={asked.first}-{'' if asked.last is None else asked.last}"


def resolve(asked: ByteRange, total: int) -> Span | None:
    """What the range covers of ``total`` bytes; None when it begins beyond the end (416 InvalidRange)."""
    if asked.first >= total:
        return None
    end = total if asked.last is None else min(asked.last + 1, total)
    return Span(asked.first, end - asked.first)


def content_range(span: Span, total: int) -> str:
    return f"bytes {span.offset}-{span.offset + span.length - 1}/{total}"


def unsatisfied_content_range(total: int) -> str:
    """What accompanies a 416, so that the client learns the size."""
    return f"bytes */{total}"
