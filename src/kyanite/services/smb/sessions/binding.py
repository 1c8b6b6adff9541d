"""Requests to bind a session to a second connection (MS-SMB2 §3.3.5.5), all of which are refused.

This server offers no multichannel. A client that tries all the same gets the status that a server with multichannel
gives for what is wrong with its request, and REQUEST_NOT_ACCEPTED if nothing is. The request is signed with the key of
the session, and so is the response, else the client would not believe it.
"""

from typing import TYPE_CHECKING

from kyanite.wire.smb2.crypto import SigningAlgorithm
from kyanite.wire.smb2.header import SIGNED
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

if TYPE_CHECKING:
    from kyanite.services.smb.connections.part_request import PartRequest
    from kyanite.services.smb.sessions.negotiation import Negotiated
    from kyanite.services.smb.sessions.registry import KnownSession


async def refused_binding(request: "PartRequest") -> Status:
    """The status that refuses to bind a session. The session is not harmed."""
    if not request.session_id:
        return Status.INVALID_PARAMETER
    known = await find_elsewhere(request)
    if known is None:
        return Status.USER_SESSION_DELETED
    if request.signed_by is not None and not request.signed_by.is_signed(request.header, request.message):
        return Status.ACCESS_DENIED
    assert request.client.state.negotiated is not None
    return _status(known, request.client.state.negotiated)


async def find_elsewhere(request: "PartRequest") -> "KnownSession | None":
    """The session of a signed request if another connection has it. It signs the response."""
    known = await request.client.registry.find(request.session_id, request.environment.accounts.values())
    if known is not None and request.header.flags & SIGNED:
        request.signed_by = known.security
    return known


def _status(known: "KnownSession", negotiated: "Negotiated") -> Status:
    was_gmac = known.signing_algorithm == SigningAlgorithm.AES_GMAC
    is_gmac = negotiated.signing_algorithm == SigningAlgorithm.AES_GMAC
    if was_gmac and not is_gmac:
        return Status.REQUEST_OUT_OF_SEQUENCE
    if is_gmac and not was_gmac:
        return Status.NOT_SUPPORTED
    if negotiated.dialect < Dialect.SMB_3_0:
        return Status.REQUEST_NOT_ACCEPTED
    if known.dialect != negotiated.dialect or known.cipher != negotiated.cipher:
        return Status.INVALID_PARAMETER
    return Status.REQUEST_NOT_ACCEPTED
