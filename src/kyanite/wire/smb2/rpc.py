"""Remote procedure calls on a named pipe: the packets of DCE/RPC (C706 §12, MS-RPCE §2.2.2) that a server needs.

A packet is {version 5.0, type, flags, little-endian, length, 0, call id} and a body. Calls of one fragment are read,
since those of the services here are short; answers are cut into fragments.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.body import Data

FRAGMENT_BYTES = 4280
"""The longest fragment, as all implementations have it."""

FAULT_UNKNOWN_OPERATION = 0x1C010002
FAULT_BAD_STUB_DATA = 0x000006F7

NDR = bytes.fromhex("045d888aeb1cc9119fe808002b10486002000000")
"""The transfer syntax that is spoken: its id and its version."""

_HEADER = struct.Struct("<BBBB4sHHI")
_LITTLE_ENDIAN = b"\x10\0\0\0"
_FIRST, _LAST, _HAS_OBJECT = 0x01, 0x02, 0x80
_WHOLE = _FIRST | _LAST
_BIND = struct.Struct("<HHIB3x")
_BIND_ACK = struct.Struct("<HHI")
_CONTEXT = struct.Struct("<HBx20s")
_RESULT = struct.Struct("<HH20s")
_REQUEST = struct.Struct("<IHH")
_RESPONSE = struct.Struct("<IHBx")
_FAULT = struct.Struct("<IHBxI4x")
_SYNTAX_BYTES = 20
_OBJECT_BYTES = 16
_REFUSED, _ABSTRACT_UNKNOWN, _TRANSFER_UNKNOWN = 2, 1, 2


class PacketType(IntEnum):
    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESPONSE = 15


class Context(NamedTuple):
    """An interface that the client wants to call, and the encodings that it offers: ids and versions."""

    context_id: int
    interface: bytes
    transfer_syntaxes: tuple[bytes, ...]


class Bind(NamedTuple):
    call_id: int
    is_alteration: bool
    max_fragment_bytes: int
    contexts: tuple[Context, ...]


class Call(NamedTuple):
    call_id: int
    context_id: int
    operation: int
    stub: memoryview
    """The parameters."""


def decode(data: memoryview) -> Bind | Call:
    """A packet that a client has written to the pipe."""
    if len(data) < _HEADER.size:
        raise _invalid()
    version, minor, kind, flags, representation, length, authentication, call_id = _HEADER.unpack_from(data)
    if (version, minor) != (5, 0) or representation != _LITTLE_ENDIAN or flags & _WHOLE != _WHOLE:
        raise _invalid()
    if length != len(data) or authentication:
        raise _invalid()
    body = data[_HEADER.size :]
    if kind in (PacketType.BIND, PacketType.ALTER_CONTEXT):
        return _decode_bind(body, call_id, kind == PacketType.ALTER_CONTEXT)
    if kind != PacketType.REQUEST or len(body) < _REQUEST.size:
        raise _invalid()
    _, context_id, operation = _REQUEST.unpack_from(body)
    stub_at = _REQUEST.size + (_OBJECT_BYTES if flags & _HAS_OBJECT else 0)
    return Call(call_id, context_id, operation, body[stub_at:])


def _decode_bind(body: memoryview, call_id: int, is_alteration: bool) -> Bind:
    if len(body) < _BIND.size:
        raise _invalid()
    _, max_fragment_bytes, _, count = _BIND.unpack_from(body)
    at = _BIND.size
    contexts = []
    for _ in range(count):
        if at + _CONTEXT.size > len(body):
            raise _invalid()
        context_id, syntaxes, interface = _CONTEXT.unpack_from(body, at)
        at += _CONTEXT.size
        end = at + syntaxes * _SYNTAX_BYTES
        if end > len(body):
            raise _invalid()
        offered = tuple(bytes(body[start : start + _SYNTAX_BYTES]) for start in range(at, end, _SYNTAX_BYTES))
        contexts.append(Context(context_id, interface, offered))
        at = end
    return Bind(call_id, is_alteration, max_fragment_bytes, tuple(contexts))


def encode_bind_ack(bind: Bind, *, interface: bytes, pipe: str, group_id: int) -> bytes:
    """One result for each context: accepted if it is this interface in NDR, else refused."""
    address = f"\\pipe\\{pipe}\0".encode("ascii")
    body = _BIND_ACK.pack(FRAGMENT_BYTES, FRAGMENT_BYTES, group_id)
    body += len(address).to_bytes(2, "little") + address
    body += bytes(-(_HEADER.size + len(body)) % 4)
    body += len(bind.contexts).to_bytes(4, "little")
    for context in bind.contexts:
        if context.interface != interface:
            body += _RESULT.pack(_REFUSED, _ABSTRACT_UNKNOWN, bytes(_SYNTAX_BYTES))
        elif NDR not in context.transfer_syntaxes:
            body += _RESULT.pack(_REFUSED, _TRANSFER_UNKNOWN, bytes(_SYNTAX_BYTES))
        else:
            body += _RESULT.pack(0, 0, NDR)
    kind = PacketType.ALTER_CONTEXT_RESPONSE if bind.is_alteration else PacketType.BIND_ACK
    return _packet(kind, _WHOLE, bind.call_id, body)


def encode_response(call: Call, stub: bytes, max_fragment_bytes: int = FRAGMENT_BYTES) -> list[bytes]:
    """The fragments of an answer."""
    head = _HEADER.size + _RESPONSE.size
    step = max(min(max_fragment_bytes, FRAGMENT_BYTES) - head, 8) & ~7
    fragments = []
    for at in range(0, len(stub) or 1, step):
        flags = (0 if at else _FIRST) | (_LAST if at + step >= len(stub) else 0)
        body = _RESPONSE.pack(len(stub) - at, call.context_id, 0) + stub[at : at + step]
        fragments.append(_packet(PacketType.RESPONSE, flags, call.call_id, body))
    return fragments


def encode_fault(call: Call, status: int) -> bytes:
    return _packet(PacketType.FAULT, _WHOLE, call.call_id, _FAULT.pack(0, call.context_id, 0, status))


def _packet(kind: PacketType, flags: int, call_id: int, body: Data) -> bytes:
    head = _HEADER.pack(5, 0, kind, flags, _LITTLE_ENDIAN, _HEADER.size + len(body), 0, call_id)
    return head + bytes(body)


def _invalid() -> Malformed:
    return Malformed("INVALID_PARAMETER")
