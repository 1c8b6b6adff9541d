"""Directories over REST."""

from kyanite.model.files import directory
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import path_of, readable_path_of
from kyanite.services.rest.headers import metadata_headers, metadata_of, one_of
from kyanite.wire.http import Response

_ENCRYPTED = ("x-ms-request-server-encrypted", "true")


async def create_directory(context: RequestContext) -> Response:
    one_of(context.headers, "x-ms-file-property-semantics", ("New", "Restore"))
    entry, parent_id = await directory.create(
        context.store.engine,
        path_of(context),
        smb_properties_of(context.headers, of_directory=True, creates=True),
        metadata_of(context.request),
    )
    return Response(201, [*version_headers(entry), _ENCRYPTED, *smb_headers(entry, parent_id)])


async def get_directory_properties(context: RequestContext) -> Response:
    entry, parent_id = await directory.get_properties(context.store.engine, readable_path_of(context))
    headers = version_headers(entry)
    headers += [("x-ms-server-encrypted", "true"), ("x-ms-type", "Directory")]
    headers += smb_headers(entry, parent_id)
    return Response(200, headers + metadata_headers(entry.metadata))


async def get_directory_metadata(context: RequestContext) -> Response:
    entry, _ = await directory.get_properties(context.store.engine, readable_path_of(context))
    return Response(200, version_headers(entry) + metadata_headers(entry.metadata))


async def set_directory_properties(context: RequestContext) -> Response:
    entry, parent_id = await directory.set_properties(
        context.store.engine,
        path_of(context),
        smb_properties_of(context.headers, of_directory=True, creates=False),
    )
    return Response(200, [*version_headers(entry), _ENCRYPTED, *smb_headers(entry, parent_id)])


async def set_directory_metadata(context: RequestContext) -> Response:
    entry = await directory.set_metadata(context.store.engine, path_of(context), metadata_of(context.request))
    return Response(200, [*version_headers(entry), _ENCRYPTED])


async def delete_directory(context: RequestContext) -> Response:
    await directory.delete(context.store.engine, path_of(context))
    return Response(202)
