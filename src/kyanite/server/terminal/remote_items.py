"""What is stored, as commands see it: items to list, read, write, copy and delete, over the Blob and File services."""

import base64
import mimetypes
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote
from xml.etree import ElementTree

from kyanite.engine.clock import wall_clock
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.rest_client import RequestFailed, RestClient
from kyanite.server.terminal.running_server import RunningServer
from kyanite.server.terminal.times import moment_text
from kyanite.wire import xml
from kyanite.wire.sas_encoding import SignedResource, encode

CHUNK_BYTES = {"blob": 8 * 1024 * 1024, "file": 4 * 1024 * 1024}
"""How much is sent or requested at once. A range of a file cannot be longer."""
_BLOCKS_MAX = 50_000
_COPY_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Item:
    path: RemotePath
    is_directory: bool = False
    """Also a container or a share, and what names of blobs have in common before a slash."""
    size: int = 0
    modified: str = ""
    etag: str = ""
    """Without quotes."""


class RemoteItems:
    """All accounts of the running server. Threads may share it."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._clients: dict[tuple[str, str], RestClient] = {}
        self._keys: dict[str, bytes] = {}
        self._directories: set[RemotePath] = set()

    def client(self, path: RemotePath) -> RestClient:
        """To be called first by one thread: it may have to ask the server for a key."""
        found = self._clients.get((path.service, path.account))
        if found is None:
            description = self._server.description
            if path.service not in description.services:
                raise BadUsage(f"The server does not offer the {path.service} service.")
            self._server.check_account(path.account)
            found = RestClient(description, path.service, path.account, key=self._key(path.account))
            self._clients[path.service, path.account] = found
        return found

    def close(self) -> None:
        for client in self._clients.values():
            client.__exit__()

    def _key(self, account: str) -> bytes:
        if account not in self._keys:
            self._keys[account] = self._server.key(account)
        return self._keys[account]

    # Listing

    def containers(self, path: RemotePath) -> Iterator[Item]:
        for root in self._pages(RemotePath(path.service, path.account), {"comp": "list"}):
            for tag in ("Container", "Share"):
                for element in root.iter(tag):
                    yield _item(element, replace(path, container=_name(element), name=""), is_directory=True)

    def children(self, path: RemotePath) -> Iterator[Item]:
        """One level. For blobs the name is a prefix, for files a directory."""
        if path.service == "file":
            yield from self._in_directory(path)
            return
        query = {"restype": "container", "comp": "list", "prefix": path.name, "delimiter": "/"}
        for root in self._pages(replace(path, name=""), query):
            for element in root.iter("BlobPrefix"):
                yield Item(replace(path, name=_name(element)), is_directory=True)
            yield from _blobs(path, root)

    def descendants(self, path: RemotePath) -> Iterator[Item]:
        """Everything below a directory, without directories. The name ends with a slash, or is empty."""
        if path.service == "file":
            for item in self._in_directory(path):
                if item.is_directory:
                    yield from self.descendants(item.path)
                else:
                    yield item
            return
        query = {"restype": "container", "comp": "list", "prefix": path.name}
        for root in self._pages(replace(path, name=""), query):
            yield from _blobs(path, root)

    def _in_directory(self, path: RemotePath) -> Iterator[Item]:
        query = {"restype": "directory", "comp": "list", "include": "Timestamps,Etag"}
        folder = replace(path, name=path.name.rstrip("/"))
        for root in self._pages(folder, query):
            for element in root.iter("Directory"):
                yield _item(element, folder.below(_name(element)), is_directory=True)
            for element in root.iter("File"):
                yield _item(element, folder.below(_name(element)))

    def _pages(self, path: RemotePath, query: Mapping[str, str]) -> Iterator[ElementTree.Element]:
        client, marker = self.client(path), ""
        while True:
            answer = client.send("GET", path, {**query, **({"marker": marker} if marker else {})})
            root = ElementTree.fromstring(answer.body.removeprefix(b"\xef\xbb\xbf"))
            yield root
            marker = root.findtext("NextMarker") or ""
            if not marker:
                return

    # Single items

    def find(self, path: RemotePath) -> Item:
        """A blob or a file. Raises RequestFailed if there is none."""
        answer = self.client(path).send("HEAD", path)
        headers = answer.headers
        return Item(
            path,
            size=int(headers.get("content-length", "0")),
            modified=headers.get("last-modified", ""),
            etag=headers.get("etag", "").strip('"'),
        )

    def is_directory(self, path: RemotePath) -> bool:
        """Whether there is a directory of that name on the share."""
        try:
            self.client(path).send(
                "HEAD", replace(path, name=path.name.rstrip("/")), {"restype": "directory"}
            )
        except RequestFailed as failure:
            if failure.status == 404:
                return False
            raise
        return True

    def read(self, item: Item, offset: int, length: int) -> bytes:
        """A part. Fails if the item is not the one that was found any more."""
        headers = {"range": f"bytes={offset}-{offset + length - 1}"}
        if item.path.service == "blob":
            headers["if-match"] = f'"{item.etag}"'
        try:
            answer = self.client(item.path).send("GET", item.path, None, headers)
        except RequestFailed as failure:
            if failure.status in (404, 412, 416):
                raise _changed(item) from None
            raise
        if answer.headers.get("etag", "").strip('"') != item.etag or len(answer.body) != length:
            raise _changed(item)
        return answer.body

    def stream(self, path: RemotePath) -> Iterator[bytes]:
        return self.client(path).stream(path)

    def delete(self, item: Item, *, with_snapshots: bool = False) -> None:
        path, query, headers = item.path, {}, {}
        if not path.name:
            query["restype"] = "container" if path.service == "blob" else "share"
        elif item.is_directory:
            query["restype"] = "directory"
        if with_snapshots:
            headers["x-ms-delete-snapshots"] = "include"
        self.client(path).send("DELETE", path, query, headers)

    def create_container(self, path: RemotePath) -> None:
        kind = "container" if path.service == "blob" else "share"
        self._create(replace(path, name=""), {"restype": kind})

    def create_parents(self, path: RemotePath) -> None:
        """Of a file: the directories above it."""
        parts = path.name.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = replace(path, name="/".join(parts[:count]))
            if folder not in self._directories:
                self._create(folder, {"restype": "directory"})
                self._directories.add(folder)

    def _create(self, path: RemotePath, query: Mapping[str, str]) -> None:
        try:
            self.client(path).send("PUT", path, query)
        except RequestFailed as failure:
            if failure.status != 409 or not failure.code.endswith("AlreadyExists"):
                raise

    # Writing

    def put_blob(self, path: RemotePath, content: bytes) -> None:
        headers = {"x-ms-blob-type": "BlockBlob", **_content_type(path)}
        self.client(path).send("PUT", path, None, headers, content)

    def put_block(self, path: RemotePath, block_id: str, content: bytes) -> None:
        self.client(path).send("PUT", path, {"comp": "block", "blockid": _encoded(block_id)}, None, content)

    def put_block_list(self, path: RemotePath, block_ids: list[str]) -> None:
        inside = "".join(xml.element("Uncommitted", _encoded(each)) for each in block_ids)
        document = xml.document(xml.wrapped("BlockList", inside))
        self.client(path).send("PUT", path, {"comp": "blocklist"}, _content_type(path), document)

    def create_file(self, path: RemotePath, size: int) -> None:
        headers = {"x-ms-type": "file", "x-ms-content-length": str(size), **_content_type(path)}
        self.client(path).send("PUT", path, None, headers)

    def put_range(self, path: RemotePath, offset: int, content: bytes) -> None:
        headers = {"x-ms-write": "update", "x-ms-range": f"bytes={offset}-{offset + len(content) - 1}"}
        self.client(path).send("PUT", path, {"comp": "range"}, headers, content)

    def copy(self, source: RemotePath, target: RemotePath) -> None:
        """The server copies, within itself."""
        url = f"{self.client(source).url(source)}?{self._read_token(source)}"
        answer = self.client(target).send("PUT", target, None, {"x-ms-copy-source": url})
        while (status := answer.headers.get("x-ms-copy-status", "success")) == "pending":
            time.sleep(_COPY_POLL_SECONDS)
            answer = self.client(target).send("HEAD", target)
        if status != "success":
            raise Failure(f"{source} was not copied to {target}: the copy is {status}.")

    def _read_token(self, path: RemotePath) -> str:
        kind = "b" if path.service == "blob" else "f"
        ends = moment_text("7d", wall_clock(), "now")
        fields = {"sp": "r", "se": ends, "sr": kind, "sv": "2026-04-06"}
        resource = SignedResource(path.service, path.account, path.container, path.name)
        return encode(fields, resource, self._key(path.account))


def chunk_bytes(service: str, size: int) -> int:
    """How long the chunks of an upload are: a blob has a bounded number of blocks."""
    least = CHUNK_BYTES[service]
    return max(least, -(-size // _BLOCKS_MAX)) if service == "blob" else least


def _encoded(block_id: str) -> str:
    return base64.b64encode(block_id.encode("ascii")).decode("ascii")


def _content_type(path: RemotePath) -> dict[str, str]:
    guessed, encoding = mimetypes.guess_type(path.name.rpartition("/")[2])
    if guessed is None or encoding is not None:
        return {}
    return {"x-ms-blob-content-type" if path.service == "blob" else "x-ms-content-type": guessed}


def _changed(item: Item) -> Failure:
    return Failure(f"{item.path} has been changed or deleted while it was read.")


def _blobs(path: RemotePath, root: ElementTree.Element) -> Iterator[Item]:
    for element in root.iter("Blob"):
        yield _item(element, replace(path, name=_name(element)))


def _item(element: ElementTree.Element, path: RemotePath, *, is_directory: bool = False) -> Item:
    def text(name: str) -> str:
        return element.findtext(f"Properties/{name}") or ""

    return Item(
        path, is_directory, int(text("Content-Length") or 0), text("Last-Modified"), text("Etag").strip('"')
    )


def _name(element: ElementTree.Element) -> str:
    found = element.find("Name")
    assert found is not None
    text = found.text or ""
    return unquote(text) if found.get("Encoded") == "true" else text
