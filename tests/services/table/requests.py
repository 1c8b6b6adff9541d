"""Requests to the Table service, and looks at its answers, shorter than they are on the wire."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tests.services.harness import Answer, Harness

JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=minimalmetadata"}
NO_CONTENT = {"Prefer": "return-no-content"}


async def create(tables: Harness, name: str = "things") -> None:
    answer = await tables("POST", "/Tables", JSON, json.dumps({"TableName": name}).encode())
    assert answer.status == 201, answer


async def insert(tables: Harness, row_key: str = "r", partition_key: str = "p", **properties: Any) -> Answer:
    body = {"PartitionKey": partition_key, "RowKey": row_key, **properties}
    answer = await tables("POST", "/things", {**JSON, **NO_CONTENT}, json.dumps(body).encode())
    assert answer.status == 204, answer
    return answer


def entity(row_key: str = "r", partition_key: str = "p", table: str = "things") -> str:
    partition, row = (quote(key.replace("'", "''")) for key in (partition_key, row_key))
    return f"/{table}(PartitionKey='{partition}',RowKey='{row}')"


async def get(
    tables: Harness, row_key: str = "r", partition_key: str = "p", **headers: str
) -> dict[str, Any]:
    answer = await tables("GET", entity(row_key, partition_key), {**JSON, **headers})
    assert answer.status == 200, answer
    found: dict[str, Any] = data(answer)
    return found


async def query(tables: Harness, wanted: str = "", more: str = "", **headers: str) -> Answer:
    filtered = f"$filter={quote(wanted)}" if wanted else ""
    options = "&".join(part for part in (filtered, more) if part)
    return await tables("GET", f"/things()?{options}", {**JSON, **headers})


def data(answer: Answer) -> Any:
    return json.loads(answer.body)


def rows(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [each["RowKey"] for each in data(answer)["value"]]


def message(answer: Answer) -> str:
    error = data(answer)["odata.error"]
    assert error["code"] == answer.code
    text = error["message"]["value"]
    assert "\nRequestId:" in text
    assert isinstance(text, str)
    return text.partition("\nRequestId:")[0]


# Batches


def part(
    method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None, number: int = 0
) -> str:
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**JSON, **(headers or {})}.items())
    content = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    return (
        f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n"
        f"{method} http://localhost:10000/acme{target} HTTP/1.1\r\n{lines}\r\n{content}\r\n"
    )


def inserting(row_key: str, partition_key: str = "p", table: str = "things", **properties: Any) -> str:
    return part(
        "POST",
        f"/{table}",
        {"PartitionKey": partition_key, "RowKey": row_key, **properties},
        NO_CONTENT,
    )


def change_set(parts: Sequence[str]) -> str:
    inner = "".join(f"--cs\r\n{each}" for each in parts)
    return f"Content-Type: multipart/mixed; boundary=cs\r\n\r\n{inner}--cs--\r\n"


def batch_of(*parts: str) -> bytes:
    return ("".join(f"--b\r\n{each}" for each in parts) + "--b--\r\n").encode()


BATCH_TYPE = {"Content-Type": "multipart/mixed; boundary=b"}


async def send(tables: Harness, *parts: str, query: str = "", **options: Any) -> Answer:
    """A batch with one change set of these parts."""
    body = batch_of(change_set(parts))
    return await tables("POST", f"/$batch{query}", BATCH_TYPE, body, **options)


def answers(answer: Answer) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of each part of the answer to a batch."""
    assert answer.status == 202, answer
    outer = _boundary(answer.headers["content-type"])
    assert answer.body.endswith(f"--{outer}--\r\n".encode())
    (content,) = _split(answer.body, outer)
    head, _, inside = content.partition(b"\r\n\r\n")
    if not head.startswith(b"Content-Type: multipart/mixed"):
        return [_response(content)]
    return [_response(each) for each in _split(inside, _boundary(head.decode()))]


def _boundary(content_type: str) -> str:
    return content_type.partition("boundary=")[2].strip()


def _split(body: bytes, boundary: str) -> list[bytes]:
    pieces = (b"\r\n" + body).split(f"\r\n--{boundary}".encode())
    return [piece.removeprefix(b"\r\n") for piece in pieces[1:-1]]


def _response(content: bytes) -> tuple[int, dict[str, str], bytes]:
    outer, _, rest = content.partition(b"\r\n\r\n")
    head, _, body = rest.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in [*outer.decode().split("\r\n"), *lines])
    return int(status.split(" ")[1]), {name.lower(): value for name, _, value in pairs}, body
