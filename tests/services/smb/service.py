"""An SMB service in memory: two accounts, the first of which has a share, and clients of hand-made messages."""

import os
from dataclasses import replace
from pathlib import Path

from kyanite.engine.api import Engine
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.extents.local.file_system import FileSystem
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership
from kyanite.model import keys, settings
from kyanite.model.accounts import Account, Store
from kyanite.model.files import directory, share
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.service_properties import ProtocolSettings, ServiceProperties
from kyanite.services.smb.environment import SmbEnvironment
from kyanite.services.smb.service import smb_service
from kyanite.wire.smb2.transport import Connect
from tests.services.harness import ACCOUNT, OTHER, Clock
from tests.services.smb.raw_client import RawClient

SHARE = "share"


class SmbService:
    def __init__(
        self, folder: Path, *, engine: Engine | None = None, file_system: FileSystem | None = None
    ) -> None:
        self.clock = Clock()
        self._folder = folder
        self.memberships = [LocalMembership(folder / "owners")]
        self.extents = LocalExtents(folder, self.memberships[0], file_system=file_system)
        self.engine = MemoryEngine(clock=self.clock) if engine is None else engine
        self.environment = SmbEnvironment(self._accounts(), self.clock, b"the server's id.")
        self._clients: list[RawClient] = []
        self._has_share = False
        self._connect: Connect | None = None

    async def aclose(self) -> None:
        for client in self._clients:
            await client.leave()
        await self.extents.close()
        for membership in self.memberships:
            membership.close()

    def _accounts(self) -> dict[str, Account]:
        store = Store(self.engine, self.extents, self.memberships[-1])
        return {each.name: Account(each.name, each.keys, store) for each in (ACCOUNT, OTHER)}

    async def make_share(self, name: str = SHARE, protocol: str = "SMB") -> None:
        await share.create(
            self.engine,
            ShareKey(ACCOUNT.name, name),
            {},
            ShareSettings(protocol=protocol),
            directory.create_root,
        )

    async def set_protocols(self, protocols: ProtocolSettings) -> None:
        await settings.update(self.engine, ACCOUNT.name, "file", ServiceProperties(protocols=protocols))

    def require_encryption(self) -> None:
        self.environment = replace(self.environment, requires_encryption=True)
        self._connect = None

    def next_random_bytes(self, data: bytes) -> None:
        """What the service gets when it wants so many random bytes the next time."""
        pending = [data]

        def random_bytes(count: int) -> bytes:
            return pending.pop() if pending and count == len(data) else os.urandom(count)

        self.environment = replace(self.environment, random_bytes=random_bytes)
        self._connect = None

    def answer_writes_early(self) -> None:
        """Durability is promised at FLUSH only."""
        self.environment = replace(self.environment, is_durable=False)
        self._connect = None

    def another_process(self) -> None:
        """From now on clients are served by another process, so to say."""
        self.memberships.append(LocalMembership(self._folder / "owners"))
        self.environment = replace(self.environment, accounts=self._accounts())
        self._connect = None

    async def rows(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        return await self.engine.read(lambda snap: list(snap.scan(prefix, keys.after(prefix))))

    async def handle_count(self) -> int:
        """How many handles are open, by the rows of the processes that serve them."""
        return len(await self.rows(b"Q"))

    def client(self, address: str = "192.0.2.7") -> RawClient:
        """One that has sent nothing yet."""
        if self._connect is None:
            self._connect = smb_service(self.environment)
        client = RawClient(self._connect, address)
        self._clients.append(client)
        return client

    def forget(self, client: RawClient) -> None:
        self._clients.remove(client)

    async def negotiated(self, *dialects: int, **options: object) -> RawClient:
        client = self.client()
        await client.negotiate(*(dialects or (0x0311,)), **options)
        return client

    async def logged_on(self, *dialects: int, **options: object) -> RawClient:
        client = await self.negotiated(*dialects, **options)
        await client.log_on()
        return client

    async def connected(self, *dialects: int, **options: object) -> RawClient:
        """One that is connected to the share."""
        if not self._has_share:
            self._has_share = True
            await self.make_share()
        client = await self.logged_on(*dialects, **options)
        await client.connect_tree()
        return client
