"""How often a sign-in may fail: some times per client and some times in all, in a worker, within a while."""

from kyanite.values import TICKS_PER_SECOND, Instant

WINDOW_SECONDS = 300
PER_CLIENT = 10
IN_ALL = 1000


class Attempts:
    def __init__(self) -> None:
        self._since: Instant | None = None
        self._failed: dict[str, int] = {}
        self._total = 0

    def may_try(self, peer: str, now: Instant) -> bool:
        if self._since is None or not 0 <= now - self._since < WINDOW_SECONDS * TICKS_PER_SECOND:
            self._since, self._failed, self._total = now, {}, 0
        return self._failed.get(peer, 0) < PER_CLIENT and self._total < IN_ALL

    def failed(self, peer: str) -> None:
        """At most ``IN_ALL`` clients are remembered, since none may try after that."""
        self._failed[peer] = self._failed.get(peer, 0) + 1
        self._total += 1
