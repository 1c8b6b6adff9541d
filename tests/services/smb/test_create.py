"""CREATE as clients meet it: what each disposition does, and the status of every request that is refused."""

import struct
from typing import Any

import pytest

from kyanite.engine.api import Snapshot
from kyanite.model.files import security_descriptors, tree
from kyanite.model.files.tree import FilePath
from kyanite.wire import security_descriptor
from kyanite.wire.smb2.info import security
from kyanite.wire.smb2.status import Status
from tests.services.smb.client import ALL_ACCESS, READ_ATTRIBUTES, SHARE, Client

SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
SUPERSEDED, OPENED, CREATED, OVERWRITTEN = range(4)
DIRECTORY, FILE, DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
READ_ONLY, HIDDEN, SYSTEM, ARCHIVE, TEMPORARY = 0x1, 0x2, 0x4, 0x20, 0x100
READ_DATA, WRITE_DATA, DELETE, MAXIMUM_ALLOWED = 0x1, 0x2, 0x10000, 0x02000000


@pytest.fixture
def client() -> Client:
    client = Client()
    client.make_file("f", b"12345")
    client.make_directory("d")
    client.make_file("d/g", b"")
    return client


@pytest.mark.parametrize(
    ("disposition", "name", "options", "expected"),
    [
        (SUPERSEDE, "f", 0, SUPERSEDED),
        (SUPERSEDE, "new", 0, CREATED),
        (OPEN, "f", 0, OPENED),
        (OPEN, "new", 0, Status.OBJECT_NAME_NOT_FOUND),
        (CREATE, "f", 0, Status.OBJECT_NAME_COLLISION),
        (CREATE, "new", 0, CREATED),
        (OPEN_IF, "f", 0, OPENED),
        (OPEN_IF, "new", 0, CREATED),
        (OVERWRITE, "f", 0, OVERWRITTEN),
        (OVERWRITE, "new", 0, Status.OBJECT_NAME_NOT_FOUND),
        (OVERWRITE_IF, "f", 0, OVERWRITTEN),
        (OVERWRITE_IF, "new", 0, CREATED),
        # The kind.
        (OPEN, "d", 0, OPENED),
        (OPEN, "d", DIRECTORY, OPENED),
        (OPEN, "d", FILE, Status.FILE_IS_A_DIRECTORY),
        (OPEN, "f", DIRECTORY, Status.NOT_A_DIRECTORY),
        (OPEN_IF, "f", DIRECTORY, Status.NOT_A_DIRECTORY),
        (CREATE, "f", DIRECTORY, Status.OBJECT_NAME_COLLISION),
        (CREATE, "d", FILE, Status.FILE_IS_A_DIRECTORY),
        (CREATE, "d", DIRECTORY, Status.OBJECT_NAME_COLLISION),
        (CREATE, "new", DIRECTORY, CREATED),
        (OPEN_IF, "new", DIRECTORY, CREATED),
        (OPEN, "new", DIRECTORY, Status.OBJECT_NAME_NOT_FOUND),
        (OVERWRITE, "d", 0, Status.INVALID_PARAMETER),
        (SUPERSEDE, "d", 0, Status.INVALID_PARAMETER),
        (OVERWRITE, "d", DIRECTORY, Status.INVALID_PARAMETER),
        (OVERWRITE_IF, "new", DIRECTORY, Status.INVALID_PARAMETER),
        # The path.
        (OPEN, "", 0, OPENED),
        (OPEN, "", FILE, Status.FILE_IS_A_DIRECTORY),
        (OPEN, "d\\g", 0, OPENED),
        (OPEN, "D\\G", 0, OPENED),
        (OPEN, "d\\", 0, OPENED),
        (OPEN, "d\\", FILE, Status.OBJECT_NAME_INVALID),
        (OPEN, "d\\none", 0, Status.OBJECT_NAME_NOT_FOUND),
        (OPEN, "none\\g", 0, Status.OBJECT_PATH_NOT_FOUND),
        (OPEN, "f\\g", 0, Status.OBJECT_PATH_NOT_FOUND),
        (CREATE, "none\\new", 0, Status.OBJECT_PATH_NOT_FOUND),
        (OPEN, "d\\..\\f", 0, OPENED),
        (OPEN, "..\\f", 0, Status.OBJECT_PATH_SYNTAX_BAD),
        (OPEN, "d\\.\\g", 0, Status.OBJECT_PATH_NOT_FOUND),
        (OPEN, ".", 0, Status.OBJECT_NAME_INVALID),
        (OPEN, "\\f", 0, Status.INVALID_PARAMETER),
        (OPEN, "f/", 0, Status.OBJECT_NAME_INVALID),
        (OPEN, "f*", 0, Status.OBJECT_NAME_INVALID),
        (CREATE, "a:b", 0, Status.OBJECT_NAME_INVALID),
        (CREATE, "x" * 256, 0, Status.OBJECT_NAME_INVALID),
        (CREATE, "x" * 255, 0, CREATED),
        (CREATE, "dots..", 0, CREATED),
        # The stream.
        (OPEN, "f::$DATA", 0, OPENED),
        (OPEN, "f::$data", 0, OPENED),
        (OPEN, "d::$DATA", 0, Status.FILE_IS_A_DIRECTORY),
        (OPEN, "d::$DATA", DIRECTORY, Status.NOT_A_DIRECTORY),
        (OPEN, "f:stream", 0, Status.OBJECT_NAME_INVALID),
        (CREATE, "f:stream:$DATA", 0, Status.OBJECT_NAME_INVALID),
    ],
)
def test_dispositions(
    client: Client, disposition: int, name: str, options: int, expected: int | Status
) -> None:
    found = client.create(name, disposition, options=options)
    if isinstance(expected, Status):
        assert found.status is expected
    else:
        assert (found.status, found.action) == (Status.SUCCESS, expected)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"impersonation": 4}, Status.BAD_IMPERSONATION_LEVEL),
        ({"impersonation": 3}, Status.SUCCESS),
        ({"options": 0x2000}, Status.NOT_SUPPORTED),
        ({"options": 0x100000}, Status.NOT_SUPPORTED),
        ({"options": 0x80}, Status.NOT_SUPPORTED),
        ({"options": 0x01000000}, Status.INVALID_PARAMETER),
        ({"options": DIRECTORY | FILE}, Status.INVALID_PARAMETER),
        ({"options": DELETE_ON_CLOSE, "access": READ_DATA}, Status.INVALID_PARAMETER),
        ({"options": DELETE_ON_CLOSE, "access": DELETE}, Status.SUCCESS),
        ({"options": 0x00EFCF7E & ~DIRECTORY & ~DELETE_ON_CLOSE}, Status.SUCCESS),
        ({"sharing": 8}, Status.INVALID_PARAMETER),
        ({"disposition": 6}, Status.INVALID_PARAMETER),
        ({"attributes": 0x8}, Status.INVALID_PARAMETER),
        ({"attributes": 0x40}, Status.INVALID_PARAMETER),
        ({"attributes": 0x8000}, Status.INVALID_PARAMETER),
        ({"attributes": 0x10000}, Status.INVALID_PARAMETER),
        ({"access": 0}, Status.ACCESS_DENIED),
        ({"access": 0x200}, Status.ACCESS_DENIED),
        ({"access": 0x00200000}, Status.ACCESS_DENIED),
        ({"access": 0x00100000}, Status.SUCCESS),
        ({"access": 0x08000000, "attributes": 0x8}, Status.ACCESS_DENIED),
        ({"access": 0x04000000}, Status.ACCESS_DENIED),
        ({"access": 0x01000000}, Status.PRIVILEGE_NOT_HELD),
        ({"options": DIRECTORY, "attributes": TEMPORARY}, Status.INVALID_PARAMETER),
    ],
)
def test_what_is_wrong_whatever_is_opened(client: Client, arguments: dict[str, Any], status: Status) -> None:
    assert client.create("f", **arguments).status is status


@pytest.mark.parametrize(
    ("desired", "granted"),
    [
        (0x80000000, 0x00120089),
        (0x40000000, 0x00120116),
        (0x20000000, 0x001200A0),
        (0x10000000, 0x001F01FF),
        (0xC0000000, 0x0012019F),
        (MAXIMUM_ALLOWED, 0x001F01FF),
        (0x80000000 | DELETE, 0x00130089),
        (READ_DATA, READ_DATA),
    ],
)
def test_generic_rights_become_single_ones(client: Client, desired: int, granted: int) -> None:
    assert client.create("f", access=desired).opened.access == granted


def test_the_most_of_a_read_only_file_writes_nothing(client: Client) -> None:
    client.make_file("r", b"", READ_ONLY)
    assert client.create("r", access=MAXIMUM_ALLOWED).opened.access == 0x001F01F9


@pytest.mark.parametrize(
    ("arguments", "attributes", "status"),
    [
        ({"access": WRITE_DATA}, READ_ONLY, Status.ACCESS_DENIED),
        ({"access": 0x4}, READ_ONLY, Status.ACCESS_DENIED),
        ({"access": READ_DATA}, READ_ONLY, Status.SUCCESS),
        ({"access": DELETE}, READ_ONLY, Status.SUCCESS),
        ({"access": DELETE, "options": DELETE_ON_CLOSE}, READ_ONLY, Status.CANNOT_DELETE),
        ({"access": READ_DATA, "disposition": OVERWRITE}, READ_ONLY, Status.ACCESS_DENIED),
        ({"disposition": OVERWRITE}, HIDDEN, Status.ACCESS_DENIED),
        ({"disposition": OVERWRITE}, SYSTEM, Status.ACCESS_DENIED),
        ({"disposition": OVERWRITE, "attributes": HIDDEN}, HIDDEN, Status.SUCCESS),
        ({"disposition": OPEN_IF}, HIDDEN | SYSTEM, Status.SUCCESS),
    ],
)
def test_attributes_forbid(
    client: Client, arguments: dict[str, Any], attributes: int, status: Status
) -> None:
    client.make_file("a", b"", attributes)
    assert client.create("a", **arguments).status is status


def test_a_read_only_directory_may_be_opened_for_everything(client: Client) -> None:
    client.make_directory("r", 0x10 | READ_ONLY)
    assert client.create("r").status is Status.SUCCESS
    assert client.create("r\\new", CREATE).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("requested", "options", "attributes"),
    [
        (0, 0, ARCHIVE),
        (0x80, 0, ARCHIVE),
        (READ_ONLY | HIDDEN, 0, READ_ONLY | HIDDEN | ARCHIVE),
        (0x10, 0, ARCHIVE),
        (0x7FB7, 0, 0x3127),
        (HIDDEN | ARCHIVE, DIRECTORY, HIDDEN | 0x10),
        (0, DIRECTORY, 0x10),
    ],
)
def test_attributes_of_what_is_made(client: Client, requested: int, options: int, attributes: int) -> None:
    found = client.create("new", CREATE, attributes=requested, options=options)
    assert found.attributes == attributes


def test_the_handle_that_makes_a_read_only_file_may_write_it(client: Client) -> None:
    made = client.create("new", CREATE, attributes=READ_ONLY)
    assert made.opened.access == ALL_ACCESS
    assert client.create("other", CREATE, attributes=READ_ONLY, options=DELETE_ON_CLOSE).status is (
        Status.CANNOT_DELETE
    )
    assert client.create("other").status is Status.OBJECT_NAME_NOT_FOUND


@pytest.mark.parametrize("disposition", [SUPERSEDE, OVERWRITE, OVERWRITE_IF])
def test_an_overwrite_empties_the_file_and_keeps_what_it_is(client: Client, disposition: int) -> None:
    before = client.create("f")
    assert before.length == 5
    after = client.create("F", disposition, attributes=HIDDEN)
    assert (after.length, after.allocation, after.attributes) == (0, 0, HIDDEN | ARCHIVE)
    assert after.created_at == before.created_at
    assert after.opened.file_id == before.opened.file_id


def test_no_data_access_is_needed_to_overwrite_but_sharing_counts(client: Client) -> None:
    reader = client.create("f", access=READ_DATA, sharing=1)
    assert client.create("f", OVERWRITE, access=READ_ATTRIBUTES).status is Status.SHARING_VIOLATION
    client.close(reader.opened)
    assert client.create("f", OVERWRITE, access=READ_ATTRIBUTES).status is Status.SUCCESS


@pytest.mark.parametrize(
    ("held", "wanted", "goes"),
    [
        ((READ_DATA, 1), (READ_DATA, 1), True),
        ((READ_DATA, 1), (WRITE_DATA, 7), False),
        ((WRITE_DATA, 7), (READ_DATA, 1), False),
        ((0x20, 0), (READ_DATA, 7), False),
        ((0x4, 7), (READ_DATA, 1), False),
        ((READ_DATA, 0), (READ_ATTRIBUTES, 0), True),
        ((READ_ATTRIBUTES, 0), (ALL_ACCESS, 0), True),
        ((DELETE, 7), (READ_DATA, 3), False),
        ((READ_DATA, 7), (MAXIMUM_ALLOWED, 7), True),
        ((READ_DATA, 3), (MAXIMUM_ALLOWED, 7), False),
        ((0x8, 0), (0x1E0198, 0), True),
    ],
)
@pytest.mark.parametrize("name", ["f", "d"])
def test_share_modes_of_files_and_directories(
    client: Client, name: str, held: tuple[int, int], wanted: tuple[int, int], goes: bool
) -> None:
    assert client.create(name, access=held[0], sharing=held[1]).status is Status.SUCCESS
    found = client.create(name, access=wanted[0], sharing=wanted[1])
    assert found.status is (Status.SUCCESS if goes else Status.SHARING_VIOLATION)


def test_a_namespace_of_dfs_names_server_and_share_first(client: Client) -> None:
    assert client.create("host\\box\\d\\g", flags=0x10000000).status is Status.SUCCESS
    assert client.create("host\\box", flags=0x10000000).opened.is_directory


# --- Contexts


def context_data(found: bytes) -> dict[bytes, bytes]:
    data, at = {}, 0
    while found:
        step, name_at, name_length, _, data_at, length = struct.unpack_from("<IHHHHI", found, at)
        name = found[at + name_at : at + name_at + name_length]
        data[name] = found[at + data_at : at + data_at + length]
        if not step:
            break
        at += step
    return data


def test_the_maximal_access_and_the_id_are_returned(client: Client) -> None:
    found = client.create(
        "f", access=READ_ATTRIBUTES, contexts={b"MxAc": b"", b"QFid": b"", b"AAPL": b"x" * 24}
    )
    share_id = client.tree.share_id
    assert context_data(found.contexts) == {
        b"MxAc": struct.pack("<II", 0, ALL_ACCESS),
        b"QFid": struct.pack("<QQ16x", found.opened.file_id, share_id),
    }
    root = client.create("", contexts={b"QFid": b""})
    assert context_data(root.contexts) == {b"QFid": struct.pack("<QQ16x", share_id, share_id)}
    client.make_file("r", b"", READ_ONLY)
    protected = client.create("r", access=READ_ATTRIBUTES, contexts={b"MxAc": bytes(8)})
    assert context_data(protected.contexts) == {b"MxAc": struct.pack("<II", 0, ALL_ACCESS & ~0x6)}


def test_no_context_is_answered_that_was_not_sent(client: Client) -> None:
    assert client.create("f").contexts == b""


def test_extended_attributes_are_refused(client: Client) -> None:
    assert client.create("n", CREATE, contexts={b"ExtA": bytes(12)}).status is Status.EAS_NOT_SUPPORTED
    assert client.create("n", CREATE, contexts={b"ExtA": b""}).status is Status.SUCCESS


def test_the_size_that_is_expected_must_fit_the_quota(client: Client) -> None:
    quota = 5120 << 30
    small = client.create("n", CREATE, contexts={b"AlSi": struct.pack("<Q", 5000)})
    assert (small.length, small.allocation) == (0, 8192)
    large = {b"AlSi": struct.pack("<Q", quota - 4)}
    assert client.create("m", CREATE, contexts=large).status is Status.DISK_FULL
    assert client.create("f", OVERWRITE, contexts=large).status is Status.DISK_FULL
    assert client.create("f", OPEN, contexts=large).length == 5
    assert client.create("m").status is Status.OBJECT_NAME_NOT_FOUND


@pytest.mark.parametrize("options", [FILE, DIRECTORY])
def test_a_new_entry_has_the_descriptor_that_was_sent(client: Client, options: int) -> None:
    text = "O:BAG:BUD:(A;;FA;;;BA)"
    sent = security_descriptor.encode(text)
    client.create("n", CREATE, options=options, contexts={b"SecD": sent})
    assert descriptor_of(client, "n") == text
    client.create("d\\g", OVERWRITE, contexts={b"SecD": sent})
    assert descriptor_of(client, "d/g") != text


def test_parts_that_a_descriptor_lacks_are_inherited(client: Client) -> None:
    only_owner = security.select(security_descriptor.encode("O:BAG:BUD:(A;;FA;;;BA)"), security.OWNER)
    client.create("n", CREATE, contexts={b"SecD": only_owner})
    client.create("m", CREATE)
    assert descriptor_of(client, "n") == descriptor_of(client, "m").replace("O:SY", "O:BA", 1)


def test_a_descriptor_that_cannot_be_read_is_refused(client: Client) -> None:
    assert client.create("n", CREATE, contexts={b"SecD": b"x" * 20}).status is Status.INVALID_PARAMETER
    assert client.create("n").status is Status.OBJECT_NAME_NOT_FOUND


def descriptor_of(client: Client, path: str) -> str:
    def body(snap: Snapshot) -> str:
        found = tree.load(snap, FilePath(SHARE, tuple(path.split("/"))), None)
        return security_descriptors.load(snap, client.tree.share_id, found.entry.permission)

    return client.run(client.engine.read(body))
