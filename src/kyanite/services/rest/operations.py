"""An operation as a row of a table, and finding the row of a request.

The table of a service reads like the REST reference. It drives dispatch, authorisation and the names in logs and
metrics. Where the reference distinguishes operations by a header, the order of the rows counts: the first whose
``when`` is fulfilled.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kyanite.rules.authorization import Access
from kyanite.services.rest.context import RequestContext, Resource
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_parameter

Handle = Callable[[RequestContext], Awaitable[Response]]

# What the caller needs, and what a row waits for, in the tables of several services.
ANY_TOKEN: Final = Access(account="* *", service="*", role="*")
BREAKS: Final = "x-ms-lease-action: break"


def delegation_key(service: str, since: str) -> Access:
    """What Get User Delegation Key needs."""
    return Access(role=f"{service}Services/generateUserDelegationKey", role_since=since, bearer_only=True)


async def not_yet(_: RequestContext) -> Response:
    """The handler of operations in the reference that this server does not have yet."""
    raise Malformed("NotImplemented")


def query(restype: str = "", comp: str = "") -> dict[str, str]:
    """The parameters that name an operation."""
    return {"restype": restype, "comp": comp}


@dataclass(frozen=True, slots=True)
class Op:
    name: str
    methods: str
    """The verbs, separated by a space."""
    resource: Resource
    query: Mapping[str, str]
    """The values of ``restype`` and ``comp`` that name the operation."""
    handle: Handle
    access: Access
    """What the caller needs, by the kind of its credentials, and whether the operation writes."""
    when: str = ""
    """Headers that the request must have for this row, joined by `` & ``; ``name: value`` for a certain value. A
    name with a question mark before it is that of a query parameter."""

    def needs(self) -> tuple[tuple[str, str, bool], ...]:
        """``when`` parsed: name, value in lower case (empty: any), and whether it is a query parameter."""
        parts = [part.partition(": ") for part in self.when.split(" & ") if part]
        return tuple((name.lstrip("?"), value.lower(), name.startswith("?")) for name, _, value in parts)


class Router:
    """Finds the row for a request in a fixed number of steps."""

    def __init__(self, operations: Iterable[Op]) -> None:
        self._rows: dict[
            tuple[Resource, str, str, str], list[tuple[tuple[tuple[str, str, bool], ...], Op]]
        ] = {}
        self._verbs: dict[tuple[Resource, str, str], set[str]] = {}
        for op in operations:
            restype, comp = op.query.get("restype", ""), op.query.get("comp", "")
            for method in op.methods.split():
                self._rows.setdefault((op.resource, method, restype, comp), []).append((op.needs(), op))
                self._verbs.setdefault((op.resource, restype, comp), set()).add(method)
        self._comps = {comp for _, _, comp in self._verbs}
        self._restypes = {restype for _, restype, _ in self._verbs}

    def find(
        self, resource: Resource, method: str, parameters: dict[str, str], headers: dict[str, str]
    ) -> Op:
        restype, comp = parameters.get("restype", ""), parameters.get("comp", "")
        if restype or comp:
            restype, comp = restype.lower(), comp.lower()
        for needs, op in self._rows.get((resource, method, restype, comp), ()):
            for name, value, is_parameter in needs:
                given = parameters.get(name) if is_parameter else headers.get(name)
                if given is None or (value and given.lower() != value):
                    break
            else:
                return op
        raise self._unknown(resource, method, restype, comp)

    def _unknown(self, resource: Resource, method: str, restype: str, comp: str) -> Malformed:
        if (resource, restype, comp) in self._verbs:
            return Malformed("UnsupportedHttpVerb")
        if restype not in self._restypes:
            return bad_parameter("restype", restype)
        if comp not in self._comps:
            return bad_parameter("comp", comp)
        if method not in {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"}:
            return Malformed("UnsupportedHttpVerb")
        return Malformed("InvalidUri") if not comp else bad_parameter("comp", comp)
