"""What the parts of one request have in common while it is made: chance, what is known, and its path."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kyanite.values import Instant
from tests.services.fuzzing import pool as names
from tests.services.fuzzing.oddities import Chance
from tests.services.fuzzing.pool import Pool


@dataclass
class Scope:
    chance: Chance
    pool: Pool
    service: str
    now: Instant
    account: str
    hosts: Mapping[str, str]
    """Host and port of each service."""
    token: str
    """A shared access signature that allows everything, for requests inside others."""
    path: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    """Values that must agree with others of the request, such as the length of a body with its range."""

    @property
    def host(self) -> str:
        return self.hosts[self.service]

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def number(self, first: int, last: int) -> str:
        return str(self.chance.randint(first, last))

    def likely(self, probability: float) -> bool:
        return self.chance.random() < probability


def container(scope: Scope) -> str:
    return scope.chance.choices(names.CONTAINERS, (14, 4, 2, 1, 1, 2))[0]


def blob(scope: Scope) -> str:
    kind = scope.chance.choices((block_blob, append_blob, page_blob), (6, 1, 1))[0]
    return kind(scope)


def block_blob(scope: Scope) -> str:
    return scope.chance.choices(names.BLOCK_BLOBS, (6, 2, 1, 1, 1))[0]


def append_blob(scope: Scope) -> str:
    return scope.one(*names.APPEND_BLOBS)


def page_blob(scope: Scope) -> str:
    return scope.one(*names.PAGE_BLOBS)


def queue(scope: Scope) -> str:
    return scope.chance.choices(names.QUEUES, (8, 3, 1))[0]


def message(scope: Scope) -> str:
    """The path of a message whose pop receipt is known, with that receipt, or of none."""
    if not scope.pool.receipts:
        scope.facts["popreceipt"] = base64.b64encode(bytes(16)).decode()
        return f"{queue(scope)}/messages/{names.LEASE_IDS[0]}"
    path, message_id, receipt = scope.chance.choice(scope.pool.receipts)
    scope.facts["popreceipt"] = receipt
    return f"{path[1:]}/{message_id}"


def table(scope: Scope) -> str:
    return scope.chance.choices(names.TABLES, (8, 3, 1))[0]


def keys(scope: Scope) -> str:
    partition, row = (
        scope.one(*several[:3] if scope.likely(0.7) else several).replace("'", "''")
        for several in (names.PARTITIONS, names.ROWS)
    )
    if scope.likely(0.1):
        return f"RowKey='{row}',PartitionKey='{partition}'"
    return f"PartitionKey='{partition}',RowKey='{row}'"


def share(scope: Scope) -> str:
    return scope.chance.choices(names.SHARES, (8, 2, 3, 1))[0]


def directory(scope: Scope) -> str:
    return scope.chance.choices(names.DIRECTORIES, (1, 5, 3, 1, 3))[0]


def file(scope: Scope) -> str:
    return scope.chance.choices(names.FILES, (6, 3, 2, 1, 1))[0]


def entry(scope: Scope) -> str:
    return file(scope) if scope.likely(0.6) else directory(scope)


NAMES: Mapping[str, Callable[[Scope], str]] = {
    "container": container,
    "vault": lambda scope: scope.one("vault", "vault", "vault", "box"),
    "spare": lambda scope: scope.one("chest", "spare", "spare", "crate"),
    "blob": blob,
    "block_blob": block_blob,
    "append_blob": append_blob,
    "page_blob": page_blob,
    "queue": queue,
    "spare_queue": lambda scope: scope.one("jobs", "spare-queue", "spare-queue"),
    "message": message,
    "table": table,
    "spare_table": lambda scope: scope.one("Others", "spare", "spare"),
    "keys": keys,
    "share": share,
    "spare_share": lambda scope: scope.one("docs", "spare-share", "spare-share"),
    "directory": directory,
    "file": file,
    "entry": entry,
    "empty_directory": lambda scope: scope.one("new", "new", "dir/sub"),
    "link": lambda scope: scope.one("link", "dir/link"),
}
"""What the templates of paths refer to."""
