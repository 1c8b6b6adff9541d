"""A page, or a change, as a row of a table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kyanite.services.console.visit import Visit
from kyanite.wire.http import Response

Handle = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handle: Handle
    is_upload: bool = False
    """Whether the body is the content of a file, and no form: it is passed on as it comes."""
    is_sign_in: bool = False


def table(*routes: Route) -> dict[tuple[str, str], Route]:
    return {(route.method, route.path): route for route in routes}
