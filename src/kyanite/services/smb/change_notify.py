"""CHANGE_NOTIFY: telling a client what changes in a directory that it has open (MS-SMB2 §3.3.5.19)."""

from kyanite.engine.api import Snapshot
from kyanite.model.files.opens import handles, open_files
from kyanite.services.smb.handler_checks import check_access, check_size
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.services.smb.watch import Outcome, Watch
from kyanite.wire.smb2 import change_notify as wire
from kyanite.wire.smb2.body import encode_output
from kyanite.wire.smb2.status import Status

_LIST_DIRECTORY = 0x1


async def change_notify(request: Request) -> Answer:
    call = wire.decode(request.message)
    opened = request.open
    check_size(request, call.output_bytes)
    if not opened.is_directory:
        raise Failed(Status.INVALID_PARAMETER)
    check_access(opened, _LIST_DIRECTORY)
    watch = await _watch(request, opened, call)
    if opened.snapshot is None:
        await _catch_up(request, opened)
    outcome = watch.fetch(call.output_bytes)
    if outcome is None:
        outcome = await _wait(request, watch, call.output_bytes)
    if isinstance(outcome, bytes):
        return Answer(encode_output(outcome))
    if outcome is Status.NOTIFY_ENUM_DIR:
        return Answer(encode_output(b""), outcome)
    raise Failed(outcome)


async def _wait(request: Request, watch: Watch, output_bytes: int) -> Outcome:
    waiting = watch.wait(output_bytes)
    try:
        return await request.wait(waiting, at_close=Status.NOTIFY_CLEANUP)
    finally:
        watch.stop_waiting(waiting)


async def _watch(request: Request, opened: Open, call: wire.ChangeNotifyRequest) -> Watch:
    """The watch of the handle, as its first call made it."""
    while opened.watch is not None:
        watch = opened.watch
        if await watch.started:
            return watch
    opened.watch = watch = Watch(
        opened.file_id,
        opened.handle_id,
        call.output_bytes,
        call.completion_filter,
        watches_tree=call.watches_tree,
    )
    try:
        if opened.snapshot is None:  # In a snapshot nothing changes.
            tree = opened.tree
            assert tree.share is not None, "IPC$ has no directories."
            await request.environment.change_feeds.start(
                tree.account.store.engine, tree.share, tree.load, tree.share_id, watch
            )
    except BaseException:
        opened.watch = None
        watch.started.set_result(False)
        raise
    watch.started.set_result(True)
    return watch


async def _catch_up(request: Request, opened: Open) -> None:
    """What was committed before the call is part of its answer."""
    tree = opened.tree

    def check(snap: Snapshot) -> None:
        open_files.load_handle(snap, tree.share_id, opened.file_id, opened.handle_id)
        handles.check_not_pending(snap, tree.share_id, opened.file_id)

    await request.environment.change_feeds.catch_up(tree.account.store.engine, tree.share_id, check)
