"""One request on its way through a service, with everything that a handler needs to know of it."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from kyanite.model.accounts import Account
from kyanite.rules.authorization import AnonymousPrincipal, Principal
from kyanite.services.rest.environment import Environment
from kyanite.values import Instant
from kyanite.wire.http import Request
from kyanite.wire.uri import Target

_UNAUTHENTICATED: Final = AnonymousPrincipal()
_NO_OVERRIDES: Final[Mapping[str, str]] = {}


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


class Location:
    """What a path names. A plain class, because one is made for every request."""

    __slots__ = ("container", "keys", "object_name", "resource")

    def __init__(
        self,
        resource: Resource,
        container: str = "",
        object_name: str = "",
        keys: tuple[str, str] = ("", ""),
    ) -> None:
        self.resource: Final = resource
        self.container: Final = container
        self.object_name: Final = object_name
        self.keys: Final = keys


Locate = Callable[[Request, Target, dict[str, str]], Location]
"""Finds what the path of a request names, from the request, its target and the parameters of its query."""


class RequestContext:
    """Made for every request, of an anonymous caller; ``authenticate`` fills in who it is. All else stays as it is.

    A plain class, because mypyc makes a fast one of it; handlers look into it dozens of times for each request.
    """

    __slots__ = (
        "account",
        "container",
        "environment",
        "headers",
        "keys",
        "now",
        "object_name",
        "overrides",
        "parameters",
        "principal",
        "request",
        "request_id",
        "resource",
        "store",
        "target",
        "version",
    )

    def __init__(
        self,
        environment: Environment,
        request: Request,
        target: Target,
        account: Account,
        parameters: dict[str, str],
        version: str,
        location: Location,
    ) -> None:
        self.request: Final = request
        self.environment: Final = environment
        self.account: Final = account
        self.store: Final = account.store
        """Where the account's data is."""
        self.target: Final = target
        self.headers: Final = request.headers
        """The request's headers, names in lower case."""
        self.parameters: Final = parameters
        """The query, names in lower case, values decoded."""
        self.version: Final = version
        """The protocol version in force, as ``YYYY-MM-DD``: versions compare as texts."""
        self.resource: Final = location.resource
        """The kind of resource that the path names."""
        self.container: Final = location.container
        """The container, queue, table or share that the path names; empty at the level of the service."""
        self.object_name: Final = location.object_name
        """What the path names inside it, decoded; empty when it names the container itself."""
        self.keys: Final = location.keys
        """Partition key and row key, where the path names an entity."""
        self.request_id: Final = request.request_id
        self.now = Instant(0)
        """When the terms of a signature were checked; 0 without any."""
        self.principal: Principal = _UNAUTHENTICATED
        self.overrides: Mapping[str, str] = _NO_OVERRIDES
        """Headers of the response to a GET that a shared access signature replaces: lower-case name to value."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written: on the secondary, or because the account is read-only."""
        return self.target.secondary or self.account.settings.read_only

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
