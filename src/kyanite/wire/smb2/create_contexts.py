"""The contexts of CREATE (MS-SMB2 §2.2.13.2, §2.2.14.2).

Each is {offset of the next, offset and length of the name, 0, offset and length of the data}, then the name and,
8-aligned, the data. Contexts of other names are noted and otherwise ignored, and so is all but the first of a name.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kyanite.wire.smb2.body import FILE_ID, FileId, invalid, padding

MAXIMAL_ACCESS = b"MxAc"
QUERY_ON_DISK_ID = b"QFid"
LEASE = b"RqLs"
DURABLE_REQUEST = b"DHnQ"
DURABLE_RECONNECT = b"DHnC"
DURABLE_REQUEST_V2 = b"DH2Q"
DURABLE_RECONNECT_V2 = b"DH2C"
TIMEWARP = b"TWrp"
ALLOCATION_SIZE = b"AlSi"
SECURITY_DESCRIPTOR = b"SecD"
EXTENDED_ATTRIBUTES = b"ExtA"
APPLE = b"AAPL"

LEASE_READ = 0x1
LEASE_HANDLE = 0x2
LEASE_WRITE = 0x4
LEASE_BREAK_IN_PROGRESS = 0x2
LEASE_PARENT_KEY_SET = 0x4
DURABLE_PERSISTENT = 0x2

_HEAD = struct.Struct("<IHHHHI")
_LEASE_V1 = struct.Struct("<16sIIQ")
_LEASE_V2 = struct.Struct("<16sIIQ16sHH")
_DURABLE_V2 = struct.Struct("<IIQ16s")
_RECONNECT_V2 = struct.Struct("<QQ16sI")
_U64 = struct.Struct("<Q")
_TWO_U32 = struct.Struct("<II")
_DISK_ID = struct.Struct("<QQ16x")
_SHORTEST_NAME = 4
_MOST = 64
"""How many contexts a request may have. Clients send up to eight."""


class LeaseContext(NamedTuple):
    """§2.2.13.2.8 and §2.2.13.2.10, in requests and in responses."""

    key: bytes
    state: int
    flags: int = 0
    version: int = 1
    parent_key: bytes = bytes(16)
    epoch: int = 0


class DurableRequestV2(NamedTuple):
    """§2.2.13.2.11."""

    timeout_milliseconds: int
    flags: int
    create_guid: bytes


class DurableReconnectV2(NamedTuple):
    """§2.2.13.2.12."""

    file_id: FileId
    create_guid: bytes
    flags: int


class CreateContexts(NamedTuple):
    """The contexts of one request; None or False for what was not sent."""

    names: frozenset[bytes] = frozenset()
    """All names, those of unknown contexts included."""
    wants_maximal_access: bool = False
    wants_disk_id: bool = False
    lease: LeaseContext | None = None
    wants_durable: bool = False
    durable_reconnect: FileId | None = None
    durable_v2: DurableRequestV2 | None = None
    durable_reconnect_v2: DurableReconnectV2 | None = None
    timewarp: int | None = None
    """The FILETIME of the snapshot to open."""
    allocation_size: int | None = None
    security_descriptor: memoryview | None = None
    extended_attributes: memoryview | None = None
    apple: memoryview | None = None


NO_CONTEXTS = CreateContexts()


def decode(area: memoryview) -> CreateContexts:
    """The contexts in an area that begins with the first one."""
    if not area:
        return NO_CONTEXTS
    data = _split(area)
    present = data.keys()
    if DURABLE_RECONNECT in present and not present.isdisjoint((DURABLE_REQUEST_V2, DURABLE_RECONNECT_V2)):
        raise invalid()
    if DURABLE_RECONNECT_V2 in present and not present.isdisjoint((DURABLE_REQUEST, DURABLE_REQUEST_V2)):
        raise invalid()
    return CreateContexts(
        frozenset(present),
        wants_maximal_access=_exact(data, MAXIMAL_ACCESS, 0, _U64.size) is not None,
        wants_disk_id=_exact(data, QUERY_ON_DISK_ID, 0) is not None,
        lease=_lease(_exact(data, LEASE, _LEASE_V1.size, _LEASE_V2.size)),
        wants_durable=_exact(data, DURABLE_REQUEST, 16) is not None,
        durable_reconnect=_reconnect(_exact(data, DURABLE_RECONNECT, FILE_ID.size)),
        durable_v2=_durable_v2(_exact(data, DURABLE_REQUEST_V2, _DURABLE_V2.size)),
        durable_reconnect_v2=_reconnect_v2(_exact(data, DURABLE_RECONNECT_V2, _RECONNECT_V2.size)),
        timewarp=_number(_exact(data, TIMEWARP, _U64.size)),
        allocation_size=_number(_exact(data, ALLOCATION_SIZE, _U64.size)),
        security_descriptor=data.get(SECURITY_DESCRIPTOR),
        extended_attributes=data.get(EXTENDED_ATTRIBUTES),
        apple=data.get(APPLE),
    )


def _split(area: memoryview) -> dict[bytes, memoryview]:
    """The data of each context by its name."""
    found: dict[bytes, memoryview] = {}
    for _ in range(_MOST):
        if len(area) < _HEAD.size:
            raise invalid()
        step, name_at, name_length, _, data_at, data_length = _HEAD.unpack_from(area)
        if step and (step % 8 or not _HEAD.size <= step < len(area)):
            raise invalid()
        context = area[: step or len(area)]
        if name_length < _SHORTEST_NAME:
            raise invalid()
        name = _within(context, name_at, name_length)
        found.setdefault(bytes(name), _within(context, data_at, data_length))
        if not step:
            return found
        area = area[step:]
    raise invalid()


def _within(context: memoryview, at: int, length: int) -> memoryview:
    if length and (at < _HEAD.size or at + length > len(context)):
        raise invalid()
    return context[at : at + length] if length else context[:0]


def _exact(data: dict[bytes, memoryview], name: bytes, *sizes: int) -> memoryview | None:
    """The data of a context that has one of these sizes, if it was sent."""
    value = data.get(name)
    if value is not None and len(value) not in sizes:
        raise invalid()
    return value


def _lease(data: memoryview | None) -> LeaseContext | None:
    if data is None:
        return None
    if len(data) == _LEASE_V1.size:
        key, state, flags, _ = _LEASE_V1.unpack(data)
        return LeaseContext(key, state, flags)
    key, state, flags, _, parent_key, epoch, _ = _LEASE_V2.unpack(data)
    return LeaseContext(key, state, flags, 2, parent_key, epoch)


def _reconnect(data: memoryview | None) -> FileId | None:
    return None if data is None else FileId(*FILE_ID.unpack(data))


def _durable_v2(data: memoryview | None) -> DurableRequestV2 | None:
    if data is None:
        return None
    timeout, flags, _, create_guid = _DURABLE_V2.unpack(data)
    return DurableRequestV2(timeout, flags, create_guid)


def _reconnect_v2(data: memoryview | None) -> DurableReconnectV2 | None:
    if data is None:
        return None
    persistent, volatile, create_guid, flags = _RECONNECT_V2.unpack(data)
    return DurableReconnectV2(FileId(persistent, volatile), create_guid, flags)


def _number(data: memoryview | None) -> int | None:
    return None if data is None else int.from_bytes(data, "little")


class ResponseContext(NamedTuple):
    name: bytes
    data: bytes


def maximal_access(status: int, access: int) -> ResponseContext:
    """§2.2.14.2.5."""
    return ResponseContext(MAXIMAL_ACCESS, _TWO_U32.pack(status, access))


def disk_id(file_id: int, volume_id: int) -> ResponseContext:
    """§2.2.14.2.9."""
    return ResponseContext(QUERY_ON_DISK_ID, _DISK_ID.pack(file_id, volume_id))


def lease(granted: LeaseContext) -> ResponseContext:
    """§2.2.14.2.10 and §2.2.14.2.11, in the version of the request."""
    if granted.version == 1:
        return ResponseContext(LEASE, _LEASE_V1.pack(granted.key, granted.state, granted.flags, 0))
    packed = _LEASE_V2.pack(
        granted.key, granted.state, granted.flags, 0, granted.parent_key, granted.epoch, 0
    )
    return ResponseContext(LEASE, packed)


def durable() -> ResponseContext:
    """§2.2.14.2.3."""
    return ResponseContext(DURABLE_REQUEST, bytes(8))


def durable_v2(timeout_milliseconds: int, flags: int = 0) -> ResponseContext:
    """§2.2.14.2.12."""
    return ResponseContext(DURABLE_REQUEST_V2, _TWO_U32.pack(timeout_milliseconds, flags))


def encode(contexts: Sequence[ResponseContext]) -> bytes:
    """The area of contexts of a response: each 8-aligned, the last one not padded."""
    packed = bytearray()
    for number, (name, data) in enumerate(contexts, 1):
        name_end = _HEAD.size + len(name)
        data_at = name_end + padding(name_end)
        length = data_at + len(data)
        is_last = number == len(contexts)
        step = 0 if is_last else length + padding(length)
        packed += _HEAD.pack(step, _HEAD.size, len(name), 0, data_at if data else 0, len(data))
        packed += name + bytes(data_at - name_end) + data
        packed += bytes(step - length if step else 0)
    return bytes(packed)
