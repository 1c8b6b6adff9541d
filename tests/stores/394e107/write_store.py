"""Writes a store with every kind of record, ``tests/stores/394e107.tar.xz``, and its answers, ``394e107.json.xz``.

Run it on commit 394e107 and no other, from the top of the repository, with this folder in its place:

    python -m tests.stores.394e107.write_store

It calls the services of that commit in process, over a real engine and real extents, and runs no background work. So
everything that waits to be cleaned up is still in the store when it is packed. Then it starts a server of that commit
on a copy of the store and records its answers. Later versions replay them and never run this script: it stays here as
the description of what is in the store.

The clock starts on a day in the past and moves by a second with each request. Leases, messages and staged blocks that
last for a while are therefore over whenever the store is opened. A few rows are changed by hand to last for ever; they
are in ``make_lasting``.
"""

import asyncio
import base64
import json
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from azure.storage.blob import generate_blob_sas, generate_container_sas
from azure.storage.fileshare import generate_file_sas
from azure.storage.queue import generate_queue_sas
from msgspec.structs import replace

from kyanite.engine import keys
from kyanite.engine.api import Transaction
from kyanite.engine.embedded import EmbeddedEngine
from kyanite.engine.local_extents import LocalExtents
from kyanite.model import container, handle, hold, layer, message, retired_share, share, staging
from kyanite.model.container import ContainerKey
from kyanite.model.handle import Handle
from kyanite.model.message import Draft
from kyanite.model.queue import QueueKey
from kyanite.model.records import decode_blob, encode
from kyanite.model.share import ShareKey
from kyanite.rules.byte_locks import Lock
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.server.service_table import SERVICES
from kyanite.server.store_format import check_format
from kyanite.server.store_lock import take_store_lock
from kyanite.services.common.environment import Account, Environment
from kyanite.values import Instant, instant_from_unix_seconds
from tests.server_process import ServerProcess
from tests.services.harness import ACCOUNT, OTHER, Answer, Clock, Harness
from tests.services.table_requests import BATCH_TYPE, batch_of, change_set
from tests.stores.recorded import PORTS, Client, Recorded, Recording, Request, save, unpack

FOLDER = Path(__file__).parents[1]
NAME = "394e107"
LETTERS = re.findall(r"(?m)^    (\w)  +\w", keys.__doc__ or "")
"""Every prefix in the table of ``engine/keys.py``."""

START_AT = instant_from_unix_seconds(1_788_220_800)  # 2026-09-01
NEVER = Instant(3_155_378_975_999_999_999)
KEYS = {account.name: base64.b64encode(account.keys[0]).decode() for account in (ACCOUNT, OTHER)}
ID = "11111111-1111-1111-1111-111111111111"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": ID}
ACQUIRE_BRIEFLY = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": ID}
BREAK = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "5"}
RELEASE = {"x-ms-lease-action": "release", "x-ms-lease-id": ID}
BLOCK, PAGE, APPEND = ({"x-ms-blob-type": f"{kind}Blob"} for kind in ("Block", "Page", "Append"))
FILE = {"x-ms-type": "file"}
NFS = {"x-ms-enabled-protocols": "NFS"}
SDDL = "O:SYG:SYD:(A;OICI;FA;;;BA)"
CONTENT_HEADERS = {
    "content-type": "text/plain; charset=utf-8",
    "content-encoding": "identity",
    "content-language": "en, de",
    "cache-control": "max-age=60",
    "content-disposition": 'attachment; filename="a.txt"',
}


def text_of(name: str, length: int) -> bytes:
    """Bytes that differ everywhere and take little space when they are compressed."""
    lines = b"".join(b"%s, line %06d\n" % (name.encode(), number) for number in range(length // 16 + 1))
    return lines[:length]


def policies(*ids: str) -> bytes:
    """Access policies: the first is open for ever, others are over or say less."""
    texts = []
    for number, policy_id in enumerate(ids):
        limits = (
            "<Start>2020-01-01T00:00:00Z</Start><Expiry>9999-01-01T00:00:00Z</Expiry><Permission>r</Permission>",
            "<Expiry>2020-01-02T00:00:00.1234567Z</Expiry>",
            "",
        )[number]
        access = f"<AccessPolicy>{limits}</AccessPolicy>" if limits else ""
        texts.append(f"<SignedIdentifier><Id>{policy_id}</Id>{access}</SignedIdentifier>")
    return f"<SignedIdentifiers>{''.join(texts)}</SignedIdentifiers>".encode()


class Caller(Harness):
    """Requests to one service over the store that is being written. Every answer must be good."""

    def __init__(self, environment: Environment, clock: Clock, word: str) -> None:
        load = SERVICES[word].load
        assert load is not None
        self.clock, self.environment = clock, environment
        self.service = load()(environment)  # type: ignore[assignment]
        self._word = word

    async def __call__(  # type: ignore[override]
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        account: Account = ACCOUNT,
    ) -> Answer:
        self.clock.now = Instant(self.clock.now + 10_000_000)
        host = {"Host": f"localhost:{PORTS[self._word]}"}
        answer = await super().__call__(method, target, host | dict(headers or {}), body, account=account)
        assert answer.status < 300, (method, target, answer)
        return answer


# Blobs


PROPERTIES = (
    "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>"
)
METRICS = (
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>8</Days></RetentionPolicy></HourMetrics>"
    "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>"
    "<Cors><CorsRule><AllowedOrigins>https://example.com,https://example.org</AllowedOrigins>"
    "<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-*</AllowedHeaders>"
    "<ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>"
)
BLOB_ONLY = (
    "<DefaultServiceVersion>2021-12-02</DefaultServiceVersion>"
    "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>365</Days></DeleteRetentionPolicy>"
    "<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>"
    "<ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite>"
)
FILE_ONLY = (
    "<ProtocolSettings><SMB><Multichannel><Enabled>true</Enabled></Multichannel></SMB></ProtocolSettings>"
    "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>365</Days></ShareDeleteRetentionPolicy>"
)


async def set_properties(call: Caller, inside: str) -> None:
    body = f"<StorageServiceProperties>{inside}</StorageServiceProperties>".encode()
    await call("PUT", "/?restype=service&comp=properties", body=body)


async def write_containers(blobs: Caller) -> None:
    await set_properties(blobs, PROPERTIES + METRICS + BLOB_ONLY)
    await blobs("PUT", "/box?restype=container", {"x-ms-meta-Color": "blue", "x-ms-meta-size": "7"})
    acl = {"x-ms-blob-public-access": "container"}
    await blobs("PUT", "/open?restype=container", acl)
    await blobs("PUT", "/open?restype=container&comp=acl", acl, policies("read", "over", "empty"))
    await blobs("PUT", "/half-open?restype=container", {"x-ms-blob-public-access": "blob"})
    for name in ("kept", "expired", "broken", "released"):
        await blobs("PUT", f"/lease-{name}?restype=container")
        lease = ACQUIRE_BRIEFLY if name == "expired" else ACQUIRE
        await blobs("PUT", f"/lease-{name}?restype=container&comp=lease", lease)
    await blobs("PUT", "/lease-broken?restype=container&comp=lease", BREAK)
    await blobs("PUT", "/lease-released?restype=container&comp=lease", RELEASE)
    for name in ("$root", "$web"):
        await blobs("PUT", f"/{name}?restype=container", {"x-ms-blob-public-access": "blob"})
        await blobs(
            "PUT", f"/{name}/index.html", BLOCK | {"x-ms-blob-content-type": "text/html"}, b"<p>Hello"
        )
    await blobs("PUT", "/mine?restype=container", account=OTHER)
    await blobs("PUT", "/mine/b", BLOCK, b"of the other account", account=OTHER)
    await set_properties_of_other(blobs)


async def set_properties_of_other(blobs: Caller) -> None:
    body = f"<StorageServiceProperties>{PROPERTIES}</StorageServiceProperties>".encode()
    await blobs("PUT", "/?restype=service&comp=properties", body=body, account=OTHER)


async def put_block_list(
    blobs: Caller, target: str, blocks: list[bytes], headers: Mapping[str, str] | None = None
) -> None:
    ids = [base64.b64encode(b"%06d" % number).decode() for number in range(len(blocks))]
    for block_id, block in zip(ids, blocks, strict=True):
        await blobs("PUT", f"{target}?comp=block&blockid={quote(block_id, safe='')}", body=block)
    listed = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
    body = f"<BlockList>{listed}</BlockList>".encode()
    await blobs("PUT", f"{target}?comp=blocklist", headers, body)


async def put_pages(blobs: Caller, target: str, first: int, data: bytes) -> None:
    span = {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + len(data) - 1}"}
    await blobs("PUT", f"{target}?comp=page", span, data)


async def write_block_blobs(blobs: Caller) -> None:
    stored = {f"x-ms-blob-{name}": value for name, value in CONTENT_HEADERS.items()}
    await blobs("PUT", "/box/empty", BLOCK)
    meta = {"x-ms-meta-One": "1", "x-ms-meta-two": "zwei"}
    await blobs("PUT", "/box/inline", BLOCK | stored | meta, text_of("inline", 1000))
    await blobs("PUT", "/box/packed", BLOCK, text_of("packed", 40_000))
    await blobs("PUT", "/box/packed-too", BLOCK, text_of("packed too", 20_000))
    await blobs("PUT", "/box/streamed", BLOCK | stored, text_of("streamed", 3 << 20))
    for name in ("dir/a", "dir/b/c", "dir/b/d", "dir/é ü", "dir%2F", "x%3Cy%26z", "a%20b%2Bc"):
        await blobs("PUT", f"/box/{quote(name, safe='/%')}", BLOCK, name.encode())
    await blobs("PUT", "/open/public", BLOCK, b"for everyone")
    await blobs("PUT", "/half-open/public", BLOCK, b"for everyone who knows the name")

    small = [text_of(f"block {number}", 200) for number in range(3)]
    await put_block_list(blobs, "/box/blocks-few", small, meta)
    await put_block_list(blobs, "/box/blocks-many", [b"%04d " % number * 20 for number in range(80)])
    await put_block_list(blobs, "/box/blocks-large", [text_of(f"b{number}", 1 << 19) for number in range(4)])
    mixed = [b"small", text_of("packed block", 30_000), text_of("large block", (1 << 20) + 5)]
    await put_block_list(blobs, "/box/blocks-mixed", mixed)

    for target, block_id in (("/box/staged", "aa"), ("/box/inline", "bb"), ("/box/abandoned", "cc")):
        for number in range(3):
            text = base64.b64encode(f"{block_id}{number}".encode()).decode()
            size = (100, 30_000, 50)[number]
            await blobs("PUT", f"{target}?comp=block&blockid={text}", body=text_of(text, size))
    await blobs("PUT", "/forgotten?restype=container")
    await blobs("PUT", "/forgotten/staged?comp=block&blockid=YWE%3D", body=b"given up after a week")
    await blobs("PUT", "/box/abandoned", BLOCK, b"written over staged blocks")

    for tier in ("Hot", "Cool", "Cold", "Smart", "Archive"):
        await blobs("PUT", f"/box/tier-{tier}", BLOCK | {"x-ms-access-tier": tier}, tier.encode())
    for name in ("returned", "returning"):
        await blobs("PUT", f"/box/tier-{name}", BLOCK | {"x-ms-access-tier": "Archive"}, name.encode())
        asked = {"x-ms-access-tier": "Cool", "x-ms-rehydrate-priority": "High"}
        await blobs("PUT", f"/box/tier-{name}?comp=tier", asked)

    for name in ("kept", "expired", "broken", "released"):
        await blobs("PUT", f"/box/lease-{name}", BLOCK, name.encode())
        lease = ACQUIRE_BRIEFLY if name == "expired" else ACQUIRE
        await blobs("PUT", f"/box/lease-{name}?comp=lease", lease)
    await blobs("PUT", "/box/lease-broken?comp=lease", BREAK)
    await blobs("PUT", "/box/lease-released?comp=lease", RELEASE)

    await blobs("PUT", "/box/changed", BLOCK, b"first")
    await blobs("PUT", "/box/changed?comp=snapshot")
    await blobs("PUT", "/box/changed?comp=metadata", {"x-ms-meta-later": "yes"})
    await blobs("PUT", "/box/changed?comp=snapshot", {"x-ms-meta-own": "of the snapshot"})
    await blobs("PUT", "/box/changed?comp=properties", stored)
    await blobs("PUT", "/box/changed", BLOCK, text_of("second", 50_000))
    await blobs("PUT", "/box/blocks-few?comp=snapshot")
    await blobs("PUT", "/box/blocks-many?comp=snapshot")
    for name in ("inline", "streamed", "blocks-few", "blocks-many", "blocks-mixed"):
        source = {"x-ms-copy-source": f"http://localhost:10000/acme/box/{name}"}
        await blobs("PUT", f"/box/copy-of-{name}", source)
    source = {"x-ms-copy-source": "http://localhost:10000/acme/open/public", "x-ms-requires-sync": "true"}
    await blobs("PUT", "/box/copy-at-once", source)


async def write_append_blobs(blobs: Caller) -> None:
    await blobs("PUT", "/box/append-empty", APPEND)
    for name, count in (("append", 3), ("append-sealed", 2), ("append-long", 70)):
        await blobs("PUT", f"/box/{name}", APPEND | {"x-ms-meta-kind": "log"})
        for number in range(count):
            size = 30_000 if number == 1 else 50
            block = text_of(f"{name} {number}", size)
            await blobs("PUT", f"/box/{name}?comp=appendblock", body=block)
        await blobs("PUT", f"/box/{name}?comp=snapshot")
    await blobs("PUT", "/box/append?comp=appendblock", body=b"behind the snapshot")
    await blobs("PUT", "/box/append-sealed?comp=seal")


async def write_page_blobs(blobs: Caller) -> None:
    sized = PAGE | {"x-ms-blob-content-length": str(1 << 20)}
    await blobs("PUT", "/box/page-empty", sized | {"x-ms-blob-sequence-number": "7"})
    await blobs("PUT", "/box/page-few", sized)
    await put_pages(blobs, "/box/page-few", 512, text_of("page", 1024))
    await put_pages(blobs, "/box/page-few", 65_536, text_of("pages", 32_768))
    number = {"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": "42"}
    await blobs("PUT", "/box/page-few?comp=properties", number)
    await blobs("PUT", "/box/page-few?comp=properties", {"x-ms-sequence-number-action": "increment"})

    await blobs("PUT", "/box/page-many", sized)
    for number in range(90):
        await put_pages(blobs, "/box/page-many", number * 4096, b"%08d" % number * 64)
    await blobs("PUT", "/box/page-many?comp=snapshot")
    await put_pages(blobs, "/box/page-many", 4096 * 10, text_of("over the snapshot", 4096 * 3))
    clear = {"x-ms-page-write": "clear", "x-ms-range": f"bytes={4096 * 20}-{4096 * 22 - 1}"}
    await blobs("PUT", "/box/page-many?comp=page", clear)
    await blobs("PUT", "/box/page-many?comp=snapshot")
    await put_pages(blobs, "/box/page-many", 512, text_of("after both", 512))
    source = {"x-ms-copy-source": "http://localhost:10000/acme/box/page-many"}
    await blobs("PUT", "/box/page-copy", source)
    await put_pages(blobs, "/box/page-copy", 0, text_of("only in the copy", 512))

    # More snapshots than layers may lie on each other: a compaction that flattens is pending.
    await blobs("PUT", "/box/page-deep", sized)
    for number in range(12):
        for offset in range(6):
            await put_pages(blobs, "/box/page-deep", (number * 3 + offset * 20) * 512, b"%04d" % number * 128)
        await blobs("PUT", "/box/page-deep?comp=snapshot")
    # A snapshot in between is gone: a compaction that joins two layers is pending.
    await blobs("PUT", "/box/page-joined", sized)
    for offset in range(6):
        await put_pages(blobs, "/box/page-joined", offset * 2048, b"%04d" % offset * 128)
    taken = (await blobs("PUT", "/box/page-joined?comp=snapshot")).headers["x-ms-snapshot"]
    await put_pages(blobs, "/box/page-joined", 4096, text_of("joined", 512))
    await blobs("DELETE", f"/box/page-joined?snapshot={quote(taken)}")
    await blobs("PUT", "/box/page-resized", sized)
    await put_pages(blobs, "/box/page-resized", 1024, text_of("resized", 2048))
    await blobs("PUT", "/box/page-resized?comp=properties", {"x-ms-blob-content-length": "2048"})


async def delete_blobs(blobs: Caller) -> None:
    """Leave freed extents, layers without a record, and a deleted container that is not purged."""
    await blobs("PUT", "/box/gone-packed", BLOCK, text_of("gone", 60_000))
    await blobs("PUT", "/box/gone-streamed", BLOCK, text_of("gone", 2 << 20))
    await put_block_list(blobs, "/box/gone-layer", [b"%04d " % number * 20 for number in range(70)])
    for name in ("packed", "streamed", "layer"):
        await blobs("DELETE", f"/box/gone-{name}")
    await blobs("PUT", "/gone?restype=container")
    await blobs("PUT", "/gone/inline", BLOCK, b"inline")
    await blobs("PUT", "/gone/packed", BLOCK, text_of("packed", 30_000))
    await blobs("PUT", "/gone/inline?comp=snapshot")
    await blobs("PUT", "/gone/staged?comp=block&blockid=YWE%3D", body=b"staged")
    await blobs("DELETE", "/gone?restype=container")
    await blobs("PUT", "/gone?restype=container")
    await blobs("PUT", "/gone/new", BLOCK, b"the same name again")


# Queues


def queue_message(text: str) -> bytes:
    return f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()


async def write_queues(queues: Caller) -> None:
    await set_properties(queues, PROPERTIES + METRICS)
    await queues("PUT", "/work", {"x-ms-meta-Color": "green"})
    await queues("PUT", "/work?comp=acl", body=policies("read", "over"))
    for text in ("first", "second &amp; é", "x" * 3000, "long é " * 4000):
        await queues("POST", "/work/messages?messagettl=-1", body=queue_message(text))
    await queues("GET", "/work/messages?visibilitytimeout=5")
    await queues("PUT", "/empty")
    await queues("PUT", "/cleared")
    await queues("POST", "/cleared/messages?messagettl=-1", body=queue_message("cleared"))
    await queues("POST", "/cleared/messages?messagettl=-1", body=queue_message("y" * 5000))
    await queues("DELETE", "/cleared/messages")
    await queues("POST", "/cleared/messages?messagettl=-1", body=queue_message("after the clear"))
    await queues("PUT", "/gone")
    await queues("POST", "/gone/messages?messagettl=-1", body=queue_message("gone with its queue"))
    await queues("DELETE", "/gone")
    await queues("PUT", "/expiring")
    await queues("POST", "/expiring/messages?messagettl=5", body=queue_message("expired"))
    await queues("POST", "/expiring/messages", body=queue_message("of a week"))
    await queues("POST", "/expiring/messages?messagettl=-1", body=queue_message("stays"))
    await queues("PUT", "/updated")
    put = await queues("POST", "/updated/messages?messagettl=-1", body=queue_message("before"))
    receipt, message_id = (put.xml.findtext(f"QueueMessage/{name}") for name in ("PopReceipt", "MessageId"))
    target = f"/updated/messages/{message_id}?popreceipt={quote(receipt or '')}&visibilitytimeout=10"
    await queues("PUT", target, body=queue_message("after"))
    await queues("PUT", "/mine", account=OTHER)


# Tables


ENTITY = {
    "text": "plain",
    "unicode": 'é ü 漢字 "quoted" \\ \u0001',
    "empty": "",
    "int": -(2**31),
    "long@odata.type": "Edm.Int64",
    "long": "-9223372036854775808",
    "double": 3.5,
    "whole": 3.0,
    "tiny": 5e-324,
    "nan@odata.type": "Edm.Double",
    "nan": "NaN",
    "inf@odata.type": "Edm.Double",
    "inf": "-Infinity",
    "yes": True,
    "no": False,
    "at@odata.type": "Edm.DateTime",
    "at": "1999-12-31T23:59:59.1234567Z",
    "guid@odata.type": "Edm.Guid",
    "guid": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "bytes@odata.type": "Edm.Binary",
    "bytes": base64.b64encode(bytes(range(256))).decode(),
}
JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=minimalmetadata"}


async def insert(tables: Caller, table: str, partition: str, row: str, **properties: object) -> None:
    body = {"PartitionKey": partition, "RowKey": row, **properties}
    await tables("POST", f"/{table}", JSON, json.dumps(body).encode())


async def write_tables(tables: Caller) -> None:
    await set_properties(tables, PROPERTIES + METRICS)
    for name in ("Things", "empty", "Large", "gone"):
        await tables("POST", "/Tables", JSON, json.dumps({"TableName": name}).encode())
    await tables("PUT", "/Things?comp=acl", body=policies("read", "over"))
    await insert(tables, "Things", "all", "types", **ENTITY)
    await insert(tables, "Things", "", "", n=0)
    for partition in ("a", "b", "B", "é"):
        for row in ("1", "10", "2", "it''s"):
            await insert(
                tables, "Things", partition, row.replace("''", "'"), n=int(row[:2]) if row[0] < "9" else 0
            )
    await tables("MERGE", "/Things(PartitionKey='a',RowKey='1')", JSON | {"If-Match": "*"}, b'{"more": true}')
    await tables("PUT", "/Things(PartitionKey='a',RowKey='2')", JSON, b'{"other": "replaced"}')
    await tables("DELETE", "/Things(PartitionKey='b',RowKey='1')", JSON | {"If-Match": "*"})
    parts = [
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "POST http://localhost:10002/acme/Things HTTP/1.1\r\nContent-Type: application/json\r\n"
        "Prefer: return-no-content\r\n\r\n"
        + json.dumps({"PartitionKey": "batch", "RowKey": f"{number:03}", "n": number})
        + "\r\n"
        for number in range(20)
    ]
    await tables("POST", "/$batch", BATCH_TYPE, batch_of(change_set(parts)))
    escaped = {f"p{number}": "\u0001\u0002" * 16_000 for number in range(12)}
    await insert(tables, "Large", "p", "divided", **escaped)
    await insert(tables, "Large", "p", "divided-and-replaced", **escaped)
    body = json.dumps({**escaped, "n": 2}).encode()
    await tables("PUT", "/Large(PartitionKey='p',RowKey='divided-and-replaced')", JSON, body)
    await insert(tables, "Large", "p", "whole", text="z" * 30_000)
    await insert(tables, "gone", "p", "r", n=1)
    await insert(tables, "gone", "p", "large", **escaped)
    await tables("DELETE", "/Tables('gone')")
    await tables("POST", "/Tables", JSON, json.dumps({"TableName": "Mine"}).encode(), account=OTHER)


# Files


async def make_file(files: Caller, path: str, data: bytes, headers: Mapping[str, str] | None = None) -> str:
    sent = FILE | {"x-ms-content-length": str(len(data))} | dict(headers or {})
    made = await files("PUT", f"/{path}", sent)
    if data:
        await put_range(files, path, 0, data)
    return made.headers["x-ms-file-id"]


async def put_range(files: Caller, path: str, first: int, data: bytes) -> None:
    span = {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{first + len(data) - 1}"}
    await files("PUT", f"/{path}?comp=range", span, data)


async def write_shares(files: Caller) -> None:
    settings = {"x-ms-share-quota": "7", "x-ms-access-tier": "Cool", "x-ms-meta-Color": "red"}
    await files("PUT", "/box?restype=share", settings)
    await files("PUT", "/box?restype=share&comp=properties", {"x-ms-access-tier": "Hot"})
    await files("PUT", "/box?restype=share&comp=acl", body=policies("read", "over"))
    provisioned = {"x-ms-share-provisioned-iops": "600", "x-ms-share-provisioned-bandwidth-mibps": "150"}
    await files("PUT", "/provisioned?restype=share", provisioned)
    for name in ("kept", "expired", "broken"):
        await files("PUT", f"/lease-{name}?restype=share")
        lease = ACQUIRE_BRIEFLY if name == "expired" else ACQUIRE
        await files("PUT", f"/lease-{name}?restype=share&comp=lease", lease)
    await files("PUT", "/lease-broken?restype=share&comp=lease", BREAK)
    await files("PUT", "/mine?restype=share", account=OTHER)


async def write_files(files: Caller) -> None:
    permission = json.dumps({"permission": SDDL}).encode()
    made = await files(
        "PUT", "/box?restype=share&comp=filepermission", {"Content-Type": "application/json"}, permission
    )
    key = made.headers["x-ms-file-permission-key"]
    attributes = {"x-ms-file-attributes": "Hidden|NotContentIndexed", "x-ms-file-permission-key": key}
    times = {
        "x-ms-file-creation-time": "2001-02-03T04:05:06.7890123Z",
        "x-ms-file-last-write-time": "2002-02-03T04:05:06.7890123Z",
        "x-ms-file-change-time": "2003-02-03T04:05:06.7890123Z",
    }
    stored = {f"x-ms-{name}": value for name, value in CONTENT_HEADERS.items()}
    await files("PUT", "/box/dir?restype=directory", {"x-ms-meta-a": "1"} | attributes | times)
    await files("PUT", "/box/dir/sub?restype=directory", {"x-ms-file-permission": SDDL})
    await files("PUT", "/box/dir/sub/deep%20%C3%A9?restype=directory")
    await files("PUT", "/box/empty-dir?restype=directory")
    await make_file(files, "box/empty", b"")
    await make_file(
        files, "box/inline", text_of("inline", 700), stored | {"x-ms-meta-One": "1"} | attributes | times
    )
    await make_file(files, "box/dir/packed", text_of("packed", 40_000))
    await make_file(files, "box/dir/sub/streamed", text_of("streamed", (3 << 20) + 7))
    await make_file(files, "box/dir/sub/deep%20%C3%A9/File", b"deep down")
    await make_file(files, "box/read-only", b"fixed", {"x-ms-file-permission": "O:BAG:BAD:(A;;FA;;;WD)"})
    await files("PUT", "/box/read-only?comp=properties", {"x-ms-file-attributes": "ReadOnly"})
    await files("PUT", "/box/sparse", FILE | {"x-ms-content-length": str(1 << 20)})
    for number in range(80):
        await put_range(files, "box/sparse", number * 8192 + 100, b"%08d" % number * 64)
    clear = {"x-ms-write": "clear", "x-ms-range": "bytes=81920-163839"}
    await files("PUT", "/box/sparse?comp=range", clear)
    for name in ("kept", "broken"):
        await make_file(files, f"box/lease-{name}", name.encode())
        await files("PUT", f"/box/lease-{name}?comp=lease", ACQUIRE)
    await files("PUT", "/box/lease-broken?comp=lease", {"x-ms-lease-action": "break"})
    source = {"x-ms-copy-source": "http://localhost:10003/acme/box/sparse"}
    await files("PUT", "/box/copy", source)


async def snapshot_share(files: Caller, name: str, headers: Mapping[str, str] | None = None) -> str:
    taken = await files("PUT", f"/{name}?restype=share&comp=snapshot", headers)
    return quote(taken.headers["x-ms-snapshot"])


async def write_share_snapshots(files: Caller) -> None:
    """Change a share in every way that makes the server keep the former state for a snapshot."""
    await files("PUT", "/kept?restype=share", {"x-ms-meta-at": "the beginning"})
    await files("PUT", "/kept/dir?restype=directory")
    for name in ("same", "changed", "deleted", "renamed", "dir/inside"):
        await make_file(files, f"kept/{name}", text_of(name, 20_000 if name == "changed" else 600))
    await snapshot_share(files, "kept", {"x-ms-meta-at": "the first snapshot"})
    await put_range(files, "kept/changed", 300, b"changed")
    await files("DELETE", "/kept/deleted")
    renamed = {"x-ms-file-rename-source": "http://localhost:10003/acme/kept/renamed"}
    await files("PUT", "/kept/new-name?comp=rename", renamed)
    await files("PUT", "/kept/dir?restype=directory&comp=metadata", {"x-ms-meta-b": "2"})
    await files("DELETE", "/kept/dir/inside")
    removed = await snapshot_share(files, "kept")
    await put_range(files, "kept/changed", 400, b"changed again")
    await make_file(files, "kept/deleted", b"the same name again")
    last = await snapshot_share(files, "kept")
    await files("PUT", f"/kept?restype=share&comp=lease&sharesnapshot={last}", ACQUIRE)
    await put_range(files, "kept/changed", 500, b"and again")
    # What only this snapshot needed is to be found and dropped.
    await files("DELETE", f"/kept?restype=share&sharesnapshot={removed}")


async def write_nfs(files: Caller) -> None:
    await files("PUT", "/unix?restype=share", NFS | {"x-ms-root-squash": "RootSquash"})
    owned = {"x-ms-owner": "5", "x-ms-group": "6", "x-ms-mode": "0640"}
    await files("PUT", "/unix/dir?restype=directory", {"x-ms-owner": "7", "x-ms-mode": "0711"})
    await make_file(files, "unix/file", b"of several names", owned)
    await make_file(files, "unix/File", b"with a capital", owned)
    await make_file(files, "unix/dir/single", b"of one name", owned)
    await files("PUT", "/unix/link?restype=symboliclink", {"x-ms-link-text": "../else%20where"} | owned)
    await snapshot_share(files, "unix")
    await files("PUT", "/unix/dir/second?restype=hardlink", {"x-ms-file-target-file": "file"})
    await files("PUT", "/unix/dir/third?restype=hardlink", {"x-ms-file-target-file": "file"})
    await put_range(files, "unix/dir/second", 3, b"SEVERAL")
    await snapshot_share(files, "unix")
    await files("DELETE", "/unix/dir/third")
    await make_file(files, "unix/once", b"had two names")
    await files("PUT", "/unix/twice?restype=hardlink", {"x-ms-file-target-file": "once"})
    await files("DELETE", "/unix/once")


async def delete_shares(files: Caller) -> None:
    """One share waits to be purged, and two can be restored once the retention is on."""
    for name, account in (("purged", ACCOUNT), ("retired", ACCOUNT), ("retired", OTHER)):
        await files("PUT", f"/{name}?restype=share", account=account)
        if account is ACCOUNT:
            await make_file(files, f"{name}/file", text_of(name, 30_000))
            await files("PUT", f"/{name}/dir?restype=directory")
    await files("DELETE", "/purged?restype=share")
    for account in (ACCOUNT, OTHER):
        body = f"<StorageServiceProperties>{METRICS}{FILE_ONLY}</StorageServiceProperties>".encode()
        await files("PUT", "/?restype=service&comp=properties", body=body, account=account)
        await files("DELETE", "/retired?restype=share", account=account)


async def open_handles(files: Caller, extents: LocalExtents, engine: EmbeddedEngine) -> None:
    """Handles of a server that no lock file tells of, which stay, and of this process, which go when it is dead."""
    for name, owner in (("opened", b"an SMB host."), ("leaving", extents.owner)):
        await files("PUT", f"/{name}?restype=share")
        made = await files("PUT", f"/{name}/dir?restype=directory")
        directory = int(made.headers["x-ms-file-id"])
        for number, (path, access, shared, more) in enumerate(
            (
                ("reader", Rights.READ, EVERYTHING, {}),
                ("writer", Rights.READ | Rights.WRITE, Rights.READ, {}),
                ("alone", EVERYTHING, Rights.NONE, {}),
                (
                    "locked",
                    Rights.READ | Rights.WRITE,
                    EVERYTHING,
                    {"locks": (Lock(1, 2, True, 4), Lock(9, 1, False, 4))},
                ),
                ("deleted", Rights.DELETE, EVERYTHING, {"is_delete_pending": True}),
            ),
            start=1,
        ):
            file_id = int(await make_file(files, f"{name}/dir/{path}", b"0123456789"))
            opened = Handle(
                number, owner, access.value, shared.value, f"dir/{path}", file_id, directory, 7, "192.0.2.1",
                Instant(START_AT), **more,
            )  # fmt: skip
            await engine.run(lambda tx, name=name, opened=opened: put_handle(tx, name, opened))
        opened = Handle(9, owner, 1, 7, "dir", directory, 0, 7, "192.0.2.1", Instant(START_AT))
        await engine.run(lambda tx, name=name, opened=opened: put_handle(tx, name, opened))


def put_handle(tx: Transaction, name: str, opened: Handle) -> None:
    share_id = share.load(tx, ShareKey("acme", name)).id
    tx.put(keys.handle(share_id, opened.file_id, opened.id), handle.encode(opened))
    if opened.is_delete_pending:
        tx.put(keys.pending_delete(share_id, opened.parent_id, opened.path.rpartition("/")[2].upper()), b"")


# By hand


async def make_lasting(engine: EmbeddedEngine, extents: LocalExtents) -> None:
    """Change rows so that what would end in a week or a year never does, and pin content as a long download does."""

    def body(tx: Transaction) -> None:
        box = container.load(tx, ContainerKey("acme", "box")).id
        for name in ("staged", "inline"):
            row = tx.get(keys.staging(box, name))
            assert row is not None
            tx.put(keys.staging(box, name), encode(replace(staging._decode_staging(row), last_at=NEVER)))
        row = tx.get(keys.blob(box, "tier-returning"))
        assert row is not None
        record = decode_blob(row)
        assert record.rehydration is not None
        record = replace(record, rehydration=record.rehydration._replace(ready_at=NEVER))
        tx.put(keys.blob(box, "tier-returning"), encode(record))
        base = keys.retired_shares("acme")
        for key, value in list(tx.scan(base, keys.after(base))):
            tx.put(key, encode(replace(retired_share.decode(value), expires_at=NEVER)))
        row = tx.get(keys.blob(box, "page-many"))
        assert row is not None
        hold.take(tx, decode_blob(row).content, extents.owner, 1)

    await engine.run(body)
    hidden = Draft("22222222-2222-4222-8222-222222222222", "hidden", 100 * 365 * 86_400, -1, bytes(16))
    await message.put(engine, QueueKey("acme", "work"), hidden)


async def check_letters(engine: EmbeddedEngine) -> None:
    def body(snap: Transaction) -> dict[str, int]:
        found = {}
        for letter in LETTERS:
            found[letter] = len(list(snap.scan(letter.encode(), keys.after(letter.encode()))))
        return found

    counts = await engine.run(body)
    assert len(counts) == 36
    print("rows:", counts)
    assert all(counts.values()), [letter for letter, count in counts.items() if not count]
    start, end = keys.CHORES, keys.after(keys.CHORES)
    tasks = await engine.run(lambda tx: {layer.decode_chore(row).task for _, row in tx.scan(start, end)})
    assert tasks == set(layer.Task), tasks


async def write(location: Path) -> None:
    location.mkdir()
    take_store_lock(location).release()
    check_format(location)
    clock = Clock()
    clock.now = START_AT
    engine = EmbeddedEngine.open(location / "engine", clock=clock)
    extents = LocalExtents(location / "extents")
    numbers = iter(range(1, 10_000))
    environment = Environment(
        engine=engine,
        extents=extents,
        accounts={account.name: account for account in (ACCOUNT, OTHER)},
        clock=clock,
        fresh_guid=lambda: f"00000000-0000-4000-8000-{next(numbers):012x}",
        services_by_port={port: word for word, port in PORTS.items()},
    )
    blobs, queues, tables, files = (Caller(environment, clock, word) for word in PORTS)
    await write_containers(blobs)
    await write_block_blobs(blobs)
    await write_append_blobs(blobs)
    await write_page_blobs(blobs)
    await delete_blobs(blobs)
    await write_queues(queues)
    await write_tables(tables)
    await write_shares(files)
    await write_files(files)
    await write_share_snapshots(files)
    await write_nfs(files)
    await open_handles(files, extents, engine)
    await delete_shares(files)
    await make_lasting(engine, extents)
    await check_letters(engine)
    await extents.close()
    await engine.close()


def pack(location: Path, archive: Path) -> None:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(location.rglob("*")):
            packed.add(path, path.relative_to(location), recursive=False, filter=plain)


# Recording


class Recorder:
    """Finds everything that can be read in a store by listing it, and keeps the answers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.recorded: list[Recorded] = []

    def __call__(
        self,
        method: str,
        service: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        account: str | None = "acme",
    ) -> None:
        request = Request(method, service, target, headers or {}, account=account)
        self.recorded.append(Recorded(request, self._client.send(request)))

    def get(self, service: str, target: str, headers: Mapping[str, str] | None = None) -> bytes:
        """Read without recording."""
        account = target.split("/")[1].partition("?")[0]
        return self._client.fetch(Request("GET", service, target, headers or {}, account=account))[1]

    def xml(self, service: str, target: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.get(service, target).decode("utf-8-sig"))

    def pages(self, service: str, target: str) -> None:
        """A listing by pages of two, each with the marker that the answer before gave."""
        marker = ""
        for _ in range(4):
            page = f"{target}&maxresults=2{marker}"
            self("GET", service, page)
            found = self.xml(service, page).findtext("NextMarker")
            if not found:
                return
            marker = f"&marker={quote(found, safe='')}"


RANGES = ({"x-ms-range": "bytes=1-99"}, {"Range": "bytes=500-"}, {"x-ms-range": "bytes=70000-70999"})


def record_blobs(record: Recorder) -> None:
    for account in ("acme", "other"):
        record("GET", "blob", f"/{account}/?restype=service&comp=properties", account=account)
        record("GET", "blob", f"/{account}/?comp=list&include=metadata", account=account)
    record("GET", "blob", "/acme/?comp=list")
    record("GET", "blob", "/acme/?comp=list&prefix=lease")
    record("GET", "blob", "/acme-secondary/?restype=service&comp=stats")
    record("HEAD", "blob", "/acme/?restype=account&comp=properties")
    record.pages("blob", "/acme/?comp=list")
    for account in ("acme", "other"):
        for name in [each.text for each in record.xml("blob", f"/{account}/?comp=list").iter("Name")]:
            record_container(record, account, f"/{account}/{name}")
    listing = "/acme/box?restype=container&comp=list"
    record("GET", "blob", f"{listing}&delimiter=%2F")
    record("GET", "blob", f"{listing}&delimiter=%2F&prefix=dir%2F&include=metadata,uncommittedblobs,copy")
    record("GET", "blob", f"{listing}&prefix=page&include=snapshots")
    record("GET", "blob", listing, {"x-ms-version": "2026-10-06"})
    record("GET", "blob", listing, {"x-ms-version": "2013-08-15"})
    record.pages("blob", listing)
    record.pages("blob", f"{listing}&prefix=page-deep&include=snapshots")


def record_container(record: Recorder, account: str, target: str) -> None:
    for query in ("", "&comp=metadata", "&comp=acl"):
        record("GET", "blob", f"{target}?restype=container{query}", account=account)
    listing = f"{target}?restype=container&comp=list"
    record("GET", "blob", listing, account=account)
    # Whether a listing shows blocks that were given up is left open.
    uncommitted = "" if target == "/acme/forgotten" else "uncommittedblobs,"
    include = f"&include=snapshots,metadata,{uncommitted}copy"
    record("GET", "blob", listing + include, account=account)
    for blob in record.xml("blob", listing + include).iter("Blob"):
        name, snapshot = blob.findtext("Name"), blob.findtext("Snapshot")
        assert name is not None
        path = f"{target}/{quote(name)}"
        record_blob(record, account, path, snapshot, blob.findtext("Properties/BlobType") or "")


def record_blob(record: Recorder, account: str, path: str, snapshot: str | None, kind: str) -> None:
    suffix = f"snapshot={quote(snapshot)}" if snapshot else ""
    first, more = (f"?{suffix}", f"&{suffix}") if suffix else ("", "")
    record("GET", "blob", path + first, account=account)
    record("HEAD", "blob", path + first, account=account)
    record("GET", "blob", f"{path}?comp=metadata{more}", account=account)
    for headers in RANGES:
        record("GET", "blob", path + first, headers, account=account)
    if kind == "BlockBlob":
        record("GET", "blob", f"{path}?comp=blocklist&blocklisttype=all{more}", account=account)
    if kind == "PageBlob":
        record("GET", "blob", f"{path}?comp=pagelist{more}", account=account)
        record(
            "GET", "blob", f"{path}?comp=pagelist{more}", {"x-ms-range": "bytes=2048-65535"}, account=account
        )


def record_page_differences(record: Recorder) -> None:
    target = "/acme/box?restype=container&comp=list&include=snapshots&prefix=page-"
    taken: dict[str, list[str]] = {}
    for blob in record.xml("blob", target).iter("Blob"):
        if snapshot := blob.findtext("Snapshot"):
            taken.setdefault(blob.findtext("Name") or "", []).append(quote(snapshot))
    for name, snapshots in taken.items():
        for snapshot in snapshots:
            record("GET", "blob", f"/acme/box/{name}?comp=pagelist&prevsnapshot={snapshot}")
        for before, after in pairwise(snapshots):
            record("GET", "blob", f"/acme/box/{name}?comp=pagelist&snapshot={after}&prevsnapshot={before}")


def record_conditions_and_access(record: Recorder) -> None:
    """Requests that need ETags, leases, stored policies, public access or CORS rules of the store."""
    for condition in ("If-Match", "If-None-Match"):
        record("GET", "blob", "/acme/box/inline", {condition: "*"})
    record("GET", "blob", "/acme/box/inline", {"If-Modified-Since": "Sun, 01 Nov 2026 00:00:00 GMT"})
    for lease_id in (ID, ID.replace("1", "2")):
        record("GET", "blob", "/acme/box/lease-kept", {"x-ms-lease-id": lease_id})
        record("GET", "blob", "/acme/lease-kept?restype=container", {"x-ms-lease-id": lease_id})
    for version in ("2012-02-12", "2017-04-17", "2026-10-06"):
        for name in ("inline", "tier-Cool", "copy-of-streamed", "append-sealed", "page-few"):
            record("GET", "blob", f"/acme/box/{name}", {"x-ms-version": version})
    for target in ("open/public", "half-open/public", "box/inline", "$root/index.html", "$web/index.html"):
        record("GET", "blob", f"/acme/{target}", account=None)
        record("GET", "blob", f"/acme/{target}", {"x-ms-version": ""}, account=None)
    record("GET", "blob", "/acme/index.html", account=None)
    for name in ("open", "half-open", "box"):
        record("GET", "blob", f"/acme/{name}?restype=container&comp=list", account=None)
    for policy in ("read", "over"):
        access = generate_container_sas("acme", "open", KEYS["acme"], policy_id=policy)
        record("GET", "blob", f"/acme/open/public?{access}", account=None)
        access = generate_blob_sas("acme", "open", "public", account_key=KEYS["acme"], policy_id=policy)
        record("GET", "blob", f"/acme/open/public?{access}", account=None)
        access = generate_queue_sas("acme", "work", KEYS["acme"], policy_id=policy)
        record("GET", "queue", f"/acme/work/messages?peekonly=true&{access}", account=None)
        access = generate_file_sas("acme", "box", ["inline"], KEYS["acme"], policy_id=policy)
        record("GET", "file", f"/acme/box/inline?{access}", account=None)
    for service in PORTS:
        for origin in ("https://example.com", "https://example.net"):
            asked = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
            record("OPTIONS", service, "/acme/any/path", asked, account=None)
    record("GET", "blob", "/acme/box/inline", {"Origin": "https://example.org"})


def record_queues(record: Recorder) -> None:
    for query in ("restype=service&comp=properties", "comp=list&include=metadata", "comp=list&prefix=e"):
        record("GET", "queue", f"/acme/?{query}")
    record("GET", "queue", "/acme-secondary/?restype=service&comp=stats")
    record("GET", "queue", "/other/?comp=list", account="other")
    record.pages("queue", "/acme/?comp=list")
    for name in ("work", "empty", "cleared", "updated", "gone"):
        record("GET", "queue", f"/acme/{name}?comp=metadata")
        record("GET", "queue", f"/acme/{name}?comp=acl")
        record("GET", "queue", f"/acme/{name}/messages?peekonly=true&numofmessages=32")
    record("GET", "queue", "/acme/work/messages?peekonly=true", {"x-ms-version": "2015-12-11"})


def record_tables(record: Recorder) -> None:
    record("GET", "table", "/acme/?restype=service&comp=properties")
    record("GET", "table", "/acme-secondary/?restype=service&comp=stats")
    record("GET", "table", "/acme/Things?comp=acl")
    levels = [{"Accept": f"application/json;odata={level}metadata"} for level in ("no", "minimal", "full")]
    for accept in levels:
        record("GET", "table", "/acme/Tables", accept)
        for table in ("Things", "empty", "Large"):
            record("GET", "table", f"/acme/{table}()", accept)
        record("GET", "table", "/acme/Things(PartitionKey='all',RowKey='types')", accept)
        record("GET", "table", "/acme/Large(PartitionKey='p',RowKey='divided')", accept)
    accept = levels[1]
    record("GET", "table", "/other/Tables", accept, account="other")
    record("GET", "table", "/acme/Tables('Things')", accept)
    record("GET", "table", "/acme/gone()", accept)
    record("GET", "table", "/acme/Things(PartitionKey='a',RowKey='it%27%27s')", accept)
    record("GET", "table", "/acme/Things(PartitionKey='%C3%A9',RowKey='10')", accept)
    record("GET", "table", "/acme/Things(PartitionKey='',RowKey='')", accept)
    for wanted in (
        "PartitionKey eq 'a'",
        "PartitionKey eq 'b' and RowKey ge '10'",
        "PartitionKey gt 'a' and n lt 5",
        "n ge 10 or not (PartitionKey eq 'batch')",
        "long lt 0L",
        "at ge datetime'1999-01-01T00:00:00Z'",
        "guid eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'",
        "yes eq true and double gt 3.0",
    ):
        record("GET", "table", f"/acme/Things()?$filter={quote(wanted)}", accept)
    record("GET", "table", "/acme/Things()?$select=n,text,RowKey", accept)
    for target, names in (("Things()?$top=7", ("PartitionKey", "RowKey")), ("Tables?$top=2", ("TableName",))):
        record_continuation(record, f"/acme/{target}", accept, names)


def record_continuation(
    record: Recorder, target: str, accept: Mapping[str, str], names: tuple[str, ...]
) -> None:
    more = ""
    for _ in range(6):
        record("GET", "table", target + more, accept)
        headers = record.recorded[-1].answer.headers
        parts = [(name, headers.get(f"x-ms-continuation-next{name.lower()}")) for name in names]
        if parts[0][1] is None:
            return
        more = "".join(f"&Next{name}={quote(value, safe='')}" for name, value in parts if value is not None)


def record_files(record: Recorder) -> None:
    record("GET", "file", "/acme/?restype=service&comp=properties")
    for query in ("", "&include=metadata", "&include=metadata,snapshots", "&include=deleted&prefix=retired"):
        record("GET", "file", f"/acme/?comp=list{query}")
    record("GET", "file", "/other/?comp=list", account="other")
    record.pages("file", "/acme/?comp=list&include=snapshots")
    for each in record.xml("file", "/acme/?comp=list&include=snapshots").iter("Share"):
        name, snapshot = each.findtext("Name"), each.findtext("Snapshot")
        if name != "leaving":
            record_share(record, f"/acme/{name}", f"&sharesnapshot={quote(snapshot)}" if snapshot else "")
    listing = "/acme/box?restype=directory&comp=list"
    record("GET", "file", listing, {"x-ms-version": "2019-02-02"})
    record("GET", "file", f"{listing}&prefix=lease")
    record.pages("file", listing)
    for target in ("opened/dir", "opened/dir/writer", "opened/dir/alone", "opened/dir/deleted", "box"):
        record("GET", "file", f"/acme/{target}?comp=listhandles")
    record("GET", "file", "/acme/opened?comp=listhandles", {"x-ms-recursive": "true"})
    record("GET", "file", "/acme/opened?comp=listhandles&maxresults=2", {"x-ms-recursive": "true"})
    record("GET", "file", "/acme/opened/dir/deleted")
    record("GET", "file", "/acme/unix/link?restype=symboliclink")


def record_share(record: Recorder, target: str, snapshot: str) -> None:
    for query in ("", "&comp=metadata"):
        record("GET", "file", f"{target}?restype=share{query}{snapshot}")
    if not snapshot:
        for query in ("&comp=acl", "&comp=stats"):
            record("GET", "file", f"{target}?restype=share{query}")
    record_directory(record, target, snapshot)


def record_directory(record: Recorder, target: str, snapshot: str) -> None:
    record("GET", "file", f"{target}?restype=directory{snapshot}")
    record("GET", "file", f"{target}?restype=directory&comp=metadata{snapshot}")
    listing = f"{target}?restype=directory&comp=list{snapshot}"
    record("GET", "file", listing)
    record("GET", "file", f"{listing}&include=Timestamps,ETag,Attributes,PermissionKey")
    entries = record.xml("file", listing).find("Entries")
    for entry in entries if entries is not None else ():
        path = f"{target}/{quote(entry.findtext('Name') or '')}"
        if entry.tag == "Directory":
            record_directory(record, path, snapshot)
        else:
            record_file(record, path, snapshot)


def record_file(record: Recorder, path: str, snapshot: str) -> None:
    first = f"?{snapshot[1:]}" if snapshot else ""
    record("GET", "file", path + first)
    record("HEAD", "file", path + first)
    seen = record.recorded[-1]
    record("GET", "file", f"{path}?comp=metadata{snapshot}")
    record("GET", "file", f"{path}?comp=rangelist{snapshot}")
    for headers in RANGES:
        record("GET", "file", path + first, headers)
    key = seen.answer.headers.get("x-ms-file-permission-key")
    if key and not snapshot:
        share_name = path.split("/")[2]
        asked = {"x-ms-file-permission-key": key}
        record("GET", "file", f"/acme/{share_name}?restype=share&comp=filepermission", asked)


def record_after_clean_up(record: Recorder) -> None:
    """What the server answers when it has closed the handles of a dead process and dropped expired messages."""
    record("GET", "file", "/acme/leaving?comp=listhandles", {"x-ms-recursive": "true"})
    record_share(record, "/acme/leaving", "")
    record("GET", "queue", "/acme/expiring?comp=metadata")
    record("GET", "queue", "/acme/expiring/messages?peekonly=true&numofmessages=32")


NEW = ("etag", "last-modified")
DELETED = ("x-ms-delete-type-permanent",)
NEW_FILE = (*NEW, "x-ms-file-last-write-time", "x-ms-file-change-time")


def writes(version: str) -> list[Request]:
    """Changes to what the store holds, and reads of what came of them."""
    committed = "<BlockList>" + "".join(
        f"<Uncommitted>{base64.b64encode(f'aa{number}'.encode()).decode()}</Uncommitted>"
        for number in range(3)
    )
    page = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1023"}
    ranged = {"x-ms-write": "update", "x-ms-range": "bytes=300-306"}
    many = "page-many"
    return [
        Request("PUT", "file", "/acme/retired?restype=share&comp=undelete",
                {"x-ms-deleted-share-name": "retired", "x-ms-deleted-share-version": version}),
        Request("GET", "file", "/acme/retired/file"),
        Request("GET", "file", "/acme/retired?restype=share&comp=stats"),
        Request("PUT", "blob", "/acme/box/staged?comp=blocklist", body=f"{committed}</BlockList>", varying=NEW),
        Request("GET", "blob", "/acme/box/staged", varying=(*NEW, "x-ms-creation-time")),
        Request("PUT", "blob", "/acme/box/append?comp=appendblock", body="more", varying=NEW),
        Request("GET", "blob", "/acme/box/append", varying=NEW),
        Request("PUT", "blob", "/acme/box/append-sealed?comp=appendblock", body="more"),
        Request("PUT", "blob", f"/acme/box/{many}?comp=page", page, body="p" * 512, varying=NEW),
        Request("GET", "blob", f"/acme/box/{many}", varying=NEW),
        Request("GET", "blob", "/acme/box/page-copy"),
        Request("PUT", "blob", "/acme/box/page-deep?comp=page", page, body="p" * 512, varying=NEW),
        Request("GET", "blob", "/acme/box/page-deep", varying=NEW),
        Request("DELETE", "blob", "/acme/box/streamed", varying=DELETED),
        Request("GET", "blob", "/acme/box/copy-of-streamed"),
        Request("DELETE", "blob", "/acme/lease-kept?restype=container"),
        Request("PUT", "blob", "/acme/box/lease-kept?comp=lease", RELEASE, varying=NEW),
        Request("DELETE", "blob", "/acme/box/lease-kept", varying=DELETED),
        Request("PUT", "file", "/acme/kept/changed?comp=range", ranged, body="anewnew",
                varying=(*NEW, "x-ms-file-last-write-time")),
        Request("GET", "file", "/acme/kept/changed", varying=NEW_FILE),
        Request("PUT", "file", "/acme/unix/dir/second?comp=range", {"x-ms-write": "update", "x-ms-range": "bytes=0-3"},
                body="both", varying=(*NEW, "x-ms-file-last-write-time")),
        Request("GET", "file", "/acme/unix/file", varying=NEW_FILE),
        Request("DELETE", "file", "/acme/unix/file"),
        Request("GET", "file", "/acme/unix/dir/second", varying=NEW_FILE),
        Request("PUT", "file", "/acme/opened/dir/writer?comp=range", ranged | {"x-ms-range": "bytes=0-0"}, body="w"),
        Request("PUT", "file", "/acme/opened?comp=forceclosehandles",
                {"x-ms-handle-id": "*", "x-ms-recursive": "true"}),
        Request("GET", "file", "/acme/opened/dir?restype=directory&comp=list"),
        Request("MERGE", "table", "/acme/Things(PartitionKey='all',RowKey='types')",
                {"Content-Type": "application/json", "If-Match": "*"}, body='{"int": 5}', varying=("etag",)),
        Request("GET", "table", "/acme/Things()?$filter=int%20eq%205&$select=int,long,unicode",
                {"Accept": "application/json;odata=nometadata"}),
        Request("DELETE", "table", "/acme/Large(PartitionKey='p',RowKey='divided')", {"If-Match": "*"}),
        Request("GET", "table", "/acme/Large()?$select=RowKey,n", {"Accept": "application/json;odata=nometadata"}),
        Request("DELETE", "queue", "/acme/work/messages"),
        Request("GET", "queue", "/acme/work?comp=metadata"),
    ]  # fmt: skip


def serve(archive: Path, then: Callable[[Client], None]) -> None:
    """Start a server on a copy of the packed store."""
    options = [part for name, key in KEYS.items() for part in ("--account", f"{name}:{key}")]
    with tempfile.TemporaryDirectory() as folder:
        unpack(archive, Path(folder))
        with (
            ServerProcess(*options, location=Path(folder)) as server,
            Client(server.endpoints, KEYS) as client,
        ):
            then(client)
            assert server.stop() == 0


def record_all(archive: Path) -> Recording:
    groups: dict[str, list[Recorded]] = {}

    def record(client: Client) -> None:
        reads = Recorder(client)
        for part in (
            record_blobs,
            record_page_differences,
            record_conditions_and_access,
            record_queues,
            record_tables,
            record_files,
        ):
            part(reads)
        groups["reads"] = reads.recorded
        time.sleep(5)
        later = Recorder(client)
        record_after_clean_up(later)
        groups["reads_after_clean_up"] = later.recorded
        for each in reads.recorded:
            again = client.send(each.request)
            assert again == each.answer, (str(each.request), each.answer, again)
        listed = reads.xml("file", "/acme/?comp=list&include=deleted&prefix=retired")
        version = listed.findtext("Shares/Share/Version")
        assert version is not None
        groups["writes"] = [Recorded(request, client.send(request)) for request in writes(version)]

    serve(archive, record)
    return Recording(KEYS, *(tuple(groups[name]) for name in ("reads", "reads_after_clean_up", "writes")))


def main() -> None:
    archive, answers = FOLDER / f"{NAME}.tar.xz", FOLDER / f"{NAME}.json.xz"
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "store"
        asyncio.run(write(location))
        pack(location, archive)
        shutil.rmtree(location)
    recording = record_all(archive)
    save(recording, answers)
    print(archive.stat().st_size, "bytes of store,", answers.stat().st_size, "bytes of answers")
    for group in ("reads", "reads_after_clean_up", "writes"):
        found = getattr(recording, group)
        print(group, len(found), {each.answer.status for each in found})


if __name__ == "__main__":
    main()
