"""Containers and blobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from kyanite.services.console import lists, preview
from kyanite.services.console.client import BadInput, Client, ServiceError, path_of
from kyanite.services.console.downloads import download, image
from kyanite.services.console.lists import PAGE
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Response

_HISTORY_MAX = 200
"""How many snapshots and versions of a blob its page shows."""
_INCLUDES = {
    "deleted": "deleted",
    "versions": "versions",
    "snapshots": "snapshots",
    "uncommitted": "uncommittedblobs",
}
_ACCESS = {"", "blob", "container"}
_NOT_PROPERTIES = ("content-length", "server", "date", "connection", "accept-ranges", "access-control-")


# Containers


async def show_containers(visit: Visit) -> Response:
    client = visit.client
    query: dict[str, str | int] = {"comp": "list", "maxresults": PAGE, "include": "metadata,deleted"}
    query |= {"prefix": visit.get("prefix"), "marker": visit.get("marker")}
    found = (await client.call("blob", "GET", "/", query)).xml
    return visit.page(
        "containers.html",
        containers=[
            {
                "name": lists.name_of(each),
                "properties": lists.properties(each),
                "is_deleted": lists.text(each, "Deleted") == "true",
                "version": lists.text(each, "Version"),
            }
            for each in found.iter("Container")
        ],
        prefix=visit.get("prefix"),
        next_marker=lists.text(found, "NextMarker"),
        section="blob",
    )


async def create_container(visit: Visit) -> Response:
    name, access = visit.need("container"), visit.get("access")
    if access not in _ACCESS:
        raise BadInput("That is no level of public access.")
    headers = {"x-ms-blob-public-access": access} if access else {}
    await visit.client.call("blob", "PUT", path_of(name), {"restype": "container"}, headers)
    return visit.go_to("/blobs", "created", account=visit.account.name, container=name)


async def delete_container(visit: Visit) -> Response:
    await visit.client.call("blob", "DELETE", path_of(visit.need("container")), {"restype": "container"})
    return visit.go_to("/containers", "deleted", account=visit.account.name)


async def restore_container(visit: Visit) -> Response:
    name = visit.need("container")
    headers = {"x-ms-deleted-container-name": name, "x-ms-deleted-container-version": visit.need("version")}
    query = {"restype": "container", "comp": "undelete"}
    await visit.client.call("blob", "PUT", path_of(name), query, headers)
    return visit.go_to("/containers", "restored", account=visit.account.name)


# Blobs


async def show_blobs(visit: Visit) -> Response:
    """One level of folders; or everything, when the visitor wants a flat list."""
    container = visit.need("container")
    included = [name for name in _INCLUDES if visit.get(name)]
    query: dict[str, str | int] = {"restype": "container", "comp": "list", "maxresults": PAGE}
    query |= {"prefix": visit.get("prefix"), "marker": visit.get("marker")}
    if not visit.get("flat"):
        query["delimiter"] = "/"
    if included:
        query["include"] = ",".join(_INCLUDES[name] for name in included)
    found = (await visit.client.call("blob", "GET", path_of(container), query)).xml
    blobs = found.find("Blobs")
    return visit.page(
        "blobs.html",
        container=container,
        prefix=visit.get("prefix"),
        folders=_folders(visit.get("prefix")),
        prefixes=[] if blobs is None else [lists.name_of(each) for each in blobs.iter("BlobPrefix")],
        blobs=[] if blobs is None else [_listed(each) for each in blobs.iter("Blob")],
        next_marker=lists.text(found, "NextMarker"),
        marker=visit.get("marker"),
        included={name: bool(visit.get(name)) for name in _INCLUDES},
        flat=visit.get("flat"),
        section="blob",
    )


def _folders(prefix: str) -> list[tuple[str, str]]:
    """The folders above a prefix: name, and the prefix of each."""
    names = prefix.split("/")[:-1]
    return [(name, "/".join(names[: index + 1]) + "/") for index, name in enumerate(names)]


def _listed(element: Element) -> dict[str, object]:

    return {
        "name": lists.name_of(element),
        "properties": lists.properties(element),
        "snapshot": lists.text(element, "Snapshot"),
        "version": lists.text(element, "VersionId"),
        "is_current": lists.text(element, "IsCurrentVersion") == "true",
        "is_deleted": lists.text(element, "Deleted") == "true",
        "has_versions_only": lists.text(element, "HasVersionsOnly") == "true",
    }


@dataclass(frozen=True, slots=True)
class Named:
    """The blob, snapshot or version that a page is about."""

    container: str
    name: str
    snapshot: str
    version: str

    @property
    def path(self) -> str:
        return path_of(self.container, self.name)

    @property
    def query(self) -> dict[str, str | int]:
        if self.snapshot:
            return {"snapshot": self.snapshot}
        return {"versionid": self.version} if self.version else {}

    @property
    def where(self) -> dict[str, str]:
        """The parameters of its page."""
        return {
            "container": self.container,
            "name": self.name,
            "snapshot": self.snapshot,
            "version": self.version,
        }


def _named(visit: Visit) -> Named:
    return Named(visit.need("container"), visit.need("name"), visit.get("snapshot"), visit.get("version"))


async def show_blob(visit: Visit) -> Response:
    blob, client = _named(visit), visit.client
    history = await _history(client, blob)
    try:
        head = await client.call("blob", "HEAD", blob.path, blob.query)
    except ServiceError as refusal:
        is_gone = refusal.status == 404 and any(each["is_deleted"] or each["version"] for each in history)
        if not is_gone:
            raise
        return visit.page("blob.html", blob=blob, history=history, properties=None, section="blob")
    properties = {
        name: value
        for name, value in head.headers.items()
        if not name.startswith(("x-ms-meta-", "x-ms-request-id", "x-ms-version", *_NOT_PROPERTIES))
        or name == "x-ms-version-id"
    }
    size = int(head.headers.get("content-length", "0"))
    return visit.page(
        "blob.html",
        blob=blob,
        history=history,
        properties=properties,
        size=size,
        metadata=lists.pairs_text(head.metadata()),
        tags=lists.pairs_text(await _tags(client, blob)),
        blocks=await _blocks(client, blob, head.headers),
        preview=await preview.of(
            client, "blob", blob.path, blob.query, blob.name, head.headers.get("content-type", ""), size
        ),
        section="blob",
    )


async def _history(client: Client, blob: Named) -> list[dict[str, object]]:
    """The blob itself, its snapshots and versions, and deleted ones: of all names with this prefix it is the first."""
    query: dict[str, str | int] = {
        "restype": "container",
        "comp": "list",
        "prefix": blob.name,
        "maxresults": _HISTORY_MAX,
        "include": "snapshots,versions,deleted",
    }
    found = (await client.call("blob", "GET", path_of(blob.container), query)).xml
    listed = [_listed(each) for each in found.iter("Blob")]
    return [each for each in listed if each["name"] == blob.name]


async def _tags(client: Client, blob: Named) -> dict[str, str]:
    found = (await client.call("blob", "GET", blob.path, {"comp": "tags", **blob.query})).xml
    return {lists.text(each, "Key"): lists.text(each, "Value") for each in found.iter("Tag")}


async def _blocks(client: Client, blob: Named, headers: Mapping[str, str]) -> list[dict[str, str]]:
    """The uncommitted blocks of a block blob."""
    if blob.query or headers.get("x-ms-blob-type") != "BlockBlob":
        return []
    query = {"comp": "blocklist", "blocklisttype": "uncommitted"}
    found = (await client.call("blob", "GET", blob.path, query)).xml
    return [
        {"id": lists.text(each, "Name"), "size": lists.text(each, "Size")} for each in found.iter("Block")
    ]


# Changes of blobs


async def upload_blob(visit: Visit) -> Response:
    """The body is the content, and is stored as it comes."""
    blob, request = _named(visit), visit.request
    headers = {
        "x-ms-blob-type": "BlockBlob",
        "x-ms-blob-content-type": request.headers.get("content-type") or "application/octet-stream",
    }
    if not visit.get("overwrite"):
        headers["If-None-Match"] = "*"
    await visit.client.call("blob", "PUT", blob.path, {}, headers, request.body)
    return Response(201, [("Content-Type", "application/json")], b"{}")


async def download_blob(visit: Visit) -> Response:
    blob = _named(visit)
    return await download(visit, "blob", blob.path, blob.query, blob.name)


async def show_image(visit: Visit) -> Response:
    blob = _named(visit)
    return await image(visit, "blob", blob.path, blob.query)


async def delete_blob(visit: Visit) -> Response:
    blob = _named(visit)
    headers = {} if blob.query else {"x-ms-delete-snapshots": "include"}
    await visit.client.call("blob", "DELETE", blob.path, blob.query, headers)
    prefix = blob.name.rpartition("/")[0]
    where = {"account": visit.account.name, "container": blob.container}
    if blob.query:
        return visit.go_to("/blob", "deleted", **where, name=blob.name)
    return visit.go_to("/blobs", "deleted", **where, prefix=f"{prefix}/" if prefix else "")


async def undelete_blob(visit: Visit) -> Response:
    blob = _named(visit)
    await visit.client.call("blob", "PUT", blob.path, {"comp": "undelete"})
    return _back(visit, blob, "restored")


async def snapshot_blob(visit: Visit) -> Response:
    blob = _named(visit)
    await visit.client.call("blob", "PUT", blob.path, {"comp": "snapshot"})
    return _back(visit, blob, "snapshot")


async def promote_blob(visit: Visit) -> Response:
    """Copy a snapshot or a version over the blob itself, which makes it the current one."""
    blob, account = _named(visit), visit.account.name
    if not blob.query:
        raise BadInput("Only a snapshot or a version can become the current one.")
    source = visit.client.url(blob.path, blob.query)
    await visit.client.call("blob", "PUT", blob.path, {}, {"x-ms-copy-source": source})
    return visit.go_to("/blob", "saved", account=account, container=blob.container, name=blob.name)


async def set_metadata(visit: Visit) -> Response:
    blob = _named(visit)
    given = lists.pairs_in(visit.get("metadata"))
    headers = {f"x-ms-meta-{name}": value for name, value in given.items()}
    await visit.client.call("blob", "PUT", blob.path, {"comp": "metadata"}, headers)
    return _back(visit, blob, "saved")


async def set_tags(visit: Visit) -> Response:
    blob = _named(visit)
    tags = "".join(
        f"<Tag><Key>{escape(key)}</Key><Value>{escape(value)}</Value></Tag>"
        for key, value in lists.pairs_in(visit.get("tags")).items()
    )
    body = f'<?xml version="1.0" encoding="utf-8"?><Tags><TagSet>{tags}</TagSet></Tags>'.encode()
    await visit.client.call("blob", "PUT", blob.path, {"comp": "tags", **blob.query}, {}, body)
    return _back(visit, blob, "saved")


def _back(visit: Visit, blob: Named, done: str) -> Response:
    return visit.go_to("/blob", done, account=visit.account.name, **blob.where)
