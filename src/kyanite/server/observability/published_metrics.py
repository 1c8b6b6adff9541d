"""Writes what a worker counted to the process table, from which the admin process reads it."""

import logging
from collections.abc import Callable, Mapping

from kyanite.model import damage
from kyanite.model.maintenance.scrub import ScrubFigures
from kyanite.server.http.limits import Stats
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import RequestMeter, Samples
from kyanite.server.processes.process_table import Slot
from kyanite.server.smb.limits import Stats as SmbStats

_log = logging.getLogger("kyanite.metrics")


class PublishedMetrics:
    """What a process counted, added to what its predecessors in the same slot had counted."""

    def __init__(
        self,
        slot: Slot,
        meter: RequestMeter,
        stats: Stats,
        engine_counters: Callable[[], Mapping[str, int]],
        smb_stats: SmbStats | None = None,
        scrub_figures: ScrubFigures | None = None,
    ) -> None:
        self._slot = slot
        self._meter = meter
        self._stats = stats
        self._smb_stats = smb_stats or SmbStats()
        self._scrub_figures = scrub_figures
        self._engine_counters = engine_counters
        self._before = metrics.counters_of(metrics.decode(slot.read_metrics()))

    def publish(self) -> None:
        encoded = metrics.encode(metrics.add_up([self._before, self._meter.samples(), self._samples()]))
        if not self._slot.write_metrics(encoded):
            _log.warning("too many metrics to publish", extra={"bytes": len(encoded)})

    def _samples(self) -> Samples:
        stats, smb, engine = self._stats, self._smb_stats, self._engine_counters()
        samples: Samples = {
            "kyanite_received_bytes_total": {"": stats.bytes_in + smb.bytes_in},
            "kyanite_sent_bytes_total": {"": stats.bytes_out + smb.bytes_out},
            "kyanite_malformed_requests_total": {"": stats.requests_malformed + smb.malformed_total},
            "kyanite_stalled_total": {"": stats.stalls_total + smb.stalls_total},
            "kyanite_connections_total": {"": stats.connections_total + smb.connections_total},
            "kyanite_connections_refused_total": {"": stats.connections_refused + smb.connections_refused},
            "kyanite_connections": {"": stats.connections_open + smb.connections_open},
            "kyanite_requests_in_flight": {"": stats.requests_in_flight},
            "kyanite_engine_batches_total": {"": engine.get("batches", 0)},
            "kyanite_engine_transactions_total": {"": engine.get("transactions", 0)},
            "kyanite_damaged_reads_total": {"": damage.reports.reads},
        }
        if (scrub := self._scrub_figures) is not None:
            samples |= {
                "kyanite_scrub_bytes_total": {"": scrub.bytes},
                "kyanite_scrub_passes_total": {"": scrub.passes},
                "kyanite_damaged_extents": {"": scrub.damaged_extents},
                "kyanite_damaged_rows": {"": scrub.damaged_rows},
            }
        return samples
