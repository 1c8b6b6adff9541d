"""Lists that come in pages: how many, from where, and the marker that continues them.

A marker is opaque to clients. Ours is the name at which the next page begins, in a form that survives any URL.
"""

import base64
import binascii
from collections.abc import Mapping

from kyanite.wire.malformed import bad_parameter, parameter_out_of_range

MAX_RESULTS = 5000
_MARK = "1!"


def max_results_of(parameters: Mapping[str, str]) -> int:
    """How many results were asked for; more than the most is the most."""
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


def marker_of(parameters: Mapping[str, str]) -> str:
    """The name that a marker stands for; empty when none was sent."""
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


def includes_of(parameters: Mapping[str, str], allowed: frozenset[str]) -> frozenset[str]:
    """The parts that a listing is asked to include, in lower case."""
    text = parameters.get("include")
    if not text:
        return frozenset()
    parts = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    if not parts <= allowed:
        raise bad_parameter("include", text)
    return parts
