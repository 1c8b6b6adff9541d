"""Previous versions: opening files as they were at a snapshot of the share."""

import struct

import pytest

from kyanite.model.files import share_snapshots
from kyanite.services.smb import rename
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire.smb2 import filetime
from kyanite.wire.smb2.fsctl import snapshot_token
from kyanite.wire.smb2.status import Status
from tests.services.smb.client import READ_ATTRIBUTES, SHARE, Client

READS = 0x001200A9
READ_DATA, WRITE_DATA, DELETE, MAXIMUM_ALLOWED = 0x1, 0x2, 0x10000, 0x02000000
OPEN, CREATE, OPEN_IF, OVERWRITE_IF = 1, 2, 3, 5


@pytest.fixture
def client() -> Client:
    client = Client()
    client.make_directory("d")
    client.make_file("d/f", b"12345")
    return client


def take(client: Client) -> Instant:
    return client.run(share_snapshots.take(client.engine, SHARE, {}))[0]


@pytest.mark.parametrize("form", ["d\\f", "{}\\d\\f", "d\\{}\\f"])
def test_a_file_is_as_it_was(client: Client, form: str) -> None:
    at = take(client)
    client.make_file("d/f", b"1234567")
    contexts = {} if "{}" in form else {b"TWrp": struct.pack("<Q", filetime.encode(at))}
    found = client.create(form.format(snapshot_token(at)), access=READ_DATA, contexts=contexts)
    assert (found.status, found.action, found.length) == (Status.SUCCESS, 1, 5)
    assert client.create("d\\f").length == 7
    assert found.opened.snapshot is not None
    status, body = client.close(found.opened, wants_attributes=True)
    assert status is Status.SUCCESS
    assert struct.unpack_from("<Q", body, 48) == (5,)


def test_no_handle_is_written_for_it(client: Client) -> None:
    token = snapshot_token(take(client))
    client.create(f"{token}\\d\\f", access=READ_DATA)
    assert not any(client.rows(prefix) for prefix in (b"H", b"O", b"Q"))


def test_the_latest_snapshot_of_the_second_counts(client: Client) -> None:
    first = take(client)
    client.make_file("d/f", b"1234567")
    second = take(client)
    expected = 7 if first // TICKS_PER_SECOND == second // TICKS_PER_SECOND else 5
    assert client.create(f"{snapshot_token(first)}\\d\\f", access=READ_DATA).length == expected


@pytest.mark.parametrize(
    ("name", "disposition", "access", "options", "status"),
    [
        ("d\\f", OPEN, READS, 0, Status.SUCCESS),
        ("d\\f", OPEN_IF, READ_DATA, 0, Status.SUCCESS),
        ("", OPEN, READ_DATA, 0, Status.SUCCESS),
        ("d", OPEN, READ_DATA, 0x1, Status.SUCCESS),
        ("d", OPEN, READ_DATA, 0x40, Status.FILE_IS_A_DIRECTORY),
        ("none", OPEN, READ_DATA, 0, Status.OBJECT_NAME_NOT_FOUND),
        ("none\\f", OPEN, READ_DATA, 0, Status.OBJECT_PATH_NOT_FOUND),
        ("none", OPEN_IF, READ_DATA, 0, Status.MEDIA_WRITE_PROTECTED),
        ("none", CREATE, READ_DATA, 0, Status.MEDIA_WRITE_PROTECTED),
        ("d\\f", CREATE, READ_DATA, 0, Status.OBJECT_NAME_COLLISION),
        ("d\\f", OVERWRITE_IF, READ_DATA, 0, Status.MEDIA_WRITE_PROTECTED),
        ("d\\f", OPEN, WRITE_DATA, 0, Status.MEDIA_WRITE_PROTECTED),
        ("d\\f", OPEN, DELETE, 0x1000, Status.MEDIA_WRITE_PROTECTED),
        ("d\\f", OPEN, 0x10000000, 0, Status.MEDIA_WRITE_PROTECTED),
    ],
)
def test_what_can_be_opened(
    client: Client, name: str, disposition: int, access: int, options: int, status: Status
) -> None:
    token = snapshot_token(take(client))
    found = client.create(f"{token}\\{name}".rstrip("\\"), disposition, access=access, options=options)
    assert found.status is status


def test_the_most_that_is_granted_reads(client: Client) -> None:
    token = snapshot_token(take(client))
    found = client.create(f"{token}\\d\\f", access=MAXIMUM_ALLOWED, contexts={b"MxAc": b""})
    assert found.opened.access == READS
    assert found.contexts.endswith(struct.pack("<II", 0, READS))


def test_a_second_without_a_snapshot(client: Client) -> None:
    take(client)
    assert client.create("@GMT-2001.01.01-00.00.00\\d\\f", access=READ_DATA).status is (
        Status.OBJECT_NAME_NOT_FOUND
    )


def test_nothing_is_renamed_into_a_snapshot_or_out_of_it(client: Client) -> None:
    token = snapshot_token(take(client))
    name = f"{token}\\d\\g".encode("utf-16-le")
    data = struct.pack("<B7xQI", 0, 0, len(name)) + name
    opened = client.create("d\\f", access=DELETE).opened
    assert client.apply(rename.rename, opened, data) is Status.NOT_SAME_DEVICE
    old = client.create(f"{token}\\d\\f", access=READ_ATTRIBUTES).opened
    assert client.apply(rename.rename, old, data) is Status.MEDIA_WRITE_PROTECTED
    assert client.apply(rename.set_disposition, old, b"\1") is Status.MEDIA_WRITE_PROTECTED
