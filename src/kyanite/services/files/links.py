"""Create and Read Symbolic Link, for shares that speak NFS. The text of a link travels percent-encoded."""

from urllib.parse import quote

from kyanite.model import symbolic_link
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.file_paths import path_of, readable_path_of
from kyanite.services.common.headers import metadata_of, required
from kyanite.services.files.properties import smb_headers, smb_properties_of, version_headers
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header
from kyanite.wire.uri import decode_percent

_TEXT = "x-ms-link-text"
_TEXT_MAX_CHARACTERS = 1024


async def create_symbolic_link(exchange: Exchange) -> Response:
    target = decode_percent(required(exchange.headers, _TEXT))
    if len(target) > _TEXT_MAX_CHARACTERS or "\0" in target:
        raise bad_header(_TEXT, exchange.headers[_TEXT])
    entry, parent_id = await symbolic_link.create(
        exchange.environment.engine,
        path_of(exchange),
        target,
        smb_properties_of(exchange.headers, of_directory=False, creates=True),
        metadata_of(exchange.request),
    )
    return Response(201, version_headers(entry) + smb_headers(entry, parent_id))


async def read_symbolic_link(exchange: Exchange) -> Response:
    entry = await symbolic_link.see(exchange.environment.engine, readable_path_of(exchange))
    return Response(200, [*version_headers(entry), (_TEXT, quote(entry.target))])
