"""READ (MS-SMB2 §3.3.5.12)."""

import asyncio
from functools import partial

from kyanite.engine.api import Snapshot
from kyanite.model.content.checked_reads import CheckedReader
from kyanite.model.content.content import PlanPart, Zeros
from kyanite.model.files.opens import data
from kyanite.model.files.opens.data import PlannedRead
from kyanite.rules.access_masks import EXECUTE, READ_DATA
from kyanite.services.smb.handler_checks import check_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2 import read_write
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.buffers import new_buffer
from kyanite.wire.smb2.status import Status

OFFSET_MAX = (1 << 63) - 1
_PIECE_BYTES = 2 * 1024 * 1024
"""Other requests are served between two pieces of a long read."""


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
    content = await _read(opened, offset, length)
    count = len(content)
    if count < minimum_count or (length and not count):
        raise Failed(Status.END_OF_FILE)
    opened.position = offset + count
    return Answer([read_write.encode_read(count), content])


async def _read(opened: Open, offset: int, length: int) -> Data:
    """The bytes, as far as the file has them. All are of one snapshot, unless they are in very many parts."""
    store = opened.tree.account.store
    buffer: memoryview | None = None
    filled = 0
    while True:
        pin = store.extents.pin()
        try:
            body = partial(_plan, opened=opened, offset=offset + filled, length=length - filled)
            planned = await store.engine.read(body)
            if buffer is None:
                length = max(planned.until - offset, 0)
                if not planned.parts:
                    return b""
                if len(planned.parts) == 1 and isinstance(part := planned.parts[0], bytes):
                    return part
                buffer = memoryview(new_buffer(length))
            filled += await _fill(store.reader, planned.parts, buffer[filled:])
        finally:
            pin.release()
        if (
            filled == length or not planned.parts
        ):  # Else the rest is in too many parts, or the file is shorter now.
            return buffer[:filled]


def _plan(snap: Snapshot, opened: Open, offset: int, length: int) -> PlannedRead:
    if opened.snapshot is not None:
        return data.plan(snap, opened.find(snap).entry, offset, length)
    return data.read(snap, opened.tree.load(snap), opened.file_id, opened.handle_id, offset, length)


async def _fill(reader: CheckedReader, parts: list[PlanPart], buffer: memoryview) -> int:
    """Put the parts into the buffer, one after the other; how many bytes these are."""
    filled = since_pause = 0
    for part in parts:
        if isinstance(part, bytes):
            buffer[filled : filled + len(part)] = part
            filled += len(part)
            continue
        for at in range(0, part.length, _PIECE_BYTES):
            piece = buffer[filled : filled + min(_PIECE_BYTES, part.length - at)]
            if isinstance(part, Zeros):
                piece[:] = bytes(len(piece))
            else:
                await reader.read_into(part.extent, part.offset + at, piece)
            filled += len(piece)
            since_pause += len(piece)
            if since_pause >= _PIECE_BYTES:
                since_pause = 0
                await asyncio.sleep(0)
    return filled
