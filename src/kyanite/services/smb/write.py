"""WRITE and FLUSH (MS-SMB2 §3.3.5.13, §3.3.5.11)."""

import asyncio

from kyanite.model.files.opens.data import can_write_behind
from kyanite.rules.access_masks import WRITES
from kyanite.services.smb.handler_checks import check_size
from kyanite.services.smb.pending_write import NewWrite
from kyanite.services.smb.read import OFFSET_MAX
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.services.smb.write_queue import WriteTarget
from kyanite.wire.smb2 import close, read_write, session
from kyanite.wire.smb2.create import WRITE_THROUGH
from kyanite.wire.smb2.status import Status

_LENGTH_MAX = 0xFFFFFFF0000
"""The longest file of NTFS. Windows refuses WRITEs beyond; those beyond Azure's limit find the disk full."""


async def write(request: Request) -> Answer:
    """Nothing is awaited that waits before the WRITE is in its queue, so WRITEs are ordered as they arrive."""
    offset, _, flags, data = read_write.decode_write(request.message)
    opened, length = request.open, len(data)
    check_size(request, length)
    if opened.is_directory:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    if not opened.access & WRITES:
        raise Failed(Status.ACCESS_DENIED)
    if offset + length > (_LENGTH_MAX if length else OFFSET_MAX):
        raise Failed(Status.INVALID_PARAMETER)
    if length:
        may_be_behind = await _may_be_behind(request, offset, length, flags)
        new = NewWrite(
            opened.handle_id, offset, data, opened.keeps_last_write, opened.keeps_change, may_be_behind
        )
        write = request.environment.write_queues.write(_target_of(opened), new)
        opened.writes.add(write)
        await asyncio.shield(write.answered)
    return Answer(read_write.encode_write(length))


async def _may_be_behind(request: Request, offset: int, length: int, flags: int) -> bool:
    """Whether the WRITE may be answered before it is committed."""
    opened = request.open
    if request.environment.is_durable or flags & read_write.WRITE_THROUGH or opened.options & WRITE_THROUGH:
        return False
    file = opened.file_id, opened.handle_id
    return await opened.tree.account.store.engine.read(
        lambda snap: can_write_behind(snap, opened.tree.load(snap), *file, offset, length)
    )


def _target_of(opened: Open) -> WriteTarget:
    tree = opened.tree
    return WriteTarget(tree.account.store, tree.load, tree.share_id, opened.file_id)


async def flush(request: Request) -> Answer:
    """A WRITE is durable when it is committed, so it is enough to wait for those before."""
    close.decode_flush(request.message)
    opened = request.open
    if not opened.access & WRITES:
        raise Failed(Status.ACCESS_DENIED)
    await opened.writes.drained()
    if opened.writes.late_error is not None:
        error, opened.writes.late_error = opened.writes.late_error, None
        raise error
    return Answer(session.EMPTY)
