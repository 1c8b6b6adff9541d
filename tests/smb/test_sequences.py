"""What the clients that cannot run here send: their requests, replayed one message at a time.

Linux's cifs.ko, Explorer and Office on Windows, robocopy, and macOS. Each test is a sequence of one of them, and checks
what the client relies on.
"""

import contextlib
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.open import SMB2CloseRequest, SMB2CreateResponse, SMB2FlushRequest

from tests.smb.messages import (
    CREATE,
    DELETE,
    DELETE_ON_CLOSE,
    DIRECTORY,
    FILE,
    FILE_SYSTEM,
    GENERIC_READ,
    NO_MORE_FILES,
    NON_DIRECTORY,
    OPEN,
    OPEN_IF,
    OVERWRITE_IF,
    READ_ATTRIBUTES,
    READ_WRITE,
    SECURITY,
    SHARE_ALL,
    SHARE_READ,
    SHARE_WRITE,
    WHOLE_CHAIN,
    Client,
    connected,
    context,
    data_of_listing,
    data_of_query,
    names_in,
    query_directory,
    query_info,
    refused,
    rename_to,
    set_info,
)
from tests.smb.shares import Share

NO_SUCH_FILE = 0xC000000F
NOT_FOUND, OBJECT_NAME_NOT_FOUND = 0xC0000225, 0xC0000034
NO_EAS_ON_FILE, SHARING_VIOLATION = 0xC0000052, 0xC0000043
FS_DRIVER_REQUIRED = 0xC000019C
LIST_DIRECTORY = 0x100081
LEASE = 0xFF
BACKUP_INTENT, OPEN_REPARSE_POINT = 0x4000, 0x200000
READ_HANDLE_WRITE_CACHING = 7


@pytest.fixture
def client(share: Share) -> Iterator[Client]:
    with connected(share.login, share.name) as made:
        yield made


def close() -> Any:
    """The message of a CLOSE at the end of a compound."""
    message = SMB2CloseRequest()
    message["file_id"] = WHOLE_CHAIN
    message["flags"] = 1
    return message


def lease(number: int) -> Any:
    """A lease of the second version, for reading, writing and keeping the handle."""
    key = struct.pack("<QQ", 0xA5A5, number)
    data = key + struct.pack("<IIQ", READ_HANDLE_WRITE_CACHING, 0, 0) + bytes(16) + struct.pack("<HH", 0, 0)
    return context(b"RqLs", data)


def durable(number: int) -> Any:
    return context(b"DH2Q", struct.pack("<II8xQQ", 0, 0, 0xD0D0, number))


def opened_in(body: bytes) -> Any:
    response = SMB2CreateResponse()
    response.unpack(body)
    return response


# Linux, cifs.ko


def test_linux_mounts(client: Client) -> None:
    root = client.create("", access=READ_ATTRIBUTES, sharing=SHARE_ALL)
    attributes, longest, _ = struct.unpack_from("<III", client.query(root, FILE_SYSTEM, 5))
    assert attributes & 0x6 == 0x6
    assert longest == 255
    assert len(client.query(root, FILE_SYSTEM, 1)) >= 18
    assert struct.unpack("<II", client.query(root, FILE_SYSTEM, 4))[0] == 7
    assert len(client.query(root, FILE_SYSTEM, 11)) == 28
    client.close(root)


def test_linux_requests_referrals_and_network_interfaces(client: Client) -> None:
    with pytest.raises(SMBResponseException) as referral:
        client.ioctl(WHOLE_CHAIN, 0x60194, struct.pack("<H", 4) + "\\a\\b\0".encode("utf-16-le"))
    assert referral.value.status in {NOT_FOUND, FS_DRIVER_REQUIRED}
    with contextlib.suppress(SMBResponseException):  # smbd, which has several channels, has an answer.
        client.ioctl(WHOLE_CHAIN, 0x1401FC)
    root = client.create("", access=READ_ATTRIBUTES)
    client.close(root)


def test_linux_keeps_the_root_open_with_a_lease_request(client: Client) -> None:
    replies = client.compound(
        client.new_create("", access=0x81, options=DIRECTORY, oplock=LEASE, contexts=[lease(1)]),
        query_info(WHOLE_CHAIN, FILE, 18, length=104),
    )
    assert replies[0].status == 0
    # All information ends with the name: 104 bytes hold it, or the status says that it was cut.
    assert replies[1].status in {0, 0x80000005}


def test_linux_stats_in_one_round(client: Client, share: Share) -> None:
    share.put("file", b"12345")
    replies = client.compound(
        client.new_create("file", access=READ_ATTRIBUTES),
        query_info(WHOLE_CHAIN, FILE, 18),
        close(),
    )
    assert [reply.status for reply in replies] == [0, 0, 0]
    information = data_of_query(replies[1].body)
    assert struct.unpack_from("<Q", information, 48)[0] == 5
    assert struct.unpack_from("<I", information, 56)[0] == 1


def test_linux_stats_what_is_missing(client: Client) -> None:
    replies = client.compound(
        client.new_create("missing", access=READ_ATTRIBUTES),
        query_info(WHOLE_CHAIN, FILE, 18),
        close(),
    )
    assert [reply.status for reply in replies] == [OBJECT_NAME_NOT_FOUND] * 3


def test_linux_lists_a_directory(client: Client, share: Share) -> None:
    share.make_directory("directory")
    expected = {f"name {number:04}" for number in range(400)}
    for name in sorted(expected):
        share.put(f"directory/{name}", b"")
    created, listed = client.compound(
        client.new_create("directory", access=LIST_DIRECTORY, options=DIRECTORY),
        query_directory(WHOLE_CHAIN, 38, length=16384),
    )
    names = names_in(data_of_listing(listed.body), 38)
    file_id = opened_in(created.body)["file_id"].get_value()
    names += client.names(file_id, 38, length=16384)
    assert names[:2] == [".", ".."]
    assert len(names) == len(set(names))
    assert set(names[2:]) == expected


def test_linux_copies_a_file_in(client: Client, share: Share) -> None:
    opened = client.create(
        "file",
        access=READ_WRITE,
        disposition=OVERWRITE_IF,
        options=NON_DIRECTORY,
        oplock=LEASE,
        contexts=[lease(2), durable(2)],
    )
    parts = [bytes([number]) * 262_144 for number in range(16)]
    requests = [
        client.send(opened.write(part, number * len(part), send=False)[0])
        for number, part in enumerate(parts)
    ]
    for request in requests:
        client.received(request)
    client.call(flush_of(opened.file_id))
    time = 132_223_104_000_000_000
    client.change(opened, FILE, 4, struct.pack("<QQQQII", 0, 0, time, 0, 0, 0))
    closed = client.close(opened)
    assert closed["end_of_file"].get_value() == 16 * 262_144
    assert share.content("file") == b"".join(parts)
    again = client.create("file", access=READ_ATTRIBUTES)
    assert struct.unpack_from("<Q", client.query(again, FILE, 4), 16)[0] == time


def flush_of(file_id: bytes) -> Any:
    message = SMB2FlushRequest()
    message["file_id"] = file_id
    return message


def test_linux_removes_in_one_round(client: Client, share: Share) -> None:
    share.put("file", b"12345")
    replies = client.compound(client.new_create("file", access=DELETE, options=DELETE_ON_CLOSE), close())
    assert [reply.status for reply in replies] == [0, 0]
    assert share.names() == []


def test_linux_renames_in_one_round(client: Client, share: Share) -> None:
    share.put("old", b"12345")
    replies = client.compound(
        client.new_create("old", access=DELETE),
        set_info(WHOLE_CHAIN, FILE, 10, rename_to("new")),
        close(),
    )
    assert [reply.status for reply in replies] == [0, 0, 0]
    assert share.names() == ["new"]


def test_linux_measures_the_volume(client: Client) -> None:
    replies = client.compound(
        client.new_create("", access=READ_ATTRIBUTES), query_info(WHOLE_CHAIN, FILE_SYSTEM, 7), close()
    )
    total, free, _, sectors, sector = struct.unpack("<QQQII", data_of_query(replies[1].body))
    assert 0 < free <= total
    assert sectors * sector > 0


# Windows, Explorer


def test_explorer_opens_a_folder(client: Client, share: Share) -> None:
    share.put("file.txt", b"12345")
    root = client.create(
        "",
        access=LIST_DIRECTORY,
        options=DIRECTORY,
        oplock=LEASE,
        contexts=[lease(3), durable(3), context(b"MxAc"), context(b"QFid")],
    )
    client.query(root, FILE_SYSTEM, 1)
    client.query(root, FILE_SYSTEM, 5)
    client.query(root, FILE_SYSTEM, 7)
    first, second = client.compound(
        query_directory(root.file_id, 37, length=65536),
        query_directory(root.file_id, 37, length=65536),
        related=False,
    )
    assert names_in(data_of_listing(first.body), 37) == [".", "..", "file.txt"]
    assert second.status == NO_MORE_FILES
    with refused(OBJECT_NAME_NOT_FOUND):
        client.create("desktop.ini", access=GENERIC_READ, sharing=SHARE_ALL, options=NON_DIRECTORY)
    assert len(client.query(root, FILE, 34)) == 56
    client.close(root)


def test_explorer_reads_the_details_of_a_file(client: Client, share: Share) -> None:
    share.put("file.txt", b"12345")
    opened = client.create(
        "file.txt", access=0x20080, options=OPEN_REPARSE_POINT, contexts=[context(b"MxAc")]
    )
    network = client.query(opened, FILE, 34)
    assert struct.unpack_from("<Q", network, 40)[0] == 5
    streams = client.query(opened, FILE, 22)
    assert streams[24:].decode("utf-16-le") == "::$DATA"
    assert client.query(opened, FILE, 48)[4:].decode("utf-16-le") == "file.txt"
    descriptor = client.query(opened, SECURITY, 0, parts=7)
    assert descriptor[0] == 1
    assert struct.unpack_from("<H", descriptor, 2)[0] & 0x8004 == 0x8004


def test_explorer_finds_one_name(client: Client, share: Share) -> None:
    share.put("File.txt", b"")
    root = client.create("", access=LIST_DIRECTORY, options=DIRECTORY)
    assert names_in(client.listing(root, 37, "file.TXT"), 37) == ["File.txt"]
    other = client.create("", access=LIST_DIRECTORY, options=DIRECTORY)
    with refused(NO_SUCH_FILE):
        client.listing(other, 37, "missing.txt")


def test_explorer_copies_a_file_in(client: Client, share: Share) -> None:
    parts = [bytes([number]) * 1_048_576 for number in range(9)]
    size = sum(len(part) for part in parts)
    opened = client.create(
        "file",
        access=0x13019F,
        sharing=0,
        attributes=0x20,
        disposition=CREATE,
        options=NON_DIRECTORY,
        oplock=LEASE,
        contexts=[context(b"AlSi", struct.pack("<Q", size)), lease(4), durable(4), context(b"MxAc")],
    )
    client.change(opened, FILE, 20, struct.pack("<Q", size))
    requests = [
        client.send(opened.write(part, number * len(part), send=False)[0])
        for number, part in reversed(list(enumerate(parts)))
    ]
    for request in requests:
        client.received(request)
    client.change(opened, FILE, 4, struct.pack("<QQQQII", 0, 0, 132_223_104_000_000_000, 0, 0x20, 0))
    assert client.close(opened)["end_of_file"].get_value() == size
    assert share.content("file") == b"".join(parts)


def test_explorer_copies_inside_the_share(client: Client, share: Share) -> None:
    data = bytes(range(256)) * 12_000
    share.put("source", data)
    source = client.create("source", access=GENERIC_READ)
    target = client.create("target", access=READ_WRITE, disposition=CREATE)
    client.change(target, FILE, 20, struct.pack("<Q", len(data)))
    key = client.ioctl(source.file_id, 0x140078, max_output=32)[:24]
    pieces = [(start, min(1_048_576, len(data) - start)) for start in range(0, len(data), 1_048_576)]
    chunks = b"".join(struct.pack("<QQII", start, start, length, 0) for start, length in pieces)
    request = key + struct.pack("<II", len(pieces), 0) + chunks
    written, _, total = struct.unpack("<III", client.ioctl(target.file_id, 0x1440F2, request, max_output=12))
    assert (written, total) == (len(pieces), len(data))
    client.close(target)
    assert share.content("target") == data


def test_explorer_deletes_by_disposition(client: Client, share: Share) -> None:
    share.make_directory("directory")
    opened = client.create("directory", access=DELETE | READ_ATTRIBUTES, options=OPEN_REPARSE_POINT)
    client.change(opened, FILE, 13, b"\1")
    assert struct.unpack_from("<IBB", client.query(opened, FILE, 5), 16) == (0, 1, 1)
    client.close(opened)
    assert share.names() == []


# Windows, Office


def test_a_word_processor_saves_a_document(client: Client, share: Share) -> None:
    share.put("letter.docx", b"old text")
    own = client.create(
        "~$letter.docx",
        access=READ_WRITE | DELETE,
        sharing=SHARE_READ,
        attributes=0x2,
        disposition=CREATE,
        options=DELETE_ON_CLOSE | NON_DIRECTORY,
    )
    client.write(own, b"the user")
    directory = client.create("", access=READ_ATTRIBUTES, sharing=0, options=DIRECTORY)
    saved = client.create("A1B2.tmp", access=READ_WRITE | DELETE, sharing=SHARE_READ, disposition=CREATE)
    client.write(saved, b"new text")
    client.call(flush_of(saved.file_id))
    client.close(saved)
    for source, target in (("letter.docx", "C3D4.tmp"), ("A1B2.tmp", "letter.docx")):
        renamed = client.create(source, access=DELETE | 0x80 | 0x100000, sharing=SHARE_ALL)
        client.change(renamed, FILE, 10, rename_to(target))
        client.close(renamed)
    former = client.create("C3D4.tmp", access=DELETE, options=DELETE_ON_CLOSE)
    client.close(former)
    client.close(directory)
    client.close(own)
    assert share.names() == ["letter.docx"]
    assert share.content("letter.docx") == b"new text"


def test_a_word_processor_finds_a_document_in_use(client: Client, share: Share) -> None:
    share.put("letter.docx", b"text")
    with connected(share.login, share.name) as other:
        other.create("letter.docx", access=READ_WRITE, sharing=SHARE_READ)
        with refused(SHARING_VIOLATION):
            client.create("letter.docx", access=READ_WRITE, sharing=SHARE_READ)
        reading = client.create("letter.docx", access=GENERIC_READ, sharing=SHARE_READ | SHARE_WRITE)
        assert client.read(reading, 0, 100) == b"text"


# Windows, robocopy


def test_robocopy_copies_a_file_with_its_properties(client: Client, share: Share) -> None:
    share.put("source", b"text")
    source = client.create(
        "source", access=0x1A0089, options=BACKUP_INTENT | OPEN_REPARSE_POINT, sharing=SHARE_READ
    )
    basic = client.query(source, FILE, 4)
    assert struct.unpack_from("<Q", client.query(source, FILE, 5), 8)[0] == 4
    assert client.query(source, FILE, 22)
    with refused(NO_EAS_ON_FILE):
        client.query(source, FILE, 15)
    descriptor = client.query(source, SECURITY, 0, parts=7)
    target = client.create(
        "target",
        access=0x1F019F,
        sharing=0,
        disposition=OVERWRITE_IF,
        options=BACKUP_INTENT | NON_DIRECTORY | OPEN_REPARSE_POINT,
    )
    client.write(target, client.read(source, 0, 65536))
    client.change(target, FILE, 4, basic)
    client.change(target, SECURITY, 0, descriptor, parts=4)
    client.close(target)
    again = client.create("target", access=0x20089)
    assert client.query(again, FILE, 4)[:24] == basic[:24]
    assert share.content("target") == b"text"


# macOS


def test_macos_browses_a_folder_and_writes(client: Client, share: Share) -> None:
    share.put("photo.jpg", b"12345")
    apple = context(b"AAPL", struct.pack("<IIQQ", 1, 0, 7, 7))
    root = client.create("", access=READ_ATTRIBUTES, contexts=[apple])
    client.close(root)
    root = client.create("", access=LIST_DIRECTORY, options=DIRECTORY)
    assert "photo.jpg" in names_in(client.listing(root, 37), 37)
    photo = client.create("photo.jpg", access=READ_ATTRIBUTES)
    streams = client.query(photo, FILE, 22)
    assert streams[24:].decode("utf-16-le") == "::$DATA"
    beside = client.create("._photo.jpg", access=READ_WRITE, disposition=OPEN_IF)
    client.write(beside, bytes(4096))
    client.call(flush_of(beside.file_id))
    client.close(beside)
    assert share.names() == ["._photo.jpg", "photo.jpg"]


def test_macos_opens_a_path_of_directories(client: Client, share: Share) -> None:
    for path in ("a", "a/b", "a/b/c"):
        share.make_directory(path)
    share.put("a/b/c/file", b"text")
    opened = client.create(r"a\b\c\file", access=GENERIC_READ, disposition=OPEN)
    assert client.read(opened, 0, 10) == b"text"
    with pytest.raises(SMBResponseException):
        client.create(r"a\b\missing\file", access=GENERIC_READ)
