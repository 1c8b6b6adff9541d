"""SET_INFO of names and of the mark for deletion, and what a CLOSE then does."""

import struct

import pytest

from kyanite.services.smb import rename
from kyanite.services.smb.state import Open
from kyanite.wire.smb2.status import Status
from tests.services.smb.client import Client

OPEN, CREATE, OPEN_IF, OVERWRITE_IF = 1, 2, 3, 5
DIRECTORY, DELETE_ON_CLOSE = 0x1, 0x1000
READ_DATA, WRITE_DATA, READ_ATTRIBUTES, DELETE = 0x1, 0x2, 0x80, 0x10000
READ_ONLY = 0x1


@pytest.fixture
def client() -> Client:
    client = Client()
    for path in ("d", "d/e", "x"):
        client.make_directory(path)
    for path in ("f", "d/g", "d/e/h"):
        client.make_file(path, b"12345")
    return client


def move(
    client: Client, opened: Open, name: str, *, replaces: bool = False, extended: bool = False
) -> Status:
    text = name.encode("utf-16-le")
    if extended:
        data = struct.pack("<IIQI", int(replaces), 0, 0, len(text)) + text
        return client.apply(rename.rename_ex, opened, data)
    return client.apply(rename.rename, opened, struct.pack("<B7xQI", replaces, 0, len(text)) + text)


def mark(client: Client, opened: Open, deletes: bool = True) -> Status:
    return client.apply(rename.set_disposition, opened, bytes([deletes]))


def exists(client: Client, name: str) -> bool:
    found = client.create(name, access=READ_ATTRIBUTES)
    if found.open is None:
        assert found.status is Status.OBJECT_NAME_NOT_FOUND
        return False
    client.close(found.opened)
    return True


@pytest.mark.parametrize(
    ("source", "target", "replaces", "status"),
    [
        ("f", "new", False, Status.SUCCESS),
        ("f", "\\new", False, Status.SUCCESS),
        ("f", "d\\new", False, Status.SUCCESS),
        ("f", "f", False, Status.SUCCESS),
        ("f", "F", False, Status.SUCCESS),
        ("d\\g", "g", False, Status.SUCCESS),
        ("x", "d\\y", False, Status.SUCCESS),
        ("f", "d\\g", False, Status.OBJECT_NAME_COLLISION),
        ("f", "d\\g", True, Status.SUCCESS),
        ("f", "x", False, Status.OBJECT_NAME_COLLISION),
        ("f", "x", True, Status.ACCESS_DENIED),
        ("x", "d", True, Status.ACCESS_DENIED),
        ("f", "none\\new", False, Status.OBJECT_PATH_NOT_FOUND),
        ("f", "d\\g\\new", False, Status.OBJECT_PATH_NOT_FOUND),
        ("d", "d\\e\\new", False, Status.SHARING_VIOLATION),
        ("f", "a*", False, Status.OBJECT_NAME_INVALID),
        ("f", "a:b", False, Status.OBJECT_NAME_INVALID),
        ("f", "\\", False, Status.OBJECT_NAME_INVALID),
        ("f", "", False, Status.INVALID_PARAMETER),
        ("", "new", False, Status.ACCESS_DENIED),
    ],
)
@pytest.mark.parametrize("extended", [False, True])
def test_rename(
    client: Client, source: str, target: str, replaces: bool, status: Status, extended: bool
) -> None:
    opened = client.create(source, access=DELETE).opened
    assert move(client, opened, target, replaces=replaces, extended=extended) is status
    client.close(opened)
    if status is Status.SUCCESS:
        assert exists(client, target.removeprefix("\\"))
        assert exists(client, source) is (source.lower() == target.lower())


def test_a_rename_needs_the_right_to_delete(client: Client) -> None:
    opened = client.create("f", access=READ_DATA | WRITE_DATA).opened
    assert move(client, opened, "new") is Status.ACCESS_DENIED


def test_open_and_read_only_files_are_not_replaced(client: Client) -> None:
    opened = client.create("f", access=DELETE).opened
    other = client.create("d\\g", access=READ_ATTRIBUTES).opened
    assert move(client, opened, "d\\g", replaces=True) is Status.ACCESS_DENIED
    client.close(other)
    client.make_file("r", b"", READ_ONLY)
    assert move(client, opened, "r", replaces=True) is Status.ACCESS_DENIED
    assert move(client, opened, "d\\g", replaces=True) is Status.SUCCESS


def test_a_directory_with_anything_open_below_stays(client: Client) -> None:
    opened = client.create("d", access=DELETE).opened
    below = client.create("d\\e\\h", access=READ_ATTRIBUTES).opened
    assert move(client, opened, "new") is Status.ACCESS_DENIED
    client.close(below)
    assert move(client, opened, "new") is Status.SUCCESS


@pytest.mark.parametrize(
    ("access", "sharing", "status"),
    [
        (DELETE, 7, Status.SHARING_VIOLATION),
        (READ_DATA, 1, Status.SHARING_VIOLATION),
        (READ_DATA, 3, Status.SUCCESS),
        (READ_DATA | WRITE_DATA, 7, Status.SUCCESS),
        (READ_ATTRIBUTES, 0, Status.SUCCESS),
    ],
)
@pytest.mark.parametrize(("source", "target"), [("f", "d\\new"), ("d\\g", "d\\new")])
def test_the_directory_that_gets_the_name_must_share_writing(
    client: Client, source: str, target: str, access: int, sharing: int, status: Status
) -> None:
    client.create("d", access=access, sharing=sharing)
    opened = client.create(source, access=DELETE).opened
    assert move(client, opened, target) is status


def test_all_handles_follow_and_go_on(client: Client) -> None:
    first, second = client.create("f").opened, client.create("f").opened
    assert move(client, first, "d\\new") is Status.SUCCESS
    assert move(client, second, "x\\newer") is Status.SUCCESS
    assert client.close(first)[0] is Status.SUCCESS
    assert exists(client, "x\\newer")


# --- Deleting


def test_the_file_mark_deletes_with_the_last_handle_whichever_it_is(client: Client) -> None:
    first, second = client.create("f").opened, client.create("f").opened
    assert mark(client, first) is Status.SUCCESS
    assert client.create("f", access=READ_ATTRIBUTES).status is Status.DELETE_PENDING
    assert client.create("f", CREATE).status is Status.DELETE_PENDING
    client.close(first)
    assert client.create("f").status is Status.DELETE_PENDING
    client.close(second)
    assert not exists(client, "f")
    assert client.create("f", CREATE).status is Status.SUCCESS


def test_any_handle_takes_the_file_mark_back(client: Client) -> None:
    first, second = client.create("f").opened, client.create("f").opened
    mark(client, first)
    assert mark(client, second, deletes=False) is Status.SUCCESS
    client.close(first)
    client.close(second)
    assert exists(client, "f")


def test_delete_on_close_acts_when_that_handle_is_closed(client: Client) -> None:
    first = client.create("f", options=DELETE_ON_CLOSE).opened
    second = client.create("f").opened
    third = client.create("f").opened
    client.close(second)
    assert exists(client, "f")
    client.close(first)
    assert client.create("f").status is Status.DELETE_PENDING
    client.close(third)
    assert not exists(client, "f")


def test_the_handle_mark_stays(client: Client) -> None:
    first = client.create("f", options=DELETE_ON_CLOSE).opened
    assert mark(client, first, deletes=False) is Status.SUCCESS
    client.close(first)
    assert not exists(client, "f")


@pytest.mark.parametrize(
    ("name", "access", "status"),
    [
        ("f", READ_DATA, Status.ACCESS_DENIED),
        ("f", DELETE, Status.SUCCESS),
        ("r", DELETE, Status.CANNOT_DELETE),
        ("d", DELETE, Status.DIRECTORY_NOT_EMPTY),
        ("x", DELETE, Status.SUCCESS),
        ("", DELETE, Status.ACCESS_DENIED),
    ],
)
@pytest.mark.parametrize("extended", [False, True])
def test_who_may_mark_what(client: Client, name: str, access: int, status: Status, extended: bool) -> None:
    client.make_file("r", b"", READ_ONLY)
    opened = client.create(name, access=access).opened
    act = rename.set_disposition_ex if extended else rename.set_disposition
    assert client.apply(act, opened, struct.pack("<I", 1) if extended else b"\1") is status
    client.close(opened)
    assert exists(client, name) is (status is not Status.SUCCESS)


def test_a_directory_that_is_not_empty_stays(client: Client) -> None:
    opened = client.create("d", options=DIRECTORY | DELETE_ON_CLOSE)
    assert opened.status is Status.SUCCESS
    other = client.create("d").opened
    assert client.close(opened.opened)[0] is Status.SUCCESS
    assert exists(client, "d")
    client.close(other)
    assert exists(client, "d\\g")


def test_a_marked_directory_gets_no_entries(client: Client) -> None:
    opened = client.create("x").opened
    mark(client, opened)
    assert client.create("x\\new", CREATE).status is Status.DELETE_PENDING
    other = client.create("f").opened
    assert move(client, other, "x\\f") is Status.DELETE_PENDING
    client.close(opened)
    assert not exists(client, "x")


def test_what_is_marked_can_still_be_renamed(client: Client) -> None:
    opened = client.create("f").opened
    mark(client, opened)
    assert move(client, opened, "new") is Status.SUCCESS
    assert client.create("new").status is Status.DELETE_PENDING
    assert client.create("f", CREATE).status is Status.SUCCESS
    client.close(opened)
    assert not exists(client, "new")


def test_no_row_is_left_when_everything_is_closed(client: Client) -> None:
    opened = [client.create(name, options=DELETE_ON_CLOSE).opened for name in ("f", "d\\g", "x")]
    mark(client, opened[0])
    for each in opened:
        client.close(each)
    assert not any(client.rows(prefix) for prefix in (b"H", b"O", b"Q", b"M"))
    assert client.tree.opens == {}


def test_links_are_refused(client: Client) -> None:
    assert client.apply(rename.link, client.create("f").opened, b"") is Status.NOT_SUPPORTED
