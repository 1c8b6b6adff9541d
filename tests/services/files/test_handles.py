"""REST against open handles, opened through the model: each request is an open that shares everything.

The table is that of the article on locks: by the share mode of an SMB handle, which requests fail.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kyanite.membership.local import LocalMembership
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.services.files.builders import ACQUIRE, FILE, make, names, open_handle, write
from tests.services.harness import Answer, Harness

R, W, D = Rights.READ, Rights.WRITE, Rights.DELETE

CLEAR = {"x-ms-write": "clear", "x-ms-range": "bytes=0-2"}
SOURCE = {"x-ms-file-rename-source": "http://localhost:10000/acme/box/f"}
MODES = [Rights.NONE, R, W, D, R | W, R | D, W | D, R | W | D]


OPERATIONS: dict[str, Callable[[Harness], Awaitable[Answer]]] = {
    "list": lambda files: files("GET", "/box?restype=directory&comp=list"),
    "get properties": lambda files: files("HEAD", "/box/f"),
    "get metadata": lambda files: files("GET", "/box/f?comp=metadata"),
    "get": lambda files: files("GET", "/box/f"),
    "list ranges": lambda files: files("GET", "/box/f?comp=rangelist"),
    "put range": lambda files: write(files, "f", b"abc"),
    "clear range": lambda files: files("PUT", "/box/f?comp=range", CLEAR),
    "set properties": lambda files: files("PUT", "/box/f?comp=properties"),
    "set metadata": lambda files: files("PUT", "/box/f?comp=metadata"),
    "create": lambda files: files("PUT", "/box/f", FILE | {"x-ms-content-length": "3"}),
    "lease": lambda files: files("PUT", "/box/f?comp=lease", ACQUIRE),
    "break": lambda files: files("PUT", "/box/f?comp=lease", {"x-ms-lease-action": "break"}),
    "delete": lambda files: files("DELETE", "/box/f"),
}
"""All operations of the table, in an order in which none undoes another."""


async def every_operation(files: Harness) -> dict[str, Answer]:
    return {name: await operation(files) for name, operation in OPERATIONS.items()}


READS = {"get", "list ranges"}
WRITES = {"put range", "clear range", "set properties", "set metadata"}
BREAK = {"break"}
"""Fails when the lease did: there is none to break."""

TABLE = [
    (Rights.NONE, READS | WRITES | {"create", "delete", "lease"}),
    (R, WRITES | {"create", "delete", "lease"}),
    (W, READS | {"create", "delete", "lease"}),
    (D, READS | WRITES | {"create", "delete", "lease"}),
    (R | W, {"create", "delete", "lease"}),
    (R | D, WRITES | {"create", "delete", "lease"}),
    (W | D, READS | {"delete", "lease"}),
    (R | W | D, {"delete"}),
]


@pytest.mark.parametrize(("shared", "failing"), TABLE)
async def test_share_modes_of_a_reader(files: Harness, shared: Rights, failing: set[str]) -> None:
    await make(files, data=b"123")
    await open_handle(files, "f", R, shared)
    answers = await every_operation(files)
    failed = {name for name, answer in answers.items() if answer.code == "SharingViolation"}
    assert failed == failing
    others = {name for name, answer in answers.items() if answer.status >= 400} - failed
    assert others <= BREAK
    assert all(answer.status == 409 for name, answer in answers.items() if name in failed)


@pytest.mark.parametrize("access", MODES)
async def test_only_a_lease_and_a_deletion_conflict_with_a_handle_that_shares_everything(
    files: Harness, access: Rights
) -> None:
    """A request shares everything, but a lease shares only reading, and a deletion needs that there is no handle."""
    await make(files, data=b"123")
    await open_handle(files, "f", access)
    answers = await every_operation(files)
    failed = {name for name, answer in answers.items() if answer.code == "SharingViolation"}
    assert failed == ({"delete", "lease"} if access & (W | D) else {"delete"})
    others = {name for name, answer in answers.items() if answer.status >= 400} - failed
    assert others == (BREAK if "lease" in failed else set())


@pytest.mark.parametrize("shared", MODES)
async def test_the_source_of_a_rename_must_share_deletion(files: Harness, shared: Rights) -> None:
    await make(files, data=b"123")
    await open_handle(files, "f", R, shared)
    answer = await files("PUT", "/box/g?comp=rename", SOURCE)
    expected = (200, "") if D in shared else (409, "SharingViolation")
    assert (answer.status, answer.code) == expected
    assert await names(files) == ["g" if D in shared else "f"]


@pytest.mark.parametrize("shared", MODES)
async def test_what_a_rename_replaces_must_not_be_open_at_all(files: Harness, shared: Rights) -> None:
    """Replacing a file deletes it, which needs that there is no handle."""
    await make(files, data=b"123")
    await make(files, "g")
    await open_handle(files, "g", R, shared)
    answer = await files("PUT", "/box/g?comp=rename", SOURCE | {"x-ms-file-rename-replace-if-exists": "true"})
    assert (answer.status, answer.code) == (409, "SharingViolation")
    assert await names(files) == ["f", "g"]


@pytest.mark.parametrize("shared", MODES)
async def test_every_handle_is_checked(files: Harness, shared: Rights) -> None:
    """One that shares everything does not hide another, and one of another file does not matter."""
    await make(files, data=b"123")
    await make(files, "g")
    await open_handle(files, "f", shared & R)
    await open_handle(files, "f", R, shared)
    await open_handle(files, "g", EVERYTHING, Rights.NONE)
    assert (await files("GET", "/box/f")).status == (200 if R in shared else 409)
    assert (await write(files, "f", b"abc")).status == (201 if W in shared else 409)


async def test_a_handle_for_attributes_forbids_only_a_deletion(files: Harness) -> None:
    await make(files, data=b"123")
    await open_handle(files, "f", Rights.NONE, Rights.NONE)
    failed = {name for name, answer in (await every_operation(files)).items() if answer.status >= 400}
    assert failed == {"delete"}


async def test_a_pending_delete_refuses_every_other_operation(files: Harness) -> None:
    await make(files, data=b"123")
    await make(files, "g")
    await open_handle(files, "f", D, is_delete_pending=True)
    answers = await every_operation(files)
    assert answers.pop("list").status == 200
    answers["rename"] = await files("PUT", "/box/h?comp=rename", SOURCE)
    for name, answer in answers.items():
        assert (answer.status, answer.code) == (409, "SMBDeletePending"), name
    create = await files("PUT", "/box/F?restype=directory")
    assert create.code == "SMBDeletePending"
    assert await names(files) == ["g"]
    listed = await files("GET", "/box/f?comp=listhandles")
    assert listed.status == 200
    closed = await files("PUT", "/box/f?comp=forceclosehandles", {"x-ms-handle-id": "*"})
    assert closed.headers["x-ms-number-of-handles-closed"] == "1"
    assert (await files("GET", "/box/f")).body == b"123"
    assert await names(files) == ["f", "g"]


@pytest.mark.parametrize(
    ("is_exclusive", "first", "reads", "writes"),
    [(True, 0, 409, 409), (False, 0, 206, 409), (True, 3, 206, 201), (False, 3, 206, 201)],
)
async def test_locks_on_ranges(
    files: Harness, is_exclusive: bool, first: int, reads: int, writes: int
) -> None:
    """The lock is on the bytes 1 and 2; what is read and written are three bytes from ``first`` on."""
    await make(files, data=b"123456")
    await open_handle(files, "f", R | W, locks=((1, 2, is_exclusive),))
    read = await files("GET", "/box/f", {"x-ms-range": f"bytes={first}-{first + 2}"})
    written = await write(files, "f", b"abc", first)
    assert (read.status, written.status) == (reads, writes)
    assert {read.code, written.code} <= {"", "FileLockConflict"}
    assert (await files("GET", "/box/f")).status == (409 if is_exclusive else 200)
    assert (await files("HEAD", "/box/f")).status == 200
    assert (await files("PUT", "/box/f?comp=metadata")).status == 200
    shrunk = await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": "2"})
    assert shrunk.code == "FileLockConflict"


@pytest.mark.parametrize("is_exclusive", [True, False])
async def test_locks_keep_a_file_from_being_made_anew_until_their_handle_is_closed(
    files: Harness, is_exclusive: bool
) -> None:
    await make(files, data=b"123456")
    number = await open_handle(files, "f", R | W, locks=((1, 2, is_exclusive),))
    anew = FILE | {"x-ms-content-length": "3"}
    for answer in (
        await files("PUT", "/box/f", anew),
        await files("PUT", "/box/f?comp=range", CLEAR),
    ):
        assert (answer.status, answer.code) == (409, "FileLockConflict")
    await files("PUT", "/box/f?comp=forceclosehandles", {"x-ms-handle-id": str(number)})
    assert (await files("PUT", "/box/f?comp=range", CLEAR)).status == 201
    assert (await files("GET", "/box/f")).body == bytes(3) + b"456"
    assert (await files("PUT", "/box/f", anew)).status == 201


async def test_a_directory_in_use_is_not_deleted(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    await open_handle(files, "d", Rights.NONE)
    answer = await files("DELETE", "/box/d?restype=directory")
    assert (answer.status, answer.code) == (409, "CannotDeleteFileOrDirectory")


async def test_a_directory_with_open_files_is_not_moved(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    await make(files, "d/f")
    await open_handle(files, "d/f")
    source = {"x-ms-file-rename-source": "http://localhost:10000/acme/box/d"}
    answer = await files("PUT", "/box/e?restype=directory&comp=rename", source)
    assert (answer.status, answer.code) == (409, "SharingViolation")


async def test_handles_follow_a_rename(files: Harness) -> None:
    await make(files)
    directory = (await files("PUT", "/box/d?restype=directory")).headers["x-ms-file-id"]
    number = await open_handle(files)
    assert (await files("PUT", "/box/d/g?comp=rename", SOURCE)).status == 200
    for target, sent in (("d/g", {}), ("d", {"x-ms-recursive": "true"}), ("", {"x-ms-recursive": "true"})):
        listed = await files("GET", f"/box/{target}?comp=listhandles", sent)
        found = [listed.xml.findtext(f"Entries/Handle/{name}") for name in ("HandleId", "Path", "ParentId")]
        assert found == [str(number), "d/g", directory], target
    source = {"x-ms-file-rename-source": "http://localhost:10000/acme/box/d"}
    assert (await files("PUT", "/box/e?restype=directory&comp=rename", source)).code == "SharingViolation"
    assert (await files("DELETE", "/box/d/g")).code == "SharingViolation"


async def test_handles_below_are_listed_in_pages(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    numbers = [await open_handle(files, "d")]
    for name in "abc":
        await make(files, f"d/{name}")
        numbers += [await open_handle(files, f"d/{name}") for _ in range(2)]
    numbers.append(await open_handle(files, ""))
    for limit in range(1, 9):
        found: list[str | None] = []
        marker = ""
        while True:
            target = f"/box?comp=listhandles&maxresults={limit}&marker={marker}"
            page = await files("GET", target, {"x-ms-recursive": "true"})
            items = [each.findtext("HandleId") for each in page.xml.iter("Handle")]
            found += items
            marker = page.xml.findtext("NextMarker") or ""
            if not marker:
                break
            assert len(items) == limit
        assert found == [str(number) for number in numbers]
    assert (await files("GET", "/box?comp=listhandles&marker=x")).code == "InvalidQueryParameterValue"


async def test_a_path_that_xml_cannot_contain_is_encoded(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    await make(files, "d/%EF%BF%BE")
    await open_handle(files, "d/\ufffe")
    listed = await files("GET", "/box/d/%EF%BF%BE?comp=listhandles")
    path = listed.xml.find("Entries/Handle/Path")
    assert path is not None
    assert (path.text, path.get("Encoded")) == ("d/%EF%BF%BE", "true")


async def test_handles_are_listed_and_closed(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    directory = (await files("PUT", "/box/d?restype=directory")).headers["x-ms-file-id"]
    made = await make(files, "d/f", b"123")
    mine = [await open_handle(files, "d/f", R | W) for _ in range(3)]
    other = await open_handle(files, "d")
    first = await files("GET", "/box/d/f?comp=listhandles&maxresults=2")
    ids = [each.findtext("HandleId") for each in first.xml.iter("Handle")]
    assert ids == [str(number) for number in mine[:2]]
    item = first.xml.find("Entries/Handle")
    assert item is not None
    returned = [item.findtext(name) for name in ("Path", "FileId", "ParentId", "SessionId", "ClientIp")]
    assert returned == ["d/f", made["x-ms-file-id"], directory, "7", "192.0.2.1"]
    assert [each.text for each in item.iter("AccessRight")] == ["Read", "Write"]
    assert item.find("LastReconnectTime") is None
    more = await files("GET", f"/box/d/f?comp=listhandles&marker={first.xml.findtext('NextMarker')}")
    assert [each.findtext("HandleId") for each in more.xml.iter("Handle")] == [str(mine[2])]
    below = await files("GET", "/box?comp=listhandles", {"x-ms-recursive": "true"})
    assert len(list(below.xml.iter("Handle"))) == 4
    alone = await files("GET", "/box/d?comp=listhandles")
    assert [each.findtext("HandleId") for each in alone.xml.iter("Handle")] == [str(other)]

    async def close(path: str, which: str, **headers: str) -> str:
        sent = {"x-ms-handle-id": which} | {f"x-ms-{name}": value for name, value in headers.items()}
        answer = await files("PUT", f"/box/{path}?comp=forceclosehandles", sent)
        return answer.headers.get("x-ms-number-of-handles-closed", answer.code)

    assert await close("", str(mine[0])) == "0"
    assert await close("d", str(other), recursive="true") == "1"
    other = await open_handle(files, "d")
    assert await close("", str(mine[0]), recursive="true") == "1"
    assert await close("", "9" * 30, recursive="true") == "0"
    mine[0] = await open_handle(files, "d/f")
    assert await close("d/f", str(mine[0])) == "1"
    assert await close("d/f", str(mine[0])) == "0"
    assert await close("d/f", "odd") == "InvalidHeaderValue"
    assert await close("d/f", "*", recursive="true") == "InvalidHeaderValue"
    assert await close("d", "*", recursive="true") == "3"
    assert (await files("DELETE", "/box/d/f")).status == 202


@pytest.mark.parametrize("is_delete_pending", [False, True])
@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - BREAK))
async def test_handles_of_a_dead_process_refuse_nothing(
    files: Harness, tmp_path: Path, name: str, is_delete_pending: bool
) -> None:
    await make(files, data=b"123")
    expected = (await OPERATIONS[name](files)).status
    if name == "lease":
        await OPERATIONS["break"](files)
    await make(files, data=b"123")
    process = LocalMembership(tmp_path / "owners")
    await open_handle(
        files,
        "f",
        EVERYTHING,
        Rights.NONE,
        locks=((0, 3, True),),
        is_delete_pending=is_delete_pending,
        owner=process.id,
    )
    assert (await files("GET", "/box/f")).status == 409
    process.close()
    assert (await OPERATIONS[name](files)).status == expected
