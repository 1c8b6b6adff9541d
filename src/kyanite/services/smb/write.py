"""WRITE and FLUSH (MS-SMB2 §3.3.5.13, §3.3.5.11)."""

import asyncio

from kyanite.rules.access_masks import WRITES
from kyanite.services.smb.handler_checks import check_size
from kyanite.services.smb.read import OFFSET_MAX
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.services.smb.write_queue import NewWrite, WriteTarget
from kyanite.wire.smb2 import close, read_write, session
from kyanite.wire.smb2.status import Status

_LENGTH_MAX = 0xFFFFFFF0000
"""The longest file of NTFS. Windows refuses WRITEs beyond; those beyond Azure's limit find the disk full."""


async def write(request: Request) -> Answer:
    """No other coroutine runs before the WRITE is in its queue, so WRITEs are ordered as they arrive."""
    offset, _, _, data = read_write.decode_write(request.message)
    opened, length = request.open, len(data)
    check_size(request, length)
    if opened.is_directory:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    if not opened.access & WRITES:
        raise Failed(Status.ACCESS_DENIED)
    if offset + length > (_LENGTH_MAX if length else OFFSET_MAX):
        raise Failed(Status.INVALID_PARAMETER)
    if length:
        new = NewWrite(opened.handle_id, offset, data, opened.keeps_last_write, opened.keeps_change)
        written = request.environment.write_queues.write(_target_of(opened), new)
        opened.writes.add(written)
        await asyncio.shield(written)
    return Answer(read_write.encode_write(length))


def _target_of(opened: Open) -> WriteTarget:
    tree = opened.tree
    return WriteTarget(tree.account.store, tree.load, tree.share_id, opened.file_id)


async def flush(request: Request) -> Answer:
    """A WRITE is durable when it is answered, so it is enough to wait for those before."""
    close.decode_flush(request.message)
    opened = request.open
    if not opened.access & WRITES:
        raise Failed(Status.ACCESS_DENIED)
    await opened.writes.drained()
    return Answer(session.EMPTY)
