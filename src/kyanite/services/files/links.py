"""Symbolic and hard links, on NFS shares.

The text of a symbolic link is stored and returned as it was sent, which AzCopy relies on: the client that encodes it
decodes it. The path of a file that gets a further name may be percent-encoded or not: some clients do not encode it.
"""

from kyanite.model.files import links
from kyanite.model.files.tree import FilePath
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import names_of, path_of, readable_path_of
from kyanite.services.rest.headers import lease_id_of, metadata_of, required
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header
from kyanite.wire.uri import decode_percent

_TEXT = "x-ms-link-text"
_TEXT_MAX_CHARACTERS = 1024
_TARGET = "x-ms-file-target-file"


async def create_symbolic_link(context: RequestContext) -> Response:
    target = required(context.headers, _TEXT)
    if len(target) > _TEXT_MAX_CHARACTERS:
        raise bad_header(_TEXT, target)
    entry, parent_id = await links.create_symbolic_link(
        context.store.engine,
        path_of(context),
        target,
        smb_properties_of(context.headers, of_directory=False, creates=True),
        metadata_of(context.request),
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


async def read_symbolic_link(context: RequestContext) -> Response:
    entry = await links.read_symbolic_link(context.store.engine, readable_path_of(context))
    return Response(200, [*version_headers(entry), (_TEXT, entry.target)])


async def create_hard_link(context: RequestContext) -> Response:
    path, target = path_of(context), required(context.headers, _TARGET)
    names = names_of(context, _decoded(target).removeprefix("/"))
    entry, parent_id = await links.create_hard_link(
        context.store.engine, path, FilePath(path.share, names), lease_id_of(context.headers)
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


def _decoded(path: str) -> str:
    try:
        return decode_percent(path)
    except Malformed:
        return path
