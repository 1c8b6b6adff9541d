"""List Handles and Force Close Handles, of files and directories alike."""

from kyanite.model.files import open_files
from kyanite.model.files.handles import Handle
from kyanite.rules.share_modes import Rights
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.file_paths import readable_path_of
from kyanite.services.rest.headers import flag_of, required
from kyanite.services.rest.paging import enumeration, max_results_of
from kyanite.wire import http_date
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header, bad_parameter
from kyanite.wire.xml import escape, name_element

_ALL = "*"
_RIGHTS = ((Rights.READ, "Read"), (Rights.WRITE, "Write"), (Rights.DELETE, "Delete"))


async def list_handles(context: RequestContext) -> Response:
    page = await open_files.list_handles(
        context.store.engine,
        readable_path_of(context),
        recursive=flag_of(context.headers, "x-ms-recursive"),
        first_id=_marker_of(context),
        limit=max_results_of(context.parameters),
    )
    items = "".join(map(_item, page.handles))
    marker = "" if page.next_id is None else str(page.next_id)
    return enumeration(context, echo="", items=f"<Entries>{items}</Entries>", next_marker=marker)


async def force_close_handles(context: RequestContext) -> Response:
    text = required(context.headers, "x-ms-handle-id")
    if text != _ALL and not (text.isascii() and text.isdecimal()):
        raise bad_header("x-ms-handle-id", text)
    closing = await open_files.close_handles(
        context.store.engine,
        readable_path_of(context),
        recursive=flag_of(context.headers, "x-ms-recursive"),
        handle_id=None if text == _ALL else int(text),
    )
    headers = [
        ("x-ms-number-of-handles-closed", str(closing.closed)),
        ("x-ms-number-of-handles-failed", "0"),
    ]
    if closing.has_more:
        headers.append(("x-ms-marker", "0"))
    return Response(200, headers)


def _marker_of(context: RequestContext) -> int:
    text = context.parameters.get("marker")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise bad_parameter("marker", text)
    return int(text)


def _item(handle: Handle) -> str:
    """Nobody has reconnected yet, and clients read no time from an empty element."""
    opened = http_date.encode(handle.opened_at)
    rights = "".join(
        f"<AccessRight>{name}</AccessRight>" for right, name in _RIGHTS if handle.open.access & right
    )
    return (
        f"<Handle><HandleId>{handle.id}</HandleId>{name_element(handle.path, 'Path')}"
        f"<FileId>{handle.file_id}</FileId><ParentId>{handle.parent_id}</ParentId>"
        f"<SessionId>{handle.session_id}</SessionId><ClientIp>{escape(handle.client_ip)}</ClientIp>"
        f"<ClientName /><OpenTime>{opened}</OpenTime>"
        f"<AccessRightList>{rights}</AccessRightList></Handle>"
    )
