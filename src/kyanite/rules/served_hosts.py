"""Whether the host of a URL is this server, which fetches nothing from others.

A server is known by the name under which the request reached it, whatever proxies and port mappings are in between, and
by the addresses it listens on. A host of the form ``{account}.{service}.{domain}`` counts by its domain: each name
below it that a request can have is as good as another.
"""

from collections.abc import Collection
from typing import NamedTuple

AZURE_DOMAINS = frozenset(("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net"))
"""The Azure CLI names the source of a copy by its account and the domain of its cloud, wherever the account is."""

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))


class Host(NamedTuple):
    domain: str
    """A name or an address, in lower case, without account and service."""
    port: int | None = None
    """None for the usual port of the scheme."""


def is_served(
    host: Host, own: Host, names: Collection[str], ports: Collection[int], *, names_account: bool = False
) -> bool:
    """``own`` is where the request was sent, ``names`` and ``ports`` are where the server listens.

    ``names_account``: the host has the form ``{account}.{service}.{domain}``, with an account of this server.
    """
    if host == own:
        return True
    if names_account and host.port is None and host.domain in AZURE_DOMAINS:
        return True
    return host.port in ports and (host.domain == own.domain or host.domain in names)
