"""No step on the event loop is long, whatever a request contains: every kind of input at its limit.

A step is what runs between two moments at which the loop can serve others. Its length is counted in rows of the engine
and in calls of functions, which do not depend on the machine: twenty thousand calls are about five milliseconds.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.tables import stored_entity
from kyanite.services.blob.service import blob_service
from kyanite.services.files.service import file_service
from kyanite.services.queue.service import queue_service
from kyanite.services.table.service import table_service
from tests.model.counted import Counted, CountingEngine, unlimited
from tests.services.harness import Answer, Harness

ROWS_MAX = 2_000
CALLS_MAX = 20_000
PAGE = 5_000


class Steps:
    """Counts the steps between two points, and the calls in the longest of them."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0
        self.longest_bytes = 0
        self._calls = 0
        self._bytes = 0
        self._is_running = True

    def on_call(self, _frame: FrameType, event: str, _arg: object) -> None:
        if event in ("call", "c_call"):
            self._calls += 1

    def tick(self) -> None:
        self.longest = max(self.longest, self._calls)
        self.longest_bytes = max(self.longest_bytes, self._bytes)
        self._calls = self._bytes = 0
        self.count += 1
        if self._is_running:
            asyncio.get_running_loop().call_soon(self.tick)

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, and the bytes that go in and come out are counted."""

        def counted(*args: Any) -> Any:
            result = function(*args)
            for value in (*args, *(result if isinstance(result, list) else [result])):
                self._bytes += len(value) if isinstance(value, bytes) else 0
            return result

        return counted

    @contextmanager
    def counted(self) -> Iterator[None]:
        self.tick()
        sys.setprofile(self.on_call)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._is_running = False
            self.tick()


class Bounded:
    """A service whose steps are counted."""

    def __init__(self, harness: Harness, engine: CountingEngine) -> None:
        self.harness = harness
        self.engine = engine

    def put_rows(self, rows: Iterator[tuple[bytes, bytes]]) -> Awaitable[None]:
        """Store what clients would store in many requests."""

        def body(tx: Transaction) -> None:
            for key, value in rows:
                tx.put(key, value)

        with unlimited():
            return self.engine.run(body)

    async def copies(self, key: Callable[[str], bytes], names: Iterator[str]) -> None:
        """Copy the row of the name "first" to other names."""
        value = await self.engine.read(lambda snap: snap.get(key("first")))
        assert value is not None
        await self.put_rows((key(name), value) for name in names)

    async def check(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        *,
        calls_max: int = CALLS_MAX,
    ) -> Answer:
        """Send a request, and check that it takes no long step."""
        self.engine.costs.clear()
        steps = Steps()
        with steps.counted():
            answer = await self.harness(method, target, headers, body)
        assert max(self.engine.costs, default=0) <= ROWS_MAX
        assert steps.longest <= calls_max, (method, target[:60])
        return answer


BUILDERS = {
    "blob": blob_service,
    "queue": queue_service,
    "table": table_service,
    "file": file_service,
}


@pytest.fixture
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Bounded:
    word = request.param
    harness = Harness(tmp_path, BUILDERS[word], word)
    engine = CountingEngine(clock=harness.clock)
    harness.use_store(BUILDERS[word], engine=engine)
    return Bounded(harness, engine)


def of(word: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("service", [word], indirect=True)


BLOCK = {"x-ms-blob-type": "BlockBlob"}


async def box(service: Bounded) -> int:
    """A container; returns its id."""
    await service.harness("PUT", "/box?restype=container")
    await service.harness("PUT", "/box/first", BLOCK, b"data")
    rows = await service.engine.read(lambda snap: list(snap.scan(b"", b"\xff")))
    return next(int.from_bytes(key[1:9], "big") for key, _ in rows if key.endswith(b"first"))


@of("blob")
@pytest.mark.parametrize(
    "more",
    ["", "&include=metadata,copy", "&include=snapshots,uncommittedblobs", "&delimiter=/", "&delimiter=x"],
)
async def test_list_blobs(service: Bounded, more: str) -> None:
    container_id = await box(service)
    names = (f"{number:05}{'x' * (number % 3)}/b" for number in range(PAGE + 10))
    await service.copies(lambda name: keys.blob(container_id, name), names)
    answer = await service.check("GET", f"/box?restype=container&comp=list{more}")
    assert answer.body.count(b"<Name>") == PAGE
    assert b"<NextMarker>1!" in answer.body


@of("blob")
@pytest.mark.parametrize(
    "where",
    [
        "k0 = 'v'",
        " AND ".join(f"k{number} = 'v'" for number in range(10)),
        " AND ".join(f"k{number} > 'a' AND k{number} < 'z'" for number in range(10)),
        "k0 = 'v' AND k1 > 'v'",
        "k0 > 'a' AND k1 > 'a' AND none > 'a'",
    ],
)
async def test_find_blobs_by_tags(service: Bounded, where: str) -> None:
    """Ten tags on every blob, compared one by one, all together, or by ranges that all have to be tried."""
    container_id = await box(service)
    tags = [(f"k{number}", "v") for number in range(10)]
    form = "&".join(f"{key}={value}" for key, value in tags)
    await service.harness("PUT", "/box/first", BLOCK | {"x-ms-tags": form}, b"data")
    names = [f"{number:05}" for number in range(PAGE + 10)]
    await service.copies(lambda name: keys.blob(container_id, name), iter(names))
    for tag in tags:
        await service.put_rows((keys.posting("acme", *tag, container_id, name), b"") for name in names)
    answer = await service.check("GET", f"/?comp=blobs&where={quote(where)}")
    finds_all = "none" not in where and "> 'v'" not in where
    found = answer.body.count(b"<Name>")
    assert found > 1000 if finds_all else found == 0
    assert (b"<NextMarker>1!" in answer.body) == finds_all


@of("blob")
async def test_list_containers(service: Bounded) -> None:
    await service.harness("PUT", "/first?restype=container", {"x-ms-meta-a": "1"})
    await service.copies(
        lambda name: keys.container("acme", name), (f"c{number:05}" for number in range(PAGE + 10))
    )
    answer = await service.check("GET", "/?comp=list&include=metadata")
    assert answer.body.count(b"<Name>") == PAGE


@of("queue")
async def test_list_queues(service: Bounded) -> None:
    await service.harness("PUT", "/first", {"x-ms-meta-a": "1"})
    await service.copies(
        lambda name: keys.queue("acme", name), (f"q{number:05}" for number in range(PAGE + 10))
    )
    answer = await service.check("GET", "/?comp=list&include=metadata")
    assert answer.body.count(b"<Name>") == PAGE


@of("file")
async def test_list_shares(service: Bounded) -> None:
    await service.harness("PUT", "/first?restype=share")
    await service.copies(
        lambda name: keys.share("acme", name), (f"s{number:05}" for number in range(PAGE + 10))
    )
    answer = await service.check("GET", "/?comp=list&include=metadata,snapshots,deleted")
    assert answer.body.count(b"<Name>") == PAGE


FILE = {"x-ms-type": "file", "x-ms-content-length": "1024"}


@of("file")
@pytest.mark.parametrize("is_snapshot", [False, True])
async def test_list_directory(service: Bounded, is_snapshot: bool) -> None:
    await service.harness("PUT", "/share?restype=share")
    await service.harness("PUT", "/share/first", FILE)
    rows = await service.engine.read(lambda snap: list(snap.scan(b"", b"\xff")))
    key = next(key for key, _ in rows if key.endswith(b"FIRST"))
    await service.copies(
        lambda name: key.removesuffix(b"FIRST") + name.upper().encode(),
        (f"f{number:05}" for number in range(PAGE + 10)),
    )
    more = ""
    if is_snapshot:
        answer = await service.harness("PUT", "/share?restype=share&comp=snapshot")
        more = "&sharesnapshot=" + answer.headers["x-ms-snapshot"]
    target = f"/share?restype=directory&comp=list&include=timestamps,etag,attributes{more}"
    answer = await service.check("GET", target)
    assert answer.body.count(b"<Name>") == PAGE


def block_id(number: int, word: str = "block") -> str:
    return base64.b64encode(f"{word}-{number:08}".encode()).decode()


def block_list(count: int, word: str = "block") -> bytes:
    items = "".join(f"<Latest>{block_id(number, word)}</Latest>" for number in range(count))
    return f"<?xml version='1.0' encoding='utf-8'?><BlockList>{items}</BlockList>".encode()


@of("blob")
async def test_block_lists(service: Bounded) -> None:
    """50,000 blocks in one list, 100,000 staged."""
    await box(service)
    await service.harness("PUT", f"/box/long?comp=block&blockid={quote(block_id(0))}", body=b"1")
    rows = await service.engine.read(lambda snap: list(snap.scan(b"", b"\xff")))
    name = base64.b64decode(block_id(0))
    key, value = next((key, value) for key, value in rows if key.endswith(name))
    prefix = key.removesuffix(name)
    # All blocks are the same byte, which each of them refers to.
    await service.put_rows(
        (prefix + base64.b64decode(block_id(number)), value.replace(name, base64.b64decode(block_id(number))))
        for number in range(1, 100_000)
    )
    body_number = next(int.from_bytes(key[1:], "big") for key, _ in rows if key.startswith(b"b"))
    await service.put_rows(iter([(keys.sharing(body_number), b"\xce" + (100_000).to_bytes(4, "big"))]))
    listed = await service.check("GET", "/box/long?comp=blocklist&blocklisttype=all")
    assert listed.body.count(b"<Name>") == 100_000
    refused = await service.check("PUT", "/box/long?comp=blocklist", block_list(50_000, "other"))
    assert refused.status == 400
    refused = await service.check("PUT", "/box/long?comp=blocklist", block_list(50_001))
    assert refused.code == "BlockListTooLong"
    committed = await service.check("PUT", "/box/long?comp=blocklist", block_list(50_000))
    assert committed.status == 201
    listed = await service.check("GET", "/box/long?comp=blocklist")
    assert listed.body.count(b"<Name>") == 50_000
    downloaded = await service.check("GET", "/box/long")
    assert downloaded.body == b"1" * 50_000
    again = await service.check("PUT", "/box/long?comp=blocklist", block_list(50_000))
    assert again.status == 201
    shorter = await service.check("PUT", "/box/long?comp=blocklist", block_list(5))
    assert shorter.status == 201


@of("blob")
@pytest.mark.parametrize("is_changed", [False, True])
async def test_page_ranges(service: Bounded, is_changed: bool) -> None:
    await box(service)
    length = 12_000 * 1024
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(length)}
    await service.harness("PUT", "/box/pages", headers)
    answer = await service.harness("PUT", "/box/pages?comp=snapshot")
    for number in range(3_000):
        first = number * 1024
        write = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + 511}"}
        assert (await service.harness("PUT", "/box/pages?comp=page", write, bytes(512))).status == 201
    more = f"&prevsnapshot={answer.headers['x-ms-snapshot']}" if is_changed else ""
    found = await service.check("GET", f"/box/pages?comp=pagelist{more}")
    assert found.body.count(b"<PageRange>") == 3_000


@of("blob")
async def test_blob_batch(service: Bounded) -> None:
    container_id = await box(service)
    await service.copies(
        lambda name: keys.blob(container_id, name), (f"b{number:05}" for number in range(256))
    )
    parts = "".join(
        f"--b\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
        f"DELETE /acme/box/b{number:05} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n"
        for number in range(256)
    )
    answer = await service.check(
        "POST", "/?comp=batch", f"{parts}--b--".encode(), {"Content-Type": "multipart/mixed; boundary=b"}
    )
    assert answer.status == 202
    assert answer.body.count(b"HTTP/1.1") == 256


@of("blob")
@pytest.mark.parametrize(
    "body",
    [
        b"--b\r\n" + b"\r\n--b\r\n".join([b"Content-Type: a\r\n\r\n"] * 150_000) + b"\r\n--b--",
        b"--b\r\n" + b"a:b\n" * 1_000_000 + b"\r\n\r\nx\r\n--b--",
        b"\n--" * 1_000_000,
    ],
    ids=["parts", "headers", "lines"],
)
async def test_what_only_seems_to_be_a_batch(service: Bounded, body: bytes) -> None:
    answer = await service.check(
        "POST", "/?comp=batch", body, {"Content-Type": "multipart/mixed; boundary=b"}
    )
    assert answer.status in (202, 400)


@of("table")
async def test_tables(service: Bounded) -> None:
    created = json.dumps({"TableName": "first"}).encode()
    await service.harness("POST", "/Tables", {"Content-Type": "application/json"}, created)
    await service.copies(
        lambda name: keys.table("acme", name), (f"t{number:05}" for number in range(PAGE + 10))
    )
    answer = await service.check("GET", "/Tables", headers={"Accept": "application/json;odata=fullmetadata"})
    assert len(json.loads(answer.body)["value"]) == 1000
    wanted = quote("TableName eq 'nothing'")
    answer = await service.check("GET", f"/Tables?$filter={wanted}", headers={"Accept": "application/json"})
    assert json.loads(answer.body)["value"] == []
    assert "x-ms-continuation-nexttablename" in answer.headers


async def entities(service: Bounded, count: int, **properties: object) -> None:
    kind = {"Content-Type": "application/json"}
    await service.harness("POST", "/Tables", kind, json.dumps({"TableName": "things"}).encode())
    body = json.dumps({"PartitionKey": "p", "RowKey": "first", **properties}).encode()
    assert (await service.harness("POST", "/things", kind, body)).status == 201
    rows = await service.engine.read(lambda snap: list(snap.scan(b"", b"\xff")))
    key, value = next((key, value) for key, value in rows if key.endswith(b"first"))
    await service.put_rows((key.removesuffix(b"first") + b"%08d" % number, value) for number in range(count))


@of("table")
@pytest.mark.parametrize("level", ["no", "minimal", "full"])
@pytest.mark.parametrize("wanted", ["", "n eq 1", "n eq 2", "RowKey lt '00000100' or n eq 2"])
async def test_query_entities(service: Bounded, level: str, wanted: str) -> None:
    await entities(service, 6_000, n=1, text="x" * 100)
    headers = {"Accept": f"application/json;odata={level}metadata"}
    for select in ("", "&$select=n,text"):
        answer = await service.check("GET", f"/things()?$filter={quote(wanted)}{select}", headers=headers)
        assert answer.status == 200


@of("table")
@pytest.mark.parametrize("comparison", ["n eq {}", "RowKey eq '{}'", "(RowKey ne '{}' and n eq 2)"])
async def test_the_longest_filters(service: Bounded, comparison: str) -> None:
    """Their plan is made in a thread, which the loop does not wait for. One entity is tested in each step."""
    await entities(service, 6_000, n=1)
    count = 60_000 // (len(quote(comparison)) + len("%20or%20000"))  # As long as a head may be.
    text = " or ".join(comparison.format(number) for number in range(count))
    answer = await service.check(
        "GET",
        f"/things()?$filter={quote(text)}",
        headers={"Accept": "application/json"},
        calls_max=3 * CALLS_MAX,  # Most of them decode the query, character by character.
    )
    assert answer.status == 200


def change_set(count: int, body: bytes, method: bytes = b"PUT") -> bytes:
    head = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
    parts = b"".join(
        b"--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        b"%b /acme/things(PartitionKey='p',RowKey='%08d') HTTP/1.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b\r\n" % (method, number, len(body), body)
        for number in range(count)
    )
    return head + parts + b"--c--\r\n--b--\r\n"


@of("table")
async def test_an_entity_group_transaction(service: Bounded) -> None:
    await entities(service, 1)
    properties = {f"p{number:03}": "x" * 150 for number in range(200)}
    body = change_set(100, json.dumps(properties).encode())
    assert 3_000_000 < len(body) < 4_194_304
    answer = await service.check("POST", "/$batch", body, {"Content-Type": "multipart/mixed; boundary=b"})
    assert answer.status == 202
    assert answer.body.count(b"204 No Content") == 100


@of("table")
@pytest.mark.parametrize("method", [b"MERGE", b"PUT", b"DELETE"])
async def test_changes_of_the_longest_entities(
    service: Bounded, method: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await entities(service, 0)
    kind = {"Content-Type": "application/json"}
    long = json.dumps({f"p{number:02}": "x" * 32_000 for number in range(16)}).encode()
    for number in range(100):
        target = f"/things(PartitionKey='p',RowKey='{number:08}')"
        assert (await service.harness("PUT", target, kind, long)).status == 204
    steps = Steps()
    monkeypatch.setattr(stored_entity, "_decode_json", steps.counting(stored_entity._decode_json))
    monkeypatch.setattr(stored_entity, "_encode_json", steps.counting(stored_entity._encode_json))
    monkeypatch.setattr(Counted, "get_many", steps.counting(Counted.get_many))
    body = change_set(100, b'{"more":1}', method)
    if method == b"DELETE":
        body = body.replace(b"Content-Type: application/json", b"If-Match: *")
    with steps.counted():
        answer = await service.harness(
            "POST", "/$batch", {"Content-Type": "multipart/mixed; boundary=b"}, body
        )
    assert answer.body.count(b"204 No Content") == 100
    assert steps.longest <= CALLS_MAX
    # An entity once read, or once decoded and encoded.
    assert steps.longest_bytes <= 2 * len(long) + 100_000


@of("table")
@pytest.mark.parametrize(
    "body",
    [
        b"{" + b",".join(b'"a%06d":1' % number for number in range(250_000)) + b"}",
        b"{" + b",".join(b'"a%06d" : 1' % number for number in range(250_000)) + b"}",
        b'{"a":[' + b"1," * 2_000_000 + b"1]}",
        b'{"a":' * 700_000,
    ],
    ids=["names", "spaces", "array", "depth"],
)
async def test_what_only_seems_to_be_an_entity(service: Bounded, body: bytes) -> None:
    await entities(service, 1)
    answer = await service.check("POST", "/things", body, {"Content-Type": "application/json"})
    assert answer.code == "InvalidInput"
