"""Requests without a connection: a share in memory, opens of it, and handlers that are called directly."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model.accounts import Account, Store
from kyanite.model.content.content import ExtentPart, PlanPart, Zeros, read_plan
from kyanite.model.files import file, share_snapshots
from kyanite.model.files.file import RangeWrite
from kyanite.model.files.opens import handles
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.tree import FilePath
from kyanite.rules.refusals import Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.request import Answer, Client, Failed, Request
from kyanite.services.smb.state import Open, Session, TreeConnect
from kyanite.values import Instant
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.header import Command, Header
from kyanite.wire.smb2.negotiate import Dialect
from kyanite.wire.smb2.status import Status
from tests.model.content.world import Segments, outcome
from tests.model.counted import CountingEngine
from tests.model.files.builders import OWNER, SHARE, FileShare

T = TypeVar("T")

ALL = 0x001F01FF
START = Instant(638_000_000_000_000_000)


@dataclass
class FakeClient:
    dialect: Dialect = Dialect.SMB_3_1_1
    client_guid: bytes = b"a client's guid."
    client_address: str = "192.0.2.1"
    notified: list[bytes] = field(default_factory=list)

    def is_alive(self) -> bool:
        return True

    def notify(self, session: Session | None, body: bytes) -> None:
        self.notified.append(body)


@dataclass
class FakeRequest:
    environment: SmbEnvironment
    client: Client
    header: Header
    message: memoryview
    session: Session
    tree: TreeConnect
    opened_file: Open | None

    @property
    def open(self) -> Open:
        if self.opened_file is None:
            raise Failed(Status.FILE_CLOSED)
        return self.opened_file

    def opened(self, new: Open) -> None:
        self.tree.opens[new.id.volatile] = new
        self.opened_file = new

    async def wait(self, waiting: Awaitable[T], *, at_close: Status | None = None) -> T:
        return await waiting

    async def wait_silently(self, waiting: Awaitable[T]) -> T:
        return await waiting


Handler = Callable[[Request], Awaitable[Answer]]


class SmbShare:
    """A share of an account, and one client that is connected to it. The clock moves when told."""

    def __init__(self, dialect: Dialect = Dialect.SMB_3_1_1) -> None:
        self.now = START
        self.engine = CountingEngine(clock=self._tick)
        self.files = FileShare(self.engine)
        self.segments = Segments()
        store = Store(self.engine, self.segments, _NoMembership())  # type: ignore[arg-type]
        self.account = Account(SHARE.account, (b"key",), store)
        self.environment = SmbEnvironment({SHARE.account: self.account}, self._tick, b"a server's guid.")
        self.client = FakeClient(dialect)
        self.session = Session(1, self.account, SHARE.account)
        self.tree = TreeConnect(1, self.account, SHARE, self.files.id)
        self.session.trees[1] = self.tree
        self.last_status = ""
        self._volatile = 100

    def _tick(self) -> Instant:
        self.now = Instant(self.now + 10)
        return self.now

    def open(
        self, path: str, access: int = ALL, *, rights: Rights = Rights.READ | Rights.WRITE, options: int = 0
    ) -> Open:
        request = HandleRequest(OWNER, rights, EVERYTHING, self.session.id, "192.0.2.1")

        def body(tx: Transaction) -> tuple[int, int, bool]:
            found = self.files.find(tx, path)
            handle = handles.open_handle(tx, found, request)
            return handle.id, found.entry.id, found.entry.is_directory

        handle_id, file_id, is_directory = outcome(self.engine.run(body, durable=False))
        return self._register(
            Open(self.tree, self._new_id(handle_id), file_id, access, options, is_directory)
        )

    def open_snapshot(self, path: str, at: Instant, *, is_directory: bool) -> Open:
        key = SHARE.__class__(SHARE.account, SHARE.name, at)
        names = tuple(path.split("/")) if path else ()
        return self._register(
            Open(self.tree, self._new_id(0), 1, ALL, 0, is_directory, snapshot=FilePath(key, names))
        )

    def write(self, path: str, offset: int, data: bytes, *, is_inline: bool = True) -> None:
        """Write as REST does, within the length of the file."""
        payload = data if is_inline else tuple(self.segments.put(data))
        request = RangeWrite(offset, len(data), payload)
        outcome(file.write_range(self.engine, self.files.path(path), request, None))

    def read(self, opened: Open) -> bytes:
        """All bytes of what is open."""

        def body(snap: Snapshot) -> bytes:
            entry = opened.find(snap).entry
            parts = read_plan(snap, entry.content, 0, entry.length).parts
            return b"".join(map(self._bytes, parts))

        return outcome(self.engine.read(body))

    def _bytes(self, part: PlanPart) -> bytes:
        if isinstance(part, Zeros):
            return bytes(part.length)
        if isinstance(part, ExtentPart):
            return self.segments.read(part.extent, part.offset, part.length)
        return part

    def remove(self, path: str) -> None:
        outcome(file.delete(self.engine, self.files.path(path), None))

    def take_snapshot(self) -> Instant:
        return outcome(share_snapshots.take(self.engine, SHARE, {}))[0]

    def _new_id(self, persistent: int) -> FileId:
        self._volatile += 1
        return FileId(persistent, self._volatile)

    def _register(self, opened: Open) -> Open:
        self.tree.opens[opened.id.volatile] = opened
        return opened

    def call(
        self, handler: Handler, opened: Open | None, body: bytes, command: Command = Command.ECHO
    ) -> Answer:
        """Call a handler with the body of a request."""
        return outcome(handler(self.request(opened, body, command)))

    def request(self, opened: Open | None, body: bytes, command: Command = Command.ECHO) -> FakeRequest:
        header = Header(command, 1, credit_charge=128)
        tree = self.tree if opened is None else opened.tree
        message = memoryview(bytes(64) + body)
        return FakeRequest(self.environment, self.client, header, message, self.session, tree, opened)

    def status_of(self, handler: Handler, opened: Open | None, body: bytes) -> Status:
        """The status that a request fails with."""
        try:
            return self.call(handler, opened, body).status
        except Failed as failed:
            return failed.status

    def refusal_of(self, handler: Handler, opened: Open | None, body: bytes) -> str:
        """The reason for which the model refuses a request; empty if it does not. ``last_status`` is its status."""
        try:
            self.last_status = self.call(handler, opened, body).status.name
        except Failed as failed:
            self.last_status = failed.status.name
        except Refused as refused:
            return refused.reason.name
        return ""

    def failure_of(self, handler: Handler, opened: Open | None, body: bytes) -> Failed:
        try:
            self.call(handler, opened, body)
        except Failed as failed:
            return failed
        raise AssertionError("The request did not fail.")


class _NoMembership:
    id = OWNER

    def is_alive(self, owner: bytes) -> bool:
        return True

    def dead_owners(self) -> list[bytes]:
        return []

    def forget(self, owner: bytes) -> None: ...

    def close(self) -> None: ...
