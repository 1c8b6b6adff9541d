"""What slow reads keep: extents that some process reads for a long time, and which nothing may refer to any more."""

from functools import partial

from kyanite.engine.api import Engine
from kyanite.model.content.reading import kept_extents
from kyanite.slices import next_slice

_SLOW_READS_AT_ONCE = 50


async def kept_by_slow_reads(engine: Engine) -> dict[tuple[bytes, int], int]:
    """The lengths of all extents that slow reads keep, by segment and start.

    To be read after the pins of their readers were found to be released.
    """
    kept: dict[tuple[bytes, int], int] = {}
    start = b""
    while True:
        some, start = await engine.read(partial(kept_extents, start=start, limit=_SLOW_READS_AT_ONCE))
        kept |= {(extent.segment, extent.start): extent.length for extent in some}
        if not start:
            return kept
        await next_slice()
