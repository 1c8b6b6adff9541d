"""Control codes about the bytes of a file: which of them are stored, and zeros in place of some (MS-FSCC §2.3)."""

from kyanite.engine.api import Snapshot, Steps, Transaction
from kyanite.model.content import ranges
from kyanite.model.files.opens import changes
from kyanite.rules.access_masks import READ_DATA, WRITE_DATA
from kyanite.services.smb.controls.output import Output
from kyanite.services.smb.handler_checks import check_access, check_changeable
from kyanite.services.smb.request import Failed, Request
from kyanite.wire.smb2 import fsctl
from kyanite.wire.smb2.fsctl import ByteRange
from kyanite.wire.smb2.info.file_system import UNIT_BYTES
from kyanite.wire.smb2.ioctl import IoctlRequest
from kyanite.wire.smb2.status import Status

_RANGE_BYTES = 16
_RANGES_MAX = 65_536


async def set_zero_data(request: Request, call: IoctlRequest) -> Output:
    opened = request.open
    check_access(opened, WRITE_DATA)
    offset, length = fsctl.decode_zero_data(call.input)
    if opened.is_directory:
        raise Failed(Status.INVALID_PARAMETER)
    check_changeable(opened)

    def body(tx: Transaction) -> None:
        changes.clear(tx, opened.find(tx), opened.actor, offset, length, opened.kept_times)

    await opened.tree.account.store.engine.run(body)
    return Output()


async def query_allocated_ranges(request: Request, call: IoctlRequest) -> Output:
    """In whole units. What does not fit into the client's buffer is left out, and the status says so."""
    opened = request.open
    check_access(opened, READ_DATA)
    start, length = fsctl.decode_allocated_ranges(call.input)
    if opened.is_directory:
        raise Failed(Status.INVALID_PARAMETER)
    limit = min(call.max_output_bytes // _RANGE_BYTES, _RANGES_MAX)

    def body(snap: Snapshot) -> Steps[ranges.RangePage]:
        entry = opened.describe(snap).found.entry
        end = min(start + length, entry.length)
        return ranges.data_ranges(snap, entry.content, start, max(end, start), limit=limit, block=UNIT_BYTES)

    page = await opened.tree.account.store.engine.read_in_steps(body)
    if page.next_start is not None and not page.ranges:
        raise Failed(Status.BUFFER_TOO_SMALL)
    data = fsctl.encode_allocated_ranges(
        [ByteRange(each.start, each.end - each.start) for each in page.ranges]
    )
    return Output(data, Status.SUCCESS if page.next_start is None else Status.BUFFER_OVERFLOW)
