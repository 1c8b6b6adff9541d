"""The generated parts by the names that pages have for them."""

from collections.abc import Callable, Mapping
from functools import partial

from documentation import decisions, diagrams, metrics, operations, options

PARTS: Mapping[str, Callable[[], str]] = {
    "options of serve": options.serve_table,
    "other commands": options.command_tables,
    "operations": operations.counts,
    **{f"operations of {service}": partial(operations.rest_table, service) for service in operations.TABLES},
    "commands of smb": operations.smb_table,
    "metrics": metrics.metrics_table,
    "decisions": decisions.index,
    "lease diagram": diagrams.lease_diagram,
    "lease table": diagrams.lease_table,
    "message diagram": diagrams.message_diagram,
    "caching diagram": diagrams.caching_diagram,
    "share modes": diagrams.share_mode_table,
    "conditions": diagrams.condition_table,
}
