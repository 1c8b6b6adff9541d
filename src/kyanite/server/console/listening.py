"""The socket of the console."""

import socket

from kyanite.server.config import ConsoleConfig
from kyanite.server.failures import Failure
from kyanite.server.sockets import open_listener


def open_console(console: ConsoleConfig) -> socket.socket | None:
    """None if the port was not chosen by the operator and cannot be had: several servers may run on one machine."""
    try:
        return open_listener(console.host, console.port, "the console")
    except Failure:
        if console.is_stated:
            raise
        return None
