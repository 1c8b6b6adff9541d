"""Tables over REST. They have no ETags and take no conditions."""

from collections.abc import Callable

import msgspec

from kyanite.edm import And, Comparison, Filter, Literal, Not, Or
from kyanite.model.tables import table
from kyanite.model.tables.filter import compile_filter
from kyanite.model.tables.table import TableKey
from kyanite.rules import entities
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.services.table.continuation import encode_key, key_of
from kyanite.services.table.formats import (
    NO_CONTENT,
    Level,
    check_content_type,
    json_headers,
    level_of,
    preference_of,
)
from kyanite.services.table.paths import table_key
from kyanite.services.table.query_options import check_options, top_of
from kyanite.slices import in_thread
from kyanite.wire import edm, odata
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed

_MAX_BODY_BYTES = 64 * 1024
_NAME = "TableName"
_PERMISSIONS = "raud"
_encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


async def create_table(context: RequestContext) -> Response:
    level, preference = level_of(context), preference_of(context.headers)
    check_content_type(context.headers)
    body = await context.request.body.read_all(_MAX_BODY_BYTES)
    if body is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_MAX_BODY_BYTES))
    name = edm.decode_table_name(body)
    entities.check_table_name(name)
    await table.create(context.store.engine, TableKey(context.account.name, name))
    address = f"{context.endpoint}Tables('{name}')"
    applied = [("Preference-Applied", preference)] if preference else []
    if preference == NO_CONTENT:
        return Response(204, [("DataServiceId", address), ("Location", address), *applied])
    headers = [*json_headers(level), ("Location", address), *applied]
    return Response(201, headers, _encode(_one(context, name, level)))


async def get_table(context: RequestContext) -> Response:
    level = level_of(context)
    record = await table.get(context.store.engine, table_key(context))
    return Response(200, json_headers(level), _encode(_one(context, record.name, level)))


async def query_tables(context: RequestContext) -> Response:
    level, parameters = level_of(context), context.parameters
    check_options(parameters)
    page = await table.list_tables(
        context.store.engine,
        context.account.name,
        matches=await in_thread(_matcher, parameters.get("$filter", "")),
        first=key_of(parameters, "nexttablename") or "",
        limit=top_of(parameters),
    )
    answer: dict[str, object] = {}
    if level is not Level.NONE:
        answer["odata.metadata"] = f"{context.endpoint}$metadata#Tables"
    answer["value"] = [_item(context, name, level) for name in page.names]
    headers = json_headers(level)
    if page.next_name is not None:
        headers.append(("x-ms-continuation-NextTableName", encode_key(page.next_name)))
    return Response(200, headers, _encode(answer))


async def delete_table(context: RequestContext) -> Response:
    await table.delete(context.store.engine, table_key(context))
    return Response(204)


async def get_table_acl(context: RequestContext) -> Response:
    record = await table.get(context.store.engine, table_key(context))
    return Response(200, [("Content-Type", "application/xml")], policies_document(record.policies))


async def set_table_acl(context: RequestContext) -> Response:
    policies = await policies_of(context, _PERMISSIONS)
    await table.set_policies(context.store.engine, table_key(context), policies)
    return Response(204)


def _one(context: RequestContext, name: str, level: Level) -> dict[str, str]:
    if level is Level.NONE:
        return {_NAME: name}
    return {
        "odata.metadata": f"{context.endpoint}$metadata#Tables/@Element",
        **_item(context, name, level),
    }


def _item(context: RequestContext, name: str, level: Level) -> dict[str, str]:
    if level is not Level.FULL:
        return {_NAME: name}
    return {
        "odata.type": f"{context.account.name}.Tables",
        "odata.id": f"{context.endpoint}Tables('{name}')",
        "odata.editLink": f"Tables('{name}')",
        _NAME: name,
    }


def _matcher(text: str) -> Callable[[str], bool]:
    """Table names compare without case."""
    wanted = odata.decode_filter(text)
    if wanted is None:
        return lambda _: True
    matches = compile_filter(_in_lower_case(wanted))
    return lambda name: matches(_encode({_NAME: name.lower()}))


def _in_lower_case(wanted: Filter) -> Filter:
    match wanted:
        case Comparison(name, operator, Literal(type_, str(value))) if name == _NAME:
            return Comparison(name, operator, Literal(type_, value.lower()))
        case And():
            return And(tuple(_in_lower_case(part) for part in wanted.parts))
        case Or():
            return Or(tuple(_in_lower_case(part) for part in wanted.parts))
        case Not():
            return Not(_in_lower_case(wanted.inner))
        case _:
            return wanted
