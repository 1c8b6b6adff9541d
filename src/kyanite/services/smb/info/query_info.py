"""QUERY_INFO: what is known of an open file, of its volume, and who may do what with it (MS-SMB2 §3.3.5.20)."""

from kyanite.rules.access_masks import READ_ATTRIBUTES, READ_EA
from kyanite.rules.file_names import is_short
from kyanite.services.smb.handler_checks import check_access, check_size
from kyanite.services.smb.info import descriptors, volume
from kyanite.services.smb.info.entry import file_information
from kyanite.services.smb.request import Answer, Failed, Request
from kyanite.wire.smb2.body import encode_output
from kyanite.wire.smb2.info import file, file_system, messages
from kyanite.wire.smb2.info.file import FileClass
from kyanite.wire.smb2.info.messages import InfoType, QueryInfoRequest
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

_NEEDED_ACCESS: dict[int, int] = {
    FileClass.BASIC: READ_ATTRIBUTES,
    FileClass.ALL: READ_ATTRIBUTES,
    FileClass.NETWORK_OPEN: READ_ATTRIBUTES,
    FileClass.ATTRIBUTE_TAG: READ_ATTRIBUTES,
    FileClass.FULL_EA: READ_EA,
}


async def query_info(request: Request) -> Answer:
    query = messages.decode_query(request.message)
    check_size(request, max(query.output_bytes, len(query.input)))
    wanted = query.information_class
    if query.info_type == InfoType.FILE:
        data = await _query_file(request, wanted)
        return _fitted(data, file.fixed_bytes_of(wanted), query)
    if query.info_type == InfoType.FILE_SYSTEM:
        data = await volume.query(request, wanted)
        return _fitted(data, file_system.fixed_bytes_of(wanted), query)
    if query.info_type == InfoType.SECURITY:
        return await descriptors.query(request, query)
    raise Failed(Status.NOT_SUPPORTED if query.info_type == InfoType.QUOTA else Status.INVALID_PARAMETER)


async def _query_file(request: Request, wanted: int) -> bytes:
    opened = request.open
    check_access(opened, _NEEDED_ACCESS.get(wanted, 0))
    if wanted == FileClass.FULL_EA:
        raise Failed(Status.NO_EAS_ON_FILE)
    if wanted == FileClass.NORMALIZED_NAME and request.client.dialect < Dialect.SMB_3_1_1:
        raise Failed(Status.NOT_SUPPORTED)
    described = await opened.tree.account.store.engine.read(opened.describe)
    if wanted == FileClass.ALTERNATE_NAME and not is_short(described.found.entry.name):
        raise Failed(Status.OBJECT_NAME_NOT_FOUND)
    return file.encode(wanted, file_information(opened, described))


def _fitted(data: bytes, fixed_bytes: int, query: QueryInfoRequest) -> Answer:
    """As much as the client's buffer takes."""
    data, is_cut = messages.fit(data, fixed_bytes, query.output_bytes)
    return Answer(encode_output(data), Status.BUFFER_OVERFLOW if is_cut else Status.SUCCESS)
