"""READ (MS-SMB2 §3.3.5.12)."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from kyanite.engine.api import Snapshot
from kyanite.extents.api import Extents
from kyanite.model.content.content import PlanPart, Zeros
from kyanite.model.files.opens import data
from kyanite.model.files.opens.data import PlannedRead
from kyanite.rules.access_masks import EXECUTE, READ_DATA
from kyanite.services.smb.handler_checks import check_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2 import read_write
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.status import Status

OFFSET_MAX = (1 << 63) - 1
_PIECE_BYTES = 1024 * 1024
"""Other requests are served between two pieces of a long read."""
_ZEROS = memoryview(bytes(_PIECE_BYTES))


async def read(request: Request) -> Answer:
    length, offset, _, minimum_count = read_write.decode_read(request.message)
    opened = request.open
    check_size(request, length)
    if opened.is_directory:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    if not opened.access & (READ_DATA | EXECUTE):
        raise Failed(Status.ACCESS_DENIED)
    if offset + length > OFFSET_MAX:
        raise Failed(Status.INVALID_PARAMETER)
    buffers = [each async for each in _read(opened, offset, length)]
    count = sum(map(len, buffers))
    if count < minimum_count or (length and not count):
        raise Failed(Status.END_OF_FILE)
    opened.position = offset + count
    return Answer([read_write.encode_read(count), *buffers])


async def _read(opened: Open, offset: int, length: int) -> AsyncIterator[Data]:
    """The bytes, as far as the file has them. All are of one snapshot, unless they are in very many parts."""
    store = opened.tree.account.store
    until = offset + length
    while True:
        pin = store.extents.pin()
        try:
            body = partial(_plan, opened=opened, offset=offset, length=until - offset)
            planned = await store.engine.read(body)
            for part in planned.parts:
                async for piece in _pieces(store.extents, part):
                    yield piece
        finally:
            pin.release()
        offset, until = planned.end, min(until, planned.until)
        if offset >= until:
            return


def _plan(snap: Snapshot, opened: Open, offset: int, length: int) -> PlannedRead:
    if opened.snapshot is not None:
        return data.plan(snap, opened.find(snap).entry, offset, length)
    return data.read(snap, opened.tree.load(snap), opened.file_id, opened.handle_id, offset, length)


async def _pieces(extents: Extents, part: PlanPart) -> AsyncIterator[Data]:
    if isinstance(part, bytes):
        yield part
        return
    for at in range(0, part.length, _PIECE_BYTES):
        size = min(_PIECE_BYTES, part.length - at)
        if isinstance(part, Zeros):
            yield _ZEROS[:size]
            continue
        yield await extents.read(part.extent, part.offset + at, size)
        if size == _PIECE_BYTES:
            await asyncio.sleep(0)
