"""The engine contract: ordered keys, snapshots, serialisable transactions, and notifications.

An engine stores keys and bytes. It knows no lease, ETag or blob. Every engine passes the suite in
``tests/engine/suite.py``, which tests what this file promises.

*Bodies.* The caller passes a plain synchronous function of a snapshot or a transaction. A body uses nothing but that
argument, may run more than once, and must not keep it. Random bytes come in as arguments; the time is ``now``, and
``new_id`` allocates ids. What a process remembers may decide which rows a body reads together, never its outcome.

*Isolation.* ``read`` sees one committed state, taken after the call was made. ``run`` is strictly serialisable and
atomic. Once ``run`` has returned in one process, every later read of any process sees the commit.

*Durability.* ``run`` returns after the commit is on disk. All outcomes of a group commit, refusals included, are
returned only after its COMMIT, because a refusal may depend on the write of another body in the group.
``durable=False`` is for state that ends with a process: the same isolation, no sync.

*Size.* Keys have at most 8 KiB, values at most 1 MiB, and a body reads or writes at most ``MAX_BODY_ROWS`` rows: no
process serves anything else while a body runs. Purges are many small transactions. A read that needs more rows of one
committed state is a body in steps (``read_in_steps``), each of them within the limit. On a remote engine each call is a
round trip, so a body reads keys together (``get_many``) and says how many rows of a scan it needs (``limit``).

*Damage.* An engine keeps a checksum of key and value with each row and checks it when it returns the row, or relies
on a database that does so with its pages. Bytes that are not those that were written are never returned: the call
raises ``Damaged``, a scan when it comes to the row or somewhat earlier. Other rows can still be read and written, and
the other bodies of a group commit are not affected. A row whose key is damaged may seem not to be there.
"""

from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import NewType, Protocol, TypeVar

from kyanite.values import Instant

T = TypeVar("T")

Scope = NewType("Scope", bytes)
"""The partition of a transaction: one queue, one table partition, one blob, one file. A hint: engines may ignore it."""

MAX_KEY_BYTES = 8 * 1024
MAX_VALUE_BYTES = 1024 * 1024
MAX_BODY_ROWS = 2_500
"""For the 2,000 rows that a body may be about, and those that lead to them."""

STEP_ROWS = 500
"""How many rows a step of a long read should take, so that it takes about half a millisecond."""

Steps = Generator[None, None, T]
"""What a body that reads in steps returns: it yields at the end of each step, and returns its result."""

BODY_PREFIX = b"b"
"""Keys of this byte and exactly eight more (a number below 2**63, big-endian) are inline bodies.

To callers they are keys like any other; an engine may store them apart, because their values are large.
"""


class Snapshot(Protocol):
    """One committed state."""

    @property
    def now(self) -> Instant:
        """When the body began to run; not earlier than any transaction that is part of this state."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the keys, in one round trip."""

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end, in key order or backwards, lazily. Only valid inside the body.

        The scan returns at most ``limit`` rows. A row that the same transaction writes during the scan may or may not
        appear in it.
        """

    def scan_groups(
        self, start: bytes, end: bytes, *, inside: int, delimiter: bytes, limit: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end, in key order: of each group only the first, and all that are in none.

        A group are the keys with the same bytes up to and including the first ``delimiter`` that begins at the byte
        ``inside`` or behind it. What is left out of a group is skipped, however many rows it has, and on a remote
        engine without a round trip for each group. Lazy as ``scan``, with at most ``limit`` rows; rows that are left
        out do not count. The delimiter is not empty and does not end in 0xff, as no text does.
        """

    def without_checksum(self, start: bytes, end: bytes) -> list[bytes]:
        """Keys of rows with start <= key < end that an older version wrote without a checksum, in no order.

        Putting such a row again, with the same value, gives it one. For a range that the body has scanned: it costs
        about as much.
        """


class Transaction(Snapshot, Protocol):
    """A snapshot that buffers writes and reads its own.

    ``now`` is unique: no two committed transactions of a store share one, and it grows from commit to commit as far
    as they are ordered by what they read and wrote. So it can serve as an ETag as well as a date.
    """

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None:
        """Delete the key; nothing happens if there is no such key."""

    def new_id(self) -> int:
        """A number below 2**63 that no other call, in any transaction of the store, ever returns; ids ascend.

        They are made of ``now``: eight to an instant, so they also differ from the ids that older versions made of
        their own instants.
        """

    def notify(self, topic: bytes) -> None:
        """After the commit, notify the subscribers of the topic, in every process and node."""


class Subscription(Protocol):
    """Notifications of one topic, of which several may be merged into one."""

    def __aiter__(self) -> "Subscription": ...

    def __anext__(self) -> Awaitable[None]: ...

    @property
    def is_notified(self) -> bool:
        """Whether one has come that was not awaited yet. A commit of the same process notifies before its ``run``
        returns."""


class Engine(Protocol):
    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]: ...

    def read_in_steps(self, body: Callable[[Snapshot], Steps[T]]) -> Awaitable[T]:
        """Read more than a body may, all of one committed state. Between the steps the loop serves others.

        Scans go on from step to step. An engine has few of these reads under way at a time; more of them wait.
        """

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]: ...

    def subscribe(self, topic: bytes) -> Subscription:
        """Yields after notifications of the topic. Several may be merged into one, and some may be lost.

        The subscription begins when this call returns, before the first item is awaited: subscribe first, then read.
        It lasts as long as the iterator is referenced; when the engine is closed the iteration ends.
        """

    async def close(self) -> None:
        """Finish running transactions and release all resources. Later calls raise EngineClosed."""


class EngineError(Exception):
    """The engine failed. Nothing of the transaction was written, unless a subclass says otherwise."""


class EngineBusy(EngineError):
    """The queue of writers is full, or the write lock was not free in time. Nothing was written; try again."""


class EngineFull(EngineError):
    """No space left. Nothing was written; reads still work."""


class Damaged(EngineError):
    """Stored bytes are missing, or are not those that were written. Nothing of them was returned.

    ``key`` is that of the damaged row as it is stored, if the damage is known to be that of one row.
    """

    def __init__(self, text: str, key: bytes | None = None) -> None:
        super().__init__(text)
        self.key = key


class OutcomeUnknown(EngineError):
    """The commit may or may not be on disk. The store refuses writes until it is opened again."""


class EngineFailed(EngineError):
    """An earlier commit ended in OutcomeUnknown, and the store was not opened again since. Nothing was written."""


class EngineClosed(EngineError):
    """The engine was closed."""


class TooLarge(EngineError):
    """A key, a value or a body exceeds the limits above: an error of the caller, the same in every engine."""
