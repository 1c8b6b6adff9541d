"""``$root``, ``$web``, ``$logs`` and ``$blobchangefeed`` through the service."""

from urllib.parse import quote

import pytest

from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from tests.services.harness import Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
LOGGING = (
    b"<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>%s</Read>"
    b"<Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
    b"</StorageServiceProperties>"
)


async def listed(blobs: Harness, query: str = "") -> list[str | None]:
    page = await blobs("GET", f"/?comp=list{query}")
    assert page.status == 200
    return [each.findtext("Name") for each in page.xml.iter("Container")]


async def enable_logging(blobs: Harness) -> None:
    answer = await blobs("PUT", "/?restype=service&comp=properties", body=LOGGING % b"true")
    assert answer.status == 202


async def fill(blobs: Harness, name: str) -> None:
    """Make a container as the server does, with a blob as the server would write it."""
    key = ContainerKey("acme", "stage")
    await container.create_if_missing(blobs.engine, key)
    assert (await blobs("PUT", "/stage/log", BLOCK, b"line")).status == 201
    await container.rename(blobs.engine, key, ContainerKey("acme", name), None)


@pytest.mark.parametrize("name", ["$root", "$web"])
async def test_containers_that_clients_make(blobs: Harness, name: str) -> None:
    assert (await blobs("PUT", f"/{name}?restype=container")).status == 201
    assert (await blobs("PUT", f"/{name}/index.html", BLOCK, b"x")).status == 201
    assert await listed(blobs) == await listed(blobs, "&include=system") == [name]
    assert (await blobs("DELETE", f"/{name}?restype=container")).status == 202


async def test_blobs_of_the_root_container_need_no_container(blobs: Harness) -> None:
    missing = await blobs("PUT", "/index.html", BLOCK, b"x")
    assert (missing.status, missing.code) == (404, "ContainerNotFound")
    await blobs("PUT", "/$root?restype=container")
    assert (await blobs("PUT", "/index.html", BLOCK, b"x")).status == 201
    assert (await blobs("GET", "/$root/index.html")).body == b"x"
    assert (await blobs("GET", "/index.html")).body == b"x"
    slash = await blobs("PUT", "/$root/a/b", BLOCK, b"x")
    assert (slash.status, slash.code) == (400, "InvalidResourceName")


@pytest.mark.parametrize("name", ["$logs", "$blobchangefeed"])
async def test_containers_that_only_the_server_makes(blobs: Harness, name: str) -> None:
    answer = await blobs("PUT", f"/{name}?restype=container")
    assert (answer.status, answer.code) == (403, "AuthorizationFailure")
    assert answer.xml.findtext("Reason") == f"The container {name} is written by the server only."
    assert (await blobs("GET", f"/{name}?restype=container")).code == "ContainerNotFound"
    assert (await blobs("PUT", f"/{name}/b", BLOCK, b"x")).code == "AuthorizationFailure"


async def test_logs_exist_once_logging_was_turned_on(blobs: Harness) -> None:
    await blobs("PUT", "/?restype=service&comp=properties", body=LOGGING % b"false")
    assert await listed(blobs, "&include=system") == []
    for _ in range(2):
        await enable_logging(blobs)
    assert await listed(blobs) == await listed(blobs, "&include=deleted") == []
    assert await listed(blobs, "&include=system") == ["$logs"]
    assert await listed(blobs, "&include=deleted,system") == ["$logs"]
    assert (await blobs("GET", "/$logs?restype=container&comp=list")).status == 200
    refused = await blobs("DELETE", "/$logs?restype=container")
    assert (refused.status, refused.code) == (403, "AuthorizationFailure")


async def test_logs_are_read_and_deleted_by_clients_and_written_by_none(blobs: Harness) -> None:
    await fill(blobs, "$logs")
    assert (await blobs("GET", "/$logs/log")).body == b"line"
    for method, target, headers in (
        ("PUT", "/$logs/log", BLOCK),
        ("PUT", "/$logs/log?comp=metadata", {"x-ms-meta-a": "b"}),
        ("PUT", "/$logs/log?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}),
        ("PUT", "/$logs?restype=container&comp=acl", {"x-ms-blob-public-access": "blob"}),
        ("PUT", "/$logs/copy", {"x-ms-copy-source": "http://acme.blob.localhost/$logs/log"}),
    ):
        answer = await blobs(method, target, headers)
        assert (answer.status, answer.code) == (403, "AuthorizationFailure"), target
    body = (
        "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n"
        "PUT /acme/$logs/log?comp=tier HTTP/1.1\r\nx-ms-access-tier: Cool\r\nContent-Length: 0\r\n\r\n\r\n--b--\r\n"
    )
    batch = await blobs(
        "POST", "/?comp=batch", {"Content-Type": "multipart/mixed; boundary=b"}, body.encode()
    )
    assert b" 202 " not in batch.body
    assert (await blobs("DELETE", "/$logs/log")).status == 202


async def test_the_change_feed_is_read_and_never_listed(blobs: Harness) -> None:
    await fill(blobs, "$blobchangefeed")
    assert await listed(blobs) == await listed(blobs, "&include=system,deleted") == []
    assert (await blobs("GET", "/$blobchangefeed/log")).body == b"line"
    assert (await blobs("PUT", "/$blobchangefeed/log", BLOCK, b"x")).code == "AuthorizationFailure"
    assert (await blobs("DELETE", "/$blobchangefeed?restype=container")).status == 202


@pytest.mark.parametrize("include", ["", "deleted", "metadata"])
async def test_hidden_containers_do_not_shorten_pages(blobs: Harness, include: str) -> None:
    for name in ("$logs", "$blobchangefeed"):
        await fill(blobs, name)
    for name in ("$root", "aaa", "bbb"):
        await blobs("PUT", f"/{name}?restype=container")
    found, marker = [], ""
    for _ in range(3):
        page = await blobs("GET", f"/?comp=list&include={include}&maxresults=1&marker={marker}")
        found.append([each.findtext("Name") for each in page.xml.iter("Container")])
        marker = quote(page.xml.findtext("NextMarker") or "")
    assert (found, marker) == ([["$root"], ["aaa"], ["bbb"]], "")


@pytest.mark.parametrize("name", ["$root", "$web", "$logs", "$blobchangefeed"])
async def test_they_keep_their_names(blobs: Harness, name: str) -> None:
    await fill(blobs, name)
    await blobs("PUT", "/box?restype=container")
    for source, target in ((name, "crate"), ("box", name)):
        headers = {"x-ms-source-container-name": source}
        answer = await blobs("PUT", f"/{target}?restype=container&comp=rename", headers)
        assert answer.status in {400, 403}
        assert answer.code in {"InvalidResourceName", "AuthorizationFailure"}
    assert (await blobs("GET", f"/{name}/log")).status == 200
