"""Entities over REST: one at a time, and queries."""

from functools import lru_cache
from typing import Final

from kyanite.model.tables import entity, query, stored_entity, table
from kyanite.model.tables.change import Change
from kyanite.model.tables.entity import Written
from kyanite.model.tables.query import Plan, Query
from kyanite.rules import entities
from kyanite.rules.authorization import shared_keys
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.rest.context import RequestContext
from kyanite.services.table.changes import (
    MAX_BODY_BYTES,
    act_of,
    authorize_change,
    change_of,
    check_insertion,
    etag_header,
    insertion_of,
)
from kyanite.services.table.continuation import encode_key, key_of
from kyanite.services.table.entity_json import entity_body, page_body
from kyanite.services.table.formats import NO_CONTENT, json_response, level_of, preference_of
from kyanite.services.table.paths import NO_KEYS, entity_path, table_key
from kyanite.services.table.query_options import check_options, has_options, selected_of, top_of
from kyanite.slices import in_thread
from kyanite.wire import odata
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed

_CACHED_FILTER_LENGTH: Final = 1024


async def insert_entity(context: RequestContext) -> Response:
    level, preference = level_of(context), preference_of(context.headers)
    body = await _body(context)
    check_insertion(context.headers)
    change = insertion_of(body)
    if change is None:
        # A missing table takes precedence over missing keys.
        await table.get(context.store.engine, table_key(context))
        raise Refused(Reason.PROPERTIES_NEED_VALUE)
    written = await _apply(context, change)
    address = context.endpoint + entity_path(written.table_name, change.partition_key, change.row_key)
    headers = [etag_header(written.etag), ("Location", address)]
    if preference:
        headers.append(("Preference-Applied", preference))
    if preference == NO_CONTENT:
        return Response(204, [*headers, ("DataServiceId", address)])
    text = entity_body(context, written.table_name, written.texts[0], level)
    return json_response(level, 201, headers, text)


async def change_entity(context: RequestContext) -> Response:
    """Update, Merge, Insert Or Replace and Insert Or Merge."""
    partition_key, row_key = context.keys
    act = act_of(context.request.method, context.headers)
    change = change_of(act, partition_key, row_key, context.headers, await _body(context))
    written = await _apply(context, change)
    return Response(204, [etag_header(written.etag)])


async def delete_entity(context: RequestContext) -> Response:
    partition_key, row_key = context.keys
    act = act_of(context.request.method, context.headers)
    await _apply(context, change_of(act, partition_key, row_key, context.headers, b""))
    return Response(204)


async def delete_nothing(context: RequestContext) -> Response:
    """A deletion that names a table but no entity."""
    await table.get(context.store.engine, table_key(context))
    raise Malformed("InvalidInput", Reason=NO_KEYS)


async def get_entity(context: RequestContext) -> Response:
    level, selected = level_of(context), None
    if has_options(context):
        check_options(context.parameters)
        selected = selected_of(context.parameters)
    partition_key, row_key = context.keys
    shared = shared_keys(context.principal)
    if shared is not None and not entities.is_within(shared, partition_key, row_key):
        # A shared access signature for some entities does not reveal others.
        raise Refused(Reason.ENTITY_NOT_FOUND)
    found = await entity.find(context.store.engine, table_key(context), partition_key, row_key)
    headers = [etag_header(stored_entity.etag_of(found.text))]
    body = entity_body(context, found.table_name, found.text, level, selected)
    return json_response(level, 200, headers, body)


async def query_entities(context: RequestContext) -> Response:
    level, parameters = level_of(context), context.parameters
    check_options(parameters)
    selected = selected_of(parameters)
    request = Query(
        await _plan(parameters.get("$filter", "")),
        first=_first(context),
        within=shared_keys(context.principal),
        limit=top_of(parameters),
    )
    page = await query.query(context.store.engine, table_key(context), request)
    headers: list[tuple[str, str]] = []
    if page.next_keys is not None:
        partition_key, row_key = page.next_keys
        headers.append(("x-ms-continuation-NextPartitionKey", encode_key(partition_key)))
        headers.append(("x-ms-continuation-NextRowKey", encode_key(row_key)))
    body = await page_body(context, page.table_name, page.texts, level, selected)
    return json_response(level, 200, headers, body)


async def _body(context: RequestContext) -> bytes:
    body = await context.request.body.read_all(MAX_BODY_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(MAX_BODY_BYTES))
    return body


async def _apply(context: RequestContext, change: Change) -> Written:
    authorize_change(context, change)
    return await entity.apply(context.store.engine, table_key(context), (change,))


def _first(context: RequestContext) -> tuple[str, str] | None:
    partition_key = key_of(context.parameters, "nextpartitionkey")
    if partition_key is None:
        return None
    return partition_key, key_of(context.parameters, "nextrowkey") or ""


async def _plan(text: str) -> Plan:
    """Busy clients repeat their filters, so plans of a usual length are cached: they depend on the text alone."""
    return _cached_plan(text) if len(text) <= _CACHED_FILTER_LENGTH else await in_thread(_make_plan, text)


def _make_plan(text: str) -> Plan:
    return query.plan(odata.decode_filter(text))


_cached_plan: Final = lru_cache(maxsize=256)(_make_plan)
