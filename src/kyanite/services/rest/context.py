"""One request on its way through a service, with everything that a handler needs to know of it."""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from kyanite.model.accounts import Account, Store
from kyanite.rules.authorization import AnonymousPrincipal, Principal
from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Request
from kyanite.wire.uri import Target

_UNAUTHENTICATED = AnonymousPrincipal()
_NO_OVERRIDES: Mapping[str, str] = {}


class Resource(StrEnum):
    """The kinds of resources that a path names. A container may be a queue, table or share, an object a message.

    They are texts because each request looks one up, and other enumerations have a hash in Python.
    """

    SERVICE = "service"
    CONTAINER = "container"
    OBJECT = "object"
    MESSAGES = "messages"
    """The messages of a queue."""
    TABLES = "tables"
    """The tables of an account."""
    ENTITIES = "entities"
    """The entities of a table."""
    BATCH = "batch"
    """Several requests in one, where that has a path of its own."""


class Location(msgspec.Struct, frozen=True, gc=False):
    """What a path names. A struct, because one is made for every request."""

    resource: Resource
    container: str = ""
    object_name: str = ""
    keys: tuple[str, str] = ("", "")


Locate = Callable[[Request, Target, Mapping[str, str]], Location]
"""Finds what the path of a request names, from the request, its target and the parameters of its query."""


class RequestContext(msgspec.Struct, frozen=True, eq=False):
    """Made whole by ``new_context``, and never changed: authentication makes a new one with the principal."""

    request: Request
    environment: Environment
    account: Account
    store: Store
    """Where the account's data is."""
    target: Target
    headers: Mapping[str, str]
    """The request's headers, names in lower case."""
    parameters: Mapping[str, str]
    """The query, names in lower case, values decoded."""
    version: str
    """The protocol version in force, as ``YYYY-MM-DD``: versions compare as texts."""
    resource: Resource
    """The kind of resource that the path names."""
    container: str
    """The container, queue, table or share that the path names; empty at the level of the service."""
    object_name: str
    """What the path names inside it, decoded; empty when it names the container itself."""
    keys: tuple[str, str]
    """Partition key and row key, where the path names an entity."""
    request_id: str
    principal: Principal = _UNAUTHENTICATED
    overrides: Mapping[str, str] = _NO_OVERRIDES
    """Headers of the response to a GET that a shared access signature replaces: lower-case name to value."""

    @property
    def endpoint(self) -> str:
        """The service's address as this client wrote it, ending in a slash."""
        target = self.target
        scheme = "https" if self.request.secure else "http"
        root = f"{scheme}://{self.headers.get('host', '')}/"
        if not target.path_style:
            return root
        return f"{root}{target.account}{'-secondary' if target.secondary else ''}/"

    @property
    def url(self) -> str:
        """The address of what the request names, without its query."""
        scheme = "https" if self.request.secure else "http"
        return f"{scheme}://{self.headers.get('host', '')}{self.request.path}"


def new_context(
    environment: Environment,
    request: Request,
    target: Target,
    account: Account,
    parameters: Mapping[str, str],
    version: str,
    location: Location,
) -> RequestContext:
    """A request of an anonymous caller, which it is until ``authenticate`` has checked its credentials."""
    return RequestContext(
        request,
        environment,
        account,
        account.store,
        target,
        request.headers,
        parameters,
        version,
        location.resource,
        location.container,
        location.object_name,
        location.keys,
        request.request_id,
    )
