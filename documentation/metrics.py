"""The metrics of ``GET /metrics``."""

from documentation.markdown import code, table
from kyanite.server.observability.metrics import METRICS

_HISTOGRAM = ("_bucket", "_sum", "_count")


def names() -> set[str]:
    """Of what can be queried."""
    found = {metric.name for metric in METRICS}
    parts = (
        f"{metric.name}{part}" for metric in METRICS if metric.kind == "histogram" for part in _HISTOGRAM
    )
    return found.union(parts)


def metrics_table() -> str:
    rows = [[code(metric.name), metric.kind, metric.help] for metric in METRICS]
    return table(("metric", "kind", "what it counts"), rows)
