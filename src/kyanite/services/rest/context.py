"""One request on its way through a service, with everything the handlers may ask of it."""

from collections.abc import Mapping
from enum import Enum

from kyanite.model.accounts import Account, Store
from kyanite.rules.permissions import Grant
from kyanite.services.rest.environment import Environment
from kyanite.wire.http import Request
from kyanite.wire.uri import Target


class Resource(Enum):
    """What a path names. The words are the services' own: a container may be a queue, an object a message."""

    SERVICE = "service"
    CONTAINER = "container"
    OBJECT = "object"
    MESSAGES = "messages"
    """All messages of a queue, as far as a path can name them together."""
    TABLES = "tables"
    """All tables of an account, likewise."""
    ENTITIES = "entities"
    """All entities of a table, likewise."""
    BATCH = "batch"
    """Several requests in one, where a path of its own is for them."""


class RequestContext:
    """Plain slots: one is made for every request."""

    __slots__ = (
        "account",
        "container",
        "environment",
        "grant",
        "headers",
        "keys",
        "object_name",
        "overrides",
        "parameters",
        "request",
        "request_id",
        "resource",
        "store",
        "target",
        "version",
    )

    request: Request
    environment: Environment
    target: Target
    account: Account
    store: Store
    """Where the account's data is."""
    grant: Grant
    headers: Mapping[str, str]
    """The request's headers, names in lower case."""
    parameters: Mapping[str, str]
    """The query, names in lower case, values decoded."""
    resource: Resource
    """What the path names."""
    container: str
    """The container, queue, table or share that the path names; empty at the level of the service."""
    object_name: str
    """What the path names inside it, decoded; empty when it names the container itself."""
    keys: tuple[str, str]
    """Partition key and row key, where the path names an entity."""
    version: str
    """The protocol version in force, as ``YYYY-MM-DD``: versions compare as texts."""
    request_id: str
    overrides: Mapping[str, str]
    """Headers of a GET answer that a shared access signature replaces: lower-case name to value."""

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
