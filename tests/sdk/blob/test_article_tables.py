"""The tables of Microsoft's article on managing concurrency, for containers and blobs, through the real server.

Each operation is a row: how to request it, whether its answer has an ETag, whether it takes conditions, and what a
lease on the resource means for it.
"""

import base64
import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from tests.sdk.raw_http import Answer, fetch, signed_lite
from tests.server_process import ServerProcess

VERSION = {"x-ms-version": "2025-05-05"}
OTHER_ID = "99999999-9999-9999-9999-999999999999"
LONG_AGO = "Mon, 01 Jan 2001 00:00:00 GMT"
BLOCK_ID = base64.b64encode(b"0001").decode()
BLOCK_LIST = f"<BlockList><Latest>{BLOCK_ID}</Latest></BlockList>".encode()
OLD = '"0x8D4BCC2E4835CD0"'

_numbers = itertools.count()


@dataclass(frozen=True)
class Row:
    name: str
    method: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    etag: bool = True
    """Whether the answer returns an ETag."""
    conditions: bool = True
    lease: str = "required"
    """What a lease means: its id is ``required``, or ``optional`` (a condition if it is sent), or not looked at."""
    kind: str = "BlockBlob"


ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
PAGES = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}

CONTAINER_ROWS = (
    Row("Create Container", "PUT", "restype=container", conditions=False, lease="none"),
    Row("Get Container Properties", "GET", "restype=container", conditions=False, lease="optional"),
    Row(
        "Get Container Metadata", "GET", "restype=container&comp=metadata", conditions=False, lease="optional"
    ),
    Row("Set Container Metadata", "PUT", "restype=container&comp=metadata", lease="optional"),
    Row("Get Container ACL", "GET", "restype=container&comp=acl", conditions=False, lease="optional"),
    Row("Set Container ACL", "PUT", "restype=container&comp=acl", lease="optional"),
    Row("Delete Container", "DELETE", "restype=container", etag=False, lease="required"),
    Row("Lease Container", "PUT", "restype=container&comp=lease", ACQUIRE, lease="none"),
    Row("List Blobs", "GET", "restype=container&comp=list", etag=False, conditions=False, lease="none"),
)

BLOB_ROWS = (
    Row("Put Blob", "PUT", headers={"x-ms-blob-type": "BlockBlob"}, body=b"new"),
    Row("Get Blob", "GET", lease="optional"),
    Row("Get Blob Properties", "HEAD", lease="optional"),
    Row("Set Blob Properties", "PUT", "comp=properties", {"x-ms-blob-content-type": "text/x"}),
    Row("Get Blob Metadata", "GET", "comp=metadata", lease="optional"),
    Row("Set Blob Metadata", "PUT", "comp=metadata", {"x-ms-meta-a": "b"}),
    Row("Lease Blob", "PUT", "comp=lease", ACQUIRE, lease="none"),
    Row("Snapshot Blob", "PUT", "comp=snapshot", lease="optional"),
    Row("Copy Blob", "PUT", headers={"x-ms-copy-source": "SOURCE"}),
    Row("Delete Blob", "DELETE", etag=False),
    Row("Put Block", "PUT", f"comp=block&blockid={BLOCK_ID}", body=b"block", etag=False, conditions=False),
    Row("Put Block List", "PUT", "comp=blocklist", body=BLOCK_LIST),
    Row("Get Block List", "GET", "comp=blocklist", conditions=False, lease="optional"),
    Row("Put Page", "PUT", "comp=page", PAGES, b"p" * 512, kind="PageBlob"),
    Row("Get Page Ranges", "GET", "comp=pagelist", lease="optional", kind="PageBlob"),
    Row("Append Block", "PUT", "comp=appendblock", body=b"line", kind="AppendBlob"),
)


class Client:
    """Asks with an account SAS, which every row but the ACL ones takes; those are signed by the key's own client."""

    def __init__(self, server: ServerProcess) -> None:
        self._root = server.endpoints["blob"]
        self._sas = generate_account_sas(
            server.account,
            server.account_key,
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True),
            datetime.now(UTC) + timedelta(hours=1),
        )
        self._server = server
        self.container = f"table-{next(_numbers)}"

    def __call__(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        sent = VERSION | {"Content-Length": str(len(body))} | (headers or {})
        if sent.get("x-ms-copy-source") == "SOURCE":
            sent["x-ms-copy-source"] = f"{self._root}/{self.container}/source?{self._sas}"
        if "comp=acl" in query:
            return self._signed(method, path, query, sent, body)
        return fetch(f"{self._root}/{path}?{query}&{self._sas}", method, sent, body or None)

    def _signed(self, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> Answer:
        url = f"{self._root}/{path}?{query}"
        plain = {name: value for name, value in headers.items() if name != "x-ms-version"}
        key, account = self._server.account_key, self._server.account
        return fetch(url, method, signed_lite(url, method, plain, account=account, key=key), body or None)

    def make(self, row: Row) -> str:
        """A blob for the row, and its ETag."""
        path = f"{self.container}/blob"
        self("PUT", self.container, "restype=container")
        self("PUT", f"{self.container}/source", headers={"x-ms-blob-type": "BlockBlob"}, body=b"source")
        headers = {"x-ms-blob-type": row.kind}
        if row.kind == "PageBlob":
            headers["x-ms-blob-content-length"] = "512"
        made = self("PUT", path, headers=headers, body=b"old" if row.kind == "BlockBlob" else b"")
        assert made.status == 201
        self("PUT", path, f"comp=block&blockid={BLOCK_ID}", body=b"block")
        return made.headers["ETag"]


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return Client(server)


def by_name(rows: tuple[Row, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


@by_name(CONTAINER_ROWS)
def test_container_operations_return_etags_and_take_conditions(client: Client, row: Row) -> None:
    if row.name != "Create Container":
        assert client("PUT", client.container, "restype=container").status == 201
    future = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    unmet = {"If-Modified-Since": future}
    if row.conditions:
        refused = client(row.method, client.container, row.query, row.headers | unmet)
        assert (refused.status, refused.code) == (412, "ConditionNotMet")
        unmet = {}
    done = client(row.method, client.container, row.query, row.headers | unmet)
    assert done.status in (200, 201, 202)
    assert ("ETag" in done.headers) == row.etag


@by_name(BLOB_ROWS)
def test_blob_operations_return_etags_and_take_conditions(client: Client, row: Row) -> None:
    etag, path = client.make(row), f"{client.container}/blob"
    is_read = row.method in ("GET", "HEAD")
    for condition, status in (
        ({"If-Match": OLD}, 412),
        ({"If-Unmodified-Since": LONG_AGO}, 412),
        ({"If-None-Match": etag}, 304 if is_read else 412),
    ):
        answer = client(row.method, path, row.query, row.headers | condition, row.body)
        if row.conditions:
            assert (answer.status, answer.code) == (status, "ConditionNotMet")
        else:
            assert answer.status in (200, 201)
    for condition in ({"If-Match": etag}, {"If-None-Match": OLD}, {"If-Modified-Since": LONG_AGO}):
        client.container = f"{client.container}a"
        current = client.make(row)
        sent = {name: current if value == etag else value for name, value in condition.items()}
        done = client(row.method, f"{client.container}/blob", row.query, row.headers | sent, row.body)
        assert done.status in (200, 201, 202), (condition, done)
        assert ("ETag" in done.headers) == row.etag
        if row.name == "Lease Blob":
            assert done.headers["ETag"] == current


@by_name(BLOB_ROWS)
def test_what_a_lease_on_a_blob_protects(client: Client, row: Row) -> None:
    client.make(row)
    path = f"{client.container}/blob"
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease_id = client("PUT", path, "comp=lease", acquire).headers["x-ms-lease-id"]

    def request(**headers: str) -> Answer:
        sent = row.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        return client(row.method, path, row.query, sent, row.body)

    if row.lease == "none":
        assert request().code == "LeaseAlreadyPresent"
        return
    bare = request()
    if row.lease == "required":
        assert (bare.status, bare.code) == (412, "LeaseIdMissing")
    else:
        assert bare.status in (200, 201)
    wrong = request(x_ms_lease_id=OTHER_ID)
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithBlobOperation")
    if row.name != "Delete Blob":
        assert request(x_ms_lease_id=lease_id).status in (200, 201, 202)
    client("PUT", path, f"comp=block&blockid={BLOCK_ID}", {"x-ms-lease-id": lease_id}, b"block")
    client("PUT", path, "comp=lease", {"x-ms-lease-action": "break"})
    lost = request(x_ms_lease_id=lease_id)
    assert (lost.status, lost.code) == (412, "LeaseLost")
    assert request().status in ((202,) if row.name == "Delete Blob" else (200, 201, 202))


@by_name(CONTAINER_ROWS)
def test_of_the_container_operations_only_delete_is_exclusive(client: Client, row: Row) -> None:
    if row.lease == "none":
        return
    client("PUT", client.container, "restype=container")
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    lease_id = client("PUT", client.container, "restype=container&comp=lease", acquire).headers[
        "x-ms-lease-id"
    ]
    wrong = client(row.method, client.container, row.query, row.headers | {"x-ms-lease-id": OTHER_ID})
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithContainerOperation")
    bare = client(row.method, client.container, row.query, row.headers)
    if row.lease == "required":
        assert (bare.status, bare.code) == (412, "LeaseIdMissing")
    else:
        assert bare.status == 200
    done = client(row.method, client.container, row.query, row.headers | {"x-ms-lease-id": lease_id})
    assert done.status in (200, 202)


def test_abort_copy_needs_the_id_of_an_infinite_lease_only(client: Client) -> None:
    for seconds, code in (("-1", "LeaseIdMissing"), ("15", "NoPendingCopyOperation")):
        client.container = f"{client.container}a"
        client.make(BLOB_ROWS[0])
        path = f"{client.container}/blob"
        client("PUT", path, "comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": seconds})
        answer = client("PUT", path, "comp=copy&copyid=1", {"x-ms-copy-action": "abort"})
        assert answer.code == code


def test_without_any_of_it_the_last_writer_wins(client: Client) -> None:
    client.make(BLOB_ROWS[0])
    path = f"{client.container}/blob"
    for text in (b"first", b"second", b"last"):
        assert client("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=text).status == 201
    assert client("GET", path).body == b"last"
