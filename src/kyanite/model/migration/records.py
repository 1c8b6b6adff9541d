"""What a target stores while an account moves into it: what has taken the place of what.

Each moved layer and extent has one reference from here, so it stays although the rows that need it come later, and the
target is sound at every moment. The rows go, and these references with them, when the migration has ended.
"""

from collections.abc import Callable

import msgspec

from kyanite.extents.api import Extent
from kyanite.model.records import Record


class Migration(Record, frozen=True):
    """Of one account."""

    source: str
    """Where it comes from, for people."""
    is_complete: bool = False
    """Whether everything is there and was compared. From then on the account is served, and nothing is corrected."""


class MovedLayer(Record, frozen=True):
    id: int
    is_whole: bool = False


decode_migration: Callable[[bytes], Migration] = msgspec.msgpack.Decoder(Migration).decode
decode_layer: Callable[[bytes], MovedLayer] = msgspec.msgpack.Decoder(MovedLayer).decode
decode_extent: Callable[[bytes], Extent] = msgspec.msgpack.Decoder(Extent).decode
