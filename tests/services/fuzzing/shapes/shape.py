"""The shape of an operation's requests, and making a valid request of one.

A row of the table of operations has the method, the query and the headers that name the operation. A ``Shape`` adds
what else its requests have: the path as a template of names, headers and parameters that are needed or may be there,
and the body. Names stand for themselves, ``?name`` for a query parameter, ``name=value`` for a certain value, and
``name:kind`` for a value of another kind than the name says.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kyanite.services.rest.operations import Op
from tests.services.fuzzing.bodies import BODIES
from tests.services.fuzzing.request import Credentials, FuzzRequest
from tests.services.fuzzing.scope import NAMES, Scope
from tests.services.fuzzing.values import VALUES

_NAME = re.compile(r"\{(\w+)\}")
_OPTIONAL = 0.06
"""How likely an optional part is there."""
_MISSING = frozenset(
    [
        "x-ms-encryption-scope",
        "versionid",
        "deletetype",
        "include:missing-include",
    ]
)
"""Features that this server refuses: seldom there, since nothing else of the request matters then."""

CONDITIONS = "if-match if-none-match if-modified-since if-unmodified-since"
COMMON = "?timeout x-ms-client-request-id origin"


@dataclass(frozen=True, slots=True)
class Shape:
    path: str
    needs: str = ""
    may: str = ""
    body: str = ""
    """The kind of body in ``bodies.py``; empty for none."""
    weight: float = 1.0
    """How often the operation is chosen, compared with others."""


def shape_of(shapes: Mapping[str, Shape], op: Op) -> Shape:
    """Operations with several rows may have a shape for each."""
    for key in (f"{op.name} [{op.when}]", f"{op.name} @{op.resource.value}", op.name):
        if key in shapes:
            return shapes[key]
    raise KeyError(f"There is no shape for {op.name} of {op.resource}, when {op.when!r}.")


def build(scope: Scope, shape: Shape, op: Op) -> FuzzRequest:
    """A request that the operation should accept if the state of the store allows it."""
    scope.path = _NAME.sub(lambda match: NAMES[match[1]](scope), shape.path)
    request = FuzzRequest(scope.service, op.name, scope.one(*op.methods.split()), scope.path)
    request.query = [(name, value) for name, value in op.query.items() if value]
    for name, value, is_parameter in op.needs():
        given = value or VALUES[name](scope)
        (request.query if is_parameter else request.headers).append((name, given))
    if op.access.bearer_only:
        request.credentials = Credentials.BEARER
    present = {name for name, _ in request.headers}
    for part in shape.needs.split():
        _add(scope, request, part, present)
    for part in f"{shape.may} {COMMON}".split():
        if scope.likely(0.005 if part.lstrip("?") in _MISSING else _OPTIONAL):
            _add(scope, request, part, present)
    _add_known_lease(scope, request, shape)
    if shape.body:
        BODIES[shape.body](scope, request)
    if scope.facts.get("md5"):
        request.set_header("Content-MD5", base64.b64encode(hashlib.md5(request.body).digest()).decode())
    if not request.header("x-ms-version") and scope.likely(0.99):
        request.headers.append(("x-ms-version", VALUES["x-ms-version"](scope)))
    return request


def _add(scope: Scope, request: FuzzRequest, part: str, present: set[str]) -> None:
    name, equals, value = part.partition("=")
    name, _, kind = name.partition(":")
    bare = name.removeprefix("?")
    if bare in present:
        return
    given = value if equals else VALUES[kind or bare](scope)
    if name.startswith("?"):
        request.query.append((bare, given))
    else:
        request.headers.append((bare, given.encode().decode("latin-1")))
        present.add(bare)


def _add_known_lease(scope: Scope, request: FuzzRequest, shape: Shape) -> None:
    """Most writes of what is leased name the lease."""
    known = scope.pool.lease_of(scope.service, scope.path)
    accepts = "x-ms-lease-id" in shape.may.split()
    if known and accepts and request.header("x-ms-lease-id") is None and scope.likely(0.7):
        request.headers.append(("x-ms-lease-id", known))
