"""Security descriptors: the self-relative binary form (MS-DTYP §2.4.6) and back to SDDL text (§2.5.1).

Descriptors are stored as text; this is for clients that send or read the bytes. The parts follow the header in the
order in which Windows and Azure write them: system list, discretionary list, owner, group. Entries other than plain
allow, deny and audit are refused.
"""

import re
import struct
from collections.abc import Iterable

_HEADER = struct.Struct("<BBHIIII")
_ACL = struct.Struct("<BBHHH")
_ACE = struct.Struct("<BBHI")
_REVISION, _ACL_REVISION = 1, 2
_SELF_RELATIVE = 0x8000
_PRESENT = {"D": 0x0004, "S": 0x0010}
_CONTROLS = {
    "D": {"P": 0x1000, "AR": 0x0100, "AI": 0x0400},
    "S": {"P": 0x2000, "AR": 0x0200, "AI": 0x0800},
}
"""The flags before the entries of the discretionary and of the system list, in the order of the text."""
_NO_LIST = "NO_ACCESS_CONTROL"
"""A list that is declared present but missing: it allows and audits nothing in particular."""
_TYPES = {"A": 0, "D": 1, "AU": 2}
_FLAGS = {"OI": 0x01, "CI": 0x02, "NP": 0x04, "IO": 0x08, "ID": 0x10, "SA": 0x40, "FA": 0x80}
_RIGHTS = {
    "GA": 0x10000000,
    "GX": 0x20000000,
    "GW": 0x40000000,
    "GR": 0x80000000,
    "FA": 0x001F01FF,
    "FR": 0x00120089,
    "FW": 0x00120116,
    "FX": 0x001200A0,
    "RC": 0x00020000,
    "SD": 0x00010000,
    "WD": 0x00040000,
    "WO": 0x00080000,
    "CC": 0x0001,
    "DC": 0x0002,
    "LC": 0x0004,
    "SW": 0x0008,
    "RP": 0x0010,
    "WP": 0x0020,
    "DT": 0x0040,
    "LO": 0x0080,
    "CR": 0x0100,
}
_SIDS = {
    "WD": "S-1-1-0",
    "CO": "S-1-3-0",
    "CG": "S-1-3-1",
    "OW": "S-1-3-4",
    "NU": "S-1-5-2",
    "IU": "S-1-5-4",
    "SU": "S-1-5-6",
    "AN": "S-1-5-7",
    "ED": "S-1-5-9",
    "PS": "S-1-5-10",
    "AU": "S-1-5-11",
    "RC": "S-1-5-12",
    "SY": "S-1-5-18",
    "LS": "S-1-5-19",
    "NS": "S-1-5-20",
    "BA": "S-1-5-32-544",
    "BU": "S-1-5-32-545",
    "BG": "S-1-5-32-546",
    "PU": "S-1-5-32-547",
    "AO": "S-1-5-32-548",
    "SO": "S-1-5-32-549",
    "PO": "S-1-5-32-550",
    "BO": "S-1-5-32-551",
    "RE": "S-1-5-32-552",
    "RU": "S-1-5-32-554",
    "RD": "S-1-5-32-555",
    "NO": "S-1-5-32-556",
    "MU": "S-1-5-32-558",
    "LU": "S-1-5-32-559",
    "IS": "S-1-5-32-568",
    "CY": "S-1-5-32-569",
    "ER": "S-1-5-32-573",
    "CD": "S-1-5-32-574",
    "RA": "S-1-5-32-575",
    "ES": "S-1-5-32-576",
    "MS": "S-1-5-32-577",
    "HA": "S-1-5-32-578",
    "AA": "S-1-5-32-579",
    "RM": "S-1-5-32-580",
    "WR": "S-1-5-33",
    "AC": "S-1-15-2-1",
}
"""The SIDs of every machine; the names of a domain's own groups mean nothing without the domain."""
_WHOLE_NAMES = {_RIGHTS[name]: name for name in ("GA", "GX", "GW", "GR", "FA", "FR", "FW", "FX")}
_BIT_NAMES = (
    "CC",
    "DC",
    "LC",
    "SW",
    "RP",
    "WP",
    "DT",
    "LO",
    "CR",
    "SD",
    "RC",
    "WD",
    "WO",
    "GA",
    "GX",
    "GW",
    "GR",
)
"""A mask is written as one name, or as the names of its bits in this order, or as a number if a bit has none."""
_SID_NAMES = {sid: name for name, sid in _SIDS.items()}
_LIST = rf"(?:([A-Z]*?)({_NO_LIST}|(?:\([^()]*\))*))"
_TEXT = re.compile(rf"O:([^:()]+?)G:([^:()]+?)D:{_LIST}(?:S:{_LIST})?")
_SID_FORM = re.compile(r"S-1-(\d+|0x[0-9A-Fa-f]{12})((?:-\d+)+)", re.ASCII)
_ACES = re.compile(r"\(([^()]*)\)")


class InvalidDescriptorError(ValueError):
    """Not a descriptor, or one that this form cannot express."""


def encode(text: str) -> bytes:
    """The bytes of a descriptor."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidDescriptorError(text)
    owner, group, flags, entries, system_flags, system_entries = match.groups()
    control = _SELF_RELATIVE | _control("D", flags)
    parts = [b"", _encode_acl(entries), _encode_sid(owner), _encode_sid(group)]
    if system_entries is not None:
        control |= _control("S", system_flags)
        parts[0] = _encode_acl(system_entries)
    sacl_at, dacl_at, owner_at, group_at = _offsets(parts)
    header = _HEADER.pack(_REVISION, 0, control, owner_at, group_at, sacl_at, dacl_at)
    return header + b"".join(parts)


def decode(data: bytes) -> str:
    """The text of a descriptor."""
    try:
        revision, _, control, owner_at, group_at, sacl_at, dacl_at = _HEADER.unpack_from(data)
        if revision != _REVISION or not control & _SELF_RELATIVE or not (owner_at and group_at):
            raise InvalidDescriptorError(data)
        if not control & _PRESENT["D"]:
            raise InvalidDescriptorError(data)
        text = f"O:{_decode_sid(data, owner_at)}G:{_decode_sid(data, group_at)}"
        text += _decode_list("D", data, control, dacl_at)
        return text + (_decode_list("S", data, control, sacl_at) if control & _PRESENT["S"] else "")
    except (struct.error, IndexError):
        raise InvalidDescriptorError(data) from None


def _control(kind: str, flags: str) -> int:
    return _PRESENT[kind] | _sum(_split(flags, _CONTROLS[kind]), _CONTROLS[kind])


def _offsets(parts: list[bytes]) -> list[int]:
    """Where each part begins; 0 for one that is empty."""
    offsets, at = [], _HEADER.size
    for part in parts:
        offsets.append(at if part else 0)
        at += len(part)
    return offsets


def _encode_acl(text: str) -> bytes:
    if text == _NO_LIST:
        return b""
    aces = [_encode_ace(each) for each in _ACES.findall(text)]
    size = _ACL.size + sum(map(len, aces))
    return _ACL.pack(_ACL_REVISION, 0, size, len(aces), 0) + b"".join(aces)


def _decode_list(kind: str, data: bytes, control: int, at: int) -> str:
    flags = "".join(name for name, bit in _CONTROLS[kind].items() if control & bit)
    return f"{kind}:{flags}{''.join(_decode_acl(data, at)) if at else _NO_LIST}"


def _decode_acl(data: bytes, at: int) -> Iterable[str]:
    _, _, _, count, _ = _ACL.unpack_from(data, at)
    at += _ACL.size
    names = {value: name for name, value in _TYPES.items()}
    for _ in range(count):
        kind, flags, size, mask = _ACE.unpack_from(data, at)
        if kind not in names or size < _ACE.size:
            raise InvalidDescriptorError(data)
        flag_names = "".join(name for name, bit in _FLAGS.items() if flags & bit)
        yield f"({names[kind]};{flag_names};{_mask_text(mask)};;;{_decode_sid(data, at + _ACE.size)})"
        at += size


def _mask_text(mask: int) -> str:
    if mask in _WHOLE_NAMES:
        return _WHOLE_NAMES[mask]
    names = [name for name in _BIT_NAMES if mask & _RIGHTS[name]]
    return "".join(names) if mask and _sum(names, _RIGHTS) == mask else f"0x{mask:x}"


def _encode_ace(text: str) -> bytes:
    parts = text.split(";")
    if len(parts) != 6 or parts[0] not in _TYPES or parts[3] or parts[4]:
        raise InvalidDescriptorError(text)
    sid = _encode_sid(parts[5])
    flags = _sum(_split(parts[1], _FLAGS), _FLAGS)
    return _ACE.pack(_TYPES[parts[0]], flags, _ACE.size + len(sid), _mask(parts[2])) + sid


def _mask(text: str) -> int:
    try:
        mask = int(text, 0) if text[:1].isdigit() else _sum(_split(text, _RIGHTS), _RIGHTS)
    except ValueError:
        raise InvalidDescriptorError(text) from None
    if mask > 0xFFFFFFFF:
        raise InvalidDescriptorError(text)
    return mask


def _split(text: str, known: Iterable[str]) -> list[str]:
    """Names that follow each other without separators."""
    found = re.findall("|".join(known), text)
    if "".join(found) != text:
        raise InvalidDescriptorError(text)
    return found


def _sum(names: Iterable[str], values: dict[str, int]) -> int:
    total = 0
    for name in names:
        total |= values[name]
    return total


def _encode_sid(text: str) -> bytes:
    match = _SID_FORM.fullmatch(_SIDS.get(text, text))
    if match is None:
        raise InvalidDescriptorError(text)
    authority, below = int(match[1], 0), [int(part) for part in match[2].split("-")[1:]]
    if authority >= 1 << 48 or len(below) > 15 or max(below) > 0xFFFFFFFF:
        raise InvalidDescriptorError(text)
    return struct.pack(f"<BB6s{len(below)}I", 1, len(below), authority.to_bytes(6, "big"), *below)


def _decode_sid(data: bytes, at: int) -> str:
    revision, count = data[at], data[at + 1]
    if revision != 1:
        raise InvalidDescriptorError(data)
    authority = int.from_bytes(data[at + 2 : at + 8], "big")
    below = struct.unpack_from(f"<{count}I", data, at + 8)
    text = "-".join(map(str, ("S-1", authority, *below)))
    return _SID_NAMES.get(text, text)
