"""The contexts of a 3.1.1 negotiation (MS-SMB2 §2.2.3.1, §2.2.4.1).

Each is {type, length of the data, 0, data} and begins 8-aligned; nothing follows the last one. Types that are not
listed in ``_READERS`` are skipped.
"""

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from kyanite.wire.smb2.body import invalid, padding, text

SHA_512 = 1


class ContextType(IntEnum):
    PREAUTH_INTEGRITY = 1
    ENCRYPTION = 2
    COMPRESSION = 3
    NETNAME = 5
    TRANSPORT = 6
    RDMA_TRANSFORM = 7
    SIGNING = 8


class RequestContexts(NamedTuple):
    """What the client offers, in its order of preference; None where it sent no such context."""

    hashes: tuple[int, ...] | None = None
    salt: bytes = b""
    ciphers: tuple[int, ...] | None = None
    signing_algorithms: tuple[int, ...] | None = None
    compression_algorithms: tuple[int, ...] | None = None
    netname: str | None = None


class ResponseContexts(NamedTuple):
    """What the server has chosen; None for a context that is not sent."""

    salt: bytes
    cipher: int | None = None
    """0 when the client sent the context and no cipher is common."""
    signing_algorithm: int | None = None


_HEAD = struct.Struct("<HHI")
_COUNT = struct.Struct("<H")
_PREAUTH = struct.Struct("<HH")
_COMPRESSION = struct.Struct("<HHI")
_ONE_ID = struct.Struct("<HH")
_MOST = 64
"""How many contexts a request may have. Clients send up to seven."""


def decode(area: memoryview, count: int) -> RequestContexts:
    """The contexts in an area that begins with the first one."""
    if count > _MOST:
        raise invalid()
    fields: dict[str, Any] = {}
    at = 0
    for number in range(count):
        if number:
            at += padding(at)
        if at + _HEAD.size > len(area):
            raise invalid()
        kind, length, _ = _HEAD.unpack_from(area, at)
        at += _HEAD.size
        if at + length > len(area):
            raise invalid()
        if kind in _READERS:
            found = _READERS[kind](area[at : at + length])
            if kind != ContextType.NETNAME and not fields.keys().isdisjoint(found):
                raise invalid()
            fields |= found
        at += length
    return RequestContexts(**fields)


def _read_preauth(data: memoryview) -> dict[str, Any]:
    if len(data) < _PREAUTH.size:
        raise invalid()
    count, salt_length = _PREAUTH.unpack_from(data)
    salt_at = _PREAUTH.size + 2 * count
    if salt_at + salt_length > len(data):
        raise invalid()
    return {"hashes": _ids(data, _PREAUTH.size, count), "salt": bytes(data[salt_at : salt_at + salt_length])}


def _read_ciphers(data: memoryview) -> dict[str, Any]:
    return {"ciphers": _counted(data)}


def _read_signing(data: memoryview) -> dict[str, Any]:
    return {"signing_algorithms": _counted(data)}


def _read_compression(data: memoryview) -> dict[str, Any]:
    if len(data) < _COMPRESSION.size:
        raise invalid()
    count, _, _ = _COMPRESSION.unpack_from(data)
    return {"compression_algorithms": _ids(data, _COMPRESSION.size, count)}


def _read_netname(data: memoryview) -> dict[str, Any]:
    return {"netname": text(data)}


def _counted(data: memoryview) -> tuple[int, ...]:
    """A count and so many ids: at least one."""
    if len(data) < _COUNT.size:
        raise invalid()
    (count,) = _COUNT.unpack_from(data)
    if not count:
        raise invalid()
    return _ids(data, _COUNT.size, count)


def _ids(data: memoryview, at: int, count: int) -> tuple[int, ...]:
    if at + 2 * count > len(data):
        raise invalid()
    return struct.unpack_from(f"<{count}H", data, at)


_READERS: dict[int, Callable[[memoryview], dict[str, Any]]] = {
    ContextType.PREAUTH_INTEGRITY: _read_preauth,
    ContextType.ENCRYPTION: _read_ciphers,
    ContextType.COMPRESSION: _read_compression,
    ContextType.NETNAME: _read_netname,
    ContextType.SIGNING: _read_signing,
}


def encode(contexts: ResponseContexts) -> tuple[int, bytes]:
    """How many contexts there are, and their bytes."""
    salt = contexts.salt
    data = [
        (ContextType.PREAUTH_INTEGRITY, struct.pack(f"<HHH{len(salt)}s", 1, len(salt), SHA_512, salt)),
    ]
    if contexts.cipher is not None:
        data.append((ContextType.ENCRYPTION, _ONE_ID.pack(1, contexts.cipher)))
    if contexts.signing_algorithm is not None:
        data.append((ContextType.SIGNING, _ONE_ID.pack(1, contexts.signing_algorithm)))
    packed = bytearray()
    for kind, value in data:
        packed += bytes(padding(len(packed)))
        packed += _HEAD.pack(kind, len(value), 0) + value
    return len(data), bytes(packed)
