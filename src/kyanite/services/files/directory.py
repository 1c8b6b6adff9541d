"""Directories over REST."""

from kyanite.model.files import directory
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.file_paths import path_of, readable_path_of
from kyanite.services.rest.headers import metadata_headers, metadata_of, one_of
from kyanite.wire.http import Response

_ENCRYPTED = ("x-ms-request-server-encrypted", "true")


async def create_directory(exchange: Exchange) -> Response:
    one_of(exchange.headers, "x-ms-file-property-semantics", ("New", "Restore"))
    entry, parent_id = await directory.create(
        exchange.environment.engine,
        path_of(exchange),
        smb_properties_of(exchange.headers, of_directory=True, creates=True),
        metadata_of(exchange.request),
    )
    return Response(201, [*version_headers(entry), _ENCRYPTED, *smb_headers(entry, parent_id)])


async def get_directory_properties(exchange: Exchange) -> Response:
    entry, parent_id = await directory.see(exchange.environment.engine, readable_path_of(exchange))
    headers = version_headers(entry)
    headers += [("x-ms-server-encrypted", "true"), ("x-ms-type", "Directory")]
    headers += smb_headers(entry, parent_id)
    return Response(200, headers + metadata_headers(entry.metadata))


async def get_directory_metadata(exchange: Exchange) -> Response:
    entry, _ = await directory.see(exchange.environment.engine, readable_path_of(exchange))
    return Response(200, version_headers(entry) + metadata_headers(entry.metadata))


async def set_directory_properties(exchange: Exchange) -> Response:
    entry, parent_id = await directory.set_properties(
        exchange.environment.engine,
        path_of(exchange),
        smb_properties_of(exchange.headers, of_directory=True, creates=False),
    )
    return Response(200, [*version_headers(entry), _ENCRYPTED, *smb_headers(entry, parent_id)])


async def set_directory_metadata(exchange: Exchange) -> Response:
    entry = await directory.set_metadata(
        exchange.environment.engine, path_of(exchange), metadata_of(exchange.request)
    )
    return Response(200, [*version_headers(entry), _ENCRYPTED])


async def delete_directory(exchange: Exchange) -> Response:
    await directory.delete(exchange.environment.engine, path_of(exchange))
    return Response(202)
