"""Valid bodies, by kind: uploads, XML documents, JSON and multipart batches."""

import base64
import json
import struct
from collections.abc import Callable, Mapping
from urllib.parse import quote
from xml.sax.saxutils import escape

from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import crc64, iso_time
from tests.services.fuzzing import pool as names
from tests.services.fuzzing import scope as scopes
from tests.services.fuzzing.request import FuzzRequest
from tests.services.fuzzing.scope import Scope

Body = Callable[[Scope, FuzzRequest], None]
_SIZES = (0, 1, 100, 511, 512, 513, 4096, 16_384, 16_385, 70_000, 300_000)
_SIZE_WEIGHTS = (2, 4, 10, 2, 4, 2, 4, 2, 2, 1, 0.3)
_STRUCTURED = "XSM/1.0; properties=crc64"
_HEAD = '<?xml version="1.0" encoding="utf-8"?>'


# Bytes


def _data(scope: Scope, length: int) -> bytes:
    return scope.chance.randbytes(min(length, 64)).ljust(64, b"x")[: min(length, 64)] + b"." * (length - 64)


def upload(scope: Scope, request: FuzzRequest) -> None:
    _fill(scope, request, scope.chance.choices(_SIZES, _SIZE_WEIGHTS)[0])


def nothing(_scope: Scope, request: FuzzRequest) -> None:
    request.body = b""


def pages(scope: Scope, request: FuzzRequest) -> None:
    clears = scope.likely(0.25)
    request.headers.append(("x-ms-page-write", "clear" if clears else "update"))
    if not clears:
        _fill(scope, request, int(scope.facts["length"]))


def file_range(scope: Scope, request: FuzzRequest) -> None:
    clears = scope.likely(0.25)
    request.headers.append(("x-ms-write", "clear" if clears else "update"))
    if not clears:
        _fill(scope, request, int(scope.facts["length"]))


def first_bytes(scope: Scope, request: FuzzRequest) -> None:
    """Most files are created without their content."""
    if scope.likely(0.2):
        _fill(scope, request, min(100, int(request.header("x-ms-content-length") or 0)))


def _fill(scope: Scope, request: FuzzRequest, length: int) -> None:
    data = _data(scope, length)
    if scope.likely(0.08):
        request.headers += [
            ("x-ms-structured-body", _STRUCTURED),
            ("x-ms-structured-content-length", str(length)),
        ]
        data = structured(data, scope.chance.choice((50, 1000, 1 << 22)))
    request.body = data


def structured(data: bytes, size: int) -> bytes:
    """A message with the data in segments of that size."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    inside = b"".join(
        struct.pack("<HQ", number, len(piece)) + piece + struct.pack("<Q", crc64.compute(piece))
        for number, piece in enumerate(pieces, 1)
    )
    length = 13 + len(inside) + 8
    return struct.pack("<BQHH", 1, length, 1, len(pieces)) + inside + struct.pack("<Q", crc64.compute(data))


# XML


def _xml(request: FuzzRequest, text: str) -> None:
    request.set_header("Content-Type", "application/xml")
    request.body = (_HEAD + text).encode()


def block_list(scope: Scope, request: FuzzRequest) -> None:
    known = scope.pool.blocks.get(request.path) or [base64.b64encode(b"block-00").decode()]
    chosen = scope.chance.choices(known, k=scope.chance.choice((0, 1, 1, 2, 3, 20)))
    kinds = ("Latest", "Latest", "Latest", "Uncommitted", "Committed")
    items = [(scope.chance.choice(kinds), each) for each in chosen]
    text = "".join(f"<{kind}>{each}</{kind}>" for kind, each in items)
    _xml(request, f"<BlockList>{text}</BlockList>")


def _policies(scope: Scope, letters: str) -> str:
    items = ""
    for identifier in names.POLICIES[: scope.chance.randrange(3)]:
        permission = "".join(sorted(scope.chance.sample(letters, 2), key=letters.index))
        times = f"<Start>{iso_time.encode(scope.now)}</Start><Expiry>9999-01-01T00:00:00Z</Expiry>"
        policy = f"<AccessPolicy>{times}<Permission>{permission}</Permission></AccessPolicy>"
        items += f"<SignedIdentifier><Id>{identifier}</Id>{policy}</SignedIdentifier>"
    return f"<SignedIdentifiers>{items}</SignedIdentifiers>"


def _acl(letters: str) -> Body:
    return lambda scope, request: _xml(request, _policies(scope, letters))


def _service_properties(*elements: str) -> Body:
    def write(scope: Scope, request: FuzzRequest) -> None:
        chosen = scope.chance.sample(elements, scope.chance.randint(0, len(elements)))
        _xml(
            request,
            f"<StorageServiceProperties>{''.join(_ELEMENTS[each] for each in chosen)}</StorageServiceProperties>",
        )

    return write


_RETENTION = "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"
_ELEMENTS = {
    "Logging": "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
    f"{_RETENTION}</Logging>",
    "HourMetrics": "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    f"{_RETENTION}</HourMetrics>",
    "MinuteMetrics": "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false"
    "</Enabled></RetentionPolicy></MinuteMetrics>",
    "Cors": "<Cors><CorsRule><AllowedOrigins>http://example.org,*</AllowedOrigins><AllowedMethods>GET,PUT"
    "</AllowedMethods><MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders>"
    "<AllowedHeaders>x-ms-*,a</AllowedHeaders></CorsRule></Cors>",
    "DefaultServiceVersion": "<DefaultServiceVersion>2021-12-02</DefaultServiceVersion>",
    "DeleteRetentionPolicy": "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>5</Days></DeleteRetentionPolicy>",
    "StaticWebsite": "<StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>"
    "<ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite>",
    "ProtocolSettings": "<ProtocolSettings><SMB><Multichannel><Enabled>true</Enabled></Multichannel></SMB>"
    "</ProtocolSettings>",
    "ShareDeleteRetentionPolicy": "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>3</Days>"
    "</ShareDeleteRetentionPolicy>",
}
_ANALYTICS = ("Logging", "HourMetrics", "MinuteMetrics", "Cors")


def key_info(scope: Scope, request: FuzzRequest) -> None:
    start = scope.one("", f"<Start>{iso_time.encode(scope.now)}</Start>")
    hours = scope.chance.choice((0, 1, 1, 1, 24 * 6, 24 * 8))
    expiry = iso_time.encode(Instant(scope.now + hours * 3600 * TICKS_PER_SECOND))
    user = scope.one("", "", "<DelegatedUserTid>6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e</DelegatedUserTid>")
    _xml(request, f"<KeyInfo>{start}<Expiry>{expiry}</Expiry>{user}</KeyInfo>")


def tags(scope: Scope, request: FuzzRequest) -> None:
    keys = scope.chance.sample(("a", "c", "a b", "+-./:=_", "k" * 128), scope.chance.choice((0, 1, 1, 2, 5)))
    items = [f"<Tag><Key>{key}</Key><Value>{scope.one('b', 'd e', '2', '')}</Value></Tag>" for key in keys]
    _xml(request, f"<Tags><TagSet>{''.join(items)}</TagSet></Tags>")


def query_request(_scope: Scope, request: FuzzRequest) -> None:
    text = "<QueryType>SQL</QueryType><Expression>SELECT * from BlobStorage</Expression>"
    _xml(request, f"<QueryRequest>{text}</QueryRequest>")


def message(scope: Scope, request: FuzzRequest) -> None:
    text = escape(scope.one("x", "some text", "<&>", "ü", "\U0001f600", "y" * 5000, "z" * 65_536, ""))
    _xml(request, f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")


def optional_message(scope: Scope, request: FuzzRequest) -> None:
    if scope.likely(0.6):
        message(scope, request)


# JSON


def _json(request: FuzzRequest, value: object) -> None:
    request.body = json.dumps(value).encode()


def permission(scope: Scope, request: FuzzRequest) -> None:
    text = scope.one(
        "O:SYG:SYD:(A;OICI;FA;;;BA)", "O:BAG:BAD:P(A;;FA;;;SY)", "O:SYG:SYD:(A;;FR;;;WD)S:(AU;SA;FA;;;WD)"
    )
    _json(request, {"permission": text, **({"format": "sddl"} if scope.likely(0.3) else {})})


def table(scope: Scope, request: FuzzRequest) -> None:
    _json(request, {"TableName": scopes.table(scope)})


_PROPERTIES: Mapping[str, tuple[object, ...]] = {
    "Text": ("x", "", "it's", "ü", "y" * 2000),
    "Number": (0, 1, -5, 2147483647, "7"),
    "Number@odata.type": ("Edm.Int32",),
    "Big": ("12345678901", "-1", 5),
    "Big@odata.type": ("Edm.Int64",),
    "Flag": (True, False),
    "When": ("2026-11-16T12:00:00Z", "0001-01-01T00:00:00Z"),
    "When@odata.type": ("Edm.DateTime",),
    "Id": (names.LEASE_IDS[0],),
    "Id@odata.type": ("Edm.Guid",),
    "Data": ("AAEC", "", "_w=="),
    "Data@odata.type": ("Edm.Binary",),
    "Real": (1.5, -0.0, "NaN", "Infinity", 1e300),
    "Real@odata.type": ("Edm.Double",),
    "Nothing": (None,),
}


def _some_properties(scope: Scope) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in scope.chance.sample(list(_PROPERTIES), scope.chance.randrange(8)):
        bare = name.partition("@")[0]
        found[bare] = scope.chance.choice(_PROPERTIES[bare])
        if f"{bare}@odata.type" in _PROPERTIES and scope.likely(0.8):
            found[f"{bare}@odata.type"] = _PROPERTIES[f"{bare}@odata.type"][0]
    return found


def properties(scope: Scope, request: FuzzRequest) -> None:
    _json(request, _some_properties(scope))


def entity(scope: Scope, request: FuzzRequest) -> None:
    keys = {
        "PartitionKey": scope.one(*names.PARTITIONS),
        "RowKey": scope.one(*names.ROWS, scope.number(0, 500)),
    }
    _json(request, {**keys, **_some_properties(scope)})


# Batches


def blob_batch(scope: Scope, request: FuzzRequest) -> None:
    """Parts with a token of their own, so that what is signed need not be known here."""
    sets_tier = scope.likely(0.5)
    parts = ""
    for number in range(scope.chance.choice((1, 1, 2, 3, 10))):
        path = quote(f"/box/{scopes.block_blob(scope)}")
        comp = "comp=tier&" if sets_tier else ""
        tier = f"x-ms-access-tier: {scope.one('Hot', 'Cool', 'wrong')}\r\n" if sets_tier else ""
        root = scope.one("", f"/{scope.account}", f"http://{scope.host}/{scope.account}")
        parts += (
            "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: {number}\r\n\r\n"
            f"{'PUT' if sets_tier else 'DELETE'} {root}{path}?{comp}{scope.token} HTTP/1.1\r\n{tier}"
            "Content-Length: 0\r\n\r\n\r\n"
        )
    request.set_header("Content-Type", "multipart/mixed; boundary=b")
    request.body = f"{parts}--b--\r\n".encode()


def entity_batch(scope: Scope, request: FuzzRequest) -> None:
    table_name, partition = scopes.table(scope), scope.one(*names.PARTITIONS[:3])
    address = f"http://{scope.host}/{scope.account}/{table_name}"
    request.set_header("Content-Type", "multipart/mixed; boundary=b")
    if scope.likely(0.15):
        target = (
            f"{address}(PartitionKey='{quote(partition)}',RowKey='r')"
            if scope.likely(0.5)
            else f"{address}()"
        )
        inner = _part("GET", target, "")
        request.body = f"--b\r\n{inner}--b--\r\n".encode()
        return
    rows = scope.chance.sample([str(number) for number in range(30)], scope.chance.choice((1, 2, 3, 10)))
    parts = "".join(f"--cs\r\n{_change(scope, address, partition, row)}" for row in rows)
    request.body = (
        f"--b\r\nContent-Type: multipart/mixed; boundary=cs\r\n\r\n{parts}--cs--\r\n--b--\r\n"
    ).encode()


def _change(scope: Scope, address: str, partition: str, row: str) -> str:
    own = _some_properties(scope)
    target = f"{address}(PartitionKey='{quote(partition)}',RowKey='{row}')"
    match scope.chance.choices(("insert", "PUT", "MERGE", "PATCH", "DELETE"), (2, 4, 2, 2, 1))[0]:
        case "insert":
            return _part("POST", address, json.dumps({"PartitionKey": partition, "RowKey": row, **own}))
        case "DELETE":
            return _part("DELETE", target, "", "If-Match: *\r\n")
        case method:
            condition = "If-Match: *\r\n" if scope.likely(0.1) else ""
            return _part(method, target, json.dumps(own), condition)


def _part(method: str, target: str, body: str, more: str = "") -> str:
    return (
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"{method} {target} HTTP/1.1\r\n{more}Content-Type: application/json\r\n"
        f"Accept: application/json;odata=minimalmetadata\r\nContent-Length: {len(body)}\r\n\r\n{body}\r\n"
    )


BODIES: Mapping[str, Body] = {
    "upload": upload,
    "nothing": nothing,
    "pages": pages,
    "file_range": file_range,
    "first_bytes": first_bytes,
    "block_list": block_list,
    "acl": _acl("racwdl"),
    "queue_acl": _acl("raup"),
    "table_acl": _acl("raud"),
    "blob_properties": _service_properties(
        *_ANALYTICS, "DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"
    ),
    "queue_properties": _service_properties(*_ANALYTICS),
    "table_properties": _service_properties(*_ANALYTICS),
    "file_properties": _service_properties(*_ANALYTICS[1:], "ProtocolSettings", "ShareDeleteRetentionPolicy"),
    "key_info": key_info,
    "tags": tags,
    "query_request": query_request,
    "message": message,
    "optional_message": optional_message,
    "permission": permission,
    "table": table,
    "entity": entity,
    "properties": properties,
    "blob_batch": blob_batch,
    "entity_batch": entity_batch,
}
