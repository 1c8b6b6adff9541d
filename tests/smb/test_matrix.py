"""What each protocol forbids to the other: SMB clients with real handles, and the Azure SDK on the same files.

The tables are those of Azure's article on managing file locks. The server has several workers, and connections of both
protocols go to any of them. What SMB clients may cache is in ``test_matrix_caching.py``.
"""

import itertools
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ContentSettings, NTFSAttributes, ShareClient
from smbprotocol.open import Open, SMB2LockElement

from tests.smb.messages import (
    CREATE,
    DELETE,
    DELETE_ON_CLOSE,
    DIRECTORY,
    FILE,
    GENERIC_ALL,
    GENERIC_READ,
    OVERWRITE,
    READ_ATTRIBUTES,
    READ_WRITE,
    SHARE_ALL,
    Client,
    connected,
    refused,
)
from tests.smb.rest import LENGTH, OPERATIONS, WITHOUT_ACCESS, refusal, refusals
from tests.smb.shares import KyaniteShare

ACCESS_DENIED, SHARING_VIOLATION, FILE_LOCK_CONFLICT = 0xC0000022, 0xC0000043, 0xC0000054
DELETE_PENDING, FILE_CLOSED, CANNOT_DELETE = 0xC0000056, 0xC0000128, 0xC0000121
OBJECT_NAME_NOT_FOUND, DIRECTORY_NOT_EMPTY, LOCK_NOT_GRANTED = 0xC0000034, 0xC0000101, 0xC0000055

R, W, D = 1, 2, 4
READ_DATA, WRITE_DATA = 0x1, 0x2
DISPOSITION, IDS_OF_BOTH = 13, 37
SHARED, EXCLUSIVE, UNLOCK, AT_ONCE = 0x1, 0x2, 0x4, 0x10
SHARING = (409, "SharingViolation")
PENDING = (409, "SMBDeletePending")
LOCKED = (409, "FileLockConflict")
READ_ONLY = (409, "ReadOnlyAttribute")


@pytest.fixture
def share(share: KyaniteShare) -> KyaniteShare:
    """With a file of 1,000 bytes."""
    share.put("f", bytes(LENGTH))
    return share


@pytest.fixture
def rest(share: KyaniteShare) -> ShareClient:
    return share.rest


@pytest.fixture
def client(share: KyaniteShare) -> Iterator[Client]:
    with connected(share.login, share.name) as made:
        yield made


@pytest.fixture
def other(share: KyaniteShare) -> Iterator[Client]:
    """A second client, whose connection may be served by another worker."""
    with connected(share.login, share.name) as made:
        yield made


# --- Share modes


REFUSED_BY_SHARE_MODE = {
    0: "Create Get Set-Properties Set-Metadata Delete Put List-Ranges Lease",
    R: "Create Set-Properties Set-Metadata Delete Put Lease",
    W: "Create Get Delete List-Ranges Lease",
    D: "Create Get Set-Properties Set-Metadata Put List-Ranges Delete Lease",
    R | W: "Create Delete Lease",
    R | D: "Create Set-Properties Set-Metadata Put Delete Lease",
    W | D: "Get List-Ranges Delete Lease",
    R | W | D: "Delete",
}
"""The table of the article: what fails while a handle has this share mode."""
_NAMES = {
    "Create": "Create File",
    "Get": "Get File",
    "Set-Properties": "Set File Properties",
    "Set-Metadata": "Set File Metadata",
    "Delete": "Delete File",
    "Put": "Put Range",
    "List-Ranges": "List Ranges",
    "Lease": "Lease File",
}


@pytest.mark.parametrize("shared", REFUSED_BY_SHARE_MODE)
def test_a_share_mode_refuses_rest_operations(client: Client, rest: ShareClient, shared: int) -> None:
    opened = client.create("f", access=GENERIC_READ, sharing=shared)
    expected = {_NAMES[name]: SHARING for name in REFUSED_BY_SHARE_MODE[shared].split()}
    assert refusals(rest) == expected
    client.close(opened)
    assert refusals(rest) == {}


def test_a_handle_for_attributes_forbids_only_the_deletion(client: Client, rest: ShareClient) -> None:
    client.create("f", access=READ_ATTRIBUTES, sharing=0)
    assert refusals(rest) == {"Delete File": SHARING}


@pytest.mark.parametrize("access", [WRITE_DATA, DELETE, READ_WRITE])
def test_a_handle_that_may_change_the_file_refuses_a_lease(
    client: Client, rest: ShareClient, access: int
) -> None:
    client.create("f", access=access, sharing=SHARE_ALL)
    assert refusal(rest, OPERATIONS["Lease File"]) == SHARING


@pytest.mark.parametrize("shared", [R | W, R | W | D])
def test_a_rename_needs_handles_that_share_deletion(client: Client, rest: ShareClient, shared: int) -> None:
    client.create("f", access=GENERIC_READ, sharing=shared)
    found = refusal(rest, lambda each: each.get_file_client("f").rename_file("g"))
    assert found == (None if shared & D else SHARING)


ACCESS_MASKS = {0: READ_ATTRIBUTES, R: READ_DATA, W: WRITE_DATA, D: DELETE, R | W: READ_WRITE, 7: GENERIC_ALL}


def test_two_handles_conflict_if_either_does_what_the_other_does_not_share(
    client: Client, other: Client
) -> None:
    for first, first_shared, second, second_shared in itertools.product(
        (0, R, W, D), (0, R, 7), (0, R, W, 7), (0, R | W, 7)
    ):
        conflicts = bool(first and second and (second & ~first_shared or first & ~second_shared))
        held = client.create("f", access=ACCESS_MASKS[first], sharing=first_shared)
        if conflicts:
            with refused(SHARING_VIOLATION):
                other.create("f", access=ACCESS_MASKS[second], sharing=second_shared)
        else:
            other.close(other.create("f", access=ACCESS_MASKS[second], sharing=second_shared))
        client.close(held)


# --- Leases of REST


@pytest.mark.parametrize(
    ("access", "is_refused"),
    [(WRITE_DATA, True), (DELETE, True), (GENERIC_ALL, True), (READ_DATA, False), (READ_ATTRIBUTES, False)],
)
def test_a_leased_file_is_opened_for_reading_only(
    client: Client, rest: ShareClient, access: int, is_refused: bool
) -> None:
    lease = rest.get_file_client("f").acquire_lease()
    if is_refused:
        with refused(SHARING_VIOLATION):
            client.create("f", access=access)
    else:
        client.close(client.create("f", access=access))
    lease.release()
    client.close(client.create("f", access=access))


def test_a_broken_lease_forbids_nothing(client: Client, rest: ShareClient) -> None:
    rest.get_file_client("f").acquire_lease().break_lease()
    client.close(client.create("f", access=GENERIC_ALL))


def test_a_leased_file_is_not_overwritten(client: Client, rest: ShareClient) -> None:
    rest.get_file_client("f").acquire_lease()
    with refused(SHARING_VIOLATION):
        client.create("f", access=READ_DATA, disposition=OVERWRITE)


# --- Pending deletes


def mark(client: Client, opened: Open, value: bool = True) -> None:
    client.change(opened, FILE, DISPOSITION, bytes((value,)))


@pytest.mark.parametrize("by_option", [False, True])
def test_a_file_that_is_marked_for_deletion(
    client: Client, other: Client, rest: ShareClient, by_option: bool
) -> None:
    keeping = client.create("f")
    marking = other.create("f", access=GENERIC_ALL, options=DELETE_ON_CLOSE if by_option else 0)
    if by_option:
        other.close(marking)
    else:
        mark(other, marking)
    pending = dict.fromkeys(OPERATIONS.keys() - {"List Directories and Files"}, PENDING)
    assert refusals(rest) == pending
    assert [entry.name for entry in rest.list_directories_and_files()] == []
    assert len(list(rest.get_file_client("f").list_handles())) == (1 if by_option else 2)
    with refused(DELETE_PENDING):
        client.create("f", access=READ_ATTRIBUTES)
    assert "f" in client.names(client.create("", options=DIRECTORY).file_id, IDS_OF_BOTH)
    if not by_option:
        other.close(marking)
        assert refusal(rest, OPERATIONS["Get File"]) == PENDING
    client.close(keeping)
    assert refusal(rest, OPERATIONS["Get File"]) == (404, "ResourceNotFound")
    with refused(OBJECT_NAME_NOT_FOUND):
        client.create("f")


def test_a_mark_for_deletion_is_cleared_through_any_handle(
    client: Client, other: Client, rest: ShareClient
) -> None:
    marking, clearing = client.create("f"), other.create("f")
    mark(client, marking)
    client.close(marking)
    assert refusal(rest, OPERATIONS["Get File"]) == PENDING
    mark(other, clearing, False)
    assert refusal(rest, OPERATIONS["Get File"]) is None
    assert [entry.name for entry in rest.list_directories_and_files()] == ["f"]
    other.close(clearing)
    assert refusals(rest) == {}


def test_force_close_deletes_nothing(client: Client, rest: ShareClient) -> None:
    marking = client.create("f", options=DELETE_ON_CLOSE)
    mark(client, marking)
    assert rest.get_file_client("f").close_all_handles()["closed_handles_count"] == 1
    assert refusal(rest, OPERATIONS["Get File"]) is None
    with refused(FILE_CLOSED):
        client.read(marking, 0, 1)


def test_a_client_that_disconnects_deletes_what_it_had_marked(share: KyaniteShare, rest: ShareClient) -> None:
    with connected(share.login, share.name) as leaving:
        leaving.create("f", options=DELETE_ON_CLOSE)
    while not (found := refusal(rest, OPERATIONS["Get File"])):  # The server has to notice it.
        continue
    assert found == (404, "ResourceNotFound")


def test_a_directory_in_use_cannot_be_deleted_over_rest(client: Client, rest: ShareClient) -> None:
    rest.create_directory("d")
    opened = client.create("d", access=READ_ATTRIBUTES, options=DIRECTORY)
    assert refusal(rest, lambda each: each.delete_directory("d")) == (409, "CannotDeleteFileOrDirectory")
    client.close(opened)
    inside = client.create("d\\x", access=GENERIC_ALL, disposition=CREATE)
    assert refusal(rest, lambda each: each.delete_directory("d")) == (409, "DirectoryNotEmpty")
    with refused(DIRECTORY_NOT_EMPTY):
        mark(client, client.create("d", options=DIRECTORY))
    client.close(inside)


# --- Read-only files


def set_attributes(rest: ShareClient, attributes: NTFSAttributes) -> None:
    rest.get_file_client("f").set_http_headers(ContentSettings(), file_attributes=attributes)


def test_a_read_only_file_is_changed_by_neither_protocol(client: Client, rest: ShareClient) -> None:
    set_attributes(rest, NTFSAttributes(read_only=True))
    expected = {"Put Range", "Set File Metadata", "Create File", "Delete File"}
    assert refusals(rest) == dict.fromkeys(expected, READ_ONLY)
    with refused(ACCESS_DENIED):
        client.create("f", access=WRITE_DATA)
    with refused(CANNOT_DELETE):
        client.create("f", access=DELETE, options=DELETE_ON_CLOSE)
    deleting = client.create("f", access=DELETE)
    with refused(CANNOT_DELETE):
        mark(client, deleting)
    client.close(deleting)
    set_attributes(rest, NTFSAttributes(archive=True))
    assert refusals(rest) == {}


def test_an_attribute_that_smb_sets_counts_over_rest(client: Client, rest: ShareClient) -> None:
    client.close(client.create("g", disposition=CREATE, attributes=0x1))
    found = refusal(rest, lambda each: each.get_file_client("g").delete_file())
    assert found == READ_ONLY


# --- Locks


def lock(opened: Open, start: int, length: int, flags: int) -> None:
    element = SMB2LockElement()
    element["offset"], element["length"], element["flags"] = start, length, flags
    opened.lock([element])


def read_at(rest: ShareClient, start: int, length: int) -> tuple[int, str] | None:
    return refusal(rest, lambda each: each.get_file_client("f").download_file(start, length).readall())


def write_at(rest: ShareClient, start: int, length: int) -> tuple[int, str] | None:
    return refusal(rest, lambda each: each.get_file_client("f").upload_range(b"x" * length, start, length))


@pytest.mark.parametrize("kind", [SHARED, EXCLUSIVE])
@pytest.mark.parametrize("ending", ["unlock", "close", "force close", "disconnect"])
def test_a_lock_binds_rest(share: KyaniteShare, rest: ShareClient, kind: int, ending: str) -> None:
    with connected(share.login, share.name) as client:
        opened = client.create("f", access=READ_WRITE)
        lock(opened, 100, 50, kind | AT_ONCE)
        assert read_at(rest, 120, 1) == (LOCKED if kind == EXCLUSIVE else None)
        assert write_at(rest, 149, 1) == LOCKED
        assert read_at(rest, 0, 100) is None
        assert write_at(rest, 150, 10) is None
        for name in WITHOUT_ACCESS | {"Set File Properties", "Set File Metadata"}:
            assert refusal(rest, OPERATIONS[name]) is None, name
        if ending == "unlock":
            lock(opened, 100, 50, UNLOCK)
        elif ending == "close":
            client.close(opened)
        elif ending == "force close":
            rest.get_file_client("f").close_all_handles()
        if ending != "disconnect":
            assert write_at(rest, 100, 50) is None
    while write_at(rest, 100, 50):  # The server has to notice it.
        assert ending == "disconnect"


def test_a_lock_binds_other_handles(client: Client, other: Client) -> None:
    holding, trying = client.create("f", access=READ_WRITE), other.create("f", access=READ_WRITE)
    lock(holding, 0, 10, EXCLUSIVE | AT_ONCE)
    with refused(FILE_LOCK_CONFLICT):
        other.read(trying, 0, 1)
    with refused(FILE_LOCK_CONFLICT):
        other.write(trying, b"x", 5)
    with refused(LOCK_NOT_GRANTED):
        lock(trying, 5, 10, SHARED | AT_ONCE)
    client.write(holding, b"y", 5)
    lock(trying, 10, 10, EXCLUSIVE | AT_ONCE)


# --- Handles


def test_handles_are_listed_and_closed(client: Client, other: Client, rest: ShareClient) -> None:
    rest.create_directory("d")
    rest.get_file_client("d/x").upload_file(b"text")
    reading = client.create("f", access=GENERIC_READ)
    other.create("d\\x", access=GENERIC_ALL)
    [found] = rest.get_file_client("f").list_handles()
    assert (found.path, found.client_ip) == ("f", "127.0.0.1")
    assert found.access_rights == ["Read"]
    assert found.session_id
    assert found.file_id == rest.get_file_client("f").get_file_properties()["file_id"]
    below = list(rest.get_directory_client().list_handles(recursive=True))
    assert sorted(each.path for each in below) == ["d/x", "f"]
    inner = next(each for each in below if each.path == "d/x")
    assert sorted(inner.access_rights) == ["Delete", "Read", "Write"]
    assert rest.get_file_client("f").close_handle("1")["closed_handles_count"] == 0
    assert rest.get_file_client("f").close_handle(found)["closed_handles_count"] == 1
    with refused(FILE_CLOSED):
        client.read(reading, 0, 1)
    assert rest.get_directory_client().close_all_handles(recursive=True)["closed_handles_count"] == 1
    assert list(rest.get_directory_client().list_handles(recursive=True)) == []
    assert refusal(rest, OPERATIONS["Delete File"]) is None


# --- Changes through the other door


def test_each_protocol_sees_what_the_other_changes_immediately(client: Client, rest: ShareClient) -> None:
    opened = client.create("f", access=READ_WRITE)
    client.write(opened, b"from SMB", 0)
    assert rest.get_file_client("f").download_file(0, 8).readall() == b"from SMB"
    rest.get_file_client("f").upload_range(b"from REST", 100, 9)
    assert client.read(opened, 100, 9) == b"from REST"
    rest.get_file_client("f").resize_file(5)
    assert client.read(opened, 0, 100) == b"from "
    client.write(opened, b"!", 9)
    assert rest.get_file_client("f").get_file_properties().size == 10
    client.close(opened)
    rest.get_file_client("f").rename_file("g")
    with refused(OBJECT_NAME_NOT_FOUND):
        client.create("f")
    renamed = client.create("g", access=GENERIC_ALL)
    assert client.read(renamed, 9, 1) == b"!"
    client.close(renamed)
    rest.get_file_client("g").delete_file()
    with refused(OBJECT_NAME_NOT_FOUND):
        client.create("g")
