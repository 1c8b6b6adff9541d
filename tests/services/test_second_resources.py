"""Operations that name a second resource, row by row: who may do them with which permission on it."""

from itertools import chain, combinations
from typing import NamedTuple

import pytest
from azure.storage.blob import generate_account_sas as generate_blob_account_sas
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareSasPermissions,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

from kyanite.rules.second_resources import SECOND_RESOURCES
from kyanite.services.blob.batch import OPERATIONS as BLOB_BATCH
from kyanite.services.blob.operations import OPERATIONS as BLOB
from kyanite.services.files.operations import OPERATIONS as FILES
from kyanite.services.files.service import file_service
from kyanite.services.rest.operations import not_yet
from kyanite.services.table.operations import OPERATIONS as TABLES
from kyanite.services.table.service import table_service
from tests.services.harness import OTHER, Answer, Harness
from tests.services.table.requests import BATCH_TYPE, batch_of, create, entity, insert, inserting, part, send
from tests.services.table.test_access import table_token
from tests.services.tokens import KEY, blob_token, in_an_hour

BLOCK = {"x-ms-blob-type": "BlockBlob"}
SYNC = {"x-ms-requires-sync": "true"}
SPAN = {"x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}
PAGES = {"x-ms-page-write": "update", **SPAN}
RANGE = {"x-ms-write": "update", **SPAN}
COPY, RENAME = "x-ms-copy-source", "x-ms-file-rename-source"
LETTERS = ["".join(some) for some in chain.from_iterable(combinations("rwd", size) for size in (1, 2, 3))]
DATA = b"s" * 512


class Row(NamedTuple):
    operation: str
    source: str
    """The service of the second resource, then its name in ``box``."""
    target: str
    """The service of the request, then its target."""
    headers: dict[str, str]
    key_suffices: bool
    """Whether the key that signs the request opens a second resource in its account."""
    letters: str
    """The permissions that a token needs on the second resource: all of them."""
    named_by: str = COPY
    takes_single: bool = True
    """Whether a token for the one resource suffices, or only one for all of the container."""

    @property
    def service(self) -> str:
        return self.source.split()[0]


ROWS = [
    Row("Copy Blob", "blob src", "blob /box/dst", {}, True, "r"),
    Row("Copy Blob", "file src", "blob /box/dst", {}, False, "r"),
    Row("Copy Blob From URL", "blob src", "blob /box/dst", SYNC, False, "r"),
    Row("Copy Blob From URL", "file src", "blob /box/dst", SYNC, False, "r"),
    Row("Put Blob From URL", "blob src", "blob /box/dst", BLOCK, False, "r"),
    Row("Put Blob From URL", "file src", "blob /box/dst", BLOCK, False, "r"),
    Row("Put Block From URL", "blob src", "blob /box/dst?comp=block&blockid=AAAA", {}, False, "r"),
    Row("Put Block From URL", "file src", "blob /box/dst?comp=block&blockid=AAAA", {}, False, "r"),
    Row("Append Block From URL", "blob src", "blob /box/log?comp=appendblock", {}, False, "r"),
    Row("Append Block From URL", "file src", "blob /box/log?comp=appendblock", {}, False, "r"),
    Row("Put Page From URL", "blob src", "blob /box/pages?comp=page", PAGES, False, "r"),
    Row("Put Page From URL", "file src", "blob /box/pages?comp=page", PAGES, False, "r"),
    Row("Copy File", "file src", "file /box/dst", {}, True, "r"),
    Row("Copy File", "blob src", "file /box/dst", {}, False, "r"),
    Row("Put Range From URL", "file src", "file /box/into?comp=range", RANGE, False, "r"),
    Row("Put Range From URL", "blob src", "file /box/into?comp=range", RANGE, False, "r"),
    Row("Rename File", "file src", "file /box/dst?comp=rename", {}, True, "rw", RENAME),
    Row(
        "Rename Directory",
        "file folder",
        "file /box/dst?restype=directory&comp=rename",
        {},
        True,
        "rw",
        RENAME,
        takes_single=False,
    ),
]
NOT_BY_URL = {
    ("Create Hard Link", "file"),
    ("Rename Container", "blob"),
    ("Blob Batch", "blob"),
    ("Entity Group Transaction", "table"),
}
"""Rows with tests of their own: below, and in ``blob/test_rename_container.py``."""

by_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}, {row.source}")


class Both(NamedTuple):
    blob: Harness
    file: Harness

    async def furnish(self) -> None:
        """Make what the rows need, anew."""
        await self.blob("PUT", "/box?restype=container")
        await self.blob("PUT", "/box/src", BLOCK, DATA)
        await self.blob("PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
        pages = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
        await self.blob("PUT", "/box/pages", pages)
        await self.file("PUT", "/box?restype=share")
        await self.file("DELETE", "/box/dst")
        await self.file("DELETE", "/box/dst?restype=directory")
        await self.file("PUT", "/box/folder?restype=directory")
        for name in ("src", "into"):
            await self.file("PUT", f"/box/{name}", {"x-ms-type": "file", "x-ms-content-length": "512"})
        write = {"x-ms-write": "update", "x-ms-range": "bytes=0-511"}
        assert (await self.file("PUT", "/box/src?comp=range", write, DATA)).status == 201

    async def send(self, row: Row, token: str, **options: object) -> Answer:
        await self.furnish()
        _, name = row.source.split()
        service, target = row.target.split()
        url = f"http://acme.{row.service}.localhost:10000/box/{name}?{token}"
        request = self.blob if service == "blob" else self.file
        return await request("PUT", target, row.headers | {row.named_by: url}, **options)  # type: ignore[arg-type]

    def service_token(self, row: Row, letters: str, name: str) -> str:
        if row.service == "blob":
            return blob_token(self.blob, name, permission=letters)
        allowed = FileSasPermissions.from_string(letters)
        expiry = in_an_hour(self.blob)
        return str(generate_file_sas("acme", "box", [name], KEY, permission=allowed, expiry=expiry))

    def account_token(self, row: Row, letters: str, kinds: str = "o") -> str:
        if row.service == "blob":
            return str(generate_blob_account_sas("acme", KEY, kinds, letters, in_an_hour(self.blob)))
        return str(generate_account_sas("acme", KEY, kinds, letters, in_an_hour(self.blob)))


@pytest.fixture
def both(blobs: Harness) -> Both:
    return Both(blobs, blobs.beside(file_service, "file"))


def is_done(answer: Answer) -> bool:
    assert answer.status < 500
    if answer.status < 300:
        return True
    assert (answer.status, answer.code) in {
        (401, "CannotVerifyCopySource"),
        (403, "CannotVerifyCopySource"),
    }
    return False


def test_every_row_is_tested_and_every_such_operation_has_a_row() -> None:
    assert {(row.operation, row.service) for row in ROWS} | NOT_BY_URL == SECOND_RESOURCES.keys()
    named = {operation for operation, _ in SECOND_RESOURCES}
    for op in (*BLOB, *FILES, *TABLES, *BLOB_BATCH):
        names_another = COPY in op.when or any(word in op.name for word in ("URL", "Rename", "Hard", "Batch"))
        assert not names_another or (op.name in named) != (op.handle is not_yet), op.name


@by_row
async def test_with_the_key_that_signs_the_request(both: Both, row: Row) -> None:
    assert is_done(await both.send(row, "")) == row.key_suffices


@by_row
async def test_never_with_the_token_of_the_request(both: Both, row: Row) -> None:
    """The token opens everything, but is not in the URL of the second resource."""
    service, target = row.target.split()
    own = row._replace(source=f"{service} any")
    token = both.account_token(own, "rwdc")
    changed = row._replace(target=f"{row.target}{'&' if '?' in target else '?'}{token}")
    assert not is_done(await both.send(changed, "", sign=False))
    everything = both.account_token(row, "rwdc")
    assert is_done(await both.send(changed, everything, sign=False))


@by_row
@pytest.mark.parametrize("letters", LETTERS)
async def test_with_a_token_for_the_account(both: Both, row: Row, letters: str) -> None:
    for kinds in ("o", "sc"):
        expected = set(row.letters) <= set(letters) and kinds == "o"
        assert is_done(await both.send(row, both.account_token(row, letters, kinds))) == expected


@by_row
@pytest.mark.parametrize("letters", LETTERS)
async def test_with_a_token_for_the_resource(both: Both, row: Row, letters: str) -> None:
    expected = set(row.letters) <= set(letters) and row.takes_single
    _, name = row.source.split()
    assert is_done(await both.send(row, both.service_token(row, letters, name))) == expected
    assert not is_done(await both.send(row, both.service_token(row, letters, "other")))


@pytest.mark.parametrize("letters", LETTERS)
@pytest.mark.parametrize("row", [row for row in ROWS if row.named_by == RENAME])
async def test_renames_with_a_token_for_the_share(both: Both, row: Row, letters: str) -> None:
    allowed = ShareSasPermissions.from_string(letters)
    token = generate_share_sas("acme", "box", KEY, permission=allowed, expiry=in_an_hour(both.blob))
    assert is_done(await both.send(row, token)) == (set(row.letters) <= set(letters))


@by_row
async def test_with_public_access(both: Both, row: Row) -> None:
    await both.furnish()
    await both.blob("PUT", "/box?restype=container&comp=acl", {"x-ms-blob-public-access": "blob"})
    assert is_done(await both.send(row, "")) == (row.service == "blob" or row.key_suffices)


@by_row
async def test_the_key_of_another_account_opens_nothing(both: Both, row: Row) -> None:
    await both.blob("PUT", "/box?restype=container", account=OTHER)
    await both.file("PUT", "/box?restype=share", account=OTHER)
    answer = await both.send(row, "", account=OTHER)
    assert answer.status in {401, 404}
    assert answer.code == "CannotVerifyCopySource"


# Create Hard Link: the target is named by a path, so the token of the request must open it too.


async def link(both: Both, token: str, target: str, name: str = "h") -> Answer:
    await both.file("PUT", "/box?restype=share", {"x-ms-enabled-protocols": "NFS"})
    await both.file("DELETE", "/box/h")
    for path in ("src", "other"):
        await both.file("PUT", f"/box/{path}", {"x-ms-type": "file", "x-ms-content-length": "3"})
    headers = {"x-ms-file-target-file": target}
    question = f"&{token}" if token else ""
    return await both.file("PUT", f"/box/{name}?restype=hardlink{question}", headers, sign=not token)


LINK = Row("Create Hard Link", "file src", "", {}, True, "rw")


@pytest.mark.parametrize("target", ["src", "/src", "http://acme.file.localhost:10000/box/src"])
@pytest.mark.parametrize("letters", LETTERS)
async def test_links_by_token(both: Both, target: str, letters: str) -> None:
    allowed = set("rw") <= set(letters)
    share = ShareSasPermissions.from_string(letters)
    whole = generate_share_sas("acme", "box", KEY, permission=share, expiry=in_an_hour(both.blob))
    for token in (whole, both.account_token(LINK, letters)):
        answer = await link(both, token, target)
        assert (answer.status == 201) == allowed, answer.code
        assert answer.status in {201, 403}
    single = await link(both, both.service_token(LINK, letters, "h"), target)
    assert single.status == 403
    assert single.code in {
        "AuthenticationFailed",
        "AuthorizationPermissionMismatch",
        "CannotVerifyCopySource",
    }
    assert (await both.file("HEAD", "/box/h")).status == 404


@pytest.mark.parametrize("letters", LETTERS)
async def test_a_link_to_a_url_with_a_token_of_its_own(both: Both, letters: str) -> None:
    own = both.service_token(LINK, "w", "h")
    for name, allowed in (("src", set("rw") <= set(letters)), ("other", False)):
        url = f"http://acme.file.localhost:10000/box/src?{both.service_token(LINK, letters, name)}"
        assert (await link(both, own, url)).status == (201 if allowed else 403)


@pytest.mark.parametrize("target", ["src", "http://acme.file.localhost:10000/box/src"])
async def test_links_with_the_key(both: Both, target: str) -> None:
    assert (await link(both, "", target)).status == 201
    elsewhere = await link(both, "", "http://acme.file.localhost:10000/else/src")
    assert (elsewhere.status, elsewhere.code) == (400, "InvalidHeaderValue")


async def test_a_single_file_never_opens_another_by_a_link(both: Both) -> None:
    token = both.service_token(LINK, "rcwd", "h")
    refused = await link(both, token, "src")
    assert (refused.status, refused.code) == (403, "AuthenticationFailed")
    assert (await both.file("GET", f"/box/h?{token}", sign=False)).status == 404


# Batches


@pytest.mark.parametrize(
    ("name", "letters", "status"),
    [("src", "d", 202), ("src", "rw", 403), ("other", "d", 403), ("", "", 401)],
)
async def test_a_part_of_a_blob_batch_has_its_own_credentials(
    both: Both, name: str, letters: str, status: int
) -> None:
    await both.furnish()
    token = blob_token(both.blob, name, permission=letters) if name else ""
    body = (
        "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n"
        f"DELETE /acme/box/src?{token} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n--b--\r\n"
    )
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = await both.blob("POST", "/?comp=batch", headers, body.encode())
    assert answer.status == 202
    assert int(answer.body.split(b"HTTP/1.1 ")[1][:3]) == status
    assert (await both.blob("HEAD", "/box/src")).status == (404 if status == 202 else 200)


@pytest.mark.parametrize(
    ("table", "letters", "act", "status"),
    [
        ("things", "a", "insert", 202),
        ("things", "rud", "insert", 403),
        ("others", "raud", "insert", 403),
        ("things", "d", "delete", 202),
        ("things", "rau", "delete", 403),
        ("others", "raud", "delete", 403),
        ("things", "r", "query", 202),
        ("things", "aud", "query", 403),
        ("others", "raud", "query", 403),
    ],
)
async def test_a_part_of_a_transaction_needs_what_it_needs_alone(
    blobs: Harness, table: str, letters: str, act: str, status: int
) -> None:
    tables = blobs.beside(table_service, "table")
    for name in ("things", "others"):
        await create(tables, name)
    await insert(tables)
    changes = {"insert": inserting("new"), "delete": part("DELETE", entity(), None, {"If-Match": "*"})}
    token = table_token(letters, table)
    if act == "query":
        body = batch_of(part("GET", entity()))
        answer = await tables("POST", f"/$batch?{token}", BATCH_TYPE, body, sign=False)
    else:
        answer = await send(tables, changes[act], query=f"?{token}", sign=False)
    assert answer.status == status, answer.body
    if status == 202:
        assert int(answer.body.split(b"HTTP/1.1 ")[1][:3]) < 300
