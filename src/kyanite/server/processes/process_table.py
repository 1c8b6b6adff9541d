"""The process table: shared memory in which every process of a server publishes its state.

It is mapped before the first fork, so the processes of one server see it and no others do. Each process writes to a
slot of its own: its heartbeat, its state, how many connections it has open, and its metrics. Nothing here is needed
for correctness; what two requests must agree on is in the engine.

Single fields are aligned 64-bit words, which a reader never sees half-written. The metrics are protected by a sequence
number that is odd while they are being written.
"""

import mmap
from enum import IntEnum

from kyanite.values import Instant

METRICS_BYTES = 1 << 20
_FIELDS = 11
_SLOT_BYTES = 4096 + METRICS_BYTES
_SLOT_WORDS = _SLOT_BYTES // 8
_NAME_AT, _NAME_BYTES = 1024, 24
(
    _PID,
    _STATE,
    _BEAT,
    _CONNECTIONS,
    _RESTARTS,
    _SEQUENCE,
    _LENGTH,
    _SMB_CONNECTIONS,
    _ACCOUNTS_AT,
    _DRAINING,
    _STORE_ANSWERED_NS,
) = range(_FIELDS)


class State(IntEnum):
    """What a process is doing. A slot begins as GONE, and becomes so again when its process has ended."""

    GONE = 0
    STARTING = 1
    SERVING = 2
    STOPPING = 3


class Slot:
    """The entry of one process. Only the process itself uses the setters, but for what its supervisor decides."""

    __slots__ = ("_bytes", "_name", "_words", "is_spare", "name")

    def __init__(self, name: str, words: memoryview, account: memoryview, metrics: memoryview) -> None:
        self.name = name
        self.is_spare = False
        """Whether the process accepts connections only when the others have many. To be set before the fork."""
        self._name = account
        self._words = words
        self._bytes = metrics

    @property
    def pid(self) -> int:
        return self._words[_PID]

    @property
    def state(self) -> State:
        return State(self._words[_STATE])

    @state.setter
    def state(self, state: State) -> None:
        self._words[_STATE] = state

    @property
    def beat(self) -> int:
        """Counts up while the process's event loop runs."""
        return self._words[_BEAT]

    def count_beat(self) -> None:
        self._words[_BEAT] += 1

    @property
    def connections(self) -> int:
        return self._words[_CONNECTIONS]

    @connections.setter
    def connections(self, connections: int) -> None:
        self._words[_CONNECTIONS] = connections

    @property
    def smb_connections(self) -> int:
        return self._words[_SMB_CONNECTIONS]

    @smb_connections.setter
    def smb_connections(self, connections: int) -> None:
        self._words[_SMB_CONNECTIONS] = connections

    @property
    def accounts_at(self) -> Instant:
        """Of the last change of an account that the process obeys."""
        return Instant(self._words[_ACCOUNTS_AT])

    @accounts_at.setter
    def accounts_at(self, instant: Instant) -> None:
        self._words[_ACCOUNTS_AT] = instant

    @property
    def first_account(self) -> str:
        """Of those that the process serves; empty if there is none."""
        return bytes(self._name).rstrip(b"\0").decode("ascii")

    @first_account.setter
    def first_account(self, name: str) -> None:
        self._name[:] = name.encode("ascii").ljust(_NAME_BYTES, b"\0")

    @property
    def is_draining(self) -> bool:
        """Whether the server is about to stop: clients should go elsewhere. The supervisor sets it."""
        return bool(self._words[_DRAINING])

    def drain(self) -> None:
        self._words[_DRAINING] = 1

    @property
    def store_answered_ns(self) -> int:
        """When the store last answered the process, by ``time.monotonic_ns()``; 0 if it has not."""
        return self._words[_STORE_ANSWERED_NS]

    @store_answered_ns.setter
    def store_answered_ns(self, nanoseconds: int) -> None:
        self._words[_STORE_ANSWERED_NS] = nanoseconds

    @property
    def restarts(self) -> int:
        """How often the process of this slot was started again."""
        return self._words[_RESTARTS]

    def take(self, pid: int) -> None:
        """Give the slot to a process that starts. The metrics stay: a successor counts on from them."""
        if self._words[_PID]:
            self._words[_RESTARTS] += 1
        self._words[_PID] = pid
        self._words[_ACCOUNTS_AT] = -1
        self._words[_STORE_ANSWERED_NS] = 0
        self._words[_CONNECTIONS] = 0
        self._words[_SMB_CONNECTIONS] = 0
        self._words[_STATE] = State.STARTING

    def leave(self) -> None:
        self._words[_STATE] = State.GONE
        self._words[_CONNECTIONS] = 0
        self._words[_SMB_CONNECTIONS] = 0

    def write_metrics(self, encoded: bytes) -> bool:
        """Replace the metrics. Returns False, having changed nothing, when they are too long."""
        if len(encoded) > METRICS_BYTES:
            return False
        self._words[_SEQUENCE] |= 1
        self._bytes[: len(encoded)] = encoded
        self._words[_LENGTH] = len(encoded)
        self._words[_SEQUENCE] += 1
        return True

    def read_metrics(self) -> bytes:
        """The last metrics that were written whole; empty when there are none, or a writer died while writing."""
        for _ in range(1000):
            before = self._words[_SEQUENCE]
            if before & 1:
                continue
            encoded = bytes(self._bytes[: self._words[_LENGTH]])
            if self._words[_SEQUENCE] == before:
                return encoded
        return b""


class ProcessTable:
    """All the slots, by the names of their processes."""

    def __init__(self, names: list[str]) -> None:
        self._memory = mmap.mmap(-1, _SLOT_BYTES * len(names))
        everything = memoryview(self._memory)
        words = everything.cast("q")
        self.slots = {
            name: Slot(
                name,
                words[index * _SLOT_WORDS : index * _SLOT_WORDS + _FIELDS],
                everything[index * _SLOT_BYTES + _NAME_AT : index * _SLOT_BYTES + _NAME_AT + _NAME_BYTES],
                everything[index * _SLOT_BYTES + 4096 : (index + 1) * _SLOT_BYTES],
            )
            for index, name in enumerate(names)
        }
