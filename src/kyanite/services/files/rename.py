"""Rename File and Rename Directory over REST: the request names the target, a header the source."""

from kyanite.model.files import rename
from kyanite.model.files.entry import DIRECTORY, FILE
from kyanite.model.files.rename import Rename
from kyanite.model.files.tree import FilePath
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import names_of, path_of, share_of
from kyanite.services.rest.headers import flag_of, lease_id_of, metadata_of
from kyanite.services.rest.sources import FILE_SOURCE, source_of
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header

_SOURCE = "x-ms-file-rename-source"


async def rename_file(context: RequestContext) -> Response:
    return await _rename(context, FILE)


async def rename_directory(context: RequestContext) -> Response:
    return await _rename(context, DIRECTORY)


async def _rename(context: RequestContext, kind: int) -> Response:
    headers = context.headers
    source = await source_of(context, FILE_SOURCE, header=_SOURCE)
    if (source.account, source.container) != (context.account, context.container):
        raise bad_header(_SOURCE, headers[_SOURCE])
    names = names_of(context, source.object_name, "x-ms-source-allow-trailing-dot")
    target = path_of(context)
    request = Rename(
        names=target.names,
        replaces=flag_of(headers, "x-ms-file-rename-replace-if-exists"),
        ignores_read_only=flag_of(headers, "x-ms-file-rename-ignore-readonly"),
        target_lease_id=lease_id_of(headers, "x-ms-destination-lease-id"),
        properties=smb_properties_of(headers, of_directory=kind == DIRECTORY, creates=False),
        metadata=metadata_of(context.request),
        content_type=headers.get("x-ms-content-type", ""),
    )
    entry, parent_id = await rename.rename(
        context.store.engine,
        FilePath(share_of(source), names),
        kind,
        request,
        lease_id_of(headers, "x-ms-source-lease-id"),
    )
    answer = [*version_headers(entry), ("x-ms-request-server-encrypted", "true")]
    return Response(200, answer + smb_headers(entry, parent_id))
