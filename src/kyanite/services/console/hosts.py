"""Which hosts a browser may name. A page of another site can point a name of its own at this machine (DNS rebinding)
and then read what the console answers; but its requests have that name in their Host header.
"""

import ipaddress
from collections.abc import Collection

from kyanite.wire import uri
from kyanite.wire.malformed import Malformed


def host_name(header: str) -> str:
    """The name or address in a Host header, in lower case and without the port; empty if it is no such header."""
    try:
        uri.decode_authority(header)
    except Malformed:
        return ""
    name = header.lower()
    return name[: name.index("]") + 1] if name.startswith("[") else name.partition(":")[0]


def is_allowed(name: str, hosts: Collection[str], *, is_on_loopback: bool) -> bool:
    """A console on loopback is reached by loopback addresses and ``localhost`` only. Elsewhere every address is fine,
    since no other site has an address for its name, and of names those that are known."""
    if name in hosts:
        return True
    address = _address(name)
    if address is None:
        return name == "localhost"
    return address.is_loopback or not is_on_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None
