"""Find Blobs by Tags over REST, in an account or in one container."""

import re

from kyanite.model.blobs import tag_search
from kyanite.model.blobs.tag_search import (
    BEGINNING,
    POSITION_MAX_BYTES,
    FoundBlob,
    SearchPosition,
    TagSearch,
)
from kyanite.rules.tag_expressions import InvalidExpression, Search, decode_search
from kyanite.services.blob.tags import SINCE
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.paging import encode_marker, enumeration, includes_of, marker_of, max_results_of
from kyanite.slices import encoded
from kyanite.wire import tags as wire
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_parameter, missing_parameter
from kyanite.wire.xml import element, escape, name_element, valid_text

_IN_CONTAINERS_SINCE = "2021-04-10"
_ALL_TAGS_SINCE = "2020-04-08"
"""Before this version the response had only one value."""
_VERSIONS = "versions"
_MARKED = re.compile(
    r"(\d{1,2}):(\d{1,2}):(\d{1,12}):(\d{1,12}):(\d{1,5}):(\d{1,5}):([\x00-\xff]*)", re.ASCII
)


async def find_blobs_in_account(context: RequestContext) -> Response:
    return await _find(context, SINCE)


async def find_blobs_in_container(context: RequestContext) -> Response:
    return await _find(context, _IN_CONTAINERS_SINCE)


async def _find(context: RequestContext, since: str) -> Response:
    parameters = context.parameters
    if context.version < since:
        raise bad_parameter("comp", parameters["comp"])
    if _VERSIONS in includes_of(parameters, frozenset({"none", _VERSIONS})):
        raise Malformed("NotImplemented", QueryParameterName="include")
    search = _search_of(context)
    request = TagSearch(
        account=context.account.name,
        search=search,
        container=context.container,
        first=_start_of(parameters, search),
        limit=max_results_of(parameters),
    )
    page = await tag_search.find_blobs(context.store.engine, request)
    write = _item if context.version >= _ALL_TAGS_SINCE else _item_with_value
    return enumeration(
        context,
        echo=f"<Where>{escape(valid_text(parameters['where']))}</Where>",
        name="Blobs",
        items=await encoded(page.blobs, write),
        next_marker=encode_marker(None if page.next_start is None else _marked(page.next_start)),
    )


def _search_of(context: RequestContext) -> Search:
    text = context.parameters.get("where")
    if text is None:
        raise missing_parameter("where")
    try:
        return decode_search(text, names_container=not context.container)
    except InvalidExpression as error:
        raise bad_parameter("where", text, str(error)) from None


def _marked(start: SearchPosition) -> str:
    """Numbers, then positions on three ways, one character for each byte; the numbers have the lengths of two."""
    at, after, tried_at = start.at, start.after, start.tried_at
    numbers = (start.way, start.tried, start.limit, start.spent, len(at), len(after))
    return f"{':'.join(map(str, numbers))}:{(at + after + tried_at).decode('latin-1')}"


def _start_of(parameters: dict[str, str], search: Search) -> SearchPosition:
    text = marker_of(parameters)
    if not text:
        return BEGINNING
    found = _MARKED.fullmatch(text)
    if found is None:
        raise bad_parameter("marker", parameters["marker"])
    way, tried, limit, spent, first, second = map(int, found.groups()[:6])
    positions, ways = found[7].encode("latin-1"), tag_search.ways_to(search)
    at, after = positions[:first], positions[first : first + second]
    tried_at = positions[first + second :]
    is_too_long = max(len(at), len(after), len(tried_at)) > POSITION_MAX_BYTES
    if way >= ways or not 1 <= tried < max(ways, 2) or limit == 0 or is_too_long:
        raise bad_parameter("marker", parameters["marker"])
    return SearchPosition(way, at, after, tried, tried_at, limit, spent)


def _item(found: FoundBlob) -> str:
    return f"{_head(found)}{wire.element(found.tags)}</Blob>"


def _item_with_value(found: FoundBlob) -> str:
    return f"{_head(found)}{element('TagValue', found.tags[0][1])}</Blob>"


def _head(found: FoundBlob) -> str:
    return f"<Blob>{name_element(found.name)}{element('ContainerName', found.container)}"
