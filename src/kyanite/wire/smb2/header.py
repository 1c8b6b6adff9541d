"""The header of every message (MS-SMB2 §2.2.1), in its synchronous and its asynchronous form."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2.body import FILE_ID, HEADER_BYTES, Data, FileId, invalid

MAGIC = b"\xfeSMB"
SIGNATURE = slice(48, 64)
NO_SIGNATURE = bytes(16)

RESPONSE = 0x00000001
ASYNC = 0x00000002
RELATED = 0x00000004
SIGNED = 0x00000008
PRIORITY_MASK = 0x00000070
DFS = 0x10000000
REPLAY = 0x20000000
REQUEST_FLAGS = ASYNC | RELATED | SIGNED | PRIORITY_MASK | DFS | REPLAY
"""All flags that a request may have; ASYNC only a CANCEL."""

BREAK_MESSAGE_ID = 0xFFFFFFFFFFFFFFFF
"""The message id of break notifications, which answer no request."""


class Command(IntEnum):
    NEGOTIATE = 0
    SESSION_SETUP = 1
    LOGOFF = 2
    TREE_CONNECT = 3
    TREE_DISCONNECT = 4
    CREATE = 5
    CLOSE = 6
    FLUSH = 7
    READ = 8
    WRITE = 9
    LOCK = 10
    IOCTL = 11
    CANCEL = 12
    ECHO = 13
    QUERY_DIRECTORY = 14
    CHANGE_NOTIFY = 15
    QUERY_INFO = 16
    SET_INFO = 17
    OPLOCK_BREAK = 18


class Header(NamedTuple):
    """``status`` of a 3.x request holds the ChannelSequence; ``credits`` are those requested or granted."""

    command: int
    message_id: int
    credit_charge: int = 0
    status: int = 0
    credits: int = 0
    flags: int = 0
    next_command: int = 0
    process_id: int = 0
    """The reserved field of the synchronous form, which a response repeats."""
    tree_id: int = 0
    session_id: int = 0
    signature: bytes = NO_SIGNATURE

    @property
    def async_id(self) -> int:
        """Of the asynchronous form, where it takes the place of the reserved field and the tree id."""
        return self.tree_id << 32 | self.process_id

    @property
    def channel_sequence(self) -> int:
        return self.status & 0xFFFF

    def with_async_id(self, async_id: int) -> "Header":
        return self._replace(
            flags=self.flags | ASYNC, process_id=async_id & 0xFFFFFFFF, tree_id=async_id >> 32
        )


_LAYOUT = struct.Struct("<4sHHIHHIIQIIQ16s")
_FILE_ID_AT: dict[int, int] = {
    Command.CLOSE: 8,
    Command.FLUSH: 8,
    Command.READ: 16,
    Command.WRITE: 16,
    Command.LOCK: 8,
    Command.IOCTL: 8,
    Command.QUERY_DIRECTORY: 8,
    Command.CHANGE_NOTIFY: 8,
    Command.QUERY_INFO: 24,
    Command.SET_INFO: 16,
}
"""Where in the body of a request its file id is."""


def decode(message: Data) -> Header:
    """The header at the beginning of a message. Malformed closes the connection."""
    if len(message) < HEADER_BYTES:
        raise invalid()
    (
        magic,
        size,
        credit_charge,
        status,
        command,
        credits_,
        flags,
        next_command,
        message_id,
        process_id,
        tree_id,
        session_id,
        signature,
    ) = _LAYOUT.unpack_from(message)
    if magic != MAGIC or size != HEADER_BYTES:
        raise invalid()
    return Header(
        command,
        message_id,
        credit_charge,
        status,
        credits_,
        flags,
        next_command,
        process_id,
        tree_id,
        session_id,
        signature,
    )


def encode(header: Header) -> bytearray:
    """Mutable, so that a signature over the whole message can be put into it."""
    return bytearray(
        _LAYOUT.pack(
            MAGIC,
            HEADER_BYTES,
            header.credit_charge,
            header.status,
            header.command,
            header.credits,
            header.flags,
            header.next_command,
            header.message_id,
            header.process_id,
            header.tree_id,
            header.session_id,
            header.signature,
        )
    )


def decode_file_id(command: int, message: Data) -> FileId | None:
    """The file that a request is about, which a server looks up before it reads the rest of the body (§3.3.5.2).

    None for a command whose requests name no file, and for OPLOCK_BREAK, which does only in one of its two forms.
    """
    at = _FILE_ID_AT.get(command)
    if at is None:
        return None
    if len(message) < HEADER_BYTES + at + FILE_ID.size:
        raise invalid()
    return FileId(*FILE_ID.unpack_from(message, HEADER_BYTES + at))
