"""Tables and their entities. An entity is edited as the JSON that the service speaks, with the types of its values."""

import json
from urllib.parse import quote

from kyanite.services.console.client import Answer, BadInput
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Response

_PAGE = 50
_JSON = "application/json;odata=minimalmetadata"
_HEADERS = {"Accept": _JSON, "DataServiceVersion": "3.0", "MaxDataServiceVersion": "3.0"}
_NEXT = "x-ms-continuation-next"
_KEYS = ("PartitionKey", "RowKey")
_COLUMNS_MAX = 12


async def show_tables(visit: Visit) -> Response:
    query: dict[str, str | int] = {"$top": _PAGE}
    if visit.get("next"):
        query["NextTableName"] = visit.get("next")
    found = await visit.client.call("table", "GET", "/Tables", query, _HEADERS)
    return visit.page(
        "tables.html",
        tables=[str(each["TableName"]) for each in _values(found)],
        next_table=found.headers.get(f"{_NEXT}tablename", ""),
        section="table",
    )


async def create_table(visit: Visit) -> Response:
    name = visit.need("table")
    body = json.dumps({"TableName": name}).encode()
    headers = {**_HEADERS, "Content-Type": "application/json"}
    await visit.client.call("table", "POST", "/Tables", {}, headers, body)
    return _back(visit, "created")


async def delete_table(visit: Visit) -> Response:
    await visit.client.call("table", "DELETE", f"/Tables({_quoted(visit.need('table'))})", {}, _HEADERS)
    return visit.go_to("/tables", "deleted", account=visit.account.name)


async def show_table(visit: Visit) -> Response:
    """A page of entities, those that fit the filter. A page may end early, and the next one goes on."""
    table = visit.need("table")
    query: dict[str, str | int] = {"$top": _PAGE}
    if visit.get("filter"):
        query["$filter"] = visit.get("filter")
    if visit.get("next_partition"):
        query |= {"NextPartitionKey": visit.get("next_partition"), "NextRowKey": visit.get("next_row")}
    found = await visit.client.call("table", "GET", f"/{quote(table, safe='')}()", query, _HEADERS)
    entities = [_entity(each) for each in _values(found)]
    names = list(dict.fromkeys(name for entity in entities for name in entity))
    columns = [name for name in names if name not in (*_KEYS, "Timestamp")][:_COLUMNS_MAX]
    return visit.page(
        "table.html",
        table=table,
        filter=visit.get("filter"),
        entities=entities,
        columns=columns,
        next_partition=found.headers.get(f"{_NEXT}partitionkey", ""),
        next_row=found.headers.get(f"{_NEXT}rowkey", ""),
        section="table",
    )


async def show_entity(visit: Visit) -> Response:
    """One entity to edit; without keys an empty one to add."""
    table = visit.need("table")
    if "partition" not in visit.query:
        example = {"PartitionKey": "", "RowKey": ""}
        return _editor(visit, table, json.dumps(example, indent=2), etag="")
    found = await visit.client.call("table", "GET", _path(visit), {}, {**_HEADERS, "Accept": _JSON})
    entity = {
        name: value
        for name, value in found.json.items()
        if not name.startswith("odata.") and name not in ("Timestamp", "Timestamp@odata.type")
    }
    return _editor(
        visit, table, json.dumps(entity, indent=2, ensure_ascii=False), etag=found.headers.get("etag", "")
    )


def _editor(visit: Visit, table: str, text: str, *, etag: str) -> Response:
    return visit.page(
        "entity.html",
        table=table,
        text=text,
        etag=etag,
        partition=visit.query.get("partition", ""),
        row=visit.query.get("row", ""),
        section="table",
    )


async def save_entity(visit: Visit) -> Response:
    """Insert, or replace the entity if it is still as it was when it was shown."""
    entity = _parsed(visit.need("entity"))
    body = json.dumps(entity).encode()
    headers = {**_HEADERS, "Content-Type": "application/json"}
    if not visit.get("etag"):
        path = f"/{quote(visit.need('table'), safe='')}"
        await visit.client.call("table", "POST", path, {}, headers, body)
        return _back(visit, "created")
    keys = (visit.get("partition"), visit.get("row"))
    if tuple(entity.get(name) for name in _KEYS) != keys:
        raise BadInput("The keys of an entity cannot be changed: add another one, and delete this one.")
    await visit.client.call(
        "table", "PUT", _path(visit), {}, {**headers, "If-Match": visit.get("etag")}, body
    )
    return _back(visit, "saved")


async def delete_entity(visit: Visit) -> Response:
    headers = {**_HEADERS, "If-Match": visit.get("etag") or "*"}
    await visit.client.call("table", "DELETE", _path(visit), {}, headers)
    return _back(visit, "deleted")


def _parsed(text: str) -> dict[str, object]:
    try:
        entity = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"That is not JSON: {error}.") from None
    if not isinstance(entity, dict):
        raise BadInput("An entity is an object: names and values in braces.")
    return entity


def _path(visit: Visit) -> str:
    keys = f"PartitionKey={_quoted(visit.get('partition'))},RowKey={_quoted(visit.get('row'))}"
    return f"/{quote(visit.need('table'), safe='')}({keys})"


def _quoted(text: str) -> str:
    """A text as the address of an entity has it: quotes are doubled, and everything is percent-encoded."""
    return "'" + quote(text.replace("'", "''"), safe="") + "'"


def _values(answer: Answer) -> list[dict[str, object]]:
    found = answer.json["value"]
    assert isinstance(found, list)
    return found


def _entity(stored: dict[str, object]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in stored.items()
        if "odata." not in name
    }


def _back(visit: Visit, done: str) -> Response:
    return visit.go_to("/table", done, account=visit.account.name, table=visit.need("table"))
