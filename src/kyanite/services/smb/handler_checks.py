"""Checks that many commands make of a request: its sizes, and the access that its open was granted."""

from kyanite.services.smb.request import Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2.status import Status

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


def check_any_access(opened: Open, sufficient: int) -> None:
    """Whether the open was granted one of these rights."""
    if not sufficient & opened.access:
        raise Failed(Status.ACCESS_DENIED)


def check_changeable(opened: Open) -> None:
    """A share snapshot cannot be changed."""
    if opened.snapshot is not None:
        raise Failed(Status.MEDIA_WRITE_PROTECTED)
