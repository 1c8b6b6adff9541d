"""Server-side copy: a key for an open file, and copying chunks of that file into another (MS-SMB2 §3.3.5.15.5, .6)."""

from collections.abc import Sequence

from kyanite.engine.api import Transaction
from kyanite.model.files.opens import copying
from kyanite.model.files.opens.copying import Chunk, OpenFound, Progress
from kyanite.rules.access_masks import EXECUTE, READ_DATA, WRITES
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb.controls.output import Output
from kyanite.services.smb.handler_checks import check_access, check_any_access, check_changeable
from kyanite.services.smb.request import Failed, Request
from kyanite.services.smb.state import Open
from kyanite.services.smb.statuses import STATUSES
from kyanite.wire.smb2 import fsctl
from kyanite.wire.smb2.fsctl import CopyChunk, Fsctl
from kyanite.wire.smb2.ioctl import IoctlRequest
from kyanite.wire.smb2.status import Status

CHUNKS_MAX = 256
CHUNK_BYTES_MAX = 1024 * 1024
TOTAL_BYTES_MAX = 16 * 1024 * 1024
_LIMITS = fsctl.encode_copied(
    chunks=CHUNKS_MAX, bytes_of_failed_chunk=CHUNK_BYTES_MAX, total_bytes=TOTAL_BYTES_MAX
)
_KEY_BYTES = 32
_STATUSES = {
    Reason.INVALID_RANGE: Status.INVALID_VIEW_SIZE,
    Reason.FILE_LOCK_CONFLICT: Status.FILE_LOCK_CONFLICT,
    Reason.SHARE_SIZE_LIMIT_REACHED: Status.DISK_FULL,
}
"""What can be wrong with a chunk. The answer still says how many chunks were copied before it."""


async def resume_key(request: Request, call: IoctlRequest) -> Output:
    if call.max_output_bytes < _KEY_BYTES:
        raise Failed(Status.BUFFER_TOO_SMALL)
    return Output(fsctl.encode_resume_key(request.open.id))


async def copy_chunks(request: Request, call: IoctlRequest) -> Output:
    if call.max_output_bytes < len(_LIMITS):
        raise Failed(Status.INVALID_PARAMETER)
    wanted = fsctl.decode_copy_chunks(call.input)
    if not _are_within_limits(wanted.chunks):
        return Output(_LIMITS, Status.INVALID_PARAMETER)
    target = request.open
    source = _source(request, wanted.source_key)
    check_any_access(source, READ_DATA | EXECUTE)
    check_any_access(target, WRITES)
    if call.code == Fsctl.SRV_COPYCHUNK:
        check_access(target, READ_DATA)
    if source.is_directory or target.is_directory:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    check_changeable(target)
    await source.writes.drained()
    return await _copied(source, target, [Chunk(*each) for each in wanted.chunks])


def _are_within_limits(chunks: Sequence[CopyChunk]) -> bool:
    return (
        len(chunks) <= CHUNKS_MAX
        and all(0 < each.length <= CHUNK_BYTES_MAX for each in chunks)
        and sum(each.length for each in chunks) <= TOTAL_BYTES_MAX
    )


def _source(request: Request, key: bytes) -> Open:
    """The open of a key: any of the same session, as long as it is open."""
    wanted = fsctl.decode_resume_key(key)
    for tree in request.session.trees.values():
        found = tree.opens.get(wanted.volatile)
        if found is not None and found.id == wanted and tree.share is not None:
            return found
    raise Failed(Status.OBJECT_NAME_NOT_FOUND)


async def _copied(source: Open, target: Open, chunks: list[Chunk]) -> Output:
    total, status, left = 0, Status.SUCCESS, chunks
    while left and status is Status.SUCCESS:
        try:
            progress = await _run(source, target, left)
        except Refused as refused:
            if refused.reason not in _STATUSES:
                raise
            progress = Progress(0, refused.reason)
        total += progress.copied_bytes
        left = _rest(left, progress.copied_bytes)
        if progress.reason is not None:
            status = _STATUSES.get(progress.reason) or STATUSES[progress.reason]
    copied = fsctl.encode_copied(chunks=len(chunks) - len(left), bytes_of_failed_chunk=0, total_bytes=total)
    return Output(copied, status)


async def _run(source: Open, target: Open, chunks: Sequence[Chunk]) -> Progress:
    def body(tx: Transaction) -> Progress:
        return copying.copy_chunks(
            tx,
            OpenFound(source.find(tx), None if source.snapshot is not None else source.actor),
            OpenFound(target.find(tx), target.actor),
            chunks,
            target.kept_times,
        )

    return await target.tree.account.store.engine.run(body)


def _rest(chunks: list[Chunk], copied_bytes: int) -> list[Chunk]:
    """What is left when so many bytes were copied."""
    for index, chunk in enumerate(chunks):
        if copied_bytes < chunk.length:
            source_offset, target_offset, length = chunk
            first = Chunk(source_offset + copied_bytes, target_offset + copied_bytes, length - copied_bytes)
            return [first, *chunks[index + 1 :]]
        copied_bytes -= chunk.length
    return []
