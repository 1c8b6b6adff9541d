"""LOCK (MS-SMB2 §3.3.5.14): taking and releasing byte-range locks."""

from functools import partial

from kyanite.engine.api import Transaction
from kyanite.model.files.opens import locks
from kyanite.model.files.opens.locks import LockedFile, LockSequence
from kyanite.model.files.opens.waits import Wait, run_until_done
from kyanite.rules.access_masks import READ_DATA, WRITE_DATA
from kyanite.rules.byte_locks import Element, LockRequest, UnlockRequest, request_of
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.wire.smb2 import lock as lock_wire
from kyanite.wire.smb2 import session
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

_NOT_COUNTED = LockSequence(0, 0)


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
    sequence = LockSequence(decoded.sequence_index, decoded.sequence_number)
    if request.client.dialect < Dialect.SMB_3_0:
        sequence = _NOT_COUNTED
    if isinstance(wanted, LockRequest):
        await _lock(request, wanted, sequence)
    else:
        await _unlock(request, wanted, sequence)
    return Answer(session.EMPTY)


async def _lock(request: Request, wanted: LockRequest, sequence: LockSequence) -> None:
    """A lock that is not free is waited for, until the client cancels the request or closes the file."""
    file = _locked_file(request)

    def body(tx: Transaction) -> Wait | Reason | None:
        return locks.lock(tx, file, wanted, sequence)

    store = request.open.tree.account.store
    waiting = partial(request.wait, at_close=Status.RANGE_NOT_LOCKED)
    reason = await run_until_done(
        store.engine, body, membership=store.membership, durable=False, waiting=waiting
    )
    if reason is not None:
        raise Refused(reason)


async def _unlock(request: Request, wanted: UnlockRequest, sequence: LockSequence) -> None:
    file = _locked_file(request)

    def body(tx: Transaction) -> bool:
        return locks.unlock(tx, file, wanted, sequence)

    if not await request.open.tree.account.store.engine.run(body, durable=False):
        raise Failed(Status.RANGE_NOT_LOCKED)
    if not wanted.is_valid:
        raise Failed(Status.INVALID_PARAMETER)


def _locked_file(request: Request) -> LockedFile:
    opened = request.open
    return LockedFile(opened.tree.share_id, opened.file_id, opened.handle_id)
