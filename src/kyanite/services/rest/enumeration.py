"""``EnumerationResults``: the document around the items of a listing, whatever is listed.

It is put together from templates, since a page may be megabytes. Whatever a client chose is escaped; what the server
made needs none.
"""

from collections.abc import Mapping

from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response
from kyanite.wire.xml import escape, escape_attribute, valid_text


def enumeration(
    context: RequestContext,
    *,
    echo: str,
    items: str,
    next_marker: str,
    attributes: str = "",
    behind: str = "",
) -> Response:
    """A page. ``attributes`` are those of the root beside the address of the service, ``behind`` comes last."""
    text = (
        '<?xml version="1.0" encoding="utf-8"?>'
        f'<EnumerationResults ServiceEndpoint="{escape_attribute(context.endpoint)}"{attributes}>'
        f"{echo}{items}<NextMarker>{next_marker}</NextMarker>{behind}</EnumerationResults>"
    )
    return Response(200, [("Content-Type", "application/xml")], text.encode())


def echo_of(context: RequestContext, limit: int) -> str:
    """What the client asked for, said back."""
    parameters = context.parameters
    echo = ""
    if "prefix" in parameters:
        echo += f"<Prefix>{escape(valid_text(parameters['prefix']))}</Prefix>"
    if "marker" in parameters:
        echo += f"<Marker>{escape(valid_text(parameters['marker']))}</Marker>"
    if "maxresults" in parameters:
        echo += f"<MaxResults>{limit}</MaxResults>"
    return echo


def metadata_element(metadata: Mapping[str, str]) -> str:
    if not metadata:
        return "<Metadata />"
    return f"<Metadata>{''.join(f'<{name}>{escape(text)}</{name}>' for name, text in metadata.items())}</Metadata>"
