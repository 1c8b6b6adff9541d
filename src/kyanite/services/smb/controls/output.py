"""What the answer to a control code carries."""

from typing import NamedTuple

from kyanite.wire.smb2.status import Status


class Output(NamedTuple):
    data: bytes = b""
    status: Status = Status.SUCCESS
    """An error may carry data, too."""
