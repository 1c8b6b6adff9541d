"""SPNEGO with one mechanism, NTLMSSP (RFC 4178, MS-SPNG §2.2.1), and NTLMSSP without SPNEGO around it.

A client sends NegTokenInit first and NegTokenResp from then on. The server sends NegTokenInit2 in its NEGOTIATE
response and NegTokenResp as its answers. All of it is DER with definite lengths.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.malformed import Malformed

NTLMSSP_SIGNATURE = b"NTLMSSP\0"

NTLMSSP = bytes.fromhex("2b06010401823702020a")
"""The object identifier 1.3.6.1.4.1.311.2.2.10, without its tag and length."""
_SPNEGO = bytes.fromhex("2b0601050502")

_APPLICATION = 0x60
_OBJECT_IDENTIFIER = 0x06
_ENUMERATED = 0x0A
_OCTETS = 0x04
_TEXT = 0x1B
_SEQUENCE = 0x30
_FIELD = 0xA0
"""Field 0 of a sequence; the next ones follow."""
_INIT = 0xA0
_RESP = 0xA1
_HINT = b"not_defined_in_RFC4178@please_ignore"
_MOST_MECHANISMS = 32


class NegState(IntEnum):
    ACCEPT_COMPLETED = 0
    ACCEPT_INCOMPLETE = 1
    REJECT = 2
    REQUEST_MIC = 3


class RawToken(NamedTuple):
    """An NTLMSSP message that is not wrapped, and so is the answer to it."""

    token: bytes


class NegTokenInit(NamedTuple):
    mechanisms: tuple[bytes, ...]
    """Object identifiers in the client's order of preference."""
    mechanism_list: bytes
    """The list as it was sent, which is what a mechListMIC signs."""
    token: bytes | None
    """A first message of the first mechanism."""
    mic: bytes | None

    @property
    def prefers_ntlmssp(self) -> bool:
        """Whether the token, if there is one, is NTLMSSP's."""
        return self.mechanisms[0] == NTLMSSP


class NegTokenResp(NamedTuple):
    state: int | None
    mechanism: bytes | None
    token: bytes | None
    mic: bytes | None


def decode(data: bytes | memoryview) -> RawToken | NegTokenInit | NegTokenResp:
    """A client's token."""
    data = bytes(data)
    if data.startswith(NTLMSSP_SIGNATURE):
        return RawToken(data)
    tag, content = _only(data)
    if tag == _RESP:
        return _decode_resp(content)
    if tag != _APPLICATION:
        raise _invalid()
    elements = list(_elements(content))
    if len(elements) != 2 or elements[0] != (_OBJECT_IDENTIFIER, _SPNEGO) or elements[1][0] != _INIT:
        raise _invalid()
    return _decode_init(elements[1][1])


def _decode_init(content: bytes) -> NegTokenInit:
    """RFC 4178 §4.2.1: mechanisms, flags, token, MIC. Field 3 of a server's NegTokenInit2 would be a hint."""
    fields = _fields(content)
    mechanism_list = fields.get(0, b"")
    listed = list(_elements(_expect(_SEQUENCE, mechanism_list)))
    if not 0 < len(listed) <= _MOST_MECHANISMS or any(tag != _OBJECT_IDENTIFIER for tag, _ in listed):
        raise _invalid()
    return NegTokenInit(
        tuple(identifier for _, identifier in listed),
        mechanism_list,
        _optional(_OCTETS, fields.get(2)),
        _optional(_OCTETS, fields.get(3)),
    )


def _decode_resp(content: bytes) -> NegTokenResp:
    """RFC 4178 §4.2.2."""
    fields = _fields(content)
    state = _optional(_ENUMERATED, fields.get(0))
    if state is not None and len(state) != 1:
        raise _invalid()
    return NegTokenResp(
        None if state is None else state[0],
        _optional(_OBJECT_IDENTIFIER, fields.get(1)),
        _optional(_OCTETS, fields.get(2)),
        _optional(_OCTETS, fields.get(3)),
    )


def encode_init() -> bytes:
    """The server's NegTokenInit2 (MS-SPNG §2.2.1), which names NTLMSSP; the hint is what all servers send."""
    mechanisms = _field(0, _element(_SEQUENCE, _element(_OBJECT_IDENTIFIER, NTLMSSP)))
    hint = _field(3, _element(_SEQUENCE, _field(0, _element(_TEXT, _HINT))))
    init = _element(_INIT, _element(_SEQUENCE, mechanisms + hint))
    return _element(_APPLICATION, _element(_OBJECT_IDENTIFIER, _SPNEGO) + init)


def encode_resp(
    state: NegState, *, names_ntlmssp: bool = False, token: bytes | None = None, mic: bytes | None = None
) -> bytes:
    """The server's NegTokenResp. The first one names the mechanism."""
    fields = _field(0, _element(_ENUMERATED, bytes([state])))
    if names_ntlmssp:
        fields += _field(1, _element(_OBJECT_IDENTIFIER, NTLMSSP))
    if token is not None:
        fields += _field(2, _element(_OCTETS, token))
    if mic is not None:
        fields += _field(3, _element(_OCTETS, mic))
    return _element(_RESP, _element(_SEQUENCE, fields))


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element."""
    at = 0
    while at < len(data):
        tag, start, end = _span(data, at)
        yield tag, data[start:end]
        at = end


def _span(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the element at a place, and where its content begins and ends."""
    if at + 2 > len(data):
        raise _invalid()
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length & 0x80:
        size = length & 0x7F
        # 0x80 is the indefinite form. Three bytes hold any length that an SMB message can have.
        if not 0 < size <= 3 or start + size > len(data):
            raise _invalid()
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > len(data):
        raise _invalid()
    return tag, start, start + length


def _only(data: bytes) -> tuple[int, bytes]:
    """The element that the data is, with nothing behind it."""
    tag, start, end = _span(data, 0)
    if end != len(data):
        raise _invalid()
    return tag, data[start:end]


def _expect(tag: int, data: bytes) -> bytes:
    found, content = _only(data)
    if found != tag:
        raise _invalid()
    return content


def _optional(tag: int, data: bytes | None) -> bytes | None:
    return None if data is None else _expect(tag, data)


def _fields(content: bytes) -> dict[int, bytes]:
    """The fields of a sequence by their number: ascending, each at most once."""
    found: dict[int, bytes] = {}
    last = -1
    for tag, value in _elements(_expect(_SEQUENCE, content)):
        number = tag - _FIELD
        if not last < number <= 4:
            raise _invalid()
        found[number] = value
        last = number
    return found


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    packed = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(packed)]) + packed + content


def _field(number: int, content: bytes) -> bytes:
    return _element(_FIELD + number, content)


def _invalid() -> Malformed:
    return Malformed("LOGON_FAILURE")
