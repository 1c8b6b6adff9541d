"""The roster: a piece of shared memory in which every process of a server says how it is doing.

It is mapped before the first fork, so all processes of one server see it and nobody else does. Each process has a
slot of its own that it alone writes to while it lives: its heartbeat, its state, how many connections it holds, and
its figures for ``/metrics``. Nothing here is needed for correctness; what two requests must agree on is in the engine.

Single fields are aligned 64-bit words, which a reader never sees half-written. The figures are guarded by a sequence
number that is odd while they are being written.
"""

import mmap
from enum import IntEnum

FIGURES_BYTES = 1 << 20
_FIELDS = 8
_SLOT_BYTES = 4096 + FIGURES_BYTES
_SLOT_WORDS = _SLOT_BYTES // 8
_PID, _STATE, _BEAT, _CONNECTIONS, _RESTARTS, _SEQUENCE, _LENGTH = range(7)


class State(IntEnum):
    """What a process is doing. A slot begins as GONE, and becomes so again when its process has ended."""

    GONE = 0
    STARTING = 1
    SERVING = 2
    STOPPING = 3


class Slot:
    """One process's place in the roster. Properties that only the process itself sets say so by having a setter."""

    __slots__ = ("_bytes", "_words", "name")

    def __init__(self, name: str, words: memoryview, figures: memoryview) -> None:
        self.name = name
        self._words = words
        self._bytes = figures

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
        """Counts up while the process's event loop turns."""
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
    def restarts(self) -> int:
        """How often the process of this slot was started again."""
        return self._words[_RESTARTS]

    def take(self, pid: int) -> None:
        """Give the slot to a process that is about to start. The figures stay: a successor counts on from them."""
        if self._words[_PID]:
            self._words[_RESTARTS] += 1
        self._words[_PID] = pid
        self._words[_CONNECTIONS] = 0
        self._words[_STATE] = State.STARTING

    def leave(self) -> None:
        self._words[_STATE] = State.GONE
        self._words[_CONNECTIONS] = 0

    def write_figures(self, figures: bytes) -> bool:
        """Replace the figures. False, and nothing changed, when they are too long."""
        if len(figures) > FIGURES_BYTES:
            return False
        self._words[_SEQUENCE] |= 1
        self._bytes[: len(figures)] = figures
        self._words[_LENGTH] = len(figures)
        self._words[_SEQUENCE] += 1
        return True

    def read_figures(self) -> bytes:
        """The last figures that were written whole; empty when there are none, or when a writer died over them."""
        for _ in range(1000):
            before = self._words[_SEQUENCE]
            if before & 1:
                continue
            figures = bytes(self._bytes[: self._words[_LENGTH]])
            if self._words[_SEQUENCE] == before:
                return figures
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
                everything[index * _SLOT_BYTES + 4096 : (index + 1) * _SLOT_BYTES],
            )
            for index, name in enumerate(names)
        }
