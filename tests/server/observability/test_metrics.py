"""Counting, adding up and printing metrics."""

from kyanite.model.maintenance.scrub import ScrubFigures
from kyanite.server.http.limits import Stats
from kyanite.server.observability import metrics
from kyanite.server.observability.metrics import RequestMeter
from kyanite.server.observability.published_metrics import PublishedMetrics, StampFigures
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.store.maintenance import MaintenanceFigures


def test_requests_are_counted_by_service_operation_and_status() -> None:
    meter = RequestMeter()
    for status, seconds in ((200, 0.0004), (200, 0.003), (404, 0.02), (200, 100.0)):
        meter.count("blob", "Get Blob", status, seconds)
    meter.count("blob", "Put Blob", 201, 0.0005)
    samples = meter.samples()
    assert samples["kyanite_requests_total"] == {
        'service="blob",operation="Get Blob",status="200"': 3,
        'service="blob",operation="Get Blob",status="404"': 1,
        'service="blob",operation="Put Blob",status="201"': 1,
    }
    buckets = samples["kyanite_request_seconds_bucket"]
    found = {
        bound: buckets[f'service="blob",operation="Get Blob",le="{bound}"']
        for bound in ("0.0005", "0.005", "0.025")
    }
    assert found == {"0.0005": 1, "0.005": 2, "0.025": 3}
    assert buckets['service="blob",operation="Get Blob",le="60.0"'] == 3
    assert buckets['service="blob",operation="Get Blob",le="+Inf"'] == 4
    assert buckets['service="blob",operation="Put Blob",le="0.0005"'] == 1
    assert samples["kyanite_request_seconds_count"]['service="blob",operation="Get Blob"'] == 4
    assert samples["kyanite_request_seconds_sum"]['service="blob",operation="Get Blob"'] == 100.0234


def test_text_for_prometheus() -> None:
    samples = {
        "kyanite_requests_total": {metrics.labels(operation='a "b"\\\n', status="200"): 2.0},
        "kyanite_workers": {"": 3.0},
    }
    assert metrics.render(samples).decode() == (
        "# HELP kyanite_requests_total Requests answered, by service, operation and status.\n"
        "# TYPE kyanite_requests_total counter\n"
        'kyanite_requests_total{operation="a \\"b\\"\\\\\\n",status="200"} 2\n'
        "# HELP kyanite_workers Worker processes that serve.\n"
        "# TYPE kyanite_workers gauge\n"
        "kyanite_workers 3\n"
    )


def test_adding_up() -> None:
    total = metrics.add_up([{"a": {"": 1, "x": 2}}, {"a": {"x": 3}, "b": {"": 4}}, {}])
    assert total == {"a": {"": 1, "x": 5}, "b": {"": 4}}


def test_a_successor_counts_on_from_what_grew_and_not_from_what_was() -> None:
    slot = ProcessTable(["worker 1"]).slots["worker 1"]
    slot.take(1)
    meter, stats = RequestMeter(), Stats()
    meter.count("blob", "Get Blob", 200, 0.1)
    stats.bytes_in, stats.connections_open = 100, 7
    stamps = [
        StampFigures(
            "main", {"batches": 2, "transactions": 9}, MaintenanceFigures(4, 1), ScrubFigures(5, 6, 7, 8)
        ),
        StampFigures(
            "west", {"batches": 3, "transactions": 30}, MaintenanceFigures(5, 0), ScrubFigures(50, 2)
        ),
    ]
    PublishedMetrics(slot, meter, stats, lambda: stamps).publish()

    meter, stats = RequestMeter(), Stats()
    meter.count("blob", "Get Blob", 200, 0.2)
    stats.bytes_in, stats.connections_open = 11, 1
    stamps = [StampFigures("main", {}), StampFigures("west", {"batches": 1})]
    successor = PublishedMetrics(slot, meter, stats, lambda: stamps)
    for _ in range(2):
        successor.publish()
    samples = metrics.decode(slot.read_metrics())
    assert samples["kyanite_requests_total"] == {'service="blob",operation="Get Blob",status="200"': 2}
    assert samples["kyanite_request_seconds_count"] == {'service="blob",operation="Get Blob"': 2}
    assert samples["kyanite_received_bytes_total"] == {"": 111}
    assert samples["kyanite_connections"] == {"": 1}
    west = 'stamp="west"'
    assert samples["kyanite_engine_batches_total"] == {"": 2, west: 4}
    assert samples["kyanite_engine_transactions_total"] == {"": 9, west: 30}
    assert samples["kyanite_maintenance_steps_total"] == {"": 4, west: 5}
    assert samples["kyanite_maintenance_failures_total"] == {"": 1, west: 0}
    assert samples["kyanite_scrub_bytes_total"] == {"": 5, west: 50}
    assert samples["kyanite_scrub_passes_total"] == {"": 6, west: 2}
    assert "kyanite_damaged_extents" not in samples


def test_every_published_figure_is_printed() -> None:
    slot = ProcessTable(["worker 1"]).slots["worker 1"]
    meter = RequestMeter()
    meter.count("blob", "Get Blob", 200, 0.1)
    stamp = StampFigures("west", {}, MaintenanceFigures(), ScrubFigures())
    PublishedMetrics(slot, meter, Stats(), lambda: [stamp]).publish()
    samples = metrics.decode(slot.read_metrics())
    text = metrics.render(samples).decode()
    for name in samples:
        assert f"\n{name}" in text
