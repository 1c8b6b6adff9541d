"""The contexts of CREATE: what they ask of the open, and how they are answered (MS-SMB2 §3.3.5.9).

AAPL, the POSIX extensions and other contexts of unknown names are ignored, as a server without them does.
"""

from collections.abc import Callable
from functools import partial

from kyanite.model.files.entry import Entry
from kyanite.model.files.opens.caching import Granted
from kyanite.rules import access_masks
from kyanite.rules.file_attributes import is_read_only
from kyanite.rules.file_names import SmbPath
from kyanite.services.smb import caching
from kyanite.services.smb.request import Failed
from kyanite.services.smb.state import Open
from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import security_descriptor
from kyanite.wire.security_descriptor import InvalidDescriptorError
from kyanite.wire.smb2 import create_contexts, filetime
from kyanite.wire.smb2.create import OplockLevel
from kyanite.wire.smb2.create_contexts import CreateContexts, ResponseContext
from kyanite.wire.smb2.fsctl import decode_snapshot_token
from kyanite.wire.smb2.info import security
from kyanite.wire.smb2.status import Status


def descriptor(wanted: CreateContexts) -> Callable[[str], str] | None:
    """What makes the security descriptor of a new entry from the one that it would inherit; None to inherit it."""
    if wanted.security_descriptor is None:
        return None
    given = bytes(wanted.security_descriptor)
    return partial(_described, given=given, parts=security.parts_of(given) & ~security.SACL)


def _described(inherited: str, given: bytes, parts: int) -> str:
    try:
        replaced = security.replace(security_descriptor.encode(inherited), given, parts)
        return security_descriptor.decode(replaced)
    except InvalidDescriptorError:
        raise Failed(Status.INVALID_PARAMETER) from None


def snapshot_of(path: SmbPath, wanted: CreateContexts) -> tuple[tuple[str, ...], Instant | None]:
    """The names of a path, and the second of the snapshot that the request names: by a context, or by a token among
    the names."""
    if wanted.timewarp is not None:
        at = filetime.decode(wanted.timewarp)
        return path.names, Instant(at - at % TICKS_PER_SECOND)
    for index, name in enumerate(path.names):
        if (second := decode_snapshot_token(name)) is not None:
            return path.names[:index] + path.names[index + 1 :], second
    return path.names, None


def _maximum(new: Open, entry: Entry) -> int:
    if new.snapshot is not None:
        return access_masks.READS
    return access_masks.maximum(is_read_only=not entry.is_directory and is_read_only(entry.attributes))


def response(
    new: Open, entry: Entry, level: OplockLevel, granted: Granted, wanted: CreateContexts
) -> list[ResponseContext]:
    found: list[ResponseContext] = []
    if wanted.lease is not None and level is OplockLevel.LEASE:
        found.append(create_contexts.lease(caching.granted_lease(wanted.lease, granted)))
    if wanted.wants_maximal_access:
        found.append(create_contexts.maximal_access(Status.SUCCESS, _maximum(new, entry)))
    if wanted.wants_disk_id:
        share_id = new.tree.share_id
        found.append(create_contexts.disk_id(entry.id or share_id, share_id))
    return found
