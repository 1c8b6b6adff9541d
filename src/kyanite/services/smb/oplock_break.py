"""OPLOCK_BREAK (MS-SMB2 §3.3.5.22): a client has given up what a break asked for."""

from collections.abc import Mapping
from functools import partial

from kyanite.model.files.opens import caching
from kyanite.model.files.opens.records import key_of_lease
from kyanite.rules.oplocks import ALL, AcknowledgementError, Caching
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.wire.smb2 import oplock_break as codec
from kyanite.wire.smb2.create import OplockLevel
from kyanite.wire.smb2.oplock_break import LeaseAcknowledgement, OplockAcknowledgement
from kyanite.wire.smb2.status import Status

_KEPT: Mapping[int, Caching] = {OplockLevel.NONE: Caching.NONE, OplockLevel.II: Caching.READ}
_LEASE_ERRORS: Mapping[AcknowledgementError, Status] = {
    AcknowledgementError.NOT_BREAKING: Status.UNSUCCESSFUL,
    AcknowledgementError.TOO_MUCH: Status.REQUEST_NOT_ACCEPTED,
}
_OPLOCK_ERRORS: Mapping[AcknowledgementError, Status] = {
    AcknowledgementError.NOT_BREAKING: Status.INVALID_OPLOCK_PROTOCOL,
    AcknowledgementError.TOO_MUCH: Status.INVALID_PARAMETER,
}


async def acknowledge(request: Request) -> Answer:
    acknowledgement = codec.decode(request.message)
    if isinstance(acknowledgement, LeaseAcknowledgement):
        return await _of_lease(request, acknowledgement)
    return await _of_oplock(request, acknowledgement)


async def _of_lease(request: Request, acknowledgement: LeaseAcknowledgement) -> Answer:
    if acknowledgement.state & ~ALL.value:
        raise Failed(Status.INVALID_PARAMETER)
    key = key_of_lease(request.client.client_guid, acknowledgement.key)
    body = partial(caching.acknowledge_lease, key=key, kept=Caching(acknowledgement.state))
    outcome = await request.tree.account.store.engine.run(body, durable=False)
    if isinstance(outcome, AcknowledgementError):
        raise Failed(_LEASE_ERRORS[outcome])
    return Answer(codec.encode_lease(acknowledgement.key, outcome.value))


async def _of_oplock(request: Request, acknowledgement: OplockAcknowledgement) -> Answer:
    level, file_id = acknowledgement
    found = request.tree.opens.get(file_id.volatile)
    if found is None or found.id != file_id:
        raise Failed(Status.FILE_CLOSED)
    kept = _KEPT.get(level)
    if kept is None:
        raise Failed(Status.INVALID_PARAMETER)
    body = partial(
        caching.acknowledge_oplock,
        share_id=request.tree.share_id,
        file_id=found.file_id,
        handle_id=found.handle_id,
        kept=kept,
    )
    outcome = await request.tree.account.store.engine.run(body, durable=False)
    if isinstance(outcome, AcknowledgementError):
        raise Failed(_OPLOCK_ERRORS[outcome])
    return Answer(codec.encode_oplock(level, file_id))
