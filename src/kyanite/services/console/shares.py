"""File shares: the tree of each, files, and snapshots."""

from xml.etree.ElementTree import Element

from kyanite.services.console import lists, preview
from kyanite.services.console.client import BadInput, Client, ServiceError, path_of
from kyanite.services.console.downloads import download, image
from kyanite.services.console.lists import PAGE
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Body, Response

_RANGE_BYTES = 4 * 1024 * 1024
"""The most that one Put Range takes."""
_NOT_PROPERTIES = (
    "x-ms-meta-",
    "x-ms-request-id",
    "x-ms-version",
    "content-length",
    "server",
    "accept-ranges",
)


async def show_shares(visit: Visit) -> Response:
    query: dict[str, str | int] = {"comp": "list", "maxresults": PAGE, "include": "snapshots,deleted"}
    query |= {"prefix": visit.get("prefix"), "marker": visit.get("marker")}
    found = (await visit.client.call("file", "GET", "/", query)).xml
    return visit.page(
        "shares.html",
        shares=[_share(each) for each in found.iter("Share")],
        prefix=visit.get("prefix"),
        next_marker=lists.text(found, "NextMarker"),
        section="file",
    )


def _share(element: Element) -> dict[str, object]:
    return {
        "name": lists.name_of(element),
        "snapshot": lists.text(element, "Snapshot"),
        "properties": lists.properties(element),
        "is_deleted": lists.text(element, "Deleted") == "true",
        "version": lists.text(element, "Version"),
    }


async def create_share(visit: Visit) -> Response:
    name = visit.need("share")
    await visit.client.call("file", "PUT", path_of(name), {"restype": "share"})
    return visit.go_to("/share", "created", account=visit.account.name, share=name)


async def delete_share(visit: Visit) -> Response:
    """A share with its snapshots, or one snapshot."""
    query: dict[str, str | int] = {"restype": "share"}
    headers = {}
    if visit.get("snapshot"):
        query["sharesnapshot"] = visit.get("snapshot")
    else:
        headers["x-ms-delete-snapshots"] = "include"
    await visit.client.call("file", "DELETE", path_of(visit.need("share")), query, headers)
    return visit.go_to("/shares", "deleted", account=visit.account.name)


async def restore_share(visit: Visit) -> Response:
    name = visit.need("share")
    headers = {"x-ms-deleted-share-name": name, "x-ms-deleted-share-version": visit.need("version")}
    await visit.client.call("file", "PUT", path_of(name), {"restype": "share", "comp": "undelete"}, headers)
    return visit.go_to("/shares", "restored", account=visit.account.name)


async def snapshot_share(visit: Visit) -> Response:
    query = {"restype": "share", "comp": "snapshot"}
    await visit.client.call("file", "PUT", path_of(visit.need("share")), query)
    return visit.go_to("/shares", "snapshot", account=visit.account.name)


# Directories


async def show_directory(visit: Visit) -> Response:
    share, path = visit.need("share"), visit.get("path").strip("/")
    query: dict[str, str | int] = {"restype": "directory", "comp": "list", "maxresults": PAGE}
    query |= {"include": "timestamps,etag", "marker": visit.get("marker")}
    query |= _snapshot(visit) | ({"prefix": visit.get("prefix")} if visit.get("prefix") else {})
    found = (await visit.client.call("file", "GET", path_of(share, *_parts(path)), query)).xml
    entries = found.find("Entries")
    return visit.page(
        "share.html",
        share=share,
        path=path,
        snapshot=visit.get("snapshot"),
        folders=_folders(path),
        prefix=visit.get("prefix"),
        entries=[] if entries is None else [_entry(each, path) for each in entries],
        next_marker=lists.text(found, "NextMarker"),
        section="file",
    )


def _entry(element: Element, path: str) -> dict[str, object]:
    name = lists.name_of(element)
    return {
        "name": name,
        "path": f"{path}/{name}" if path else name,
        "is_directory": element.tag == "Directory",
        "properties": lists.properties(element),
    }


def _folders(path: str) -> list[tuple[str, str]]:
    names = _parts(path)
    return [(name, "/".join(names[: index + 1])) for index, name in enumerate(names)]


def _parts(path: str) -> list[str]:
    return path.split("/") if path else []


def _snapshot(visit: Visit) -> dict[str, str | int]:
    return {"sharesnapshot": visit.get("snapshot")} if visit.get("snapshot") else {}


async def create_directory(visit: Visit) -> Response:
    share, name = visit.need("share"), visit.need("name")
    above = visit.get("path").strip("/")
    path = f"{above}/{name}" if above else name
    await visit.client.call("file", "PUT", path_of(share, *_parts(path)), {"restype": "directory"})
    return visit.go_to("/share", "created", account=visit.account.name, share=share, path=path)


async def delete_directory(visit: Visit) -> Response:
    share, path = visit.need("share"), visit.need("path").strip("/")
    await visit.client.call("file", "DELETE", path_of(share, *_parts(path)), {"restype": "directory"})
    above = path.rpartition("/")[0]
    return visit.go_to("/share", "deleted", account=visit.account.name, share=share, path=above)


# Files


def _file(visit: Visit) -> tuple[str, str]:
    """The share, and the path of a file in it."""
    return visit.need("share"), visit.need("path").strip("/")


async def show_file(visit: Visit) -> Response:
    share, path = _file(visit)
    where, client = path_of(share, path), visit.client
    head = await client.call("file", "HEAD", where, _snapshot(visit))
    size = int(head.headers.get("content-length", "0"))
    content_type = head.headers.get("content-type", "")
    return visit.page(
        "file.html",
        share=share,
        path=path,
        snapshot=visit.get("snapshot"),
        folders=_folders(path),
        size=size,
        properties={
            name: value for name, value in head.headers.items() if not name.startswith(_NOT_PROPERTIES)
        },
        metadata=lists.pairs_text(head.metadata()),
        preview=await preview.of(client, "file", where, _snapshot(visit), path, content_type, size),
        section="file",
    )


async def set_metadata(visit: Visit) -> Response:
    share, path = _file(visit)
    given = lists.pairs_in(visit.get("metadata"))
    headers = {f"x-ms-meta-{name}": value for name, value in given.items()}
    await visit.client.call("file", "PUT", path_of(share, path), {"comp": "metadata"}, headers)
    return visit.go_to("/file", "saved", account=visit.account.name, share=share, path=path)


async def upload_file(visit: Visit) -> Response:
    """Create the file in its full size, then write what comes, a range at a time."""
    share, path = _file(visit)
    where, client, body = path_of(share, path), visit.client, visit.request.body
    if body.length is None:
        raise BadInput("The length of the file is not known.")
    headers = {
        "x-ms-type": "file",
        "x-ms-content-length": str(body.length),
        "x-ms-content-type": visit.request.headers.get("content-type") or "application/octet-stream",
    }
    if not visit.get("overwrite") and await _exists(client, where):
        return Response(
            409,
            [("Content-Type", "application/json")],
            b'{"error": "409 ResourceAlreadyExists", "message": "There is such a file already."}',
        )
    await client.call("file", "PUT", where, {}, headers)
    await _write(client, where, body)
    return Response(201, [("Content-Type", "application/json")], b"{}")


async def _exists(client: Client, where: str) -> bool:
    try:
        await client.call("file", "HEAD", where)
    except ServiceError as refusal:
        if refusal.status != 404:
            raise
        return False
    return True


async def _write(client: Client, where: str, body: Body) -> None:
    offset, waiting = 0, bytearray()
    while True:
        piece = await body.read()
        waiting += piece
        while len(waiting) >= _RANGE_BYTES or (waiting and not piece):
            part = bytes(waiting[:_RANGE_BYTES])
            del waiting[:_RANGE_BYTES]
            headers = {"x-ms-write": "update", "x-ms-range": f"bytes={offset}-{offset + len(part) - 1}"}
            await client.call("file", "PUT", where, {"comp": "range"}, headers, part)
            offset += len(part)
        if not piece:
            return


async def download_file(visit: Visit) -> Response:
    share, path = _file(visit)
    return await download(visit, "file", path_of(share, path), _snapshot(visit), path)


async def show_image(visit: Visit) -> Response:
    share, path = _file(visit)
    return await image(visit, "file", path_of(share, path), _snapshot(visit))


async def delete_file(visit: Visit) -> Response:
    share, path = _file(visit)
    await visit.client.call("file", "DELETE", path_of(share, path))
    above = path.rpartition("/")[0]
    return visit.go_to("/share", "deleted", account=visit.account.name, share=share, path=above)
