"""Shares that speak NFS: owners, modes, symbolic and hard links."""

from urllib.parse import quote

import pytest

from tests.services.files.builders import FILE, names, source
from tests.services.harness import Harness

NFS = {"x-ms-enabled-protocols": "NFS"}
LINK = {"x-ms-link-text": "../else%20where"}


async def test_a_link_is_kept_and_read(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    made = await files("PUT", "/box/l?restype=symboliclink", LINK | {"x-ms-owner": "7"})
    assert made.status == 201
    assert (made.headers["x-ms-file-file-type"], made.headers["x-ms-owner"]) == ("SymLink", "7")
    read = await files("GET", "/box/l?restype=symboliclink")
    assert (read.status, read.headers["x-ms-link-text"]) == (200, "../else%20where")
    assert read.headers["etag"] == made.headers["etag"]
    assert (await files("PUT", "/box/l?restype=symboliclink", LINK)).code == "ResourceAlreadyExists"
    assert (await files("GET", "/box/l")).code == "ResourceTypeMismatch"
    assert (await files("HEAD", "/box/l")).headers["x-ms-file-file-type"] == "SymLink"
    assert await names(files) == ["l"]
    assert (await files("DELETE", "/box/l")).status == 202
    assert (await files("GET", "/box/l?restype=symboliclink")).code == "ResourceNotFound"


@pytest.mark.parametrize("text", ["/abs/not there", "50%", "%41%2f", "\xc3\xa4", "\xe4"])
async def test_the_text_of_a_link_comes_back_as_it_was_sent(files: Harness, text: str) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/l?restype=symboliclink", {"x-ms-link-text": text})
    assert (await files("GET", "/box/l?restype=symboliclink")).headers["x-ms-link-text"] == text


async def test_owners_and_modes_are_kept(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    owned = {"x-ms-owner": "5", "x-ms-mode": "0640"}
    made = await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"} | owned)
    assert {name: made.headers[name] for name in owned} == owned
    assert (made.headers["x-ms-group"], made.headers["x-ms-link-count"]) == ("0", "1")
    assert not {"x-ms-file-attributes", "x-ms-file-permission-key"} & made.headers.keys()
    listed = await files("GET", "/box?restype=directory&comp=list&include=Attributes,PermissionKey,ETag")
    assert [each.tag for each in listed.xml.find("Entries/File") or ()] == ["Name", "FileId", "Properties"]
    changed = await files("PUT", "/box/f?comp=properties", {"x-ms-group": "9"})
    assert (changed.headers["x-ms-group"], changed.headers["x-ms-owner"]) == ("9", "5")
    await files("PUT", "/box/d?restype=directory")
    for path in ("/box", "/box/d"):
        usual = await files("HEAD", f"{path}?restype=directory")
        assert (usual.headers["x-ms-mode"], usual.headers["x-ms-owner"]) == ("0755", "0"), path
        changed = await files("PUT", f"{path}?restype=directory&comp=properties", {"x-ms-mode": "0700"})
        assert (changed.status, changed.headers["x-ms-mode"]) == (200, "0700"), path
    odd = await files("PUT", "/box/g", FILE | {"x-ms-content-length": "0", "x-ms-mode": "9999"})
    assert odd.code == "InvalidHeaderValue"


async def test_a_copy_says_whose_its_owner_and_mode_are(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    given = {"x-ms-owner": "5", "x-ms-group": "6", "x-ms-mode": "0111"}
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"} | given)
    modes = {"x-ms-file-mode-copy-mode": "source", "x-ms-file-owner-copy-mode": "source"}
    own = {"x-ms-owner": "7", "x-ms-group": "8", "x-ms-mode": "0777"}
    override = dict.fromkeys(modes, "override")
    usual = {"x-ms-owner": "0", "x-ms-group": "0", "x-ms-mode": "0664"}
    for sent, expected in ((modes, given), ({}, usual), (override | own, own)):
        copied = await files("PUT", "/box/g", source("f") | sent)
        assert copied.status == 202
        found = (await files("HEAD", "/box/g")).headers
        assert {name: found[name] for name in usual} == expected
    mixed = source("f") | {"x-ms-file-mode-copy-mode": "source", "x-ms-owner": "9"}
    assert (await files("PUT", "/box/g", mixed)).status == 202
    found = (await files("HEAD", "/box/g")).headers
    assert (found["x-ms-mode"], found["x-ms-owner"], found["x-ms-group"]) == ("0111", "9", "0")
    for name in modes:
        refused = await files("PUT", "/box/g", source("f") | {name: "override"})
        assert (refused.status, refused.code) == (400, "MissingRequiredHeader")


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "/box/l?restype=symboliclink", LINK),
        ("PUT", "/box/l?restype=hardlink", {"x-ms-file-target-file": "f"}),
        ("PUT", "/box/f", FILE | {"x-ms-content-length": "0", "x-ms-mode": "0640"}),
        ("PUT", "/box/d?restype=directory", {"x-ms-owner": "5"}),
    ],
)
async def test_shares_that_speak_smb_have_none_of_it(
    files: Harness, method: str, target: str, headers: dict[str, str]
) -> None:
    await files("PUT", "/box?restype=share")
    answer = await files(method, target, headers)
    assert (answer.status, answer.code) == (400, "InvalidInput")
    assert await names(files) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "MissingRequiredHeader"), ("x" * 1025, "InvalidHeaderValue")],
)
async def test_links_that_cannot_be(files: Harness, text: str, code: str) -> None:
    await files("PUT", "/box?restype=share", NFS)
    assert (await files("PUT", "/box/l?restype=symboliclink", {"x-ms-link-text": text})).code == code


def to(target: str) -> dict[str, str]:
    return {"x-ms-file-target-file": target}


async def test_a_file_has_several_names(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/d?restype=directory")
    made = await files("PUT", "/box/d/f%20g", FILE | {"x-ms-content-length": "4", "x-ms-meta-a": "1"})
    linked = await files("PUT", "/box/h?restype=hardlink", to("d/f%20g"))
    assert linked.status == 201
    assert linked.headers["x-ms-file-id"] == made.headers["x-ms-file-id"]
    assert linked.headers["x-ms-file-parent-id"] == "0"
    assert (linked.headers["x-ms-link-count"], linked.headers["x-ms-file-file-type"]) == ("2", "Regular")
    assert linked.headers["etag"] != made.headers["etag"]
    await files("PUT", "/box/h?comp=range", {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}, b"both")
    read = await files("GET", "/box/d/f%20g")
    assert (read.body, read.headers["x-ms-meta-a"]) == (b"both", "1")
    assert (read.headers["x-ms-file-parent-id"], read.headers["x-ms-link-count"]) == (
        (await files("HEAD", "/box/d?restype=directory")).headers["x-ms-file-id"],
        "2",
    )
    assert (await names(files)) == ["d", "h"]
    assert (await files("DELETE", "/box/d/f%20g")).status == 202
    left = await files("GET", "/box/h")
    assert (left.body, left.headers["x-ms-link-count"]) == (b"both", "1")
    assert (await files("DELETE", "/box/d?restype=directory")).status == 202
    assert (await files("DELETE", "/box/h")).status == 202
    assert (await files("GET", "/box/h")).code == "ResourceNotFound"


@pytest.mark.parametrize("target", ["50%25%20%C3%A4", "50%25 \xc3\xa4", "50% \xe4"])
async def test_the_target_of_a_hard_link_may_be_encoded_or_not(files: Harness, target: str) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/50%25%20%C3%A4", FILE | {"x-ms-content-length": "0"})
    assert (await files("PUT", "/box/h?restype=hardlink", to(target))).status == 201


async def test_a_directory_is_listed_page_by_page_in_the_order_of_its_names(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    for name in "aBcD":
        await files("PUT", f"/box/{name}", FILE | {"x-ms-content-length": "0"})
    found, marker = [], ""
    for _ in range(4):
        page = await files("GET", f"/box?restype=directory&comp=list&maxresults=1&marker={quote(marker)}")
        found += [each.findtext("Name") for each in page.xml.find("Entries") or ()]
        marker = page.xml.findtext("NextMarker") or ""
    assert (found, marker) == (["B", "D", "a", "c"], "")


async def test_names_are_case_sensitive(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "1"})
    await files("PUT", "/box/F", FILE | {"x-ms-content-length": "2"})
    assert await names(files) == ["F", "f"]
    assert (await files("GET", "/box/f")).body == bytes(1)


@pytest.mark.parametrize(
    ("name", "headers", "status", "code"),
    [
        ("h", {}, 400, "MissingRequiredHeader"),
        ("h", to("nothing"), 404, "ResourceNotFound"),
        ("h", to("no/thing"), 404, "ParentNotFound"),
        ("no/h", to("f"), 404, "ParentNotFound"),
        ("f", to("f"), 409, "ResourceAlreadyExists"),
        ("h", to("d"), 409, "ResourceTypeMismatch"),
        ("h", to("a:b"), 400, "InvalidResourceName"),
    ],
)
async def test_further_names_that_cannot_be(
    files: Harness, name: str, headers: dict[str, str], status: int, code: str
) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/d?restype=directory")
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"})
    answer = await files("PUT", f"/box/{name}?restype=hardlink", headers)
    assert (answer.status, answer.code) == (status, code)
    assert await names(files) == ["d", "f"]


async def test_a_leased_file_gets_no_name_without_its_lease(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"})
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease_id = (await files("PUT", "/box/f?comp=lease", acquire)).headers["x-ms-lease-id"]
    assert (await files("PUT", "/box/h?restype=hardlink", to("f"))).code == "LeaseIdMissing"
    linked = await files("PUT", "/box/h?restype=hardlink", to("f") | {"x-ms-lease-id": lease_id})
    assert linked.status == 201
    assert (await files("DELETE", "/box/h")).code == "LeaseIdMissing"
