"""List Handles and Force Close Handles, of files and directories alike."""

import re

from kyanite.model.files.opens import handle_lists
from kyanite.model.files.opens.handle_lists import HandleItem, HandlePosition
from kyanite.rules.share_modes import Rights
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import readable_path_of
from kyanite.services.rest.headers import flag_of, required
from kyanite.services.rest.paging import enumeration, max_results_of
from kyanite.slices import encoded
from kyanite.wire import http_date
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header, bad_parameter
from kyanite.wire.xml import escape, name_element

_LISTED_MAX = 700
"""A page is one body of the engine, which reads up to three rows for a handle."""
_ALL = "*"
_ID_DIGITS_MAX = 19
_NO_ID = (1 << 64) - 1
"""An id that no handle has."""
_MARKER = re.compile("([0-9]{1,19})(?:-([0-9]{1,19}))?")
"""The handle at which a page begins and, if it is another, the first handle of its file."""
_RIGHTS = ((Rights.READ, "Read"), (Rights.WRITE, "Write"), (Rights.DELETE, "Delete"))


async def list_handles(context: RequestContext) -> Response:
    page = await handle_lists.list_handles(
        context.store.engine,
        readable_path_of(context),
        recursive=flag_of(context.headers, "x-ms-recursive"),
        start=_marker_of(context),
        limit=min(max_results_of(context.parameters), _LISTED_MAX),
    )
    items = await encoded(page.items, _item)
    marker = "" if page.next_start is None else _encode_marker(page.next_start)
    return enumeration(context, echo="", name="Entries", items=items, next_marker=marker)


async def force_close_handles(context: RequestContext) -> Response:
    text = required(context.headers, "x-ms-handle-id")
    if text != _ALL and not (text.isascii() and text.isdecimal()):
        raise bad_header("x-ms-handle-id", text)
    closing = await handle_lists.close_handles(
        context.store.engine,
        readable_path_of(context),
        recursive=flag_of(context.headers, "x-ms-recursive"),
        handle_id=None if text == _ALL else _handle_id_of(text),
    )
    headers = [
        ("x-ms-number-of-handles-closed", str(closing.closed)),
        ("x-ms-number-of-handles-failed", "0"),
    ]
    if closing.has_more:
        headers.append(("x-ms-marker", "0"))
    return Response(200, headers)


def _encode_marker(start: HandlePosition) -> str:
    first, handle = start
    return str(handle) if handle == first else f"{handle}-{first}"


def _marker_of(context: RequestContext) -> HandlePosition:
    text = context.parameters.get("marker")
    if not text:
        return HandlePosition()
    found = _MARKER.fullmatch(text)
    if found is None:
        raise bad_parameter("marker", text)
    handle, first = int(found[1]), int(found[2] or found[1])
    return HandlePosition(first, handle)


def _handle_id_of(text: str) -> int:
    return int(text) if len(text) <= _ID_DIGITS_MAX else _NO_ID


def _item(item: HandleItem) -> str:
    """Clients cannot parse an empty LastReconnectTime."""
    file, handle = item
    opened = http_date.encode(handle.opened_at)
    name = (
        f"<ClientName>{escape(handle.client_name)}</ClientName>" if handle.client_name else "<ClientName />"
    )
    reconnected = ""
    if handle.reconnected_at is not None:
        reconnected = f"<LastReconnectTime>{http_date.encode(handle.reconnected_at)}</LastReconnectTime>"
    rights = "".join(
        f"<AccessRight>{word}</AccessRight>" for right, word in _RIGHTS if handle.open.access & right
    )
    return (
        f"<Handle><HandleId>{handle.id}</HandleId>{name_element(file.path, 'Path')}"
        f"<FileId>{file.file_id}</FileId><ParentId>{file.directory_id}</ParentId>"
        f"<SessionId>{handle.session_id}</SessionId><ClientIp>{escape(handle.client_ip)}</ClientIp>"
        f"{name}<OpenTime>{opened}</OpenTime>{reconnected}"
        f"<AccessRightList>{rights}</AccessRightList></Handle>"
    )
