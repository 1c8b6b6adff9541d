"""How far the scrub of a store has come (``maintenance/scrub.py``): one row."""

from collections.abc import Callable

import msgspec

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import encode
from kyanite.values import Instant


class ScrubState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Stored: fields are only ever added at the end."""

    began_at: Instant = Instant(0)
    """When the present or last pass began."""
    position: bytes = b""
    """Where the pass goes on."""
    is_complete: bool = True
    damaged: tuple[bytes, ...] = ()
    """The keys of damaged extents and rows that this pass has found."""
    damaged_before: tuple[bytes, ...] = ()
    """Those of the pass before it, as long as this one is not complete."""


decode: Callable[[bytes], ScrubState] = msgspec.msgpack.Decoder(ScrubState).decode


def load(snap: Snapshot) -> ScrubState:
    stored = snap.get(keys.SCRUB)
    return ScrubState() if stored is None else decode(stored)


def save(tx: Transaction, state: ScrubState) -> None:
    tx.put(keys.SCRUB, encode(state))
