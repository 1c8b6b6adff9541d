"""A client of the handlers, without a connection: it sends bodies and returns statuses and responses."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from kyanite.engine.api import Engine
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model.accounts import Account, Store
from kyanite.model.files import directory, file, share
from kyanite.model.files.file import NewFile, RangeWrite
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.tree import FilePath
from kyanite.model.records import HttpHeaders
from kyanite.rules.refusals import Refused
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.state import Open, Session, TreeConnect
from kyanite.services.smb.statuses import STATUSES
from kyanite.values import Instant
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2.create_contexts import ResponseContext
from kyanite.wire.smb2.create_contexts import encode as encode_contexts
from kyanite.wire.smb2.header import Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status

T = TypeVar("T")

SHARE = ShareKey("acme", "box")
ALL_ACCESS = 0x001F01FF
READ_ATTRIBUTES = 0x80
SHARE_ALL = 7
_CREATE = struct.Struct("<HBBIQQIIIIIHHII")
_CREATED = struct.Struct("<HBBIQQQQQQIIQQII")
_NAME_AT = 64 + _CREATE.size


class Membership:
    """Of one process, and of others that are dead."""

    def __init__(self, own_id: bytes = b"this process", dead: Sequence[bytes] = ()) -> None:
        self.id = own_id
        self.dead = list(dead)

    def is_alive(self, owner: bytes) -> bool:
        return owner not in self.dead

    def dead_owners(self) -> list[bytes]:
        return self.dead

    def forget(self, owner: bytes) -> None:
        self.dead.remove(owner)

    def close(self) -> None:
        pass


class FakeConnection:
    dialect = Dialect.SMB_3_1_1
    client_guid = bytes(16)
    client_endpoint = "192.0.2.1:50000"

    def is_alive(self) -> bool:
        return True

    def notify(self, session: Session | None, body: bytes) -> None:
        pass


class FakeRequest:
    def __init__(self, client: "Client", body: bytes, opened: Open | None, flags: int = 0) -> None:
        self.environment = SmbEnvironment({}, lambda: Instant(0), bytes(16))
        self.client = FakeConnection()
        self.header = Header(5, 1, flags=flags)
        self.message = memoryview(bytes(64) + body)
        self.session = client.session
        self.tree = client.tree
        self.made: Open | None = opened

    @property
    def open(self) -> Open:
        if self.made is None:
            raise Failed(Status.FILE_CLOSED)
        return self.made

    def opened(self, new: Open) -> None:
        self.made = new
        new.tree.opens[new.id.volatile] = new

    async def wait(self, waiting: Awaitable[T], *, at_close: Status | None = None) -> T:
        return await waiting

    async def wait_silently(self, waiting: Awaitable[T]) -> T:
        return await waiting


class Created(NamedTuple):
    """The response to a CREATE."""

    status: Status
    open: Open | None = None
    action: int = -1
    length: int = 0
    attributes: int = 0
    allocation: int = 0
    created_at: int = 0
    contexts: bytes = b""

    @property
    def opened(self) -> Open:
        assert self.open is not None, self.status.name
        return self.open


class Client:
    """One session that has connected to the share ``box``."""

    def __init__(self, engine: Engine | None = None, membership: Membership | None = None) -> None:
        self.engine = MemoryEngine() if engine is None else engine
        extents: Any = SimpleNamespace(has_files=True)
        self.account = Account(
            "acme", (), Store(self.engine, extents, Membership() if membership is None else membership)
        )
        self.session = Session(7, self.account, "acme", "workstation")
        found = self.run(share.find(self.engine, SHARE))
        if found is None:
            found = self.run(share.create(self.engine, SHARE, {}, ShareSettings(), directory.create_root))
        self.tree = TreeConnect(1, self.account, SHARE, found.id)
        self.session.trees[1] = self.tree

    def run(self, awaitable: Awaitable[T]) -> T:
        async def wait() -> T:
            return await awaitable

        return asyncio.run(wait())

    def send(
        self,
        handler: Callable[[Any], Coroutine[Any, Any, Answer]],
        body: bytes,
        opened: Open | None = None,
        *,
        flags: int = 0,
    ) -> tuple[Status, bytes, Open | None]:
        request = FakeRequest(self, body, opened, flags)
        status, response = self._status(handler(request))
        return status, response, request.made

    def _status(self, running: Coroutine[Any, Any, Answer | None]) -> tuple[Status, bytes]:
        try:
            answer = self.run(running)
        except Failed as failed:
            return failed.status, b""
        except Refused as refused:
            return STATUSES[refused.reason], b""
        except Malformed as malformed:
            return Status[malformed.code], b""
        if answer is None:
            return Status.SUCCESS, b""
        assert isinstance(answer.body, bytes)
        return answer.status, answer.body

    def apply(
        self, act: Callable[[Any, memoryview], Coroutine[Any, Any, None]], opened: Open, data: bytes
    ) -> Status:
        """A part of SET_INFO, by its buffer."""
        return self._status(act(FakeRequest(self, b"", opened), memoryview(data)))[0]

    def create(
        self,
        name: str,
        disposition: int = 1,
        *,
        access: int = ALL_ACCESS,
        sharing: int = SHARE_ALL,
        options: int = 0,
        attributes: int = 0,
        impersonation: int = 2,
        contexts: Mapping[bytes, bytes] | None = None,
        flags: int = 0,
    ) -> Created:
        from kyanite.services.smb.create import create

        body = create_body(
            name, access, attributes, sharing, disposition, options, impersonation, contexts or {}
        )
        status, response, opened = self.send(create, body, flags=flags)
        if status is not Status.SUCCESS:
            return Created(status)
        fields = _CREATED.unpack_from(response)
        assert opened is not None
        assert fields[12:14] == opened.id
        contexts_at, length = fields[14] - 64, fields[15]
        found = response[contexts_at : contexts_at + length] if length else b""
        return Created(status, opened, fields[3], fields[9], fields[10], fields[8], fields[4], found)

    def close(self, opened: Open, *, wants_attributes: bool = False) -> tuple[Status, bytes]:
        from kyanite.services.smb.close import close

        body = struct.pack("<HHIQQ", 24, int(wants_attributes), 0, *opened.id)
        return self.send(close, body, opened)[:2]

    # What is in the share

    def make_file(self, path: str, data: bytes = b"", attributes: int | None = None) -> None:
        new_file = NewFile(len(data), HttpHeaders(), {}, SmbProperties(attributes))
        at = FilePath(SHARE, tuple(path.split("/")))
        self.run(file.create(self.engine, at, new_file, None, may_overwrite=True))
        if data:
            self.run(file.write_range(self.engine, at, RangeWrite(0, len(data), data), None))

    def make_directory(self, path: str, attributes: int | None = None) -> None:
        at = FilePath(SHARE, tuple(path.split("/")))
        self.run(directory.create(self.engine, at, SmbProperties(attributes), {}))

    def rows(self, prefix: bytes) -> dict[bytes, bytes]:
        return self.run(self.engine.read(lambda snap: dict(snap.scan(prefix, prefix + b"\xff" * 40))))


def create_body(
    name: str,
    access: int,
    attributes: int,
    sharing: int,
    disposition: int,
    options: int,
    impersonation: int,
    contexts: Mapping[bytes, bytes],
) -> bytes:
    encoded = name.encode("utf-16-le")
    padded = encoded + bytes(-len(encoded) % 8 or (0 if encoded else 8))
    packed = encode_contexts([ResponseContext(*each) for each in contexts.items()])
    contexts_at = _NAME_AT + len(padded) if packed else 0
    fixed = _CREATE.pack(
        57, 0, 0, impersonation, 0, 0, access, attributes, sharing, disposition, options,
        _NAME_AT, len(encoded), contexts_at, len(packed),
    )  # fmt: skip
    return fixed + padded + packed
