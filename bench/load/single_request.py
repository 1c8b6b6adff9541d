"""One request outside of any measurement: to prepare a row, and to check the answers of a server."""

import socket

from bench.load.answers import CHUNKED, INCOMPLETE, body_of, length_of
from bench.load.lane import expecting
from bench.load.site import Site

TIMEOUT_SECONDS = 240.0


def send_request(site: Site, request: bytes, status: int) -> bytes:
    """Send a request on a connection of its own; the body of the answer, which must have that status."""
    with socket.create_connection((site.host, site.port), TIMEOUT_SECONDS) as connection:
        connection.sendall(request)
        answer = _whole_answer(connection)
    if not answer.startswith(expecting(status)):
        line, body = (
            answer.split(b"\r\n", 1)[0].decode(),
            answer.partition(b"\r\n\r\n")[2][:400].decode("latin-1"),
        )
        target = request.split(b"?", 1)[0].decode("latin-1")
        raise RuntimeError(f"{target} was answered with {line} {body}")
    return body_of(answer)


def _whole_answer(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    missing = 0
    while piece := connection.recv(1 << 20):
        pieces.append(piece)
        missing -= len(piece)
        if missing > 0:
            continue
        data = b"".join(pieces)
        length = length_of(data)
        if length == CHUNKED and data.endswith(b"\r\n0\r\n\r\n"):
            return data
        if length not in (INCOMPLETE, CHUNKED):
            missing = length - len(data)
            if missing <= 0:
                return data
    raise ConnectionError("the server closed the connection before its answer was complete")
