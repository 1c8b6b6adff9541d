"""Symbolic and hard links, for shares that speak NFS.

The text of a symbolic link is kept as it was sent, which is how AzCopy expects it back: who encodes it decodes it. The
path of the file that gets a further name may be percent-encoded or bare: some clients do nothing to it.
"""

from kyanite.model.files import hard_link, links
from kyanite.model.files.tree import FilePath
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.file_paths import names_of, path_of, readable_path_of
from kyanite.services.rest.headers import lease_id_of, metadata_of, required
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header
from kyanite.wire.uri import decode_percent

_TEXT = "x-ms-link-text"
_TEXT_MAX_CHARACTERS = 1024
_TARGET = "x-ms-file-target-file"


async def create_symbolic_link(exchange: Exchange) -> Response:
    target = required(exchange.headers, _TEXT)
    if len(target) > _TEXT_MAX_CHARACTERS:
        raise bad_header(_TEXT, target)
    entry, parent_id = await links.create(
        exchange.environment.engine,
        path_of(exchange),
        target,
        smb_properties_of(exchange.headers, of_directory=False, creates=True),
        metadata_of(exchange.request),
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


async def read_symbolic_link(exchange: Exchange) -> Response:
    entry = await links.see(exchange.environment.engine, readable_path_of(exchange))
    return Response(200, [*version_headers(entry), (_TEXT, entry.target)])


async def create_hard_link(exchange: Exchange) -> Response:
    path, target = path_of(exchange), required(exchange.headers, _TARGET)
    names = names_of(exchange, _decoded(target).removeprefix("/"))
    entry, parent_id = await hard_link.create(
        exchange.environment.engine, path, FilePath(path.share, names), lease_id_of(exchange.headers)
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


def _decoded(path: str) -> str:
    try:
        return decode_percent(path)
    except Malformed:
        return path
