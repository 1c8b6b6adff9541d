"""Parts of a security descriptor, as QUERY_INFO returns and SET_INFO replaces them (MS-SMB2 §2.2.37, MS-DTYP §2.4.6).

A descriptor with all of its parts is read and written by ``kyanite.wire.security_descriptor``. Here the parts move as
they are, between descriptors in the self-relative form.
"""

import struct
from typing import NamedTuple

from kyanite.wire.smb2.body import Data, invalid

OWNER = 0x1
GROUP = 0x2
DACL = 0x4
SACL = 0x8

_HEADER = struct.Struct("<BBHIIII")
_ACL = struct.Struct("<BBHHH")
_SELF_RELATIVE = 0x8000
_DACL_PRESENT = 0x0004
_SACL_PRESENT = 0x0010
_DACL_CONTROL = 0x0004 | 0x0008 | 0x0100 | 0x0400 | 0x1000
"""Present, defaulted, inheritance required, inherited, protected."""
_SACL_CONTROL = 0x0010 | 0x0020 | 0x0200 | 0x0800 | 0x2000
_INHERITANCE = ((0x0100, 0x0400), (0x0200, 0x0800))
"""Inheritance required and inherited, of the discretionary and of the system list."""
_OWNER_DEFAULTED = 0x0001
_GROUP_DEFAULTED = 0x0002
_SID_BYTES = 8


class _Parts(NamedTuple):
    control: int
    owner: bytes
    group: bytes
    sacl: bytes
    dacl: bytes


_CONTROL = {
    OWNER: _OWNER_DEFAULTED,
    GROUP: _GROUP_DEFAULTED,
    DACL: _DACL_CONTROL,
    SACL: _SACL_CONTROL,
}


def select(descriptor: Data, parts: int) -> bytes:
    """A descriptor of some parts of another one."""
    return replace(_encode(_Parts(_SELF_RELATIVE, b"", b"", b"", b"")), descriptor, parts)


def replace(descriptor: Data, changed: Data, parts: int) -> bytes:
    """The first descriptor with some of its parts taken from the second one."""
    old, new = _decode(descriptor), _decode(changed)
    mask = sum(control for part, control in _CONTROL.items() if parts & part)
    return _encode(
        _Parts(
            _SELF_RELATIVE | (old.control & ~mask) | (new.control & mask),
            (new if parts & OWNER else old).owner,
            (new if parts & GROUP else old).group,
            (new if parts & SACL else old).sacl,
            (new if parts & DACL else old).dacl,
        )
    )


def parts_of(descriptor: Data) -> int:
    """The parts that a descriptor has."""
    found = _decode(descriptor)
    present = (OWNER if found.owner else 0) | (GROUP if found.group else 0)
    for part, control in ((DACL, _DACL_PRESENT), (SACL, _SACL_PRESENT)):
        present |= part if found.control & control else 0
    return present


def as_stored(descriptor: Data) -> bytes:
    """A descriptor that a client sets, as Windows stores it: it counts as inherited only if the client requests that,
    and the request itself is not kept (MS-DTYP §2.4.6, the bits DC, DI, SC and SI)."""
    parts = _decode(descriptor)
    control = parts.control
    for requested, inherited in _INHERITANCE:
        if not control & requested:
            control &= ~inherited
        control &= ~requested
    return _encode(parts._replace(control=control))


def _decode(data: Data) -> _Parts:
    if len(data) < _HEADER.size:
        raise invalid()
    revision, _, control, owner_at, group_at, sacl_at, dacl_at = _HEADER.unpack_from(data)
    if revision != 1 or not control & _SELF_RELATIVE:
        raise invalid()
    return _Parts(
        control, _sid(data, owner_at), _sid(data, group_at), _acl(data, sacl_at), _acl(data, dacl_at)
    )


def _sid(data: Data, at: int) -> bytes:
    if not at:
        return b""
    if at < _HEADER.size or at + _SID_BYTES > len(data):
        raise invalid()
    return _slice(data, at, _SID_BYTES + 4 * data[at + 1])


def _acl(data: Data, at: int) -> bytes:
    if not at:
        return b""
    if at < _HEADER.size or at + _ACL.size > len(data):
        raise invalid()
    length = _ACL.unpack_from(data, at)[2]
    if length < _ACL.size:
        raise invalid()
    return _slice(data, at, length)


def _slice(data: Data, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise invalid()
    return bytes(data[at : at + length])


def _encode(parts: _Parts) -> bytes:
    """In the order of Windows and the service: system list, discretionary list, owner, group."""
    at = _HEADER.size
    offsets = {}
    body = b""
    for name, part in (
        ("sacl", parts.sacl),
        ("dacl", parts.dacl),
        ("owner", parts.owner),
        ("group", parts.group),
    ):
        offsets[name] = at + len(body) if part else 0
        body += part
    header = _HEADER.pack(
        1, 0, parts.control, offsets["owner"], offsets["group"], offsets["sacl"], offsets["dacl"]
    )
    return header + body
