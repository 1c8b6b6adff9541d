"""Rows of a range by the groups of their keys: what ``scan_groups`` of a snapshot asks for.

An engine that has nothing better for it skips each group by a scan that begins behind it (``seek_groups``).
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kyanite.engine.api import STEP_ROWS

_Row = tuple[bytes, bytes]
_GROWTH: Final = 8


class Groups(NamedTuple):
    """A range of keys, and what makes groups of them."""

    start: bytes
    end: bytes
    inside: int
    delimiter: bytes

    @property
    def behind_delimiter(self) -> bytes:
        """What follows the delimiter, and all that begins with it, in the order of bytes."""
        return self.delimiter[:-1] + bytes((self.delimiter[-1] + 1,))

    def after_group(self, key: bytes) -> bytes | None:
        """What follows the last key of the group of this one; None if this one is in no group."""
        cut = key.find(self.delimiter, self.inside)
        return None if cut < 0 else key[:cut] + self.behind_delimiter


def seek_groups(
    scan: Callable[[bytes, bytes, bool, int | None], Iterator[_Row]], groups: Groups, limit: int
) -> Iterator[list[_Row]]:
    """The rows in parts, by scans of single rows behind a group and of more and more where there is none."""
    start, wanted = groups.start, 1
    while start < groups.end and limit > 0:
        wanted = min(wanted, limit)
        found = list(scan(start, groups.end, False, wanted))
        for index, (key, _) in enumerate(found, 1):
            behind = groups.after_group(key)
            if behind is not None:
                limit -= index
                start, wanted = behind, 1
                yield found[:index]
                break
        else:
            if found:
                limit -= len(found)
                yield found
            if len(found) < wanted:
                return
            start, wanted = found[-1][0] + b"\0", min(wanted * _GROWTH, STEP_ROWS)
