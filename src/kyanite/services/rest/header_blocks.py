"""The headers of what is read again and again, remembered by the records that they come from.

A record never changes, and a row that has not changed gives the same record again (such as ``remembered_blob``). So the
record itself, and not what is in it, says whether its headers are known. They are kept when it is read for the second
time, since most of what is stored is read once if at all.
"""

from typing import Final

from kyanite.wire.http import HeaderBlock

KNOWN_MAX: Final = 1024
HEADERS_MAX: Final = 32
"""What has more headers, as it has much metadata, is not remembered."""


class HeaderBlocks:
    """Bounded, because clients choose what is read."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, HeaderBlock | None]] = {}
        """By the address of the record, which has it for as long as it is kept here. None: it was read once."""

    def find(self, record: object) -> HeaderBlock | None:
        known = self._known.get(id(record))
        return known[1] if known is not None and known[0] is record else None

    def remember(self, record: object, headers: list[tuple[str, str]]) -> None:
        """Called with the headers of a record that were not found."""
        if len(headers) > HEADERS_MAX:
            return
        known = self._known.get(id(record))
        is_read_again = known is not None and known[0] is record
        if not is_read_again and len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[id(record)] = record, HeaderBlock(headers.copy()) if is_read_again else None
