"""NEGOTIATE (MS-SMB2 §2.2.3, §2.2.4). The contexts of 3.1.1 are in ``negotiate_contexts``."""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import negotiate_contexts
from kyanite.wire.smb2.body import HEADER_BYTES, invalid, padding, unpack
from kyanite.wire.smb2.negotiate_contexts import RequestContexts, ResponseContexts


class Dialect(IntEnum):
    SMB_2_0_2 = 0x0202
    SMB_2_1 = 0x0210
    SMB_3_0 = 0x0300
    SMB_3_0_2 = 0x0302
    SMB_3_1_1 = 0x0311
    ANY_SMB2 = 0x02FF
    """The answer to a multi-protocol negotiation: an SMB2 NEGOTIATE must follow."""


SIGNING_ENABLED = 0x1
SIGNING_REQUIRED = 0x2

CAPABILITY_DFS = 0x01
CAPABILITY_LEASING = 0x02
CAPABILITY_LARGE_MTU = 0x04
CAPABILITY_MULTI_CHANNEL = 0x08
CAPABILITY_PERSISTENT_HANDLES = 0x10
CAPABILITY_DIRECTORY_LEASING = 0x20
CAPABILITY_ENCRYPTION = 0x40

_REQUEST = struct.Struct("<HHHHI16sIHH")
_REQUEST_SIZE = 36
_RESPONSE = struct.Struct("<HHHH16sIIIIQQHHI")
_RESPONSE_SIZE = 65
_BUFFER_AT = HEADER_BYTES + _RESPONSE.size


class NegotiateRequest(NamedTuple):
    security_mode: int
    capabilities: int
    client_guid: bytes
    dialects: tuple[int, ...]
    contexts: RequestContexts | None
    """Those of a client that offers 3.1.1."""


class NegotiateResponse(NamedTuple):
    security_mode: int
    dialect: int
    server_guid: bytes
    capabilities: int
    max_transact_bytes: int
    max_read_bytes: int
    max_write_bytes: int
    system_time: int
    """As FILETIME."""
    security_buffer: bytes
    contexts: ResponseContexts | None = None


def decode(message: memoryview) -> NegotiateRequest:
    _, count, security_mode, _, capabilities, guid, contexts_at, contexts_count, _ = unpack(
        message, _REQUEST, _REQUEST_SIZE
    )
    dialects_at = HEADER_BYTES + _REQUEST.size
    dialects_end = dialects_at + 2 * count
    if not count or dialects_end > len(message):
        raise invalid()
    dialects = struct.unpack_from(f"<{count}H", message, dialects_at)
    contexts = None
    if Dialect.SMB_3_1_1 in dialects:
        if contexts_at != dialects_end + padding(dialects_end) or contexts_at > len(message):
            raise invalid()
        contexts = negotiate_contexts.decode(message[contexts_at:], contexts_count)
    return NegotiateRequest(security_mode, capabilities, guid, dialects, contexts)


def check_hash(contexts: RequestContexts | None) -> None:
    """A client that offers 3.1.1 must name a hash, and one that is known here (§3.3.5.4)."""
    if contexts is None or not contexts.hashes:
        raise invalid()
    if negotiate_contexts.SHA_512 not in contexts.hashes:
        raise Malformed("SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP")


def encode(response: NegotiateResponse) -> bytes:
    buffer = response.security_buffer
    count, packed = 0, b""
    if response.contexts is not None:
        count, packed = negotiate_contexts.encode(response.contexts)
    gap = padding(_BUFFER_AT + len(buffer)) if count else 0
    fixed = _RESPONSE.pack(
        _RESPONSE_SIZE,
        response.security_mode,
        response.dialect,
        count,
        response.server_guid,
        response.capabilities,
        response.max_transact_bytes,
        response.max_read_bytes,
        response.max_write_bytes,
        response.system_time,
        0,
        _BUFFER_AT,
        len(buffer),
        _BUFFER_AT + len(buffer) + gap if count else 0,
    )
    return b"".join((fixed, buffer, bytes(gap), packed))
