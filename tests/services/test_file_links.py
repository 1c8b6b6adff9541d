"""Shares that speak NFS: owners, modes and symbolic links."""

import pytest

from tests.services.harness import Harness
from tests.services.test_file_files import FILE, names

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
    assert await names(files) == ["l"]
    assert (await files("DELETE", "/box/l")).status == 202
    assert (await files("GET", "/box/l?restype=symboliclink")).code == "ResourceNotFound"


async def test_owners_and_modes_are_kept(files: Harness) -> None:
    await files("PUT", "/box?restype=share", NFS)
    owned = {"x-ms-owner": "5", "x-ms-mode": "0640"}
    made = await files("PUT", "/box/f", FILE | {"x-ms-content-length": "0"} | owned)
    assert {name: made.headers[name] for name in owned} == owned
    assert (made.headers["x-ms-group"], made.headers["x-ms-link-count"]) == ("0", "1")
    changed = await files("PUT", "/box/f?comp=properties", {"x-ms-group": "9"})
    assert (changed.headers["x-ms-group"], changed.headers["x-ms-owner"]) == ("9", "5")
    directory = await files("PUT", "/box/d?restype=directory")
    assert directory.headers["x-ms-mode"] == "0755"
    odd = await files("PUT", "/box/g", FILE | {"x-ms-content-length": "0", "x-ms-mode": "9999"})
    assert odd.code == "InvalidHeaderValue"


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "/box/l?restype=symboliclink", LINK),
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
    [("", "MissingRequiredHeader"), ("x" * 1025, "InvalidHeaderValue"), ("%zz", "InvalidUri")],
)
async def test_links_that_cannot_be(files: Harness, text: str, code: str) -> None:
    await files("PUT", "/box?restype=share", NFS)
    assert (await files("PUT", "/box/l?restype=symboliclink", {"x-ms-link-text": text})).code == code
