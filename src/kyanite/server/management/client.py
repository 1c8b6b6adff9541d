"""Sends a command to the server of a store, through the socket in its folder."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kyanite.server.failures import Failure
from kyanite.server.management import unix_socket
from kyanite.server.management.messages import RequestMessage, decode_result, encode

ANSWER_SECONDS = 120.0
_PIECE_BYTES = 1 << 16


def call(location: Path, command: str, **arguments: object) -> Any:
    """The result of a command, as JSON has it. Raises a Failure with the sentence of the server.

    An argument that is None is left out.
    """
    return call_within(ANSWER_SECONDS, location, command, arguments)


def call_within(seconds: float, location: Path, command: str, arguments: Mapping[str, object]) -> Any:
    """The same, for a caller that does not wait as long."""
    given = {name: value for name, value in arguments.items() if value is not None}
    with unix_socket.connect(location) as connection:
        connection.settimeout(seconds)
        try:
            connection.sendall(encode(RequestMessage(command, given)))
            answer = _read_all(connection)
        except TimeoutError:
            raise Failure(
                "The server has not answered in time. It may still carry out the command."
            ) from None
        except OSError as error:
            raise Failure(f"The server has not answered: {error.strerror}.") from None
    try:
        message = decode_result(answer)
    except msgspec.DecodeError:
        raise Failure("The server ended before it answered. It may have carried out the command.") from None
    if message.failure is not None:
        failure = Failure(message.failure)
        failure.exit_code = message.exit_code
        raise failure
    return message.result


def _read_all(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(_PIECE_BYTES):
        pieces.append(piece)
    return b"".join(pieces)
