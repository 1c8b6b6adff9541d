"""Find Blobs by Tags over REST, in an account or in one container."""

from collections.abc import Mapping

from kyanite.model.blobs import tag_search
from kyanite.model.blobs.tag_search import POSITION_MAX_BYTES, FoundBlob, SearchPosition, TagSearch
from kyanite.rules.tag_expressions import InvalidExpression, Search, decode_search
from kyanite.services.blob.tags import SINCE
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.paging import encode_marker, enumeration, includes_of, marker_of, max_results_of
from kyanite.slices import encoded
from kyanite.wire import numbers
from kyanite.wire import tags as wire
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_parameter, missing_parameter
from kyanite.wire.xml import element, escape, name_element, valid_text

_IN_CONTAINERS_SINCE = "2021-04-10"
_ALL_TAGS_SINCE = "2020-04-08"
"""Before this version the response had only one value."""
_VERSIONS = "versions"


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
    start = page.next_start
    return enumeration(
        context,
        echo=f"<Where>{escape(valid_text(parameters['where']))}</Where>",
        name="Blobs",
        items=await encoded(page.blobs, write),
        next_marker=encode_marker(None if start is None else f"{start.way}:{start.at.decode('latin-1')}"),
    )


def _search_of(context: RequestContext) -> Search:
    text = context.parameters.get("where")
    if text is None:
        raise missing_parameter("where")
    try:
        return decode_search(text, names_container=not context.container)
    except InvalidExpression as error:
        raise bad_parameter("where", text, str(error)) from None


def _start_of(parameters: Mapping[str, str], search: Search) -> SearchPosition | None:
    """A marker is the number of a way, a colon, and the position as one character for each byte."""
    marked = marker_of(parameters)
    if not marked:
        return None
    number, _, text = marked.partition(":")
    way = numbers.decode(number)
    try:
        at = text.encode("latin-1")
    except UnicodeEncodeError:
        way, at = None, b""
    if way is None or not 0 <= way < tag_search.ways_to(search) or len(at) > POSITION_MAX_BYTES:
        raise bad_parameter("marker", parameters["marker"])
    return SearchPosition(way, at)


def _item(found: FoundBlob) -> str:
    return f"{_head(found)}{wire.element(found.tags)}</Blob>"


def _item_with_value(found: FoundBlob) -> str:
    return f"{_head(found)}{element('TagValue', found.tags[0][1])}</Blob>"


def _head(found: FoundBlob) -> str:
    return f"<Blob>{name_element(found.name)}{element('ContainerName', found.container)}"
