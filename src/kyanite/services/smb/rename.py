"""SET_INFO of where a file is, and whether it is to be deleted (MS-FSCC §2.4.11, §2.4.42, §2.4.27)."""

from collections.abc import Callable
from functools import partial

from kyanite.engine.api import Transaction
from kyanite.model.files.actors import FileUse
from kyanite.model.files.opens import delete_marks, open_files, renaming, waits
from kyanite.rules import file_names
from kyanite.rules.access_masks import DELETE
from kyanite.rules.oplocks import Event
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.share_modes import Rights
from kyanite.services.smb.request import Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2.fsctl import decode_snapshot_token
from kyanite.wire.smb2.info import changes
from kyanite.wire.smb2.info.file import FileClass
from kyanite.wire.smb2.status import Status

_DELETES = FileUse(Rights.DELETE, event=Event.RENAME_OR_DELETE)


async def rename(request: Request, data: memoryview) -> None:
    """FileRenameInformation."""
    await _rename(request, changes.decode_rename(FileClass.RENAME, data))


async def rename_ex(request: Request, data: memoryview) -> None:
    """FileRenameInformationEx, of whose flags only the one to replace a file has an effect."""
    await _rename(request, changes.decode_rename(FileClass.RENAME_EX, data))


async def link(request: Request, data: memoryview) -> None:
    """FileLinkInformation: a file of an SMB share has one name."""
    raise Failed(Status.NOT_SUPPORTED)


async def set_disposition(request: Request, data: memoryview) -> None:
    """FileDispositionInformation: mark the file for deletion, or take the mark back."""
    await _set_disposition(request, changes.decode_disposition(FileClass.DISPOSITION, data))


async def set_disposition_ex(request: Request, data: memoryview) -> None:
    """FileDispositionInformationEx, of whose flags only the one to delete has an effect."""
    await _set_disposition(request, changes.decode_disposition(FileClass.DISPOSITION_EX, data))


async def _rename(request: Request, wanted: changes.Rename) -> None:
    opened = _deletable(request)
    names = _names(wanted.name)

    def body(tx: Transaction) -> None:
        renaming.rename(tx, opened.find(tx), opened.handle_id, names, replaces=wanted.replaces)

    await _run(request, body, durable=True)


async def _run(request: Request, body: Callable[[Transaction], None], *, durable: bool) -> None:
    """Run the body when other clients have given up what they cache."""
    store = request.open.tree.account.store
    await waits.run_until_done(
        store.engine, body, membership=store.membership, durable=durable, waiting=request.wait_silently
    )


def _names(name: str) -> tuple[str, ...]:
    """The new path, relative to the share. Some clients begin it with a backslash."""
    path = file_names.split_smb(name.removeprefix("\\"))
    if not path.names or path.names_data:
        raise Refused(Reason.INVALID_PATH_NAME)
    if any(decode_snapshot_token(each) is not None for each in path.names):
        raise Failed(Status.NOT_SAME_DEVICE)
    return path.names


async def _set_disposition(request: Request, deletes: bool) -> None:
    """The mark ends with the last handle, so it is not written durably."""
    opened = _deletable(request)
    await _run(request, partial(_mark if deletes else _clear_mark, opened=opened), durable=False)


def _deletable(request: Request) -> Open:
    opened = request.open
    if opened.snapshot is not None:
        raise Refused(Reason.SNAPSHOT_IS_READ_ONLY)
    if not opened.access & DELETE:
        raise Refused(Reason.ACCESS_DENIED)
    return opened


def _mark(tx: Transaction, opened: Open) -> None:
    found = opened.find(tx)
    opened.actor.prepare(tx, opened.tree.share_id, opened.file_id, _DELETES)
    delete_marks.mark(tx, found)


def _clear_mark(tx: Transaction, opened: Open) -> None:
    open_files.load_handle(tx, opened.tree.share_id, opened.file_id, opened.handle_id)
    delete_marks.clear(tx, opened.tree.share_id, opened.file_id)
