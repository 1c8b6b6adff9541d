"""Metrics: what a process counts, and the text for ``/metrics`` that adds up the counts of all processes.

A worker counts in plain dictionaries and writes them to its slot in the process table twice a second; the admin process
adds up the slots. The successor of a worker that died counts on from what that one had written last, so counters go
back only by what was counted since. Without an admin port nothing is counted.
"""

from collections.abc import Iterable, Mapping

import msgspec

Samples = dict[str, dict[str, float]]
"""Name of a metric to its values by labels, the labels as they are printed."""

BUCKETS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Metric(msgspec.Struct, frozen=True):
    name: str
    kind: str
    help: str


METRICS = (
    Metric("kyanite_requests_total", "counter", "Requests answered, by service, operation and status."),
    Metric("kyanite_request_seconds", "histogram", "From the head of a request to the end of its response."),
    Metric("kyanite_received_bytes_total", "counter", "Bytes received from clients."),
    Metric("kyanite_sent_bytes_total", "counter", "Bytes sent to clients."),
    Metric("kyanite_malformed_requests_total", "counter", "Requests that were not valid HTTP or SMB."),
    Metric("kyanite_stalled_total", "counter", "Connections closed because the client stalled."),
    Metric("kyanite_connections_total", "counter", "Connections accepted."),
    Metric(
        "kyanite_connections_refused_total", "counter", "Connections refused because there were too many."
    ),
    Metric("kyanite_connections", "gauge", "Connections open."),
    Metric("kyanite_requests_in_flight", "gauge", "Requests being answered."),
    Metric("kyanite_engine_batches_total", "counter", "Group commits of the engine, by stamp."),
    Metric("kyanite_engine_transactions_total", "counter", "Transactions in those group commits, by stamp."),
    Metric("kyanite_damaged_reads_total", "counter", "Requests that met damaged data."),
    Metric("kyanite_maintenance_steps_total", "counter", "Steps of maintenance that found work, by stamp."),
    Metric("kyanite_maintenance_failures_total", "counter", "Steps of maintenance that failed, by stamp."),
    Metric("kyanite_scrub_bytes_total", "counter", "Bytes that the scrub has read, by stamp."),
    Metric("kyanite_scrub_passes_total", "counter", "Times that the scrub has read everything, by stamp."),
    Metric("kyanite_damaged_extents", "gauge", "Extents in use that the scrub has found damaged, by stamp."),
    Metric(
        "kyanite_damaged_rows",
        "gauge",
        "Rows, or ranges of rows, that the scrub has found damaged, by stamp.",
    ),
    Metric("kyanite_workers", "gauge", "Worker processes that serve."),
    Metric("kyanite_restarts_total", "counter", "Processes that were started again, by process."),
    Metric("kyanite_resident_memory_bytes", "gauge", "Memory in use, by process."),
)
_COUNTERS = frozenset(metric.name for metric in METRICS if metric.kind != "gauge")

_decoder = msgspec.json.Decoder(Samples)


class RequestMeter:
    """Counts requests and how long they took."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int | str], int] = {}
        self._seconds: dict[tuple[str, str], list[float]] = {}

    def count(self, service: str, operation: str, status: int | str, seconds: float) -> None:
        key = service, operation, status
        self._requests[key] = self._requests.get(key, 0) + 1
        row = self._seconds.get((service, operation))
        if row is None:
            row = self._seconds[service, operation] = [0.0] * (len(BUCKETS_SECONDS) + 2)
        index = 0
        for bound in BUCKETS_SECONDS:
            if seconds <= bound:
                break
            index += 1
        row[index] += 1
        row[-1] += seconds

    def samples(self) -> Samples:
        found: Samples = {
            "kyanite_requests_total": {
                labels(service=service, operation=operation, status=str(status)): count
                for (service, operation, status), count in self._requests.items()
            }
        }
        buckets: dict[str, float] = {}
        for (service, operation), row in self._seconds.items():
            running = 0.0
            for bound, count in zip((*map(str, BUCKETS_SECONDS), "+Inf"), row, strict=False):
                running += count
                buckets[labels(service=service, operation=operation, le=bound)] = running
        found["kyanite_request_seconds_bucket"] = buckets
        found["kyanite_request_seconds_sum"] = {
            labels(service=service, operation=operation): row[-1]
            for (service, operation), row in self._seconds.items()
        }
        found["kyanite_request_seconds_count"] = {
            labels(service=service, operation=operation): sum(row[:-1])
            for (service, operation), row in self._seconds.items()
        }
        return found


def labels(**pairs: str) -> str:
    """Labels as they are printed, with backslashes, quotes and line breaks escaped."""
    return ",".join(f'{name}="{_escape(value)}"' for name, value in pairs.items())


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def encode(samples: Samples) -> bytes:
    return msgspec.json.encode(samples)


def decode(encoded: bytes) -> Samples:
    return _decoder.decode(encoded) if encoded else {}


def counters_of(samples: Samples) -> Samples:
    """The counters, from which a successor counts on; without the gauges."""
    return {name: values for name, values in samples.items() if _metric_of(name) in _COUNTERS}


def add_up(parts: Iterable[Mapping[str, Mapping[str, float]]]) -> Samples:
    total: Samples = {}
    for part in parts:
        for name, values in part.items():
            into = total.setdefault(name, {})
            for label, value in values.items():
                into[label] = into.get(label, 0) + value
    return total


def render(samples: Samples) -> bytes:
    """The text format of Prometheus, version 0.0.4."""
    lines = []
    for metric in METRICS:
        names = [metric.name]
        if metric.kind == "histogram":
            names = [f"{metric.name}{part}" for part in ("_bucket", "_sum", "_count")]
        rows = [(name, label, value) for name in names for label, value in samples.get(name, {}).items()]
        if rows:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
            lines += [
                f"{name}{{{label}}} {value:.17g}" if label else f"{name} {value:.17g}"
                for name, label, value in rows
            ]
    return ("\n".join(lines) + "\n").encode()


def _metric_of(name: str) -> str:
    for part in ("_bucket", "_sum", "_count"):
        if name.endswith(part):
            return name[: -len(part)]
    return name
