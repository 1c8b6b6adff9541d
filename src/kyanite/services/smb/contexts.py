"""The contexts of CREATE: what they ask of the open, and how they are answered (MS-SMB2 §3.3.5.9).

AAPL, the POSIX extensions and other contexts of unknown names are ignored, as a server without them does.
"""

from collections.abc import Callable
from functools import partial

from kyanite.model.files.opens.opening import Opened
from kyanite.rules import access_masks
from kyanite.rules.file_attributes import is_read_only
from kyanite.services.smb import caching
from kyanite.services.smb.request import Failed
from kyanite.services.smb.state import Open
from kyanite.wire import security_descriptor
from kyanite.wire.security_descriptor import InvalidDescriptorError
from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.create import OplockLevel
from kyanite.wire.smb2.create_contexts import CreateContexts, ResponseContext
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


def response(new: Open, opened: Opened, level: OplockLevel, wanted: CreateContexts) -> list[ResponseContext]:
    found: list[ResponseContext] = []
    entry = opened.entry
    if wanted.lease is not None and level is OplockLevel.LEASE:
        found.append(create_contexts.lease(caching.granted_lease(wanted.lease, opened.caching)))
    if wanted.wants_maximal_access:
        is_protected = not entry.is_directory and is_read_only(entry.attributes)
        maximum = access_masks.maximum(is_read_only=is_protected)
        found.append(create_contexts.maximal_access(Status.SUCCESS, maximum))
    if wanted.wants_disk_id:
        share_id = new.tree.share_id
        found.append(create_contexts.disk_id(entry.id or share_id, share_id))
    return found
