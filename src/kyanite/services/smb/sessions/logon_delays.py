"""Slows down clients that guess passwords: after some failures each further logon of an address has to wait.

The table is bounded. Each worker has its own, so an address has as many attempts as there are workers.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_FREE_FAILURES = 5
_FIRST_SECONDS = 0.25
_LONGEST_SECONDS = 5.0
_LONGEST_QUEUE_SECONDS = 20.0
_FORGOTTEN_SECONDS = 300.0
_ADDRESSES_MAX = 4096


@dataclass(slots=True)
class _Failures:
    count: int
    last_at: float
    next_at: float = 0.0
    """When the next attempt may be made: attempts over several connections queue up."""


class LogonDelays:
    def __init__(self, now_seconds: Callable[[], float]) -> None:
        self._now_seconds = now_seconds
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def delay_seconds(self, address: str) -> float | None:
        """How long this attempt has to wait; None if so many wait already that it is refused."""
        failures = self._failures.get(address)
        if failures is None or failures.count < _FREE_FAILURES:
            return 0.0
        now = self._now_seconds()
        if now - failures.last_at > _FORGOTTEN_SECONDS:
            del self._failures[address]
            return 0.0
        begins_at = max(now, failures.next_at)
        if begins_at - now > _LONGEST_QUEUE_SECONDS:
            return None
        doublings = min(failures.count - _FREE_FAILURES, 10)
        failures.next_at = begins_at + min(_FIRST_SECONDS * 2**doublings, _LONGEST_SECONDS)
        return failures.next_at - now

    def failed(self, address: str) -> None:
        failures = self._failures.setdefault(address, _Failures(0, 0.0))
        failures.count += 1
        failures.last_at = self._now_seconds()
        self._failures.move_to_end(address)
        if len(self._failures) > _ADDRESSES_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._failures.pop(address, None)
