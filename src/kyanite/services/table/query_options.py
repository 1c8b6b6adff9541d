"""The options of a query: ``$top``, ``$select``, and those that Azure does not support."""

from typing import Final

from kyanite.services.rest.context import RequestContext
from kyanite.wire.malformed import Malformed, bad_parameter, parameter_out_of_range

MAX_TOP: Final = 1000
MAX_SELECTED: Final = 255
_DIGITS_MAX: Final = 9
_KNOWN: Final = frozenset(("$filter", "$select", "$top", "$format"))


def has_options(context: RequestContext) -> bool:
    """Whether there may be options. Point queries seldom have any, but a token has many parameters."""
    query = context.request.query
    return "$" in query or "%24" in query


def check_options(parameters: dict[str, str]) -> None:
    """Refuse the options of OData that Azure does not support: ``$orderby``, ``$skip``, ``$count`` and so on."""
    for name in parameters:
        if name[:1] == "$" and name not in _KNOWN:
            raise Malformed("NotImplemented", Reason=f"The query option {name} is not supported.")


def top_of(parameters: dict[str, str]) -> int:
    """The maximum number of results of a page. It may be 0: Storage Explorer sends that."""
    text = parameters.get("$top")
    if text is None:
        return MAX_TOP
    digits = text.strip()
    if not (digits.isascii() and digits.lstrip("-").isdigit()):
        raise bad_parameter("$top", text)
    if len(digits) > _DIGITS_MAX or not 0 <= int(digits) <= MAX_TOP:
        raise parameter_out_of_range("$top", text, 0, MAX_TOP)
    return int(digits)


def selected_of(parameters: dict[str, str]) -> tuple[str, ...] | None:
    """The names of the selected properties, None for all."""
    names = tuple(name.strip() for name in parameters.get("$select", "").split(",") if name.strip())
    if not names or "*" in names:
        return None
    if len(names) > MAX_SELECTED:
        raise bad_parameter(
            "$select", parameters["$select"], f"At most {MAX_SELECTED} properties can be selected."
        )
    for name in names:
        if not name.isidentifier():
            raise Malformed(
                "InvalidInput", Reason=f"No property can be named '{name}', so none can be selected."
            )
    return tuple(dict.fromkeys(names))
