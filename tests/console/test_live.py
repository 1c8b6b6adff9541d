"""The pages that show what happens now: leases, handles, blocks, requests and refusals."""

import http.client
import json
import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from smbprotocol.open import SMB2LockElement

from tests.console.visitor import Visitor
from tests.server_process import ServerProcess
from tests.signed_tokens import claims_at, signed
from tests.smb.messages import OPEN, READ_WRITE, connected
from tests.smb.shares import KyaniteShare

ACCOUNT = "devstoreaccount1"
BATCH, EXCLUSIVE, AT_ONCE, SHARE_READ = 9, 0x2, 0x10, 0x1
DELETE_ON_CLOSE, DELETE = 0x1000, 0x10000


@pytest.fixture
def blobs(server: ServerProcess) -> BlobServiceClient:
    return BlobServiceClient(server.endpoints["blob"], credential=server.account_key)


@pytest.fixture
def files(server: ServerProcess) -> ShareServiceClient:
    return ShareServiceClient(server.endpoints["file"], credential=server.account_key)


def test_leases_of_all_kinds_are_listed_and_broken(
    visitor: Visitor, blobs: BlobServiceClient, files: ShareServiceClient
) -> None:
    container = blobs.create_container("leased")
    container.upload_blob("dir/<b>x", b"1").acquire_lease(60)
    lease = container.acquire_lease(-1)
    share = files.create_share("leasedshare")
    share.create_directory("Dir")
    file = share.get_file_client("Dir/File.txt")
    file.create_file(3)
    file.acquire_lease()
    share.acquire_lease(lease_duration=60)
    page = visitor.get("/live", account=ACCOUNT)
    assert "Leases (4)" in page.words
    assert lease.id in page.words
    assert "leased/dir/<b>x" in page.words
    assert "leasedshare/Dir/File.txt" in page.words
    assert page.text.count("data-ends=") == 2
    for service, of, name in (
        ("blob", "leased", "dir/<b>x"),
        ("blob", "leased", ""),
        ("file", "leasedshare", "Dir/File.txt"),
        ("file", "leasedshare", ""),
    ):
        broken = visitor.send("/live/break", account=ACCOUNT, service=service, of=of, name=name)
        assert (broken.status, "The lease was broken." in broken.words) == (200, True)
    assert "Leases (0)" in visitor.get("/live/part", account=ACCOUNT).words
    again = visitor.send("/live/break", account=ACCOUNT, service="blob", of="leased", name="none")
    assert (again.status, "BlobNotFound" in again.words) == (404, True)
    container.delete_container()


def test_handles_are_listed_with_what_they_hold_and_closed(server: ServerProcess, visitor: Visitor) -> None:
    share = KyaniteShare(server, "opened")
    share.make_directory("dir")
    share.put("dir/file", b"0123456789")
    with connected(share.login, share.name) as client:
        opened = client.create(
            r"dir\file", access=READ_WRITE, disposition=OPEN, oplock=BATCH, sharing=SHARE_READ
        )
        element = SMB2LockElement()
        element["offset"], element["length"], element["flags"] = 100, 50, EXCLUSIVE | AT_ONCE
        opened.lock([element])
        page = visitor.get("/live", account=ACCOUNT)
        row = next(row for row in page.text.split("<tr>") if "opened/dir/file" in row)
        for part in (
            "<td>read, write</td>",
            "<td>read</td>",
            "oplock batch",
            "exclusive 100+50",
            "127.0.0.1",
        ):
            assert part in row
        handle = row.split('name="handle" value="')[1].partition('"')[0]
        where = {"account": ACCOUNT, "share": "opened", "path": "dir/file", "handle": handle}
        closed = visitor.send("/live/close", **where)
        assert "The handle was closed." in closed.words
        assert "opened/dir/file" not in closed.words
        assert visitor.send("/live/close", **where).status == 400


def test_pending_deletes_are_listed(server: ServerProcess, visitor: Visitor) -> None:
    share = KyaniteShare(server, "deleting")
    share.put("doomed", b"1")
    with connected(share.login, share.name) as client:
        other = client.create("doomed", disposition=OPEN)
        doomed = client.create("doomed", access=DELETE, disposition=OPEN, options=DELETE_ON_CLOSE)
        client.close(doomed)
        assert "Pending deletes (1)" in visitor.get("/live", account=ACCOUNT).words
        client.close(other)
    assert "Pending deletes (0)" in visitor.get("/live", account=ACCOUNT).words
    assert not share.has_file("doomed")


def test_uncommitted_blocks_are_listed(visitor: Visitor, blobs: BlobServiceClient) -> None:
    container = blobs.create_container("staged")
    blob = container.get_blob_client("big")
    blob.stage_block("AAAA", b"1")
    blob.stage_block("BBBB", b"2")
    page = visitor.get("/live", account=ACCOUNT)
    assert "staged/big" in page.words
    assert "Uncommitted blocks (1)" in page.words
    blob.commit_block_list([])
    assert "Uncommitted blocks (0)" in visitor.get("/live", account=ACCOUNT).words


def test_requests_are_streamed_with_a_filter(server: ServerProcess, blobs: BlobServiceClient) -> None:
    container = blobs.create_container("watched")
    parts = urlsplit(server.endpoints["console"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", f"/requests/stream?account={ACCOUNT}&operation=put%20blob")
    response = connection.getresponse()
    assert response.getheader("content-type") == "text/event-stream"
    number = 0

    def events() -> Iterator[dict[str, object]]:
        nonlocal number
        while True:
            line = response.readline().decode()
            if line.startswith("data: "):
                yield from json.loads(line.removeprefix("data: "))["lines"]
            else:
                # Whatever was sent before the watch began is not seen.
                number += 1
                container.upload_blob(f"<b>{number}", b"1")
                container.get_blob_client("other").exists()

    line = next(events())
    connection.close()
    assert line["operation"] == "Put Blob"
    assert line["status"] == "201"
    assert str(line["path"]).startswith(f"/{ACCOUNT}/watched/")


def test_a_stop_does_not_wait_for_those_who_watch() -> None:
    with ServerProcess("--console-port", "0", "--in-memory", "--stop-seconds", "600") as server:
        parts = urlsplit(server.endpoints["console"])
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("GET", "/requests/stream")
        assert connection.getresponse().status == 200
        assert server.stop() == 0
        connection.close()


def test_a_refusal_is_explained(visitor: Visitor, blobs: BlobServiceClient) -> None:
    container = blobs.create_container("refused")
    container.upload_blob("x", b"1")
    with pytest.raises(HttpResponseError) as refusal:
        container.upload_blob(
            "x", b"2", overwrite=True, etag='"0x1"', match_condition=MatchConditions.IfNotModified
        )
    request_id = refusal.value.response.headers["x-ms-request-id"]  # type: ignore[union-attr]
    page = visitor.get("/explain", id=request_id)
    assert "412 ConditionNotMet" in page.words
    assert "CONDITION_NOT_MET" in page.words
    assert "is known" in visitor.get("/explain", id="11111111-0000-0000-0000-000000000000").words
    assert visitor.get("/explain").status == 200


def test_what_the_console_was_refused_is_explained_too(visitor: Visitor) -> None:
    page = visitor.send("/containers/delete", account=ACCOUNT, container="not-there")
    assert page.status == 404
    link = re.search(r'href="(/explain[^"]+)"', page.text)
    assert link is not None
    assert "404 ContainerNotFound" in visitor.get(link[1].replace("&amp;", "&")).words


def test_signatures_open_what_they_say(
    server: ServerProcess, visitor: Visitor, blobs: BlobServiceClient
) -> None:
    container = blobs.create_container("signed")
    container.upload_blob("a b/<c>", b"content")

    def made(**values: str) -> str:
        page = visitor.send("/sas", account=ACCOUNT, **values)
        assert page.status == 200, page.words
        return next(word for word in page.words.split() if "sig=" in word and not word.startswith("http"))

    of_account = made(kind="account", permissions="lr", services="b", types="sco")
    listed = BlobServiceClient(server.endpoints["blob"], credential=of_account).list_containers()
    assert "signed" in [each.name for each in listed]
    of_blob = made(kind="service", service="blob", container="signed", name="a b/<c>", permissions="r")
    endpoint = server.endpoints["blob"]
    with BlobServiceClient(endpoint, credential=of_blob) as reader:
        assert reader.get_blob_client("signed", "a b/<c>").download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError):
            reader.get_blob_client("signed", "a b/<c>").delete_blob()
    of_share = made(kind="service", service="file", container="any", permissions="rl")
    assert "sr=s" in of_share
    assert "tn=" in made(kind="service", service="table", container="any", permissions="r")
    assert "sig=" in made(kind="service", service="queue", container="any", permissions="r")
    assert visitor.send("/sas", account=ACCOUNT, kind="account", permissions="rz").status == 400
    assert visitor.send("/sas", account=ACCOUNT, kind="service", permissions="r").status == 400
    assert visitor.send("/sas", account=ACCOUNT, kind="other").status == 400
    assert visitor.get("/sas", account=ACCOUNT).status == 200


def test_a_signature_by_the_key_of_a_user() -> None:
    with ServerProcess("--console-port", "0", "--in-memory", "--dev-identity", "any") as server:
        visitor = Visitor(server.endpoints["console"])
        assert "By a user’s key" in visitor.get("/sas", account=ACCOUNT).words
        client = BlobServiceClient(server.endpoints["blob"], credential=server.account_key)
        client.create_container("signed").upload_blob("x", b"content")
        wish = {
            "account": ACCOUNT,
            "kind": "user",
            "service": "blob",
            "container": "signed",
            "permissions": "r",
        }
        assert visitor.send("/sas", **wish).status == 400
        refused = visitor.send("/sas", token="no token", **wish)
        assert refused.status == 401
        page = visitor.send("/sas", token=signed(claims_at(time.time())), **wish)
        token = next(word for word in page.words.split() if "skoid=" in word and not word.startswith("http"))
        reader = BlobServiceClient(server.endpoints["blob"], credential=token)
        assert reader.get_blob_client("signed", "x").download_blob().readall() == b"content"
