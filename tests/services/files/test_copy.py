"""Copies and renames of files."""

import pytest

from tests.services.files.builders import ACQUIRE, FILE, HOST, ID, SDDL, make, names, rename_from, source
from tests.services.harness import Harness


async def test_a_copy_takes_bytes_headers_and_metadata_over(files: Harness) -> None:
    await make(files, "a", b"x" * 100_000, headers={"x-ms-meta-m": "1", "x-ms-content-type": "text/plain"})
    copied = await files("PUT", "/box/b", source("a"))
    assert (copied.status, copied.headers["x-ms-copy-status"]) == (202, "success")
    current = await files("GET", "/box/b")
    assert (current.body, current.headers["content-type"], current.headers["x-ms-meta-m"]) == (
        b"x" * 100_000,
        "text/plain",
        "1",
    )
    assert current.headers["x-ms-copy-id"] == copied.headers["x-ms-copy-id"]
    assert current.headers["x-ms-copy-progress"] == "100000/100000"
    await files("PUT", "/box/b", source("a") | {"x-ms-meta-n": "2"})
    current = await files("HEAD", "/box/b")
    assert (current.headers["x-ms-meta-n"], "x-ms-meta-m" in current.headers) == ("2", False)


async def test_a_copy_may_take_properties_over(files: Harness) -> None:
    born = "2001-02-03T04:05:06.7890123Z"
    await make(
        files,
        "a",
        headers={
            "x-ms-file-creation-time": born,
            "x-ms-file-attributes": "Hidden",
            "x-ms-file-permission": SDDL,
        },
    )
    kept = await files("HEAD", "/box/a")
    take = {
        "x-ms-file-creation-time": "source",
        "x-ms-file-attributes": "source",
        "x-ms-file-permission-copy-mode": "source",
    }
    await files("PUT", "/box/b", source("a") | take)
    current = await files("HEAD", "/box/b")
    for name in ("x-ms-file-creation-time", "x-ms-file-attributes", "x-ms-file-permission-key"):
        assert current.headers[name] == kept.headers[name]
    await files("PUT", "/box/c", source("a") | {"x-ms-file-copy-set-archive": "true"})
    current = await files("HEAD", "/box/c")
    assert current.headers["x-ms-file-attributes"] == "Archive"
    assert current.headers["x-ms-file-permission-key"] != kept.headers["x-ms-file-permission-key"]
    odd = await files("PUT", "/box/c", source("a") | {"x-ms-file-permission-copy-mode": "override"})
    assert (odd.status, odd.code) == (400, "MissingRequiredHeader")


async def test_what_cannot_be_copied(files: Harness) -> None:
    await make(files, "a", b"1")
    for path in ("no", "no/no", "../no"):
        answer = await files("PUT", "/box/b", source(path))
        assert answer.status in {400, 404}
    missing = await files("PUT", "/box/b", source("no"))
    assert (missing.status, missing.code) == (404, "ResourceNotFound")
    of_blob = {"x-ms-copy-source": "http://acme.blob.localhost:10000/bag/b"}
    assert (await files("PUT", "/box/b", of_blob)).code == "CannotVerifyCopySource"
    elsewhere = await files("PUT", "/box/b", {"x-ms-copy-source": "http://example.org/a"})
    assert (elsewhere.status, elsewhere.code) == (404, "CannotVerifyCopySource")
    assert (await files("PUT", "/box/b", {"x-ms-copy-source": "nonsense"})).code == "InvalidHeaderValue"
    await files("PUT", "/box/a?comp=properties", {"x-ms-file-attributes": "ReadOnly"})
    await make(files, "c", b"2")
    assert (await files("PUT", "/box/a", source("c"))).code == "ReadOnlyAttribute"
    ignore = {"x-ms-file-copy-ignore-readonly": "true"}
    assert (await files("PUT", "/box/a", source("c") | ignore)).status == 202
    await files("PUT", "/box/c?comp=lease", ACQUIRE)
    assert (await files("PUT", "/box/c", source("a"))).code == "LeaseIdMissing"
    assert (await files("PUT", "/box/c", source("a") | {"x-ms-lease-id": ID})).status == 202


async def test_no_copy_is_ever_pending(files: Harness) -> None:
    await make(files, "a", b"1")
    copied = await files("PUT", "/box/b", source("a"))
    abort = {"x-ms-copy-action": "abort"}
    target = "/box/b?comp=copy&copyid="
    done = await files("PUT", target + copied.headers["x-ms-copy-id"], abort)
    assert (done.status, done.code) == (409, "NoPendingCopyOperation")
    assert (await files("PUT", f"{target}{ID}", abort)).code == "CopyIdMismatch"
    assert (await files("PUT", f"{target}{ID}")).code == "MissingRequiredHeader"
    assert (await files("PUT", "/box/b?comp=copy", abort)).code == "MissingRequiredQueryParameter"
    assert (await files("PUT", f"{target}never-begun", abort)).code == "InvalidQueryParameterValue"


async def test_ranges_from_elsewhere_need_a_signature(files: Harness) -> None:
    await make(files, "a", b"12345")
    await make(files, "b", b"67890")
    request = source("a") | {
        "x-ms-write": "update",
        "x-ms-range": "bytes=0-2",
        "x-ms-source-range": "bytes=2-4",
    }
    refused = await files("PUT", "/box/b?comp=range", request)
    assert (refused.status, refused.code) == (401, "CannotVerifyCopySource")
    for wrong in ({"x-ms-source-range": "bytes=0-9"}, {"x-ms-write": "clear"}):
        assert (await files("PUT", "/box/b?comp=range", request | wrong)).code == "InvalidHeaderValue"


async def test_a_rename_keeps_everything_but_the_name(files: Harness) -> None:
    made = await make(files, "Old", b"data", headers={"x-ms-meta-m": "1"})
    await files("PUT", "/box/d?restype=directory")
    moved = await files("PUT", "/box/d/New?comp=rename", rename_from("old"))
    assert moved.status == 200
    assert moved.headers["x-ms-file-id"] == made["x-ms-file-id"]
    current = await files("GET", "/box/d/new")
    assert (current.body, current.headers["x-ms-meta-m"]) == (b"data", "1")
    assert current.headers["x-ms-file-creation-time"] == made["x-ms-file-creation-time"]
    assert (await files("GET", "/box/Old")).code == "ResourceNotFound"
    assert await names(files, "d") == ["New"]


async def test_a_rename_may_change_the_case_only(files: Harness) -> None:
    await make(files, "name", b"1")
    assert (await files("PUT", "/box/NAME?comp=rename", rename_from("name"))).status == 200
    assert await names(files) == ["NAME"]


async def test_a_directory_moves_with_all_that_is_in_it(files: Harness) -> None:
    await files("PUT", "/box?restype=share")
    for path in ("a", "a/b", "c"):
        await files("PUT", f"/box/{path}?restype=directory")
    await make(files, "a/b/f", b"deep")
    moved = await files("PUT", "/box/c/x?restype=directory&comp=rename", rename_from("a"))
    assert moved.status == 200
    assert (await files("GET", "/box/c/x/b/f")).body == b"deep"
    assert await names(files) == ["c"]
    inside = await files("PUT", "/box/c/x/y?restype=directory&comp=rename", rename_from("c"))
    assert (inside.status, inside.code) == (409, "SharingViolation")


async def test_a_rename_replaces_only_if_requested(files: Harness) -> None:
    await make(files, "a", b"a")
    await make(files, "b", b"b")
    await files("PUT", "/box/d?restype=directory")
    assert (await files("PUT", "/box/b?comp=rename", rename_from("a"))).code == "ResourceAlreadyExists"
    replace = rename_from("a") | {"x-ms-file-rename-replace-if-exists": "true"}
    assert (await files("PUT", "/box/d?comp=rename", replace)).code == "ResourceTypeMismatch"
    await files("PUT", "/box/b?comp=properties", {"x-ms-file-attributes": "ReadOnly"})
    assert (await files("PUT", "/box/b?comp=rename", replace)).code == "ReadOnlyAttribute"
    ignore = {"x-ms-file-rename-ignore-readonly": "true"}
    assert (await files("PUT", "/box/b?comp=rename", replace | ignore)).status == 200
    assert (await files("GET", "/box/b")).body == b"a"
    assert (await files("GET", "/box?restype=share&comp=stats")).xml.findtext("ShareUsageBytes") == "1"


async def test_a_directory_may_replace_a_file(files: Harness) -> None:
    await make(files, "f", b"123")
    await files("PUT", "/box/d?restype=directory")
    await files("PUT", "/box/e?restype=directory")
    target = "?restype=directory&comp=rename"
    replace = rename_from("d") | {"x-ms-file-rename-replace-if-exists": "true"}
    assert (await files("PUT", f"/box/f{target}", rename_from("d"))).code == "ResourceAlreadyExists"
    assert (await files("PUT", f"/box/e{target}", replace)).code == "ResourceTypeMismatch"
    await files("PUT", "/box/f?comp=lease", ACQUIRE)
    assert (await files("PUT", f"/box/f{target}", replace)).code == "LeaseIdMissing"
    assert (await files("PUT", f"/box/f{target}", replace | {"x-ms-destination-lease-id": ID})).status == 200
    assert (await files("GET", "/box/f?restype=directory")).status == 200
    assert await names(files) == ["e", "f"]
    assert (await files("GET", "/box?restype=share&comp=stats")).xml.findtext("ShareUsageBytes") == "0"


async def test_leases_protect_both_ends_of_a_rename(files: Harness) -> None:
    await make(files, "a", b"a")
    await make(files, "b", b"b")
    replace = rename_from("a") | {"x-ms-file-rename-replace-if-exists": "true"}
    await files("PUT", "/box/a?comp=lease", ACQUIRE)
    assert (await files("PUT", "/box/b?comp=rename", replace)).code == "LeaseIdMissing"
    await files("PUT", "/box/b?comp=lease", ACQUIRE)
    mine = replace | {"x-ms-source-lease-id": ID}
    assert (await files("PUT", "/box/b?comp=rename", mine)).code == "LeaseIdMissing"
    assert (await files("PUT", "/box/b?comp=rename", mine | {"x-ms-destination-lease-id": ID})).status == 200


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, "MissingRequiredHeader"),
        (rename_from("no"), 404, "ResourceNotFound"),
        (rename_from("no/no"), 404, "ParentNotFound"),
        ({"x-ms-file-rename-source": f"{HOST}/other/a"}, 400, "InvalidHeaderValue"),
        ({"x-ms-file-rename-source": "/box/a"}, 400, "InvalidHeaderValue"),
    ],
)
async def test_renames_that_cannot_be(
    files: Harness, headers: dict[str, str], status: int, code: str
) -> None:
    await make(files, "a", b"a")
    answer = await files("PUT", "/box/b?comp=rename", headers)
    assert (answer.status, answer.code) == (status, code)
    assert await names(files) == ["a"]


async def test_a_target_without_a_parent(files: Harness) -> None:
    await make(files, "a", b"a")
    assert (await files("PUT", "/box/no/b?comp=rename", rename_from("a"))).code == "ParentNotFound"
    assert (await files("PUT", "/box/no/b", source("a"))).code == "ParentNotFound"
    assert (await files("PUT", "/box/no/b", FILE | {"x-ms-content-length": "0"})).code == "ParentNotFound"
