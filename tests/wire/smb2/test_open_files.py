"""What is done with an open file: READ, WRITE, FLUSH, LOCK, CLOSE, and the breaks of its oplocks and leases."""

import struct
from typing import Any

import pytest
from smbprotocol.change_notify import FileNotifyInformation, SMB2ChangeNotifyRequest, SMB2ChangeNotifyResponse
from smbprotocol.ioctl import SMB2IOCTLRequest
from smbprotocol.open import (
    SMB2CloseRequest,
    SMB2CloseResponse,
    SMB2FlushRequest,
    SMB2FlushResponse,
    SMB2LockElement,
    SMB2LockRequest,
    SMB2LockResponse,
    SMB2QueryDirectoryRequest,
    SMB2QueryInfoRequest,
    SMB2ReadRequest,
    SMB2ReadResponse,
    SMB2SetInfoRequest,
    SMB2WriteRequest,
    SMB2WriteResponse,
)
from smbprotocol.structure import Structure

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import body, change_notify, close, header, lock, oplock_break, read_write, session
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.change_notify import Action, Change
from kyanite.wire.smb2.close import ClosedFile
from kyanite.wire.smb2.filetime import FileTimes
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.lock import LockElement
from kyanite.wire.smb2.oplock_break import LeaseAcknowledgement, OplockAcknowledgement
from tests.wire.smb2 import oracle

FILE_ID = FileId(0x0102030405060708, 0x1112131415161718)
ID = struct.pack("<QQ", *FILE_ID)
KEY = bytes(range(16))


def message(hexadecimal: str) -> memoryview:
    return memoryview(bytes(64) + bytes.fromhex(hexadecimal))


def test_close() -> None:
    assert close.decode_close(oracle.request(SMB2CloseRequest, flags=1, file_id=ID)) == (True, FILE_ID)
    assert close.decode_close(oracle.request(SMB2CloseRequest, file_id=ID)) == (False, FILE_ID)
    fields = oracle.read(SMB2CloseResponse, close.encode_close())
    assert fields["flags"] == 0
    fields = oracle.read(
        SMB2CloseResponse, close.encode_close(ClosedFile(FileTimes(0, 0, 0, 0), 4096, 5, 0x20))
    )
    assert (fields["flags"], fields["allocation_size"], fields["end_of_file"]) == (1, 4096, 5)
    assert fields["file_attributes"] == 0x20
    assert close.encode_close(ClosedFile(FileTimes(1, 2, 3, 4), 5, 6, 7)) == struct.pack(
        "<HHI6QI", 60, 1, 0, 1, 2, 3, 4, 5, 6, 7
    )


def test_flush() -> None:
    assert close.decode_flush(oracle.request(SMB2FlushRequest, file_id=ID)) == FILE_ID
    oracle.read(SMB2FlushResponse, session.EMPTY)


@pytest.mark.parametrize("length", [0, 63, 64, 66, 80, 87])
def test_short_closes(length: int) -> None:
    whole = oracle.request(SMB2CloseRequest, file_id=ID)
    for decode in (close.decode_close, close.decode_flush):
        with pytest.raises(Malformed, match="INVALID_PARAMETER"):
            decode(whole[:length])


def test_read() -> None:
    request = oracle.request(
        SMB2ReadRequest, length=65536, offset=1 << 40, file_id=ID, minimum_count=3, buffer=b"\0"
    )
    assert read_write.decode_read(request) == (65536, 1 << 40, FILE_ID, 3)
    fields = oracle.read(SMB2ReadResponse, read_write.encode_read(5) + b"hello")
    assert (fields["data_offset"], fields["data_length"], fields["buffer"]) == (80, 5, b"hello")


def test_a_read_needs_its_one_byte_of_buffer() -> None:
    request = oracle.request(SMB2ReadRequest, file_id=ID, buffer=b"\0")
    with pytest.raises(Malformed):
        read_write.decode_read(request[:-1])


def test_write() -> None:
    request = oracle.request(SMB2WriteRequest, offset=7, file_id=ID, flags=1, buffer=b"hello")
    found = read_write.decode_write(request)
    assert found == (7, FILE_ID, read_write.WRITE_THROUGH, memoryview(b"hello"))
    assert found.data.obj is request.obj, "data is not copied"
    assert not read_write.decode_write(oracle.request(SMB2WriteRequest, file_id=ID, buffer=b"")).data
    fields = oracle.read(SMB2WriteResponse, read_write.encode_write(5))
    assert fields["count"] == 5


def write(*, size: int = 49, at: int = 112, length: int = 5, data: bytes = b"hello") -> memoryview:
    fixed = struct.pack("<HHIQQQIIHHI", size, at, length, 0, *FILE_ID, 0, 0, 0, 0, 0)
    return memoryview(bytes(64) + fixed + data)


@pytest.mark.parametrize(
    "request_",
    [
        write(size=48),
        write(at=111),
        write(at=113, length=4),
        write(length=6),
        write(length=0xFFFFFFFF),
        write(at=0, length=0),
        write()[:111],
        write()[:64],
    ],
)
def test_malformed_writes(request_: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        read_write.decode_write(request_)


def locks(*elements: tuple[int, int, int], count: int | None = None) -> Any:
    listed = [
        oracle.build(SMB2LockElement, offset=at, length=size, flags=flags) for at, size, flags in elements
    ]
    values = {} if count is None else {"lock_count": count}
    return oracle.request(SMB2LockRequest, lock_sequence=0x35, file_id=ID, locks=listed, **values)


def test_lock() -> None:
    found = lock.decode(locks((0, 10, lock.EXCLUSIVE), (1 << 63, 1, lock.UNLOCK)))
    assert found == (5, 3, FILE_ID, (LockElement(0, 10, 2), LockElement(1 << 63, 1, 4)))
    oracle.read(SMB2LockResponse, session.EMPTY)


def test_malformed_locks() -> None:
    with pytest.raises(Malformed):
        lock.decode(locks((0, 1, 1))[:-1])
    with pytest.raises(Malformed):
        lock.decode(locks((0, 1, 1), count=0))
    with pytest.raises(Malformed):
        lock.decode(locks((0, 1, 1), count=2))


def test_an_oplock_break() -> None:
    body_ = bytes.fromhex("1800 01 00 00000000") + ID
    assert oplock_break.decode(memoryview(bytes(64) + body_)) == OplockAcknowledgement(1, FILE_ID)
    assert oplock_break.encode_oplock(1, FILE_ID) == body_


def test_a_lease_break() -> None:
    acknowledgement = bytes.fromhex("2400 0000 00000000") + KEY + bytes.fromhex("03000000 0000000000000000")
    assert oplock_break.decode(memoryview(bytes(64) + acknowledgement)) == LeaseAcknowledgement(KEY, 3)
    assert oplock_break.encode_lease(KEY, 3) == acknowledgement
    notification = oplock_break.encode_lease_break(
        key=KEY, current_state=7, new_state=3, new_epoch=5, is_acknowledged=True
    )
    assert notification == bytes.fromhex("2c00 0500 01000000") + KEY + bytes.fromhex(
        "07000000 03000000"
    ) + bytes(12)
    unacknowledged = oplock_break.encode_lease_break(
        key=KEY, current_state=1, new_state=0, new_epoch=0, is_acknowledged=False
    )
    assert unacknowledged == bytes.fromhex("2c00 0000 00000000") + KEY + bytes.fromhex("01000000") + bytes(16)


@pytest.mark.parametrize(
    "request_",
    [
        message(""),
        message("18"),
        message("1800"),
        message("1800" + "00" * 21),
        message("2400" + "00" * 33),
        message("2c00" + "00" * 42),
    ],
)
def test_malformed_acknowledgements(request_: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        oplock_break.decode(request_)


def test_change_notify() -> None:
    request = oracle.request(
        SMB2ChangeNotifyRequest, flags=1, output_buffer_length=1000, file_id=ID, completion_filter=0x17
    )
    assert change_notify.decode(request) == (True, 1000, FILE_ID, 0x17)
    with pytest.raises(Malformed):
        change_notify.decode(request[:-1])


def test_changes() -> None:
    changes = [
        Change(Action.ADDED, "a"),
        Change(Action.RENAMED_OLD_NAME, "dir\\old"),
        Change(Action.RENAMED_NEW_NAME, "dir\\ne"),
    ]
    packed = change_notify.encode_changes(changes, 1000)
    assert packed is not None
    assert packed == bytes.fromhex(
        "10000000 01000000 02000000 6100 0000"
        "1c000000 04000000 0e000000 6400690072005c006f006c006400 0000"
        "00000000 05000000 0c000000 6400690072005c006e006500"
    )
    fields = oracle.read(FileNotifyInformation, packed[:14], is_whole=False)
    assert (fields["action"], fields["file_name"]) == (1, "a")
    assert change_notify.encode_changes(changes, len(packed)) == packed
    assert change_notify.encode_changes(changes, len(packed) - 1) is None
    assert change_notify.encode_changes([], 0) == b""
    response = oracle.read(SMB2ChangeNotifyResponse, body.encode_output(packed))
    assert (response["output_buffer_offset"], response["buffer"]) == (72, packed)
    assert body.encode_output(b"") == bytes.fromhex("0900480000000000")


@pytest.mark.parametrize(
    ("command", "structure"),
    [
        (Command.CLOSE, SMB2CloseRequest),
        (Command.FLUSH, SMB2FlushRequest),
        (Command.READ, SMB2ReadRequest),
        (Command.WRITE, SMB2WriteRequest),
        (Command.LOCK, SMB2LockRequest),
        (Command.IOCTL, SMB2IOCTLRequest),
        (Command.QUERY_DIRECTORY, SMB2QueryDirectoryRequest),
        (Command.CHANGE_NOTIFY, SMB2ChangeNotifyRequest),
        (Command.QUERY_INFO, SMB2QueryInfoRequest),
        (Command.SET_INFO, SMB2SetInfoRequest),
    ],
)
def test_the_file_of_a_request(command: Command, structure: type[Structure]) -> None:
    request = oracle.request(structure, file_id=ID)
    end = bytes(request).index(ID) + len(ID)
    assert header.decode_file_id(command, request) == FILE_ID
    assert header.decode_file_id(command, request[:end]) == FILE_ID
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        header.decode_file_id(command, request[: end - 1])


@pytest.mark.parametrize(
    "command", [Command.NEGOTIATE, Command.CREATE, Command.ECHO, Command.OPLOCK_BREAK, 99]
)
def test_requests_without_a_file(command: int) -> None:
    assert header.decode_file_id(command, bytes(64)) is None
