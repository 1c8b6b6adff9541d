"""The properties that files and directories share with SMB: attributes, times, ids and permissions, as headers."""

import base64
import re

from msgspec.structs import replace

from kyanite.model.files.entry import DIRECTORY, FILE, SYMBOLIC_LINK, Entry, Posix
from kyanite.model.files.properties import NOW, SmbProperties
from kyanite.model.files.security_descriptors import KEY_BYTES, PermissionRequest
from kyanite.rules import file_attributes, sddl
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.headers import one_of
from kyanite.values import Instant
from kyanite.wire import http_date, iso_time, security_descriptor
from kyanite.wire.malformed import bad_header

Headers = list[tuple[str, str]]

PERMISSION_FORMS = ("Sddl", "Binary")
PERMISSION_HEADER_MAX_BYTES = 8 * 1024
_TYPES = {DIRECTORY: "Directory", FILE: "Regular", SYMBOLIC_LINK: "SymLink"}
_MODE = re.compile(r"[0-7]{4}|([-r][-w][-xsS]){2}[-r][-w][-xtT]", re.ASCII)
_HALF = KEY_BYTES // 2
_INHERIT, _PRESERVE, _NOW = "inherit", "preserve", "now"


def smb_properties_of(headers: dict[str, str], *, of_directory: bool, creates: bool) -> SmbProperties:
    """The properties that a request sets. ``preserve`` is for an existing entry only, ``inherit`` for a new one."""
    return SmbProperties(
        attributes=_attributes_of(headers, of_directory=of_directory, creates=creates),
        created_at=time_of(headers, "x-ms-file-creation-time", creates=creates),
        last_write_at=time_of(headers, "x-ms-file-last-write-time", creates=creates),
        changed_at=time_of(headers, "x-ms-file-change-time", creates=creates),
        permission=permission_of(headers, creates=creates),
        posix=_posix_of(headers),
    )


def new_file_properties_of(headers: dict[str, str]) -> SmbProperties:
    """The same for a new file, which always gets the archive attribute, unless it is restored."""
    wanted = smb_properties_of(headers, of_directory=False, creates=True)
    is_restored = one_of(headers, "x-ms-file-property-semantics", ("New", "Restore")) == "Restore"
    if is_restored or wanted.attributes is None:
        return wanted
    return replace(wanted, attributes=file_attributes.archived(wanted.attributes))


def version_headers(entry: Entry) -> Headers:
    return [
        ("ETag", f'"0x{entry.modified_at:X}"'),
        ("Last-Modified", http_date.encode(entry.modified_at)),
    ]


def smb_headers(entry: Entry, parent_id: int) -> Headers:
    """An NFS share has owner, group and mode instead of attributes and permission."""
    headers = [
        ("x-ms-file-creation-time", iso_time.encode(entry.created_at)),
        ("x-ms-file-last-write-time", iso_time.encode(entry.last_write_at)),
        ("x-ms-file-change-time", iso_time.encode(entry.changed_at)),
        ("x-ms-file-id", str(entry.id)),
        ("x-ms-file-parent-id", str(parent_id)),
    ]
    if entry.posix is None:
        headers += [
            ("x-ms-file-permission-key", encode_permission_key(entry.permission)),
            ("x-ms-file-attributes", file_attributes.text_of(entry.attributes)),
        ]
    else:
        headers += [
            ("x-ms-mode", entry.posix.mode),
            ("x-ms-owner", entry.posix.owner),
            ("x-ms-group", entry.posix.group),
            ("x-ms-file-file-type", _TYPES[entry.kind]),
        ]
        if entry.kind == FILE:
            headers.append(("x-ms-link-count", str(entry.links)))
    return headers


def time_of(headers: dict[str, str], name: str, *, creates: bool) -> Instant | None:
    text = headers.get(name)
    if not text:
        return None
    if text.lower() == _NOW:
        return NOW
    if text.lower() == _PRESERVE and not creates:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise bad_header(name, text)
    return instant


def _attributes_of(headers: dict[str, str], *, of_directory: bool, creates: bool) -> int | None:
    text = headers.get("x-ms-file-attributes")
    if not text or (text.lower() == _PRESERVE and not creates):
        return None
    attributes = file_attributes.read(text, of_directory=of_directory)
    if attributes is None:
        raise bad_header("x-ms-file-attributes", text)
    return int(attributes)


def permission_of(headers: dict[str, str], *, creates: bool) -> PermissionRequest | None:
    text, key = headers.get("x-ms-file-permission"), headers.get("x-ms-file-permission-key")
    if text and key:
        raise bad_header("x-ms-file-permission-key", key)
    if key:
        return PermissionRequest(key=decode_permission_key(key))
    if not text or text.lower() == (_INHERIT if creates else _PRESERVE):
        return None
    if len(text) > PERMISSION_HEADER_MAX_BYTES:
        raise bad_header("x-ms-file-permission", f"{text[:64]}…")
    return PermissionRequest(
        checked_descriptor(text, one_of(headers, "x-ms-file-permission-format", PERMISSION_FORMS))
    )


def checked_descriptor(text: str, form: str) -> str:
    """A descriptor as it is stored: as text, whichever form the request has it in."""
    if form == "Binary":
        try:
            text = security_descriptor.decode(base64.b64decode(text, validate=True))
        except ValueError:
            raise Refused(Reason.INVALID_PERMISSION) from None
    if not sddl.is_complete(text):
        raise Refused(Reason.INVALID_PERMISSION)
    return text


def encode_permission_key(key: bytes) -> str:
    return f"{int.from_bytes(key[:_HALF], 'big')}*{int.from_bytes(key[_HALF:], 'big')}"


def decode_permission_key(text: str) -> bytes:
    try:
        high, low = text.split("*")
        return int(high).to_bytes(_HALF, "big") + int(low).to_bytes(_HALF, "big")
    except (ValueError, OverflowError):
        raise bad_header("x-ms-file-permission-key", text) from None


def _posix_of(headers: dict[str, str]) -> Posix | None:
    mode, owner, group = (headers.get(f"x-ms-{name}", "") for name in ("mode", "owner", "group"))
    if mode and not _MODE.fullmatch(mode):
        raise bad_header("x-ms-mode", mode)
    return Posix(mode, owner, group) if mode or owner or group else None
