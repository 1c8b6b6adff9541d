"""The faults of a testing server, in memory that all its processes share.

The admin process changes the rules; a worker reads them again when their version has changed, so a change holds on
every worker as soon as it is made. Counts are changed under a lock between processes, so ``times`` is exact over all
workers.
"""

import mmap

import msgspec

from kyanite.server.testing.process_lock import ProcessLock
from kyanite.server.testing.rules import Counts, FaultRule, Identified, matches, next_counts
from kyanite.values import Instant

FAULTS_MAX = 256
_TEXT_BYTES_MAX = 1 << 20
_WORDS_OF_COUNTS = 4
_VERSION, _LENGTH, _LAST_ID, _COUNTS = 0, 1, 2, 3


class Fault(msgspec.Struct, frozen=True):
    id: int
    slot: int
    """Where its counts are."""
    rule: FaultRule


_decode = msgspec.json.Decoder(list[Fault]).decode


class FaultTable:
    """Made before the first fork."""

    def __init__(self) -> None:
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE * 4)).cast("q")
        self._text = mmap.mmap(-1, _TEXT_BYTES_MAX)
        self._lock = ProcessLock()
        self._known_version = 0
        self._known: list[Fault] = []

    # For the admin process.

    def add(self, rule: FaultRule) -> Fault | None:
        """None if there is no room for another one."""
        with self._lock:
            present = self._read()
            free = set(range(FAULTS_MAX)) - {fault.slot for fault in present}
            if not free:
                return None
            fault = Fault(self._words[_LAST_ID] + 1, min(free), rule)
            if not self._write([*present, fault]):
                return None
            self._words[_LAST_ID] = fault.id
            self._save_counts(fault, Counts())
            return fault

    def remove(self, fault_id: int) -> bool:
        with self._lock:
            present = self._read()
            kept = [fault for fault in present if fault.id != fault_id]
            return len(kept) < len(present) and self._write(kept)

    def clear(self, account: str | None = None) -> None:
        """Remove all faults, or those for an account."""
        with self._lock:
            self._write([fault for fault in self._read() if account not in (None, fault.rule.account)])

    def all(self) -> list[tuple[Fault, Counts]]:
        with self._lock:
            return [(fault, self._counts(fault)) for fault in self._read()]

    # For workers.

    def next_fault(self, request: Identified, now: Instant) -> Fault | None:
        """What happens to a request, which counts with this call. The first fault that matches and happens wins."""
        if self._words[_VERSION] == self._known_version and not self._candidates(request):
            return None
        with self._lock:
            self._read()
            for fault in self._candidates(request):
                counts, happens = next_counts(fault.rule, self._counts(fault), now)
                self._save_counts(fault, counts)
                if happens:
                    return fault
        return None

    def _candidates(self, request: Identified) -> list[Fault]:
        return [fault for fault in self._known if matches(fault.rule, request)]

    # Under the lock.

    def _read(self) -> list[Fault]:
        if self._words[_VERSION] != self._known_version:
            self._known = _decode(self._text[: self._words[_LENGTH]])
            self._known_version = self._words[_VERSION]
        return self._known

    def _write(self, faults: list[Fault]) -> bool:
        text = msgspec.json.encode(faults)
        if len(text) > _TEXT_BYTES_MAX:
            return False
        self._text[: len(text)] = text
        self._words[_LENGTH] = len(text)
        self._words[_VERSION] += 1
        return True

    def _counts(self, fault: Fault) -> Counts:
        at = _COUNTS + fault.slot * _WORDS_OF_COUNTS
        return Counts(*self._words[at : at + _WORDS_OF_COUNTS])

    def _save_counts(self, fault: Fault, counts: Counts) -> None:
        at = _COUNTS + fault.slot * _WORDS_OF_COUNTS
        words = (counts.matched, counts.fired, counts.window_began_at, counts.window_requests)
        for offset, word in enumerate(words):
            self._words[at + offset] = word
