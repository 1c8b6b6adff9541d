"""Connection strings: what clients take instead of addresses and credentials."""

from base64 import b64encode
from collections.abc import Collection
from urllib.parse import urlsplit

from kyanite.server.failures import BadUsage
from kyanite.server.site import ServerDescription

NAMES = {
    "blob": "BlobEndpoint",
    "queue": "QueueEndpoint",
    "table": "TableEndpoint",
    "file": "FileEndpoint",
    "dfs": "DfsEndpoint",
}
"""What a connection string calls the endpoint of each service."""


def connection_string(
    server: ServerDescription,
    account: str,
    key: bytes | None,
    *,
    services: Collection[str] = (),
    host: str | None = None,
    sas: str | None = None,
) -> str:
    """Of these services, or all that are offered. ``host`` makes it host style: ``account.service.host``.

    With a ``sas`` it holds that instead of a key.
    """
    chosen = [name for name in NAMES if name in (services or server.services)]
    urls = {name: endpoint_of(server, name, account, host=host) for name in chosen}
    parts: list[tuple[str, str]] = []
    if sas is None:
        assert key is not None
        protocol = next((urlsplit(url).scheme for url in urls.values()), "http")
        parts += [
            ("DefaultEndpointsProtocol", protocol),
            ("AccountName", account),
            ("AccountKey", b64encode(key).decode("ascii")),
        ]
    parts += [(NAMES[name], url) for name, url in urls.items()]
    if sas is not None:
        parts.append(("SharedAccessSignature", sas))
    return ";".join(f"{name}={value}" for name, value in parts)


def endpoint_of(server: ServerDescription, service: str, account: str, *, host: str | None = None) -> str:
    """The URL of a service for an account, in path style, or in host style below a host name."""
    if service not in server.services:
        offered = ", ".join(name for name in NAMES if name in server.services)
        raise BadUsage(f"The server does not offer the {service} service. It offers {offered}.")
    if host is None:
        return server.endpoint(service, account)
    base = urlsplit(server.services[service])
    return f"{base.scheme}://{account}.{service}.{host}:{base.port}"
