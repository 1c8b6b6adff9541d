"""The socket for commands: ``management.sock`` in the folder of a store, for the user that the server runs as.

The address of such a socket has about a hundred bytes, and the path of a folder may be longer. So both sides name it
relative to the folder, which they enter for a moment. Processes that do this have one thread.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kyanite.server.failures import Failure

NAME = "management.sock"
_BACKLOG = 16
_ONLY_OWNER = 0o177


def open_socket(folder: Path) -> socket.socket:
    """A non-blocking listening socket. The caller holds the lock of the store, so one that is there is a leftover."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _inside(folder):
            Path(NAME).unlink(missing_ok=True)
            mask = os.umask(_ONLY_OWNER)
            try:
                listener.bind(NAME)
            finally:
                os.umask(mask)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise Failure(f"Cannot make the socket {folder / NAME}: {error.strerror}.") from None
    listener.setblocking(False)
    return listener


def remove_socket(folder: Path) -> None:
    with suppress(OSError):
        (folder / NAME).unlink()


def connect(folder: Path) -> socket.socket:
    """A blocking connection to the server of this folder. Fails with a sentence if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _inside(folder):
            connection.connect(NAME)
    except PermissionError:
        connection.close()
        raise Failure(f"The server of {folder} takes commands of the user that it runs as only.") from None
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        connection.close()
        raise Failure(f"No server is running on {folder}, so it can take no command.") from None
    except OSError as error:
        connection.close()
        raise Failure(f"The server of {folder} cannot be reached: {error.strerror}.") from None
    return connection


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
