"""Security descriptors over SMB: clients read and replace them part by part (MS-SMB2 §3.3.5.20.3, §3.3.5.21.3).

The store keeps them as text, for REST; here they are converted. An account's key may do everything, whatever they say.
"""

from functools import lru_cache

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.files import security_descriptors
from kyanite.model.files.opens import changes
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.security_descriptors import PermissionRequest
from kyanite.model.files.tree import Found
from kyanite.rules.access_masks import ACCESS_SYSTEM_SECURITY, READ_CONTROL, WRITE_DAC, WRITE_OWNER
from kyanite.services.smb.handler_checks import check_access, check_changeable
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.wire import security_descriptor
from kyanite.wire.security_descriptor import InvalidDescriptorError
from kyanite.wire.smb2 import error
from kyanite.wire.smb2.body import encode_output
from kyanite.wire.smb2.info import security
from kyanite.wire.smb2.info.messages import QueryInfoRequest, SetInfoRequest
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

MAX_BYTES = 64 * 1024
_READ_CONTROL_PARTS = security.OWNER | security.GROUP | security.DACL
"""A client that asks for none of them gets an empty descriptor, whatever it was granted."""
_PARTS = _READ_CONTROL_PARTS | security.SACL


async def query(request: Request, query: QueryInfoRequest) -> Answer:
    opened, parts = request.open, query.additional_information
    if parts & _READ_CONTROL_PARTS:
        check_access(opened, READ_CONTROL)
    if parts & security.SACL:
        check_access(opened, ACCESS_SYSTEM_SECURITY)

    def body(snap: Snapshot) -> str:
        return _text(snap, opened.describe(snap).found)

    data = security.select(_encoded(await opened.tree.account.store.engine.read(body)), parts & _PARTS)
    if len(data) > query.output_bytes:
        is_newest = request.client.dialect >= Dialect.SMB_3_1_1
        raise Failed(Status.BUFFER_TOO_SMALL, error.encode_buffer_too_small(len(data), in_context=is_newest))
    return Answer(encode_output(data))


async def change(request: Request, change: SetInfoRequest) -> None:
    opened, parts = request.open, change.additional_information & _PARTS
    if parts & (security.OWNER | security.GROUP):
        check_access(opened, WRITE_OWNER)
    if parts & security.DACL:
        check_access(opened, WRITE_DAC)
    if parts & security.SACL:
        check_access(opened, ACCESS_SYSTEM_SECURITY)
    check_changeable(opened)
    if len(change.data) > MAX_BYTES:
        raise Failed(Status.INVALID_PARAMETER)
    data = security.as_stored(change.data)

    def body(tx: Transaction) -> None:
        found = opened.find(tx)
        text = _replaced(_text(tx, found), data, parts)
        properties = SmbProperties(permission=PermissionRequest(text))
        kept = opened.kept_times
        changes.set_properties(tx, found, opened.actor, properties, kept)

    await opened.tree.account.store.engine.run(body)


def _text(snap: Snapshot, found: Found) -> str:
    return security_descriptors.load(snap, found.location.tree.id, found.entry.permission)


@lru_cache(maxsize=256)
def _encoded(text: str) -> bytes:
    """Pure, so it can be cached: a share has few descriptors."""
    try:
        return security_descriptor.encode(text)
    except InvalidDescriptorError:
        raise Failed(Status.NOT_SUPPORTED) from None


def _replaced(text: str, changed: bytes, parts: int) -> str:
    try:
        return security_descriptor.decode(security.replace(_encoded(text), changed, parts))
    except InvalidDescriptorError:
        raise Failed(Status.INVALID_SECURITY_DESCR) from None
