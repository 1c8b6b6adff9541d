"""A worker's figures on their way to the roster, from where the admin process reads them."""

import logging

from kyanite.engine.sqlite.group_commit import Commits
from kyanite.server.http.limits import Stats
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import RequestMeter, Samples
from kyanite.server.processes.process_table import Slot

_log = logging.getLogger("kyanite.metrics")


class Publication:
    """Writes what a process counted to its slot, on top of what its predecessors had counted."""

    def __init__(self, slot: Slot, meter: RequestMeter, stats: Stats, commits: Commits | None) -> None:
        """``commits`` is None when the engine does not count any."""
        self._slot = slot
        self._meter = meter
        self._stats = stats
        self._commits = commits or Commits()
        self._before = metrics.counters_of(metrics.decode(slot.read_figures()))

    def publish(self) -> None:
        figures = metrics.encode(metrics.add_up([self._before, self._meter.samples(), self._samples()]))
        if not self._slot.write_figures(figures):
            _log.warning("too many figures to publish", extra={"bytes": len(figures)})

    def _samples(self) -> Samples:
        stats = self._stats
        return {
            "kyanite_received_bytes_total": {"": stats.bytes_in},
            "kyanite_sent_bytes_total": {"": stats.bytes_out},
            "kyanite_malformed_requests_total": {"": stats.requests_malformed},
            "kyanite_stalled_total": {"": stats.stalls_total},
            "kyanite_connections_total": {"": stats.connections_total},
            "kyanite_connections_refused_total": {"": stats.connections_refused},
            "kyanite_connections": {"": stats.connections_open},
            "kyanite_requests_in_flight": {"": stats.requests_in_flight},
            "kyanite_engine_batches_total": {"": self._commits.batches},
            "kyanite_engine_transactions_total": {"": self._commits.transactions},
        }
