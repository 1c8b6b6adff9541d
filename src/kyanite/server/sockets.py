"""Listening sockets: bound once by the supervisor, inherited by every worker.

``SO_REUSEPORT`` is never set, so that a port that is in use is an error and not silently shared
(``docs/decisions/0003-one-socket-and-fair-accept.md``).
"""

import errno
import socket

from kyanite.rules.served_hosts import LOOPBACK
from kyanite.server.failures import BadUsage, Failure

BACKLOG = 1024


def open_listener(host: str, port: int, purpose: str) -> socket.socket:
    """A non-blocking listening socket; port 0 takes a free one."""
    family, address = _resolve(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Only skips the wait for old connections to expire: a port with a listener is still refused.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise Failure(_why(error, host, port, purpose)) from None
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> tuple[str, int]:
    """A host and a port under which the listener can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return (f"[{host}]" if ":" in host else host), port


def names_of(listener: socket.socket) -> frozenset[str]:
    """The names and addresses, as a URL has them, that surely lead to the listener from this machine."""
    host, _ = address_of(listener)
    if listener.getsockname()[0] == "::":
        return LOOPBACK
    return frozenset((host, "localhost")) if host in LOOPBACK else frozenset((host,))


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise BadUsage(f"The host {host!r} has no address.") from None
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def _why(error: OSError, host: str, port: int, purpose: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host}, meant for {purpose}, is taken by another program."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host}, meant for {purpose}, may not be used by this user."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"This machine has no address {host} to listen on."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."
