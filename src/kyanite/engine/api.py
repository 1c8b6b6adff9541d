"""The engine contract: ordered keys, snapshots, serialisable transactions, and a bell.

An engine knows keys and bytes. It has never heard of a lease, an ETag or a blob. Every engine passes the one suite in
``tests/engine/suite.py``; what that suite asks is what this file promises.

*Bodies.* Work is given as a plain synchronous function of a snapshot or a transaction. A body touches nothing but
that argument, may be run more than once, and must not keep it. New ids and random bytes come in as arguments; the time
is ``now``.

*Isolation.* ``read`` sees one committed state, taken after the call was made. ``run`` is strictly serialisable and
atomic. Whatever one process was told is committed, every other process reads from then on.

*Durability.* ``run`` answers after the commit is on disk. All outcomes of a group commit, refusals included, are
released only after its COMMIT, because a refusal may rest on a neighbour's write. ``durable=False`` is for state that
dies with a process: the same isolation, no sync.

*Size.* Keys have at most 8 KiB, values at most 1 MiB, and a body at most ``MAX_BODY_ROWS`` rows read or written:
listings and purges end a page early rather than hold the lock. Reads that can be asked for together should be
(``get_many``), and a scan that needs a page should say so (``limit``): on a remote engine each call is a round trip.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import NewType, Protocol, TypeVar

from kyanite.values import Instant

T = TypeVar("T")

Scope = NewType("Scope", bytes)
"""The partition a transaction works on: one queue, one table partition, one blob, one file. A hint, never a promise."""

MAX_KEY_BYTES = 8 * 1024
MAX_VALUE_BYTES = 1024 * 1024
MAX_BODY_ROWS = 100_000

BODY_PREFIX = b"b"
"""Keys of this byte and exactly eight more (a number below 2**63, big-endian) are inline bodies.

They are like any other key to whoever uses them; an engine may keep them apart, since their values are large.
"""


class Snapshot(Protocol):
    """One committed state."""

    @property
    def now(self) -> Instant:
        """When the body began to run; never below the instant of a committed transaction that this state holds."""

    def get(self, key: bytes) -> bytes | None: ...

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the keys, in one round trip."""

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end, in key order or backwards, lazily. Only valid inside the body.

        ``limit`` bounds how many rows are produced. A row written through the same transaction while a scan is
        under way may or may not appear in it.
        """


class Transaction(Snapshot, Protocol):
    """A snapshot that buffers writes and reads its own.

    ``now`` is unique: no two committed transactions of a store share one, and it grows from commit to commit as far
    as they are ordered by what they read and wrote. So it can name things as well as date them.
    """

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None:
        """Remove the key; nothing happens if it is not there."""

    def new_id(self) -> int:
        """A number below 2**63 that no other call, in any transaction of the store, ever returns; ids ascend.

        They are made of ``now``: eight to an instant, so they are also unlike the ids that older versions made of
        their own instants.
        """

    def notify(self, topic: bytes) -> None:
        """After the commit, wake whoever listens to the topic, in any process or node."""


class Engine(Protocol):
    def read(self, body: Callable[[Snapshot], T]) -> Awaitable[T]: ...

    def run(self, body: Callable[[Transaction], T], *scopes: Scope, durable: bool = True) -> Awaitable[T]: ...

    def subscribe(self, topic: bytes) -> AsyncIterator[None]:
        """Yields once per ring or more seldom: rings may be merged or lost. Subscribe first, then look.

        The subscription is in force when this call returns, before the first item is awaited. It lasts as long as
        the iterator is kept; when the engine is closed the iteration ends.
        """

    async def close(self) -> None:
        """Finish what was begun and let go of everything. Later calls raise EngineClosed."""


class EngineError(Exception):
    """The engine could not do its work. Nothing of the transaction is visible unless said otherwise."""


class EngineBusy(EngineError):
    """Not now, but soon: the queue of writers is full or a turn did not come in time. Nothing was written."""


class EngineFull(EngineError):
    """No space left. Nothing was written and reads go on."""


class OutcomeUnknown(EngineError):
    """The commit may or may not have reached the disk. The store takes no writes until it is opened again."""


class EngineFailed(EngineError):
    """An earlier commit ended in OutcomeUnknown and the store was not opened again since. Nothing was written."""


class EngineClosed(EngineError):
    """The engine was closed."""


class TooLarge(EngineError):
    """A key, a value or a body beyond the limits above: a fault of the caller, refused by every engine alike."""
