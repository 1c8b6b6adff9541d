"""SET_INFO: changing attributes, times, size, name and security descriptor of what is open (MS-SMB2 §3.3.5.21)."""

from collections.abc import Awaitable, Callable

from kyanite.engine.api import Transaction
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens import changes
from kyanite.model.files.properties import SmbProperties
from kyanite.rules import file_attributes
from kyanite.rules.access_masks import WRITE_ATTRIBUTES, WRITE_DATA, WRITE_EA
from kyanite.services.smb import rename
from kyanite.services.smb.handler_checks import check_access, check_changeable, check_size
from kyanite.services.smb.info import descriptors
from kyanite.services.smb.info.entry import MODE_OPTIONS, allocation_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.values import Instant
from kyanite.wire.smb2 import filetime
from kyanite.wire.smb2.create import DELETE_ON_CLOSE, SYNCHRONOUS_IO_ALERT, SYNCHRONOUS_IO_NONALERT
from kyanite.wire.smb2.info import changes as codec
from kyanite.wire.smb2.info import messages
from kyanite.wire.smb2.info.changes import RESUME_UPDATING_TIME, BasicChange
from kyanite.wire.smb2.info.file import FileClass
from kyanite.wire.smb2.info.file_system import FileSystemClass
from kyanite.wire.smb2.info.messages import InfoType
from kyanite.wire.smb2.status import Status

_SETTABLE_MODE = MODE_OPTIONS & ~DELETE_ON_CLOSE
_BOTH_WAYS = SYNCHRONOUS_IO_ALERT | SYNCHRONOUS_IO_NONALERT


async def set_info(request: Request) -> Answer:
    wanted = messages.decode_set(request.message)
    check_size(request, len(wanted.data))
    if wanted.info_type == InfoType.FILE:
        setter = _SETTERS.get(wanted.information_class)
        if setter is None:
            raise Failed(_REFUSED.get(wanted.information_class, Status.INVALID_INFO_CLASS))
        await setter(request, wanted.data)
    elif wanted.info_type == InfoType.SECURITY:
        await descriptors.change(request, wanted)
    elif wanted.info_type == InfoType.FILE_SYSTEM:
        is_control = wanted.information_class == FileSystemClass.CONTROL
        raise Failed(Status.ACCESS_DENIED if is_control else Status.INVALID_INFO_CLASS)
    else:
        is_quota = wanted.info_type == InfoType.QUOTA
        raise Failed(Status.NOT_SUPPORTED if is_quota else Status.INVALID_PARAMETER)
    return Answer(messages.SET_RESPONSE)


# --- Attributes and times


async def _set_basic(request: Request, data: memoryview) -> None:
    opened = request.open
    check_access(opened, WRITE_ATTRIBUTES)
    change = codec.decode_basic(data)
    properties = _properties(change, of_directory=opened.is_directory)
    check_changeable(opened)
    _keep_times(opened, change)
    if properties != SmbProperties():
        await _run(opened, lambda tx: _changed(tx, opened, properties))


def _properties(change: BasicChange, *, of_directory: bool) -> SmbProperties:
    attributes = None
    if change.file_attributes:
        attributes = file_attributes.changed(change.file_attributes, of_directory=of_directory)
        if attributes is None:
            raise Failed(Status.INVALID_PARAMETER)
    return SmbProperties(
        attributes=attributes,
        created_at=_instant(change.creation),
        last_write_at=_instant(change.last_write),
        changed_at=_instant(change.change),
        last_access_at=_instant(change.last_access),
    )


def _instant(time: int) -> Instant | None:
    return filetime.decode(time) if time > 0 else None


def _keep_times(opened: Open, change: BasicChange) -> None:
    """A time that the client sets, or sets to −1, is its own from now on; with −2 the server updates it again."""
    if change.last_write:
        opened.keeps_last_write = change.last_write != RESUME_UPDATING_TIME
    if change.change:
        opened.keeps_change = change.change != RESUME_UPDATING_TIME


def _changed(tx: Transaction, opened: Open, properties: SmbProperties) -> Entry:
    return changes.set_properties(tx, opened.find(tx), opened.actor, properties, opened.kept_times)


# --- Sizes


async def _set_end_of_file(request: Request, data: memoryview) -> None:
    opened = request.open
    length = _checked_size(opened, data)

    def body(tx: Transaction) -> Entry:
        return changes.set_length(tx, opened.find(tx), opened.actor, length, opened.kept_times)

    await _run(opened, body)


async def _set_allocation(request: Request, data: memoryview) -> None:
    opened = request.open
    size = _checked_size(opened, data)

    def body(tx: Transaction) -> Entry:
        return changes.reserve(tx, opened.find(tx), opened.actor, size, opened.kept_times)

    await _run(opened, body)
    opened.allocation_size = allocation_size(size)


def _checked_size(opened: Open, data: memoryview) -> int:
    check_access(opened, WRITE_DATA)
    size = codec.decode_size(data)
    if opened.is_directory:
        raise Failed(Status.INVALID_PARAMETER)
    check_changeable(opened)
    return size


async def _run(opened: Open, body: Callable[[Transaction], Entry]) -> None:
    await opened.tree.account.store.engine.run(body)


# --- What ends with the open


async def _set_position(request: Request, data: memoryview) -> None:
    request.open.position = codec.decode_size(data)


async def _set_mode(request: Request, data: memoryview) -> None:
    mode = codec.decode_mode(data)
    if mode & ~_SETTABLE_MODE or mode & _BOTH_WAYS == _BOTH_WAYS:
        raise Failed(Status.INVALID_PARAMETER)
    opened = request.open
    opened.options = opened.options & ~_SETTABLE_MODE | mode


async def _set_full_ea(request: Request, _: memoryview) -> None:
    check_access(request.open, WRITE_EA)
    raise Failed(Status.EAS_NOT_SUPPORTED)


_SETTERS: dict[int, Callable[[Request, memoryview], Awaitable[None]]] = {
    FileClass.BASIC: _set_basic,
    FileClass.POSITION: _set_position,
    FileClass.FULL_EA: _set_full_ea,
    FileClass.MODE: _set_mode,
    FileClass.ALLOCATION: _set_allocation,
    FileClass.END_OF_FILE: _set_end_of_file,
    FileClass.RENAME: rename.rename,
    FileClass.RENAME_EX: rename.rename_ex,
    FileClass.LINK: rename.link,
    FileClass.DISPOSITION: rename.set_disposition,
    FileClass.DISPOSITION_EX: rename.set_disposition_ex,
}
_REFUSED: dict[int, Status] = {
    FileClass.VALID_DATA_LENGTH: Status.NOT_SUPPORTED,
    FileClass.SHORT_NAME: Status.NOT_SUPPORTED,
}
"""What a file system may lack: data beyond the valid length, short names."""
