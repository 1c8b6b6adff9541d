"""Checks that many commands make of a request: its sizes, and the access that its open was granted."""

from kyanite.services.smb.request import Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2.status import Status

READ_DATA = 0x00000001
WRITE_DATA = 0x00000002
LIST_DIRECTORY = READ_DATA
READ_EA = 0x00000008
WRITE_EA = 0x00000010
READ_ATTRIBUTES = 0x00000080
WRITE_ATTRIBUTES = 0x00000100
READ_CONTROL = 0x00020000
WRITE_DAC = 0x00040000
WRITE_OWNER = 0x00080000
ACCESS_SYSTEM_SECURITY = 0x01000000

MAX_TRANSACT_BYTES = 8 * 1024 * 1024
_CREDIT_BYTES = 65_536


def check_size(request: Request, size: int) -> None:
    """Whether the larger of what is sent and what is requested is allowed, and paid for with credits."""
    if size > MAX_TRANSACT_BYTES or size > max(request.header.credit_charge, 1) * _CREDIT_BYTES:
        raise Failed(Status.INVALID_PARAMETER)


def check_access(opened: Open, needed: int) -> None:
    """Whether the open was granted all of these rights."""
    if needed & ~opened.access:
        raise Failed(Status.ACCESS_DENIED)


def check_changeable(opened: Open) -> None:
    """A share snapshot cannot be changed."""
    if opened.snapshot is not None:
        raise Failed(Status.MEDIA_WRITE_PROTECTED)
