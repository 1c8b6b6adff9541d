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
from kyanite.services.rest.sources import FILE_SOURCE, neighbour_of, source_of
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
    path, names = path_of(context), await _target_of(context)
    entry, parent_id = await links.create_hard_link(
        context.store.engine, path, FilePath(path.share, names), lease_id_of(context.headers)
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


async def _target_of(context: RequestContext) -> tuple[str, ...]:
    """The file that gets a further name, if the caller may read and write it: a path in the share, or a URL."""
    text = required(context.headers, _TARGET)
    if text.startswith(("http://", "https://")):
        target = await source_of(context, FILE_SOURCE, header=_TARGET)
        if (target.account, target.container) != (context.account, context.container):
            raise bad_header(_TARGET, text)
        return names_of(context, target.object_name)
    name = _decoded(text).removeprefix("/")
    names = names_of(context, name)
    await neighbour_of(context, FILE_SOURCE, name)
    return names


def _decoded(path: str) -> str:
    try:
        return decode_percent(path)
    except Malformed:
        return path
