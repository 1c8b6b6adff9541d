"""Who has no permission is refused before the body is read: every operation with a body, of every service."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.storage.blob import generate_account_sas

from kyanite.services.blob.service import blob_service
from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.rest.context import Resource
from kyanite.services.rest.operations import Op
from kyanite.services.rest.service import Service
from kyanite.services.table.service import table_service
from kyanite.wire import http_date
from kyanite.wire.http import Request
from tests.services.harness import ACCOUNT, OTHER, VERSION, Harness
from tests.services.tokens import in_an_hour

BUILDERS = {"blob": blob_service, "queue": queue_service, "table": table_service, "file": file_service}
PATHS = {
    "blob": {Resource.SERVICE: "/", Resource.CONTAINER: "/box", Resource.OBJECT: "/box/name"},
    "queue": {
        Resource.SERVICE: "/",
        Resource.CONTAINER: "/box",
        Resource.MESSAGES: "/box/messages",
        Resource.OBJECT: "/box/messages/1",
    },
    "table": {
        Resource.SERVICE: "/",
        Resource.TABLES: "/Tables",
        Resource.CONTAINER: "/Tables('things')",
        Resource.ENTITIES: "/things",
        Resource.OBJECT: "/things(PartitionKey='p',RowKey='r')",
        Resource.BATCH: "/$batch",
    },
    "file": {Resource.SERVICE: "/", Resource.CONTAINER: "/box", Resource.OBJECT: "/box/name"},
}
WITH_BODY = {"PUT", "POST", "PATCH", "MERGE"}
REFUSALS = {401, 403, 404, 409}
LETTERS = "rldwacup"
OF_PARTS = "Blob Batch"
"""Its parts have credentials of their own."""


class UnreadBody:
    """Half of it has come, and the rest may never."""

    length = 1 << 20

    def __init__(self) -> None:
        self.is_read = False

    async def read(self) -> bytes:
        self.is_read = True
        return b""

    async def read_all(self, limit: int) -> bytes | None:
        if self.length > limit:
            return None
        self.is_read = True
        return b""


class Row(NamedTuple):
    service: str
    op: Op
    method: str


def rows() -> Iterator[Row]:
    for service, build in BUILDERS.items():
        for op in operations_of(build, service):
            for method in op.methods.split():
                if method in WITH_BODY:
                    yield Row(service, op, method)


def operations_of(build: object, service: str) -> list[Op]:
    """Those of the table, and of batches, which have no row there."""
    assert callable(build)
    made = build(_NoEnvironment())
    assert isinstance(made, Service)
    return list(made._definition.operations)


class _NoEnvironment:
    """Enough to build a service and to look at its table."""

    def __getattr__(self, name: str) -> None:
        """A service keeps what it finds here and uses it with a request, of which there is none."""
        return


ROWS = list(rows())


def request_of(row: Row, query: str, headers: dict[str, str], body: UnreadBody) -> Request:
    parameters = [f"{name}={value}" for name, value in row.op.query.items() if value]
    sent = {
        "host": "localhost:10000",
        "x-ms-version": VERSION,
        "content-length": str(body.length),
        "content-type": "multipart/mixed; boundary=b",
        **headers,
    }
    for name, value, is_parameter in row.op.needs():
        if is_parameter:
            parameters.append(f"{name}={value or 1}")
        else:
            sent[name] = value or "1"
    path = f"/{ACCOUNT.name}{PATHS[row.service][row.op.resource]}"
    whole = "&".join([*parameters, *([query] if query else [])])
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    return Request(row.method, path, whole, sent, raw, body, "127.0.0.1", False, 10000)


def nothing(_harness: Harness, _row: Row) -> tuple[str, dict[str, str]]:
    return "", {}


def wrong_key(harness: Harness, _row: Row) -> tuple[str, dict[str, str]]:
    signature = base64.b64encode(bytes(32)).decode()
    date = http_date.encode(harness.clock.now)
    return "", {"authorization": f"SharedKey {ACCOUNT.name}:{signature}", "x-ms-date": date}


def wrong_token(harness: Harness, row: Row) -> tuple[str, dict[str, str]]:
    return _token(harness, "rwdlacup", OTHER.keys[0]), {}


def token_without_permission(harness: Harness, row: Row) -> tuple[str, dict[str, str]]:
    needed = (row.op.access.account or "").partition(" ")[2]
    letter = next(each for each in LETTERS if each not in needed)
    return _token(harness, letter, ACCOUNT.keys[0]), {}


def _token(harness: Harness, permission: str, key: bytes) -> str:
    return str(
        generate_account_sas(
            ACCOUNT.name,
            base64.b64encode(key).decode(),
            resource_types="sco",
            permission=permission,
            services="bqtf",
            expiry=in_an_hour(harness),
        )
    )


def test_the_tables_have_rows() -> None:
    assert len(ROWS) > 60
    assert {row.service for row in ROWS} == BUILDERS.keys()


@pytest.mark.parametrize("credentials", [nothing, wrong_key, wrong_token, token_without_permission])
@pytest.mark.parametrize("service", BUILDERS)
async def test_the_body_is_not_read(
    tmp_path: Path, service: str, credentials: Callable[[Harness, Row], tuple[str, dict[str, str]]]
) -> None:
    harness = Harness(tmp_path, BUILDERS[service], service)
    wrong = []
    for row in (row for row in ROWS if row.service == service):
        if credentials is token_without_permission and row.op.name == OF_PARTS:
            continue
        body = UnreadBody()
        request = request_of(row, *credentials(harness, row), body)
        response = await harness.service(request)
        if body.is_read or response.status not in REFUSALS or request.operation != row.op.name:
            wrong.append((row.op.name, row.method, response.status, request.operation))
    assert not wrong
    await harness.aclose()
