"""IOCTL of files and directories: one row for each control code that is answered (MS-SMB2 §3.3.5.15).

Any other is INVALID_DEVICE_REQUEST: sparse files, reparse points, object ids, network interfaces and so on. What is
asked of a pipe, and FSCTL_VALIDATE_NEGOTIATE_INFO, which is about the connection, is answered elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping

from kyanite.rules.access_masks import WRITE_DATA
from kyanite.services.smb.controls import ranges
from kyanite.services.smb.controls.copy_chunks import copy_chunks, resume_key
from kyanite.services.smb.controls.output import Output
from kyanite.services.smb.controls.snapshots import list_snapshots
from kyanite.services.smb.handler_checks import check_access, check_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.wire.smb2 import ioctl as codec
from kyanite.wire.smb2.fsctl import Fsctl, decode_compression
from kyanite.wire.smb2.ioctl import IS_FSCTL, IoctlRequest
from kyanite.wire.smb2.status import Status

_NO_COMPRESSION = bytes(2)


async def control(request: Request, call: IoctlRequest) -> Answer:
    check_size(request, max(len(call.input), call.max_input_bytes + call.max_output_bytes))
    if call.flags != IS_FSCTL:
        raise Failed(Status.NOT_SUPPORTED)
    handler = _HANDLERS.get(call.code)
    if handler is None:
        raise Failed(_REFUSED.get(call.code, Status.INVALID_DEVICE_REQUEST))
    opened = request.open
    data, status = await handler(request, call)
    if len(data) > call.max_output_bytes:
        raise Failed(Status.BUFFER_TOO_SMALL)
    return Answer(codec.encode(call.code, opened.id, data), status)


async def _get_compression(request: Request, call: IoctlRequest) -> Output:
    """No file is compressed."""
    return Output(_NO_COMPRESSION)


async def _set_compression(request: Request, call: IoctlRequest) -> Output:
    check_access(request.open, WRITE_DATA)
    if decode_compression(call.input):
        raise Failed(Status.NOT_SUPPORTED)
    return Output()


_HANDLERS: Mapping[int, Callable[[Request, IoctlRequest], Awaitable[Output]]] = {
    Fsctl.GET_COMPRESSION: _get_compression,
    Fsctl.SET_COMPRESSION: _set_compression,
    Fsctl.SET_ZERO_DATA: ranges.set_zero_data,
    Fsctl.QUERY_ALLOCATED_RANGES: ranges.query_allocated_ranges,
    Fsctl.SRV_REQUEST_RESUME_KEY: resume_key,
    Fsctl.SRV_COPYCHUNK: copy_chunks,
    Fsctl.SRV_COPYCHUNK_WRITE: copy_chunks,
    Fsctl.SRV_ENUMERATE_SNAPSHOTS: list_snapshots,
}
_REFUSED: Mapping[int, Status] = {
    Fsctl.DFS_GET_REFERRALS: Status.NOT_FOUND,
    Fsctl.DFS_GET_REFERRALS_EX: Status.NOT_FOUND,
    Fsctl.GET_REPARSE_POINT: Status.NOT_A_REPARSE_POINT,
    Fsctl.PIPE_WAIT: Status.NOT_SUPPORTED,
}
