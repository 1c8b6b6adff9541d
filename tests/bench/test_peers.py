"""Servers that end in the middle of a run."""

from pathlib import Path
from time import sleep

from bench.load.single_request import send_request
from bench.servers import processes
from bench.servers.peers import Receiver, Server


def is_answered(server: Server) -> bool:
    send_request(server.site, b"PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 201)
    return True


def test_a_server_that_has_ended_is_started_on_an_empty_folder(tmp_path: Path) -> None:
    server = Receiver(tmp_path / "receiver")
    server.start()
    try:
        assert is_answered(server)
        (server.folder / "left over").touch()
        (pid,) = server.pids
        processes.kill(pid)
        while not server.has_ended:
            sleep(0.01)
        server.start_anew()
        assert not (server.folder / "left over").exists()
        assert is_answered(server)
    finally:
        server.stop()
