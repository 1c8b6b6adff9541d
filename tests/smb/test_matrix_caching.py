"""What REST operations break of what an SMB client may cache, and whether they wait for the client.

The table is that of Azure's article on managing file locks. An operation that waits ends when the client acknowledges
the break, and not before.
"""

import struct
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.open import Open

from tests.smb.messages import GENERIC_READ, READ_WRITE, SHARE_ALL, Client, connected, context
from tests.smb.rest import LENGTH, OPERATIONS, Operation, refusal
from tests.smb.shares import KyaniteShare

NONE, R, RH, RW, RWH = 0, 1, 3, 5, 7
LEASE = 0xFF
KEY = b"a key of a lease"
_BREAK = struct.Struct("<HHI16sII")
_ACKNOWLEDGEMENT = struct.Struct("<HHI16sIQ")
_OPLOCK_BREAK = struct.Struct("<HB5x16s")
_WAIT_SECONDS = 30.0
SHARING = (409, "SharingViolation")

READS = ("Get File", "Get File Properties", "Get File Metadata", "List Ranges")
WRITES = ("Put Range", "Set File Properties", "Set File Metadata")

Row = tuple[str, int, int | None, bool]
ROWS: list[Row] = [
    *[(name, RWH, RH, True) for name in READS],
    *[(name, RH, None, False) for name in READS],
    *[(name, RW, R, True) for name in READS],
    *[(name, RWH, NONE, True) for name in WRITES],
    *[(name, RH, NONE, False) for name in WRITES],
    *[(name, RW, NONE, True) for name in WRITES],
    ("List Directories and Files", RWH, None, False),
    ("List Directories and Files", RH, None, False),
    ("List Directories and Files", RW, None, False),
]
"""The operation, the lease of the client, what it is broken to, and whether the operation waits for that."""


class Acknowledgement:
    """Not among the messages of smbprotocol."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self.COMMAND = 18

    def pack(self) -> bytes:
        return self._packed

    def __len__(self) -> int:
        return len(self._packed)


@pytest.fixture
def share(share: KyaniteShare) -> KyaniteShare:
    share.put("f", bytes(LENGTH))
    return share


@pytest.fixture
def rest(share: KyaniteShare) -> ShareClient:
    return share.rest


@pytest.fixture
def client(share: KyaniteShare) -> Iterator[Client]:
    with connected(share.login, share.name) as made:
        yield made


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def opened_with_lease(
    client: Client, state: int, *, access: int = READ_WRITE, sharing: int = SHARE_ALL
) -> Open:
    request = context(b"RqLs", KEY + struct.pack("<IIQ", state, 0, 0))
    return client.create("f", access=access, sharing=sharing, contexts=[request], oplock=LEASE)


def next_break(client: Client) -> tuple[int, bool]:
    """What the lease is broken to, and whether the client has to acknowledge it."""
    size, _, flags, key, _, new = _BREAK.unpack_from(client.breaks.next())
    assert (size, key) == (44, KEY)
    return new, bool(flags & 1)


def acknowledge(client: Client, state: int) -> None:
    client.call(Acknowledgement(_ACKNOWLEDGEMENT.pack(36, 0, 0, KEY, state, 0)))


def started(threads: ThreadPoolExecutor, rest: ShareClient, operation: Operation) -> Future[object]:
    return threads.submit(refusal, rest, operation)


def rounds(rest: ShareClient) -> None:
    """Long enough that an operation which did not wait would have been answered."""
    for _ in range(5):
        rest.get_share_properties()


@pytest.mark.parametrize(("name", "state", "broken_to", "waits"), ROWS)
def test_rest_breaks_a_lease(
    client: Client,
    rest: ShareClient,
    threads: ThreadPoolExecutor,
    name: str,
    state: int,
    broken_to: int | None,
    waits: bool,
) -> None:
    opened_with_lease(client, state)
    operation = started(threads, rest, OPERATIONS[name])
    if broken_to is None:
        assert operation.result(_WAIT_SECONDS) is None
        assert client.breaks.is_empty()
        return
    assert next_break(client) == (broken_to, waits or state != R)
    if waits:
        rounds(rest)
        assert not operation.done()
        acknowledge(client, broken_to)
    assert operation.result(_WAIT_SECONDS) is None
    assert client.breaks.is_empty()


@pytest.mark.parametrize(("state", "broken_to"), [(RWH, RW), (RH, R), (RW, None)])
@pytest.mark.parametrize("closes", [False, True])
def test_a_deletion_breaks_what_lets_a_client_keep_the_handle(
    client: Client,
    rest: ShareClient,
    threads: ThreadPoolExecutor,
    state: int,
    broken_to: int | None,
    closes: bool,
) -> None:
    """The handle may be one that the client's user has closed and the client has kept."""
    opened = opened_with_lease(client, state)
    operation = started(threads, rest, OPERATIONS["Delete File"])
    if broken_to is None:
        assert operation.result(_WAIT_SECONDS) == SHARING
        assert client.breaks.is_empty()
        return
    assert next_break(client) == (broken_to, True)
    rounds(rest)
    assert not operation.done()
    if closes:
        client.close(opened)
    else:
        acknowledge(client, broken_to)
    assert operation.result(_WAIT_SECONDS) == (None if closes else SHARING)


@pytest.mark.parametrize("closes", [False, True])
def test_before_a_sharing_violation_a_client_may_close_the_handle(
    client: Client, rest: ShareClient, threads: ThreadPoolExecutor, closes: bool
) -> None:
    opened = opened_with_lease(client, RH, access=GENERIC_READ, sharing=0)
    operation = started(threads, rest, OPERATIONS["Get File"])
    assert next_break(client) == (R, True)
    rounds(rest)
    assert not operation.done()
    if closes:
        client.close(opened)
    else:
        acknowledge(client, R)
    assert operation.result(_WAIT_SECONDS) == (None if closes else SHARING)


EXCLUSIVE, BATCH, LEVEL_II = 8, 9, 1


@pytest.mark.parametrize("level", [EXCLUSIVE, BATCH])
@pytest.mark.parametrize(("name", "broken_to"), [("Get File", LEVEL_II), ("Put Range", 0)])
def test_rest_breaks_an_oplock(
    client: Client, rest: ShareClient, threads: ThreadPoolExecutor, level: int, name: str, broken_to: int
) -> None:
    opened = client.create("f", access=READ_WRITE, oplock=level)
    operation = started(threads, rest, OPERATIONS[name])
    size, new, file_id = _OPLOCK_BREAK.unpack(client.breaks.next())
    assert (size, new, file_id) == (24, broken_to, opened.file_id)
    rounds(rest)
    assert not operation.done()
    client.call(Acknowledgement(_OPLOCK_BREAK.pack(24, broken_to, file_id)))
    assert operation.result(_WAIT_SECONDS) is None


def test_the_time_of_a_request_limits_its_wait(client: Client, rest: ShareClient) -> None:
    opened_with_lease(client, RWH)
    found = refusal(rest, lambda each: each.get_file_client("f").get_file_properties(timeout=1))
    assert found == (408, "ClientCacheFlushDelay")


def test_a_client_that_vanishes_is_not_waited_for(
    share: KyaniteShare, rest: ShareClient, threads: ThreadPoolExecutor
) -> None:
    with connected(share.login, share.name) as leaving:
        opened_with_lease(leaving, RWH)
        operation = started(threads, rest, OPERATIONS["Put Range"])
        next_break(leaving)
    assert operation.result(_WAIT_SECONDS) is None


def test_what_a_client_writes_before_it_acknowledges_is_read(
    client: Client, rest: ShareClient, threads: ThreadPoolExecutor
) -> None:
    opened = opened_with_lease(client, RWH)
    reading = threads.submit(lambda: rest.get_file_client("f").download_file(0, 7).readall())
    assert next_break(client) == (RH, True)
    client.write(opened, b"flushed", 0)
    acknowledge(client, RH)
    assert reading.result(_WAIT_SECONDS) == b"flushed"
