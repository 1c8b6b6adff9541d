"""The list of shares, which clients ask for on the pipe ``srvsvc`` (MS-SRVS §3.1.4.8, §3.1.4.10), in NDR.

A string is {capacity, 0, length, UTF-16 with a NUL}, padded to 4. A pointer is a number that is not 0; what it points
to follows behind the structure that holds it.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed

PIPE = "srvsvc"
INTERFACE = bytes.fromhex("c84f324b7016d30112785a47bf6ee18803000000")


class Operation(IntEnum):
    SHARE_ENUM = 15
    SHARE_GET_INFO = 16


ERROR_INVALID_LEVEL = 124
ERROR_SHARE_NOT_FOUND = 2310

SHARE_DISK = 0x00000000
SHARE_PIPE = 0x80000003
"""IPC$: a pipe, and special."""

_U32 = struct.Struct("<I")
_LONGEST_STRING = 1024
_FIRST_POINTER = 0x00020000


class Share(NamedTuple):
    name: str
    share_type: int
    remark: str = ""


class ShareEnum(NamedTuple):
    level: int
    has_resume_handle: bool


class ShareGetInfo(NamedTuple):
    name: str
    level: int


def decode_share_enum(stub: memoryview) -> ShareEnum:
    """Server name, level, an empty container of that level, preferred length, resume handle."""
    reader = _Reader(stub)
    reader.optional_string()
    level = reader.number()
    if reader.number() != level:
        raise _invalid()
    if reader.number():
        count, entries = reader.number(), reader.number()
        if count or entries:
            raise _invalid()
    reader.number()
    has_resume_handle = bool(reader.number())
    if has_resume_handle:
        reader.number()
    return ShareEnum(level, has_resume_handle)


def decode_share_get_info(stub: memoryview) -> ShareGetInfo:
    """Server name, share, level."""
    reader = _Reader(stub)
    reader.optional_string()
    name = reader.string()
    return ShareGetInfo(name, reader.number())


def encode_share_enum(call: ShareEnum, shares: Sequence[Share]) -> bytes:
    """All shares in level 0 or 1; any other level is refused inside the answer."""
    writer = _Writer()
    writer.number(call.level)
    writer.number(call.level)
    is_known = call.level in (0, 1)
    if is_known:
        writer.pointer()
        writer.number(len(shares))
        writer.pointer()
        writer.number(len(shares))
        for share in shares:
            writer.share(share, call.level)
        writer.strings()
    else:
        writer.number(0)
    writer.number(len(shares) if is_known else 0)
    if call.has_resume_handle:
        writer.pointer()
    writer.number(0)
    writer.number(0 if is_known else ERROR_INVALID_LEVEL)
    return writer.packed()


def encode_share_get_info(call: ShareGetInfo, share: Share | None) -> bytes:
    """The share in level 0 or 1, or an error."""
    writer = _Writer()
    writer.number(call.level)
    is_known = call.level in (0, 1)
    if share is not None and is_known:
        writer.pointer()
        writer.share(share, call.level)
        writer.strings()
        writer.number(0)
    else:
        writer.number(0)
        writer.number(ERROR_SHARE_NOT_FOUND if is_known else ERROR_INVALID_LEVEL)
    return writer.packed()


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        self._at += -self._at % 4
        if self._at + 4 > len(self._data):
            raise _invalid()
        (value,) = _U32.unpack_from(self._data, self._at)
        self._at += 4
        return int(value)

    def optional_string(self) -> str | None:
        return self.string() if self.number() else None

    def string(self) -> str:
        capacity, offset, length = self.number(), self.number(), self.number()
        end = self._at + 2 * length
        if offset or not 0 < length <= capacity or length > _LONGEST_STRING or end > len(self._data):
            raise _invalid()
        try:
            text = str(self._data[self._at : end], "utf-16-le")
        except UnicodeDecodeError:
            raise _invalid() from None
        self._at = end
        return text.removesuffix("\0")


class _Writer:
    def __init__(self) -> None:
        self._data = bytearray()
        self._pointers = 0
        self._waiting: list[str] = []

    def number(self, value: int) -> None:
        self._data += _U32.pack(value)

    def pointer(self) -> None:
        self.number(_FIRST_POINTER + 4 * self._pointers)
        self._pointers += 1

    def share(self, share: Share, level: int) -> None:
        self.pointer()
        self._waiting.append(share.name)
        if level:
            self.number(share.share_type)
            self.pointer()
            self._waiting.append(share.remark)

    def strings(self) -> None:
        """What the pointers of the shares so far point to."""
        for text in self._waiting:
            encoded = f"{text}\0".encode("utf-16-le")
            for number in (len(encoded) // 2, 0, len(encoded) // 2):
                self.number(number)
            self._data += encoded + bytes(-len(encoded) % 4)
        self._waiting.clear()

    def packed(self) -> bytes:
        return bytes(self._data)


def _invalid() -> Malformed:
    return Malformed("INVALID_PARAMETER")
