"""Clients that open files of a share in memory with oplocks and leases, and what they are sent."""

from typing import NamedTuple

from kyanite.engine.api import Transaction
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import keys
from kyanite.model.files import tree
from kyanite.model.files.opens import caching, grants, opening
from kyanite.model.files.opens.caching import NO_CACHING, CachingRequest, Granted
from kyanite.model.files.opens.opening import Opened, OpenRequest
from kyanite.model.files.opens.records import Handle, key_of_lease
from kyanite.model.files.opens.waits import Wait
from kyanite.rules.create_options import CreateTerms, Disposition
from kyanite.rules.oplocks import ALL, AcknowledgementError, Caching
from kyanite.values import Instant, later
from tests.model.content.world import outcome
from tests.model.files.builders import OWNER, SHARE, FileShare

STATES = {
    "-": Caching.NONE,
    "R": Caching.READ,
    "RH": Caching.READ | Caching.HANDLE,
    "RW": Caching.READ | Caching.WRITE,
    "RWH": ALL,
}
NAMES = {state: name for name, state in STATES.items()}
EVERYTHING = 0x001F01FF
READ_DATA = 0x1
READ_ATTRIBUTES = 0x80


class Sent(NamedTuple):
    """A break as a client gets it."""

    key: str
    """Of a lease, by the number of its client and its own; of an oplock, ``oplock``."""
    change: str
    is_acknowledged: bool


class CachingClients:
    def __init__(self) -> None:
        self.now = Instant(10**17)
        self.engine = MemoryEngine(clock=self._tick)
        self.share = FileShare(self.engine)
        self.file_id = self.share.make_file("f", 100)

    def _tick(self) -> Instant:
        self.now = Instant(self.now + 1)
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now = later(self.now, seconds)

    def open(
        self,
        wanted: CachingRequest = NO_CACHING,
        *,
        path: str = "f",
        access: int = EVERYTHING,
        sharing: int = 7,
        disposition: int = Disposition.OPEN,
        options: int = 0,
        owner: bytes = OWNER,
        has_waited: bool = False,
        durable_seconds: int = 0,
        create_guid: bytes = b"",
        reuses_guid: bool = False,
    ) -> Opened | Wait:
        terms = CreateTerms(access, 0, sharing, disposition, options)
        request = OpenRequest(
            tuple(path.split("/")),
            terms,
            owner,
            7,
            "192.0.2.1",
            wanted.lease[:16],
            caching=wanted,
            has_waited=has_waited,
            durable_seconds=durable_seconds,
            create_guid=create_guid,
            reuses_guid=reuses_guid,
        )

        def body(tx: Transaction) -> Opened | Wait:
            opened = opening.open_at(tx, tree.open_tree(tx, SHARE), request, may_change=True)
            assert isinstance(opened, Opened | Wait)
            return opened

        return outcome(self.engine.run(body, durable=False))

    def opened(self, wanted: CachingRequest = NO_CACHING, **terms: object) -> Handle:
        opened = self.open(wanted, **terms)  # type: ignore[arg-type]
        assert isinstance(opened, Opened)
        return opened.handle

    def granted(self, wanted: CachingRequest, **terms: object) -> Granted:
        opened = self.open(wanted, **terms)  # type: ignore[arg-type]
        assert isinstance(opened, Opened)
        return opened.caching

    def state(self, wanted: CachingRequest, file_id: int | None = None) -> str:
        """What the owner of a lease has now."""
        opened = self.share.open_file(self.file_id if file_id is None else file_id)
        found = None if opened is None else grants.find(opened.grants, wanted.lease)
        return "gone" if found is None else NAMES[grants.rule_of(found, self.now).state]

    def close(self, handle: Handle, file_id: int | None = None) -> None:
        self.share.close(self.file_id if file_id is None else file_id, handle.id)

    def acknowledge(self, wanted: CachingRequest, kept: str) -> Caching | AcknowledgementError:
        return outcome(self.engine.run(lambda tx: caching.acknowledge_lease(tx, wanted.lease, STATES[kept])))

    def acknowledge_oplock(self, handle: Handle, kept: str) -> Caching | AcknowledgementError:
        def body(tx: Transaction) -> Caching | AcknowledgementError:
            return caching.acknowledge_oplock(tx, self.share.id, self.file_id, handle.id, STATES[kept])

        return outcome(self.engine.run(body))

    def sent(self, owner: bytes = OWNER) -> list[Sent]:
        """What the process has to send, which is then sent."""

        def body(tx: Transaction) -> list[Sent]:
            rows = grants.read_messages(tx, owner, 100)
            for key, _ in rows:
                tx.delete(key)
            return [
                Sent(
                    f"{each.key[0]}.{each.lease_key[0]}" if each.version else "oplock",
                    f"{NAMES[Caching(each.current)]}>{NAMES[Caching(each.to)]}",
                    each.is_acknowledged,
                )
                for _, each in rows
            ]

        return outcome(self.engine.run(body))

    def lease_keys(self) -> int:
        return len(self.share.rows(keys.lease_key(b"")))


def lease(state: str, client: int = 1, key: int = 1, *, version: int = 2, epoch: int = 0) -> CachingRequest:
    identity = key_of_lease(bytes([client]) * 16, bytes([key]) * 16)
    return CachingRequest(STATES[state], identity, version, epoch)


def oplock(state: str) -> CachingRequest:
    return CachingRequest(STATES[state])
