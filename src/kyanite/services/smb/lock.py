"""LOCK (MS-SMB2 §3.3.5.14): taking and releasing byte-range locks."""

from functools import partial

from kyanite.engine.api import Engine, Transaction
from kyanite.model.files.opens import locks
from kyanite.model.files.opens.waits import Wait, run_until_done
from kyanite.rules.access_masks import READ_DATA, WRITE_DATA
from kyanite.rules.byte_locks import Element, LockRequest, UnlockRequest, request_of
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.services.smb.state import Open
from kyanite.wire.smb2 import lock as lock_wire
from kyanite.wire.smb2 import session
from kyanite.wire.smb2.status import Status


async def lock(request: Request) -> Answer:
    decoded = lock_wire.decode(request.message)
    opened = request.open
    if opened.is_directory or opened.snapshot is not None:
        raise Failed(Status.INVALID_PARAMETER)
    if not opened.access & (READ_DATA | WRITE_DATA):
        raise Failed(Status.ACCESS_DENIED)
    wanted = request_of([Element(*each) for each in decoded.elements], opened.handle_id)
    if wanted is None:
        raise Failed(Status.INVALID_PARAMETER)
    if isinstance(wanted, LockRequest):
        await _lock(request, wanted)
    else:
        await _unlock(request, wanted)
    return Answer(session.EMPTY)


async def _lock(request: Request, wanted: LockRequest) -> None:
    """A lock that is not free is waited for, until the client cancels the request or closes the file."""
    opened = request.open

    def body(tx: Transaction) -> Wait | None:
        return locks.lock(tx, opened.tree.share_id, opened.file_id, opened.handle_id, wanted)

    waiting = partial(request.wait, at_close=Status.RANGE_NOT_LOCKED)
    await run_until_done(_engine_of(opened), body, durable=False, waiting=waiting)


async def _unlock(request: Request, wanted: UnlockRequest) -> None:
    opened = request.open

    def body(tx: Transaction) -> bool:
        return locks.unlock(tx, opened.tree.share_id, opened.file_id, opened.handle_id, wanted)

    if not await _engine_of(opened).run(body, durable=False):
        raise Failed(Status.RANGE_NOT_LOCKED)
    if not wanted.is_valid:
        raise Failed(Status.INVALID_PARAMETER)


def _engine_of(opened: Open) -> Engine:
    return opened.tree.account.store.engine
