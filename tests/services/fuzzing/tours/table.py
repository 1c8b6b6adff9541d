"""What the official client for tables can do."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
    UpdateMode,
)

Step = Callable[[], Any]
_ENTITY: dict[str, Any] = {
    "PartitionKey": "p",
    "RowKey": "r",
    "Text": "x",
    "Number": 5,
    "Big": EntityProperty(1 << 40, EdmType.INT64),
    "Flag": True,
    "When": datetime(2026, 11, 16, tzinfo=UTC),
    "Id": UUID(int=7),
    "Data": b"\x00\xff",
    "Real": 1.5,
}


def steps(url: str, key: str, options: dict[str, Any]) -> Iterator[Step]:
    service = TableServiceClient(
        url, credential=AzureNamedKeyCredential(url.rpartition("/")[2], key), **options
    )
    retention = TableRetentionPolicy(enabled=True, days=5)
    yield lambda: service.set_service_properties(
        hour_metrics=TableMetrics(enabled=True, retention_policy=retention)
    )
    yield service.get_service_properties
    yield service.get_service_stats
    for name in ("things", "Others", "spare"):
        yield partial(service.create_table, name)
    yield lambda: list(service.list_tables(results_per_page=1))
    yield lambda: list(service.query_tables("TableName ge 'a'"))
    table = service.get_table_client("things")
    yield lambda: table.set_table_access_policy({"reader": TableAccessPolicy(permission="r")})
    yield table.get_table_access_policy
    yield lambda: table.create_entity(_ENTITY)
    yield lambda: table.get_entity("p", "r", select=["Text", "Big"])
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        yield partial(table.upsert_entity, {**_ENTITY, "RowKey": "s"}, mode=mode)
        yield partial(table.update_entity, {**_ENTITY, "Text": "it's"}, mode=mode)
        yield partial(
            table.update_entity,
            _ENTITY,
            mode=mode,
            etag='W/"x"',
            match_condition=MatchConditions.IfNotModified,
        )
    yield lambda: list(table.list_entities(results_per_page=1, select="Text"))
    yield lambda: list(table.query_entities("Number gt @n", parameters={"n": 1}))
    yield lambda: list(table.query_entities("PartitionKey eq 'p' and RowKey ge 'a'", results_per_page=1))
    given = {"w": _ENTITY["When"], "i": UUID(int=7)}
    yield lambda: list(table.query_entities("When lt @w or Id eq @i", parameters=given))
    yield lambda: table.submit_transaction(
        [
            ("create", {**_ENTITY, "RowKey": "1"}),
            ("upsert", {**_ENTITY, "RowKey": "2"}, {"mode": "replace"}),
            ("update", {**_ENTITY, "RowKey": "r"}, {"mode": "merge"}),
            ("delete", {"PartitionKey": "p", "RowKey": "s"}),
        ]
    )
    yield lambda: table.delete_entity("p", "r")
    yield lambda: service.delete_table("spare")
