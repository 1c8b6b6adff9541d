"""What the rows of a page show, as it is collected: findings, two tallies, and what other rows have to exist."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Snapshot
from kyanite.extents.api import Extent
from kyanite.model import keys
from kyanite.model.content.content import Content
from kyanite.model.content.intervals import Interval
from kyanite.model.content.references import ExtentRow, decode_extent
from kyanite.model.verification.pages import Row

_LOOKUPS_AT_ONCE = 64


class Finding(NamedTuple):
    key: bytes
    """The row that is wrong."""
    text: str
    about: bytes = b""
    """Another row or subject, which takes the place of ``{}`` in the text."""


class Needed(NamedTuple):
    """A row that another one needs."""

    by: bytes
    """The key of the row that needs it."""
    key: bytes
    check: Callable[[bytes], str | None] = lambda _value: None
    """What is wrong with the value, if anything."""


class Check:
    """Collects what the rows of a page show."""

    def __init__(self, snap: Snapshot) -> None:
        self.snap = snap
        self.findings: list[Finding] = []
        self.stated: Counter[bytes] = Counter()
        self.counted: Counter[bytes] = Counter()
        self.extents: list[tuple[bytes, ExtentRow]] = []
        self.damaged: list[bytes] = []
        """Keys of rows that are not there or cannot be decoded, where others need them."""
        self.needed: list[Needed] = []
        self.previous = Row(b"", b"")

    def refuse(self, key: bytes, text: str, about: bytes = b"") -> None:
        self.findings.append(Finding(key, text, about))

    def need(self, by: bytes, key: bytes) -> None:
        """The row ``by`` needs the row ``key``."""
        self.needed.append(Needed(by, key))

    def content(self, key: bytes, content: Content, length: int | None, *, exactly: bool = False) -> None:
        """Check and count what a record's content refers to.

        ``length`` is that of the blob or file, if it has one. Content may end before that, unless ``exactly``: the rest
        is zeros.
        """
        if bool(content.body) + bool(content.intervals) + bool(content.layer) > 1:
            self.refuse(key, "its content is in two places.")
        if content.body:
            self._body(key, content.body, least=length if exactly and length else 0, most=length)
        elif content.layer:
            self.counted[keys.layer(content.layer)] += 1
        else:
            self.intervals(key, content.intervals)
            end = content.intervals[-1].end if content.intervals else 0
            if length is not None and (end > length or (exactly and end != length)):
                self.refuse(key, f"its length is {length}, but its content ends at {end}.")

    def intervals(self, key: bytes, intervals: Sequence[Interval]) -> None:
        end = 0
        for interval in intervals:
            if interval.offset < end or interval.length <= 0 or interval.skip < 0:
                self.refuse(key, f"its intervals are not in order at offset {interval.offset}.")
            end = interval.end
            if interval.extent is not None:
                self._extent(key, interval, interval.extent)
            elif interval.body:
                self._body(key, interval.body, least=interval.skip + interval.length, most=None)

    def _extent(self, key: bytes, interval: Interval, extent: Extent) -> None:
        extent_key = keys.extent(extent.segment, extent.start)
        self.counted[extent_key] += 1
        if interval.skip + interval.length > extent.length:
            self.refuse(key, "an interval reaches beyond the end of {}.", extent_key)

        def check(value: bytes) -> str | None:
            row = decode_extent(value)
            is_same = (row.length, row.crc64) == (extent.length, extent.crc64)
            return None if is_same else "has another length or CRC"

        self.needed.append(Needed(key, extent_key, check))

    def _body(self, key: bytes, number: int, *, least: int, most: int | None) -> None:
        self.counted[keys.body(number)] += 1

        def check(value: bytes) -> str | None:
            if len(value) < least:
                return f"has {len(value)} bytes instead of {least}"
            return (
                f"has {len(value)} bytes instead of {most}"
                if most is not None and len(value) > most
                else None
            )

        self.needed.append(Needed(key, keys.body(number), check))

    def check_needed(self) -> None:
        for first in range(0, len(self.needed), _LOOKUPS_AT_ONCE):
            some = self.needed[first : first + _LOOKUPS_AT_ONCE]
            for each, value in zip(some, self._load([each.key for each in some]), strict=True):
                if problem := _problem(each, value):
                    self.damaged.append(each.key)
                    self.refuse(each.by, f"{{}}, which it refers to, {problem}.", each.key)

    def _load(self, wanted: list[bytes]) -> "Sequence[bytes | Unread | None]":
        try:
            return self.snap.get_many(wanted)
        except Exception:  # Whatever an engine raises on damage within a body.
            return [self._load_one(key) for key in wanted]

    def _load_one(self, key: bytes) -> "bytes | Unread | None":
        try:
            return self.snap.get(key)
        except Exception:
            return Unread()


class Unread(NamedTuple):
    """In place of a value that cannot be read."""


def _problem(needed: Needed, value: bytes | Unread | None) -> str | None:
    if value is None:
        return "is not there"
    if isinstance(value, Unread):
        return "cannot be read"
    try:
        return needed.check(value)
    except msgspec.DecodeError:
        return "cannot be decoded"
