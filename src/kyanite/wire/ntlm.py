"""NTLM messages (MS-NLMP §2.2). What their contents prove is computed in ``ntlm_keys``.

A message begins with the signature ``NTLMSSP`` and its type. Strings and other fields of variable length are given by
{length, capacity, offset from the beginning of the message} and may lie anywhere behind the fixed part.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed

SIGNATURE = b"NTLMSSP\0"

NEGOTIATE_UNICODE = 0x00000001
REQUEST_TARGET = 0x00000004
NEGOTIATE_SIGN = 0x00000010
NEGOTIATE_SEAL = 0x00000020
NEGOTIATE_NTLM = 0x00000200
ANONYMOUS = 0x00000800
NEGOTIATE_ALWAYS_SIGN = 0x00008000
TARGET_TYPE_SERVER = 0x00020000
NEGOTIATE_EXTENDED_SESSION_SECURITY = 0x00080000
NEGOTIATE_TARGET_INFO = 0x00800000
NEGOTIATE_VERSION = 0x02000000
NEGOTIATE_128 = 0x20000000
NEGOTIATE_KEY_EXCHANGE = 0x40000000
NEGOTIATE_56 = 0x80000000

_REQUIRED = NEGOTIATE_UNICODE | NEGOTIATE_EXTENDED_SESSION_SECURITY
_ALWAYS = TARGET_TYPE_SERVER | NEGOTIATE_TARGET_INFO | NEGOTIATE_NTLM
_IF_REQUESTED = (
    NEGOTIATE_UNICODE
    | REQUEST_TARGET
    | NEGOTIATE_SIGN
    | NEGOTIATE_SEAL
    | NEGOTIATE_ALWAYS_SIGN
    | NEGOTIATE_EXTENDED_SESSION_SECURITY
    | NEGOTIATE_VERSION
    | NEGOTIATE_128
    | NEGOTIATE_KEY_EXCHANGE
    | NEGOTIATE_56
)

_HEAD = struct.Struct("<8sI")
_NEGOTIATE = struct.Struct("<8sII")
_CHALLENGE = struct.Struct("<8sIHHII8s8xHHI8s")
_AUTHENTICATE = struct.Struct("<8sI" + "HHI" * 6 + "I")
_AV_PAIR = struct.Struct("<HH")
_VERSION = bytes.fromhex("060100000000000f")
_MIC = slice(72, 88)


class _Type(IntEnum):
    NEGOTIATE = 1
    CHALLENGE = 2
    AUTHENTICATE = 3


class AvId(IntEnum):
    """§2.2.2.1."""

    END = 0
    NB_COMPUTER_NAME = 1
    NB_DOMAIN_NAME = 2
    DNS_COMPUTER_NAME = 3
    DNS_DOMAIN_NAME = 4
    DNS_TREE_NAME = 5
    FLAGS = 6
    TIMESTAMP = 7
    SINGLE_HOST = 8
    TARGET_NAME = 9
    CHANNEL_BINDINGS = 10


AV_FLAG_MIC = 0x2
_MOST_AV_PAIRS = 64


class Negotiate(NamedTuple):
    """§2.2.1.1."""

    flags: int


class Authenticate(NamedTuple):
    """§2.2.1.3."""

    lm_response: bytes
    nt_response: bytes
    domain: str
    user: str
    workstation: str
    encrypted_session_key: bytes
    flags: int
    mic: bytes | None
    """None if the message has no room for one."""


def decode_negotiate(message: bytes) -> Negotiate:
    """The first message. Unicode and extended session security are required: what lacks them is NTLM of old."""
    if len(message) < _NEGOTIATE.size:
        raise _invalid()
    signature, kind, flags = _NEGOTIATE.unpack_from(message)
    if signature != SIGNATURE or kind != _Type.NEGOTIATE or flags & _REQUIRED != _REQUIRED:
        raise _invalid()
    return Negotiate(flags)


def challenge_flags(requested: int) -> int:
    """The flags of the challenge to a client that requests these."""
    return _ALWAYS | requested & _IF_REQUESTED


def encode_challenge(*, flags: int, server_challenge: bytes, target_name: str, target_info: bytes) -> bytes:
    """§2.2.1.2. ``server_challenge`` is eight random bytes, ``target_info`` is from ``encode_target_info``."""
    name = target_name.encode("utf-16-le")
    name_at = _CHALLENGE.size
    info_at = name_at + len(name)
    fixed = _CHALLENGE.pack(
        SIGNATURE,
        _Type.CHALLENGE,
        len(name),
        len(name),
        name_at,
        flags,
        server_challenge,
        len(target_info),
        len(target_info),
        info_at,
        _VERSION,
    )
    return fixed + name + target_info


def encode_target_info(*, computer: str, domain: str, dns_computer: str, dns_domain: str, now: int) -> bytes:
    """What the challenge says of the server. The time ``now``, a FILETIME, makes clients send a MIC."""
    return encode_av_pairs(
        [
            (AvId.NB_DOMAIN_NAME, domain.encode("utf-16-le")),
            (AvId.NB_COMPUTER_NAME, computer.encode("utf-16-le")),
            (AvId.DNS_DOMAIN_NAME, dns_domain.encode("utf-16-le")),
            (AvId.DNS_COMPUTER_NAME, dns_computer.encode("utf-16-le")),
            (AvId.TIMESTAMP, now.to_bytes(8, "little")),
        ]
    )


def decode_authenticate(message: bytes) -> Authenticate:
    if len(message) < _AUTHENTICATE.size:
        raise _invalid()
    signature, kind, *fields, flags = _AUTHENTICATE.unpack_from(message)
    if signature != SIGNATURE or kind != _Type.AUTHENTICATE or not flags & NEGOTIATE_UNICODE:
        raise _invalid()
    spans = [(fields[at], fields[at + 2]) for at in range(0, len(fields), 3)]
    lm_response, nt_response, domain, user, workstation, session_key = (
        _payload(message, length, offset) for length, offset in spans
    )
    first = min((offset for length, offset in spans if length), default=len(message))
    has_mic = first >= _MIC.stop and len(message) >= _MIC.stop
    return Authenticate(
        lm_response,
        nt_response,
        _text(domain),
        _text(user),
        _text(workstation),
        session_key,
        flags,
        message[_MIC] if has_mic else None,
    )


def without_mic(message: bytes) -> bytes:
    """The AUTHENTICATE message as its MIC covers it: with zeros in its place."""
    return message[: _MIC.start] + bytes(16) + message[_MIC.stop :]


def _payload(message: bytes, length: int, offset: int) -> bytes:
    if not length:
        return b""
    if offset < _AUTHENTICATE.size or offset + length > len(message):
        raise _invalid()
    return message[offset : offset + length]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-16-le")
    except UnicodeDecodeError:
        raise _invalid() from None


def decode_av_pairs(data: bytes) -> dict[int, bytes]:
    """§2.2.2.1. The list ends with its end mark, whatever follows; of equal ids the first counts."""
    found: dict[int, bytes] = {}
    at = 0
    for _ in range(_MOST_AV_PAIRS):
        if at + _AV_PAIR.size > len(data):
            raise _invalid()
        av_id, length = _AV_PAIR.unpack_from(data, at)
        at += _AV_PAIR.size
        if av_id == AvId.END:
            return found
        if at + length > len(data):
            raise _invalid()
        found.setdefault(av_id, data[at : at + length])
        at += length
    raise _invalid()


def encode_av_pairs(pairs: Iterable[tuple[int, bytes]]) -> bytes:
    listed = (_AV_PAIR.pack(av_id, len(value)) + value for av_id, value in pairs)
    return b"".join(listed) + _AV_PAIR.pack(AvId.END, 0)


def _invalid() -> Malformed:
    return Malformed("LOGON_FAILURE")
