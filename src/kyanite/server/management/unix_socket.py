"""The socket for commands: ``management.sock`` in the folder of a store, for the user that the server runs as.

The address of such a socket has about a hundred bytes, and the path of a folder may be longer. Both sides then name it
by a descriptor of the folder. Where the system has no names for descriptors, they enter the folder for a moment, which
processes with one thread can do.
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
_ADDRESS_BYTES_MAX = 100
"""Linux takes 107, other systems fewer."""
_DESCRIPTORS = Path("/proc/self/fd")


def open_socket(folder: Path) -> socket.socket:
    """A non-blocking listening socket. The caller holds the lock of the store, so one that is there is a leftover."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        (folder / NAME).unlink(missing_ok=True)
        with _address(folder) as address:
            mask = os.umask(_ONLY_OWNER)
            try:
                listener.bind(address)
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
        with _address(folder) as address:
            connection.connect(address)
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
def _address(folder: Path) -> Iterator[str]:
    """The socket's address, while it is used."""
    path = str(folder / NAME)
    if len(os.fsencode(path)) <= _ADDRESS_BYTES_MAX:
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _DESCRIPTORS.is_dir():
            yield str(_DESCRIPTORS / str(descriptor) / NAME)
        else:
            with _inside(descriptor):
                yield NAME
    finally:
        os.close(descriptor)


@contextmanager
def _inside(folder: int) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
