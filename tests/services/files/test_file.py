"""Files and directories over REST, against each other."""

import base64
import json
from urllib.parse import quote

import pytest

from kyanite.wire import crc64, security_descriptor, structured_message
from tests.services.files.builders import ACQUIRE, FILE, ID, OTHER_ID, SDDL, make, names, write
from tests.services.harness import Harness, md5_text
from tests.wire import structured_messages


@pytest.mark.parametrize("length", [1, 5, 16_384, 100_000, 4_194_304])
async def test_what_is_written_is_read(files: Harness, length: int) -> None:
    data = bytes(range(256)) * (length // 256 + 1)
    data = data[:length]
    await make(files, data=data)
    got = await files("GET", "/box/f")
    assert (got.status, got.body, got.headers["x-ms-type"]) == (200, data, "File")
    assert got.headers["content-type"] == "application/octet-stream"
    part = await files("GET", "/box/f", {"x-ms-range": "bytes=0-2"})
    assert (part.status, part.body) == (206, data[:3])
    assert part.headers["content-range"] == f"bytes 0-{min(2, length - 1)}/{length}"


async def test_a_write_is_answered_with_its_hashes_and_its_time(files: Harness) -> None:
    await make(files, headers={"x-ms-content-length": "5"})
    for sent in ({}, {"Content-MD5": md5_text(b"abc")}):
        written = await write(files, "f", b"abc", headers=sent)
        assert written.headers["content-md5"] == md5_text(b"abc")
        assert written.headers["x-ms-content-crc64"] == crc64.encode(crc64.compute(b"abc"))
        found = await files("HEAD", "/box/f")
        assert written.headers["x-ms-file-last-write-time"] == found.headers["x-ms-file-last-write-time"]


async def test_what_was_never_written_is_zeros_and_no_range(files: Harness) -> None:
    await make(files, headers={"x-ms-content-length": "5000"})
    await write(files, "f", b"abc", 1000)
    assert (await files("GET", "/box/f")).body == bytes(1000) + b"abc" + bytes(3997)
    ranges = await files("GET", "/box/f?comp=rangelist")
    assert [(each.findtext("Start"), each.findtext("End")) for each in ranges.xml] == [("512", "1023")]
    assert ranges.headers["x-ms-content-length"] == "5000"


async def test_clearing_makes_holes_of_whole_blocks(files: Harness) -> None:
    await make(files, data=b"x" * 3000)
    clear = {"x-ms-write": "clear", "x-ms-range": "bytes=100-2099"}
    assert (await files("PUT", "/box/f?comp=range", clear)).status == 201
    assert (await files("GET", "/box/f")).body == b"x" * 100 + bytes(2000) + b"x" * 900
    ranges = await files("GET", "/box/f?comp=rangelist")
    found = [(each.findtext("Start"), each.findtext("End")) for each in ranges.xml]
    assert found == [("0", "511"), ("2048", "2999")]


async def test_a_write_beyond_the_end_is_refused(files: Harness) -> None:
    await make(files, data=b"12345")
    late = await write(files, "f", b"67", 4)
    assert (late.status, late.code) == (416, "InvalidRange")
    assert (await files("GET", "/box/f", {"x-ms-range": "bytes=5-"})).code == "InvalidRange"
    assert (await files("GET", "/box/f")).body == b"12345"


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"x-ms-range": "bytes=0-2"}, b"abc", "MissingRequiredHeader"),
        ({"x-ms-write": "update"}, b"abc", "MissingRequiredHeader"),
        ({"x-ms-write": "update", "x-ms-range": "bytes=0-3"}, b"abc", "InvalidHeaderValue"),
        ({"x-ms-write": "update", "x-ms-range": "bytes=2-"}, b"abc", "InvalidHeaderValue"),
        ({"x-ms-write": "append", "x-ms-range": "bytes=0-2"}, b"abc", "InvalidHeaderValue"),
        ({"x-ms-write": "clear", "x-ms-range": "bytes=0-2"}, b"abc", "InvalidHeaderValue"),
        ({"x-ms-write": "update", "x-ms-range": "bytes=0-4194304"}, b"x" * 4_194_305, "RequestBodyTooLarge"),
        (
            {"x-ms-write": "update", "x-ms-range": "bytes=0-2", "Content-MD5": md5_text(b"")},
            b"abc",
            "Md5Mismatch",
        ),
        (
            {"x-ms-write": "update", "x-ms-range": "bytes=0-2", "x-ms-file-last-write-time": "soon"},
            b"abc",
            "InvalidHeaderValue",
        ),
    ],
)
async def test_writes_that_cannot_be_read_change_nothing(
    files: Harness, headers: dict[str, str], body: bytes, code: str
) -> None:
    made = await make(files, data=b"123456")
    before = await files("HEAD", "/box/f")
    assert (await files("PUT", "/box/f?comp=range", headers, body)).code == code
    after = await files("HEAD", "/box/f")
    assert after.headers["etag"] == before.headers["etag"] != made["etag"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-content-length": "5", "x-ms-type": "(absent)"}, "MissingRequiredHeader"),
        ({"x-ms-type": "folder", "x-ms-content-length": "5"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "(absent)"}, "MissingRequiredHeader"),
        ({"x-ms-content-length": "-1"}, "OutOfRangeInput"),
        ({"x-ms-content-length": str((4 << 40) + 1)}, "OutOfRangeInput"),
        ({"x-ms-content-length": "five"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "-"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "5", "x-ms-file-attributes": "Shiny"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "5", "x-ms-file-creation-time": "preserve"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "5", "x-ms-file-permission": "D:"}, "FileInvalidPermission"),
        ({"x-ms-content-length": "5", "x-ms-file-permission-key": "1"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "5", "x-ms-file-permission-key": "1*2"}, "FileInvalidPermissionKey"),
        (
            {"x-ms-content-length": "5", "x-ms-file-permission": SDDL, "x-ms-file-permission-key": "1*2"},
            "InvalidHeaderValue",
        ),
        (
            {"x-ms-content-length": "5", "x-ms-file-permission": SDDL + "(A;;FA;;;BA)" * 800},
            "InvalidHeaderValue",
        ),
        ({"x-ms-content-length": "5", "x-ms-content-md5": "no hash"}, "InvalidHeaderValue"),
        ({"x-ms-content-length": "5", "x-ms-meta-1": "x"}, "InvalidMetadata"),
        ({"x-ms-content-length": "5", "x-ms-lease-id": ID}, "LeaseNotPresentWithFileOperation"),
    ],
)
async def test_files_that_cannot_be_made_are_not(files: Harness, headers: dict[str, str], code: str) -> None:
    await files("PUT", "/box?restype=share")
    assert (await files("PUT", "/box/f", FILE | headers)).code == code
    assert (await files("HEAD", "/box/f")).code == "ResourceNotFound"


async def test_a_file_may_bring_its_first_bytes(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    made = await files("PUT", "/box/f", FILE | {"x-ms-content-length": "5"}, b"abc")
    assert made.status == 201
    assert (await files("GET", "/box/f")).body == b"abc\0\0"
    assert (
        await files("PUT", "/box/f", FILE | {"x-ms-content-length": "2"}, b"abc")
    ).code == "InvalidHeaderValue"


async def test_parents_must_be_there_and_be_directories(files: Harness) -> None:
    await make(files)
    for path in ("no/f", "f/g"):
        answer = await files("PUT", f"/box/{path}", FILE | {"x-ms-content-length": "0"})
        assert (answer.status, answer.code) == (404, "ParentNotFound")
        assert (await files("GET", f"/box/{path}")).code == "ParentNotFound"
        assert (await files("PUT", f"/box/{path}?restype=directory")).code == "ParentNotFound"
    assert (await files("GET", "/nobox/f")).code == "ShareNotFound"


async def test_a_file_and_a_directory_cannot_share_a_name(files: Harness) -> None:
    await make(files)
    await files("PUT", "/box/d?restype=directory")
    for method, target, headers in (
        ("PUT", "/box/D", FILE | {"x-ms-content-length": "0"}),
        ("PUT", "/box/F?restype=directory", {}),
        ("GET", "/box/d", {}),
        ("DELETE", "/box/d", {}),
        ("DELETE", "/box/f?restype=directory", {}),
        ("GET", "/box/f?restype=directory&comp=list", {}),
        ("PUT", "/box/d?comp=metadata", {}),
    ):
        answer = await files(method, target, headers)
        assert (answer.status, answer.code) == (409, "ResourceTypeMismatch"), target
    assert (await files("PUT", "/box/D?restype=directory")).code == "ResourceAlreadyExists"
    for target in ("/box/d", "/box/f?restype=directory"):
        answer = await files("HEAD", target)
        assert (answer.status, answer.code) == (404, "ResourceNotFound"), target


async def test_names_keep_their_case_and_compare_without(files: Harness) -> None:
    await make(files, "ReadMe.txt", b"one")
    assert (await files("GET", "/box/README.TXT")).body == b"one"
    await make(files, "readme.TXT", b"two")
    assert await names(files) == ["readme.TXT"]
    await make(files, quote("Größe"), b"three")
    assert (await files("GET", f"/box/{quote('GRÖßE')}")).body == b"three"


async def test_trailing_dots_count_only_if_requested(files: Harness) -> None:
    allow = {"x-ms-allow-trailing-dot": "true"}
    await make(files, "a.", b"1")
    await make(files, "a.", headers=allow | {"x-ms-content-length": "2"})
    await write(files, "a.", b"22", headers=allow)
    assert (await files("GET", "/box/a")).body == b"1"
    assert (await files("GET", "/box/a..")).body == b"1"
    assert (await files("GET", "/box/a.", allow)).body == b"22"
    assert await names(files) == ["a", "a."]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a%3Ab", "InvalidResourceName"),
        ("a%5Cb", "InvalidResourceName"),
        ("a%01", "InvalidResourceName"),
        ("nul", "InvalidResourceName"),
        ("%2E%2E", "InvalidFileOrDirectoryPathName"),
        ("x" * 256, "InvalidFileOrDirectoryPathName"),
        ("a//b", "InvalidFileOrDirectoryPathName"),
    ],
)
async def test_names_that_no_file_can_have(files: Harness, path: str, code: str) -> None:
    await files("PUT", "/box?restype=share")
    answer = await files("PUT", f"/box/{path}", FILE | {"x-ms-content-length": "0"})
    assert (answer.status, answer.code) == (400, code)


async def test_only_an_empty_directory_is_deleted(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    await make(files, "d/f")
    full = await files("DELETE", "/box/d?restype=directory")
    assert (full.status, full.code) == (409, "DirectoryNotEmpty")
    await files("DELETE", "/box/d/f")
    assert (await files("DELETE", "/box/d?restype=directory")).status == 202
    assert (await files("GET", "/box/d?restype=directory")).code == "ResourceNotFound"
    assert (await files("DELETE", "/box?restype=directory")).code == "CannotDeleteFileOrDirectory"


async def test_resizing_cuts_off_for_good(files: Harness) -> None:
    await make(files, data=b"123456")
    assert (await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": "2"})).status == 200
    for length in ("-1", str((4 << 40) + 1)):
        refused = await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": length})
        assert (refused.status, refused.code) == (400, "OutOfRangeInput")
    await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": "4"})
    assert (await files("GET", "/box/f")).body == b"12\0\0"


async def test_content_headers_are_replaced_together(files: Harness) -> None:
    await make(files, headers={"x-ms-content-type": "text/plain", "x-ms-cache-control": "no-store"})
    await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": "5"})
    assert (await files("HEAD", "/box/f")).headers["content-type"] == "text/plain"
    await files(
        "PUT", "/box/f?comp=properties", {"x-ms-content-language": "eo", "x-ms-content-md5": md5_text(b"")}
    )
    found = await files("HEAD", "/box/f")
    assert found.headers["content-language"] == "eo"
    assert found.headers["content-md5"] == md5_text(b"")
    assert "cache-control" not in found.headers
    for kept in ("AAAA", md5_text(b"x")):
        assert (await files("PUT", "/box/f?comp=properties", {"x-ms-content-md5": kept})).status == 200
        assert (await files("HEAD", "/box/f")).headers["content-md5"] == kept
    await files("PUT", "/box/f?comp=properties", {"x-ms-file-attributes": "Hidden"})
    found = await files("HEAD", "/box/f")
    assert not {"content-type", "content-language", "content-md5"} & found.headers.keys()
    odd = await files("PUT", "/box/f?comp=properties", {"x-ms-content-md5": "?"})
    assert (odd.status, odd.code) == (400, "InvalidHeaderValue")


async def test_times_are_kept_as_given(files: Harness) -> None:
    given = {
        "x-ms-file-creation-time": "2001-02-03T04:05:06.7890123Z",
        "x-ms-file-last-write-time": "2002-02-03T04:05:06.7890123Z",
        "x-ms-file-change-time": "2003-02-03T04:05:06.7890123Z",
    }
    await files("PUT", "/box?restype=share")
    made = await files("PUT", "/box/f", FILE | {"x-ms-content-length": "5"} | given)
    assert {name: made.headers[name] for name in given} == given
    await write(files, "f", b"abc", headers={"x-ms-file-last-write-time": "preserve"})
    found = await files("HEAD", "/box/f")
    for name in ("x-ms-file-creation-time", "x-ms-file-last-write-time"):
        assert found.headers[name] == given[name]
    assert found.headers["x-ms-file-change-time"] > "2026"
    await write(files, "f", b"abc")
    assert (await files("HEAD", "/box/f")).headers["x-ms-file-last-write-time"] > "2026"
    set_again = {"x-ms-file-creation-time": "now", "x-ms-file-last-write-time": "2005-01-01T00:00:00Z"}
    changed = await files("PUT", "/box/f?comp=properties", set_again)
    assert changed.headers["x-ms-file-creation-time"] > "2026"
    assert changed.headers["x-ms-file-last-write-time"] == "2005-01-01T00:00:00.0000000Z"


@pytest.mark.parametrize(
    ("semantics", "given", "returned"),
    [
        ("", "", "Archive"),
        ("", "None", "Archive"),
        ("", "Hidden", "Hidden | Archive"),
        ("new", "ReadOnly|Archive", "ReadOnly | Archive"),
        ("Restore", "", "Archive"),
        ("Restore", "None", "None"),
        ("restore", "Hidden", "Hidden"),
    ],
)
async def test_a_new_file_is_to_be_archived_unless_it_is_restored(
    files: Harness, semantics: str, given: str, returned: str
) -> None:
    sent = {"x-ms-file-property-semantics": semantics, "x-ms-file-attributes": given}
    made = await make(files, headers={name: value for name, value in sent.items() if value})
    assert made["x-ms-file-attributes"] == returned


async def test_only_two_ways_to_take_properties_are_known(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    odd = {"x-ms-file-property-semantics": "Perhaps"}
    for target, headers in (("f", FILE | {"x-ms-content-length": "0"}), ("d?restype=directory", {})):
        refused = await files("PUT", f"/box/{target}", headers | odd)
        assert (refused.status, refused.code) == (400, "InvalidHeaderValue")
    assert await names(files) == []


async def test_attributes(files: Harness) -> None:
    await make(files)
    changed = await files("PUT", "/box/f?comp=properties", {"x-ms-file-attributes": "Hidden|System"})
    assert changed.headers["x-ms-file-attributes"] == "Hidden | System"
    directory = await files("PUT", "/box/d?restype=directory", {"x-ms-file-attributes": "ReadOnly"})
    assert directory.headers["x-ms-file-attributes"] == "ReadOnly | Directory"
    assert (await files("DELETE", "/box/d?restype=directory")).code == "ReadOnlyAttribute"


async def test_what_is_read_only_is_not_written(files: Harness) -> None:
    await make(files, data=b"123")
    await files("PUT", "/box/f?comp=properties", {"x-ms-file-attributes": "ReadOnly"})
    for answer in (
        await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"}),
        await write(files, "f", b"abc"),
        await files("PUT", "/box/f?comp=metadata", {"x-ms-meta-a": "1"}),
        await files("PUT", "/box/f?comp=properties", {"x-ms-content-length": "1"}),
        await files("DELETE", "/box/f"),
    ):
        assert (answer.status, answer.code) == (409, "ReadOnlyAttribute")
    assert (await files("GET", "/box/f")).body == b"123"
    await files("PUT", "/box/f?comp=properties", {"x-ms-file-attributes": "None"})
    assert (await files("DELETE", "/box/f")).status == 202


async def test_permissions_are_kept_by_key_and_handed_on(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    target = "/box?restype=share&comp=filepermission"
    long = SDDL + "(A;;FA;;;BU)" * 2000
    for text in (SDDL, long):
        made = await files("PUT", target, body=b'{"permission": "%b"}' % text.encode())
        assert made.status == 201
        key = {"x-ms-file-permission-key": made.headers["x-ms-file-permission-key"]}
        assert f'"{text}"'.encode() in (await files("GET", target, key)).body
    directory = await files("PUT", "/box/d?restype=directory", {"x-ms-file-permission": SDDL})
    again = await files("PUT", "/box/e?restype=directory", {"x-ms-file-permission": SDDL})
    name = "x-ms-file-permission-key"
    assert directory.headers[name] == again.headers[name]
    inside = (await make(files, "d/f"))[name]
    found = await files("GET", target, {name: inside})
    assert b"O:SYG:SYD:AI(A;ID;FA;;;BA)" in found.body
    assert (await files("GET", target, {name: "1*1"})).code == "FileInvalidPermissionKey"
    assert (await files("GET", target)).code == "MissingRequiredHeader"
    for body in (b"", b"{", b"[]", b'{"permission": 1}', b'{"permission": "x", "format": "odd"}'):
        assert (await files("PUT", target, body=body)).code == "InvalidInput"


async def test_ids_stay_and_tell_the_parent(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    directory = await files("PUT", "/box/d?restype=directory")
    assert directory.headers["x-ms-file-parent-id"] == "0"
    made = await make(files, "d/f")
    assert made["x-ms-file-parent-id"] == directory.headers["x-ms-file-id"]
    assert (await make(files, "d/f"))["x-ms-file-id"] == made["x-ms-file-id"]
    for query in ("", "&include=Attributes"):
        listed = await files("GET", f"/box/d?restype=directory&comp=list{query}")
        assert listed.xml.findtext("Entries/File/FileId") == made["x-ms-file-id"]
        assert listed.xml.findtext("DirectoryId") == directory.headers["x-ms-file-id"]
    old = await files("GET", "/box/d?restype=directory&comp=list", {"x-ms-version": "2019-02-02"})
    assert [each.tag for each in old.xml.iter()].count("FileId") == 0


async def test_a_lease_keeps_others_from_writing(files: Harness) -> None:
    await make(files, data=b"123")
    etag = (await files("HEAD", "/box/f")).headers["etag"]
    assert (await files("PUT", "/box/f?comp=lease", ACQUIRE)).headers["x-ms-lease-id"] == ID
    found = await files("HEAD", "/box/f")
    assert (found.headers["etag"], found.headers["x-ms-lease-state"]) == (etag, "leased")
    assert found.headers["x-ms-lease-duration"] == "infinite"
    create = FILE | {"x-ms-content-length": "3"}
    for lease, code in (
        ({}, "LeaseIdMissing"),
        ({"x-ms-lease-id": OTHER_ID}, "LeaseIdMismatchWithFileOperation"),
    ):
        for answer in (
            await files("PUT", "/box/f", create | lease),
            await write(files, "f", b"abc", headers=lease),
            await files("PUT", "/box/f?comp=metadata", lease),
            await files("PUT", "/box/f?comp=properties", lease),
            await files("DELETE", "/box/f", lease),
        ):
            assert (answer.status, answer.code) == (412, code)
    assert (await files("GET", "/box/f")).body == b"123"
    assert (await files("GET", "/box/f", {"x-ms-lease-id": OTHER_ID})).status == 412
    mine = {"x-ms-lease-id": ID}
    assert (await files("PUT", "/box/f", create | mine)).status == 201
    assert (await files("HEAD", "/box/f", mine)).headers["x-ms-lease-state"] == "leased"
    assert (await write(files, "f", b"abc", headers=mine)).status == 201
    assert (await files("DELETE", "/box/f", mine)).status == 202


async def test_leases_of_files_are_infinite_and_never_renewed(files: Harness) -> None:
    await make(files)
    finite = await files("PUT", "/box/f?comp=lease", ACQUIRE | {"x-ms-lease-duration": "15"})
    assert (finite.status, finite.code) == (400, "InvalidHeaderValue")
    await files("PUT", "/box/f?comp=lease", ACQUIRE)
    renew = await files("PUT", "/box/f?comp=lease", {"x-ms-lease-action": "renew", "x-ms-lease-id": ID})
    assert renew.code == "InvalidHeaderValue"
    again = await files("PUT", "/box/f?comp=lease", ACQUIRE | {"x-ms-proposed-lease-id": OTHER_ID})
    assert (again.status, again.code) == (409, "LeaseAlreadyPresent")
    broken = await files("PUT", "/box/f?comp=lease", {"x-ms-lease-action": "break"})
    assert (broken.status, broken.headers["x-ms-lease-time"]) == (202, "0")
    assert (await files("DELETE", "/box/f")).status == 202


async def test_a_directory_is_listed_page_by_page_without_regard_to_case(files: Harness) -> None:
    await make(files, "b", b"12")
    await make(files, "C")
    await files("PUT", "/box/A?restype=directory")
    await make(files, "bb")
    assert await names(files) == ["A", "b", "bb", "C"]
    assert await names(files, query="&prefix=B") == ["b", "bb"]
    page = await files("GET", "/box?restype=directory&comp=list&maxresults=3")
    marker = page.xml.findtext("NextMarker") or ""
    assert await names(files, query=f"&marker={quote(marker)}") == ["C"]
    everything = "&include=Timestamps,ETag,Attributes,PermissionKey"
    full = await files("GET", f"/box?restype=directory&comp=list{everything}")
    item = full.xml.find("Entries/File")
    assert item is not None
    assert item.findtext("Properties/Content-Length") == "2"
    for name in ("CreationTime", "LastWriteTime", "ChangeTime", "LastAccessTime", "Last-Modified", "Etag"):
        assert item.findtext(f"Properties/{name}")
    assert item.findtext("Attributes") == "Archive"
    assert item.findtext("PermissionKey")
    for query in ("&include=everything", "&maxresults=0", "&marker=odd"):
        assert (await files("GET", f"/box?restype=directory&comp=list{query}")).status == 400


async def test_a_snapshot_shows_what_was_there(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    await files("PUT", "/box/d?restype=directory")
    await make(files, "d/f", b"old")
    received = await files("PUT", "/box?restype=share&comp=snapshot")
    at = quote(received.headers["x-ms-snapshot"])
    await write(files, "d/f", b"new")
    await make(files, "d/g")
    assert (await files("GET", f"/box/d/f?sharesnapshot={at}")).body == b"old"
    assert await names(files, "d", f"&sharesnapshot={at}") == ["f"]
    changed = await files("GET", f"/box/d/f?comp=rangelist&prevsharesnapshot={at}")
    assert [(each.tag, each.findtext("Start"), each.findtext("End")) for each in changed.xml] == [
        ("Range", "0", "2")
    ]
    await files("DELETE", "/box/d/f")
    await files("DELETE", "/box/d/g")
    await files("DELETE", "/box/d?restype=directory")
    assert (await files("GET", f"/box/d/f?sharesnapshot={at}")).body == b"old"
    assert (await files("GET", f"/box/d/g?sharesnapshot={at}")).code == "ResourceNotFound"
    await make(files, "n", b"x")


async def test_bodies_with_checksums_inside(files: Harness) -> None:
    data = b"x" * 3000
    await make(files, headers={"x-ms-content-length": "3000"})
    message = await structured_messages.written(data)
    structured = {"x-ms-structured-body": structured_message.FORM, "x-ms-structured-content-length": "3000"}
    span = {"x-ms-write": "update", "x-ms-range": "bytes=0-2999"}
    written = await files("PUT", "/box/f?comp=range", span | structured, message)
    assert (written.status, written.headers["x-ms-structured-body"]) == (201, structured_message.FORM)
    assert (await files("GET", "/box/f")).body == data
    got = await files("GET", "/box/f", {"x-ms-structured-body": structured_message.FORM})
    assert got.headers["x-ms-structured-content-length"] == "3000"
    assert await structured_messages.read(got.body, 3000) == data
    part = {"x-ms-structured-body": structured_message.FORM, "x-ms-range": "bytes=5-9"}
    assert await structured_messages.read((await files("GET", "/box/f", part)).body, 5) == data[5:10]
    spoiled = message[:100] + b"y" + message[101:]
    assert (await files("PUT", "/box/f?comp=range", span | structured, spoiled)).code == "Crc64Mismatch"
    assert (await files("PUT", "/box/f?comp=range", span | structured, b"odd")).code == "InvalidInput"
    unsaid = {"x-ms-structured-body": structured_message.FORM}
    assert (await files("PUT", "/box/f?comp=range", span | unsaid, message)).code == "MissingRequiredHeader"
    odd = {"x-ms-structured-body": "XSM/9"}
    assert (await files("GET", "/box/f", odd)).code == "InvalidHeaderValue"
    assert (await files("GET", "/box/f")).body == data


async def test_descriptors_may_come_and_go_as_bytes(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    target, name = "/box?restype=share&comp=filepermission", "x-ms-file-permission-key"
    coded = base64.b64encode(security_descriptor.encode(SDDL)).decode()
    made = await files("PUT", target, body=b'{"permission": "%b", "format": "binary"}' % coded.encode())
    plain = await files("PUT", target, body=b'{"permission": "%b"}' % SDDL.encode())
    assert made.headers[name] == plain.headers[name]
    binary = {"x-ms-file-permission-format": "Binary"}
    got = await files("GET", target, binary | {name: made.headers[name]})
    assert json.loads(got.body) == {"permission": coded, "format": "binary"}
    given = await make(files, headers=binary | {"x-ms-file-permission": coded})
    assert given[name] == plain.headers[name]
    odd = await files(
        "PUT", "/box/g", FILE | {"x-ms-content-length": "0"} | binary | {"x-ms-file-permission": "AAAA"}
    )
    assert (odd.status, odd.code) == (400, "FileInvalidPermission")
