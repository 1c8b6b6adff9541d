"""Lists in pages: the parameters of a request for one, and the ``EnumerationResults`` document around its items.

A marker is opaque to clients. Ours is the name at which the next page begins, in a form that survives any URL. The
document is made from templates, since a page may be megabytes; values from clients are escaped.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kyanite.services.rest.context import RequestContext
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_parameter, parameter_out_of_range
from kyanite.wire.xml import escape, escape_attribute, valid_text

MAX_RESULTS = 5000
_MARK = "1!"


class ListRequest(NamedTuple):
    """The parameters that all lists have."""

    prefix: str
    first: str
    """The name in the marker; empty without a marker."""
    limit: int
    parts: frozenset[str]
    """The values of ``include``, in lower case."""


def list_request_of(parameters: dict[str, str], allowed_parts: frozenset[str]) -> ListRequest:
    parts = includes_of(parameters, allowed_parts)
    limit = max_results_of(parameters)
    return ListRequest(parameters.get("prefix", ""), marker_of(parameters), limit, parts)


def max_results_of(parameters: dict[str, str]) -> int:
    """How many results a page may have; a number above the maximum counts as the maximum."""
    text = parameters.get("maxresults")
    if not text:
        return MAX_RESULTS
    try:
        wanted = int(text)
    except ValueError:
        raise bad_parameter("maxresults", text) from None
    if wanted <= 0:
        raise parameter_out_of_range("maxresults", text, 1, MAX_RESULTS)
    return min(wanted, MAX_RESULTS)


def encode_marker(name: str | None) -> str:
    """The marker for a page that begins at this name; empty when there is no further page."""
    if name is None:
        return ""
    return _MARK + base64.urlsafe_b64encode(name.encode()).decode("ascii").rstrip("=")


def marker_of(parameters: dict[str, str]) -> str:
    """The name in the marker; empty without a marker."""
    text = parameters.get("marker")
    if not text:
        return ""
    try:
        if not text.startswith(_MARK):
            raise ValueError(text)
        coded = text[len(_MARK) :]
        return base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise bad_parameter("marker", text, "The marker was not given out by this server.") from None


def includes_of(parameters: dict[str, str], allowed: frozenset[str]) -> frozenset[str]:
    """The values of the ``include`` parameter, in lower case."""
    text = parameters.get("include")
    if not text:
        return frozenset()
    parts = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if not parts <= allowed:
        raise bad_parameter("include", text)
    return parts


def list_page(
    context: RequestContext,
    limit: int,
    name: str,
    items: Sequence[bytes],
    next_name: str | None,
    *,
    attributes: str = "",
    echo: str = "",
    behind: str = "",
) -> Response:
    """A page of items whose marker is a name. ``echo`` comes behind the parameters that all lists repeat."""
    return enumeration(
        context,
        echo=_echo_of(context, limit) + echo,
        name=name,
        items=items,
        next_marker=encode_marker(next_name),
        attributes=attributes,
        behind=behind,
    )


def enumeration(
    context: RequestContext,
    *,
    echo: str,
    name: str,
    items: Sequence[bytes],
    next_marker: str,
    attributes: str = "",
    behind: str = "",
) -> Response:
    """A page of items in an element of this name.

    ``attributes`` are those of the root beside the address of the service, ``behind`` comes last.
    """
    start = (
        '<?xml version="1.0" encoding="utf-8"?>'
        f'<EnumerationResults ServiceEndpoint="{escape_attribute(context.endpoint)}"{attributes}>{echo}<{name}>'
    )
    end = f"</{name}><NextMarker>{next_marker}</NextMarker>{behind}</EnumerationResults>"
    body = b"".join((start.encode(), *items, end.encode()))
    return Response(200, [("Content-Type", "application/xml")], body)


def _echo_of(context: RequestContext, limit: int) -> str:
    """The parameters of the request, which the response repeats."""
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
