"""The bare loop writes every byte before it answers."""

import socket
import subprocess
import sys
from pathlib import Path


def test_the_receiver_writes_and_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.servers.receiver", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                body = bytes(range(256)) * 8192
                connection.sendall(b"PUT / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                assert connection.recv(1024).startswith(b"HTTP/1.1 201 ")
                (file,) = tmp_path.iterdir()
                assert file.read_bytes() == body
        finally:
            process.kill()
