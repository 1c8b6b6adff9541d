"""NEGOTIATE (MS-SMB2 §3.3.5.4). What is chosen is in ``negotiation``."""

from collections.abc import Sequence
from functools import partial

from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.sessions import negotiation
from kyanite.services.smb.state import ClientState
from kyanite.wire.smb2 import crypto
from kyanite.wire.smb2 import negotiate as codec
from kyanite.wire.smb2.body import Data
from kyanite.wire.smb2.header import SIGNED
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status


async def negotiate(request: PartRequest) -> Answer:
    state = request.client.state
    if state.negotiated is not None:
        request.client.close()
        raise Failed(Status.REQUEST_NOT_ACCEPTED)
    if request.header.flags & SIGNED:
        raise Failed(Status.INVALID_PARAMETER)
    chosen, response = negotiation.choose(codec.decode(request.message), request.environment)
    state.negotiated = chosen
    if chosen.dialect is Dialect.SMB_3_1_1:
        state.integrity_hash = crypto.extend_hash(state.integrity_hash, request.message)
        request.after_encoding = partial(_extend_hash, state)
    return Answer(codec.encode(response))


def _extend_hash(state: ClientState, response: Sequence[Data]) -> None:
    state.integrity_hash = crypto.extend_hash(state.integrity_hash, *response)
