"""Writes what a worker counted to the process table, from which the admin process reads it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kyanite.model import damage
from kyanite.model.maintenance.scrub import ScrubFigures
from kyanite.server.http.limits import Stats
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import RequestMeter, Samples
from kyanite.server.processes.process_table import Slot
from kyanite.server.smb.limits import Stats as SmbStats
from kyanite.server.stamps.stamp import MAIN
from kyanite.server.store.maintenance import MaintenanceFigures

_log = logging.getLogger("kyanite.metrics")


class StampFigures(NamedTuple):
    """What a process has counted for a stamp. Only one of the processes maintains it."""

    stamp: str
    engine: Mapping[str, int]
    maintenance: MaintenanceFigures | None = None
    scrub: ScrubFigures | None = None


class PublishedMetrics:
    """What a process counted, added to what its predecessors in the same slot had counted."""

    def __init__(
        self,
        slot: Slot,
        meter: RequestMeter,
        stats: Stats,
        stamps: Callable[[], Sequence[StampFigures]],
        smb_stats: SmbStats | None = None,
    ) -> None:
        self._slot = slot
        self._meter = meter
        self._stats = stats
        self._smb_stats = smb_stats or SmbStats()
        self._stamps = stamps
        self._before = metrics.counters_of(metrics.decode(slot.read_metrics()))

    def publish(self) -> None:
        parts = [self._before, self._meter.samples(), self._samples(), *map(_samples_of, self._stamps())]
        encoded = metrics.encode(metrics.add_up(parts))
        if not self._slot.write_metrics(encoded):
            _log.warning("too many metrics to publish", extra={"bytes": len(encoded)})

    def _samples(self) -> Samples:
        stats, smb = self._stats, self._smb_stats
        return {
            "kyanite_received_bytes_total": {"": stats.bytes_in + smb.bytes_in},
            "kyanite_sent_bytes_total": {"": stats.bytes_out + smb.bytes_out},
            "kyanite_malformed_requests_total": {"": stats.requests_malformed + smb.malformed_total},
            "kyanite_stalled_total": {"": stats.stalls_total + smb.stalls_total},
            "kyanite_connections_total": {"": stats.connections_total + smb.connections_total},
            "kyanite_connections_refused_total": {"": stats.connections_refused + smb.connections_refused},
            "kyanite_connections": {"": stats.connections_open + smb.connections_open},
            "kyanite_requests_in_flight": {"": stats.requests_in_flight},
            "kyanite_damaged_reads_total": {"": damage.reports.reads},
        }


def _samples_of(stamp: StampFigures) -> Samples:
    """The main stamp has no label, as in a server that has no other."""
    engine, work, scrub = stamp.engine, stamp.maintenance, stamp.scrub
    counted: dict[str, float] = {
        "kyanite_engine_batches_total": engine.get("batches", 0),
        "kyanite_engine_transactions_total": engine.get("transactions", 0),
    }
    if work is not None:
        counted["kyanite_maintenance_steps_total"] = work.steps
        counted["kyanite_maintenance_failures_total"] = work.failures
    if scrub is not None:
        counted["kyanite_scrub_bytes_total"] = scrub.bytes
        counted["kyanite_scrub_passes_total"] = scrub.passes
        counted["kyanite_damaged_extents"] = scrub.damaged_extents
        counted["kyanite_damaged_rows"] = scrub.damaged_rows
    label = "" if stamp.stamp == MAIN else metrics.labels(stamp=stamp.stamp)
    return {name: {label: value} for name, value in counted.items()}
