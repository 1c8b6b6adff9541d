"""FSCTL_VALIDATE_NEGOTIATE_INFO (MS-SMB2 §3.3.5.15.12): a client of 3.0 or 3.0.2 makes sure, signed, that nobody has
changed its NEGOTIATE on the way."""

from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.sessions import negotiation
from kyanite.wire.smb2 import fsctl, ioctl
from kyanite.wire.smb2.body import CHAIN_FILE_ID
from kyanite.wire.smb2.ioctl import IoctlRequest
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

_OUTPUT_BYTES = 24


def validate_negotiate(request: PartRequest, call: IoctlRequest) -> Answer:
    client = request.client
    negotiated = client.state.negotiated
    assert negotiated is not None
    if call.file_id != CHAIN_FILE_ID:
        raise Failed(Status.INVALID_PARAMETER)
    claimed = fsctl.decode_validate_negotiate(call.input)
    if call.max_output_bytes < _OUTPUT_BYTES:
        raise Failed(Status.BUFFER_TOO_SMALL)
    if negotiated.dialect is Dialect.SMB_3_1_1 or not negotiation.is_unchanged(negotiated, claimed):
        client.close()
        raise Failed(Status.ACCESS_DENIED)
    output = negotiation.encode_validation(negotiated, request.environment)
    return Answer(ioctl.encode(call.code, CHAIN_FILE_ID, output))
