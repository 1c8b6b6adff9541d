"""``python -m bench.servers.receiver FOLDER``: receives bodies, writes them to a file, syncs it, and that is all.

What a server can reach at most that has a body on disk before it answers. Each connection has a thread and a file; a
file that has become long is begun anew. Every answer is 201. The port is printed.
"""

import os
import socket
import sys
import threading
from pathlib import Path

_BUFFER_BYTES = 1 << 20
_FILE_BYTES = 1 << 28
_ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


def main() -> None:
    folder = Path(sys.argv[1])
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server_socket:
        print(server_socket.getsockname()[1], flush=True)
        number = 0
        while True:
            connection, _ = server_socket.accept()
            arguments = (connection, folder / f"received-{number}")
            threading.Thread(target=_serve, args=arguments, daemon=True).start()
            number += 1


def _serve(connection: socket.socket, path: Path) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    written = 0
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while (received := _head(connection, buffer)) is not None:
            length, body = received
            if written + length > _FILE_BYTES:
                os.ftruncate(file, 0)
                written = 0
            written += _write_body(connection, buffer, file, written, length, body)
            connection.sendall(_ANSWER)
    finally:
        connection.close()
        os.close(file)
        path.unlink()


def _head(connection: socket.socket, buffer: memoryview) -> tuple[int, bytes] | None:
    """The length of the next body, and what of it came with the head; None when the client is gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv_into(buffer)
        if not received:
            return None
        data += buffer[:received]
    head, _, body = data.partition(b"\r\n\r\n")
    length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
    return int(length or 0), body


def _write_body(
    connection: socket.socket, buffer: memoryview, file: int, start: int, length: int, begun: bytes
) -> int:
    done = os.pwrite(file, begun, start)
    while done < length:
        received = connection.recv_into(buffer, min(length - done, _BUFFER_BYTES))
        if not received:
            break
        done += os.pwrite(file, buffer[:received], start + done)
    if length:
        os.fdatasync(file)
    return done


if __name__ == "__main__":
    main()
