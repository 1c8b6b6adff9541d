"""What the requests of one store are about: its names, and what responses have said of them."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.request import FuzzRequest

CONTAINERS = ("box", "crate", "chest", "spare", "$root", "vault")
"""The last has version-level immutability."""
BLOCK_BLOBS = ("block", "dir/block", "ü block", "a.b/c d", "long")
APPEND_BLOBS = ("append", "dir/append")
PAGE_BLOBS = ("page", "dir/page")
QUEUES = ("work", "jobs", "spare-queue")
TABLES = ("things", "Others", "spare")
SHARES = ("share", "docs", "nfs", "spare-share")
DIRECTORIES = ("", "dir", "dir/sub", "Ünder", "new")
FILES = ("file", "dir/file", "dir/sub/deep.txt", "Ünder/ä", "other.bin")
PARTITIONS = ("p", "q", "", "it's", "ü")
ROWS = ("r", "s", "1", "2", "3", "", "it's")
LEASE_IDS = (
    "11111111-1111-1111-1111-111111111111",
    "22222222-2222-2222-2222-222222222222",
    "33333333-3333-3333-3333-333333333333",
)
POLICIES = ("reader", "writer")
T = TypeVar("T")
_KEPT = 12
_MARKERS = re.compile(rb"<NextMarker>([^<]+)</NextMarker>")
_MESSAGES = re.compile(rb"<MessageId>([^<]+)</MessageId>.*?<PopReceipt>([^<]+)</PopReceipt>", re.DOTALL)
_VERSIONS = re.compile(rb"<Version>([0-9A-F]{16})</Version>")
_HANDLES = re.compile(rb"<HandleId>([0-9]+)</HandleId>")


@dataclass
class Pool:
    """Facts about a path are by service and path."""

    etags: dict[tuple[str, str], str] = field(default_factory=dict)
    leases: dict[tuple[str, str], str] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    blocks: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    receipts: list[tuple[str, str, str]] = field(default_factory=list)
    """Path of the messages, id, pop receipt."""
    copy_ids: list[str] = field(default_factory=list)
    permission_keys: list[str] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    continuations: list[tuple[str, str]] = field(default_factory=list)
    """Name and value of a parameter."""
    deleted_versions: list[str] = field(default_factory=list)
    """Of containers and shares that can be restored."""
    handle_ids: list[str] = field(default_factory=list)

    def learn(self, request: FuzzRequest, status: int, headers: dict[str, str], body: bytes) -> None:
        if not 200 <= status < 300:
            return
        key = request.service, request.path
        if "etag" in headers:
            self.etags[key] = headers["etag"]
        self._learn_lease(request, headers)
        if "x-ms-snapshot" in headers:
            _keep(self.snapshots[key], [headers["x-ms-snapshot"]])
        if "x-ms-version-id" in headers:
            _keep(self.versions[key], [headers["x-ms-version-id"]])
        _keep(self.copy_ids, _values(headers, "x-ms-copy-id"))
        _keep(self.permission_keys, _values(headers, "x-ms-file-permission-key"))
        for name, value in headers.items():
            if name.startswith("x-ms-continuation-"):
                _keep(self.continuations, [(name.removeprefix("x-ms-continuation-"), value)])
        parameters = {name.lower(): value for name, value in request.query}
        if request.service == "queue":
            self._learn_receipts(request, headers, body, parameters)
        elif "blockid" in parameters and request.method == "PUT":
            _keep(self.blocks[request.path], [parameters["blockid"]])
        elif request.method == "GET" and len(body) < 100_000:
            _keep(self.markers, _found(_MARKERS, body))
            _keep(self.deleted_versions, _found(_VERSIONS, body))
            _keep(self.handle_ids, _found(_HANDLES, body))

    def _learn_lease(self, request: FuzzRequest, headers: dict[str, str]) -> None:
        key = request.service, request.path
        action = (request.header("x-ms-lease-action") or "").lower()
        if "x-ms-lease-id" in headers:
            self.leases[key] = headers["x-ms-lease-id"]
        elif action in {"release", "break"} or request.method == "DELETE":
            self.leases.pop(key, None)

    def _learn_receipts(
        self, request: FuzzRequest, headers: dict[str, str], body: bytes, parameters: dict[str, str]
    ) -> None:
        path = "/".join(request.path.split("/")[:3])
        for message_id, receipt in _MESSAGES.findall(body):
            _keep(self.receipts, [(path, message_id.decode(), receipt.decode())])
        if "x-ms-popreceipt" in headers:
            message_id = request.path.rpartition("/")[2]
            self.receipts = [each for each in self.receipts if each[1] != message_id]
            _keep(self.receipts, [(path, message_id, headers["x-ms-popreceipt"])])
        elif request.method == "DELETE" and "popreceipt" in parameters:
            self.receipts = [each for each in self.receipts if each[2] != parameters["popreceipt"]]

    def lease_of(self, service: str, path: str) -> str | None:
        return self.leases.get((service, path))

    def snapshot_of(self, service: str, path: str, chance: Chance) -> str:
        return _one_of(self.snapshots, (service, path), chance)

    def version_of(self, path: str, chance: Chance) -> str:
        return _one_of(self.versions, ("blob", path), chance)


def _one_of(instants: dict[tuple[str, str], list[str]], key: tuple[str, str], chance: Chance) -> str:
    """An instant of this path, or else of any."""
    every = instants.get(key) or [each for several in instants.values() for each in several]
    return chance.choice(every) if every else "2026-11-16T12:00:00.0000000Z"


def _values(headers: dict[str, str], name: str) -> list[str]:
    return [headers[name]] if name in headers else []


def _found(pattern: re.Pattern[bytes], body: bytes) -> list[str]:
    return [each.decode("utf-8", "replace") for each in pattern.findall(body)]


def _keep(kept: list[T], new: Iterable[T]) -> None:
    for each in new:
        if each not in kept:
            kept.append(each)
    del kept[:-_KEPT]
