"""Stopping: idle connections go at once, what is under way may finish, and what does not finish is cut."""

import asyncio
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kyanite.server.http.limits import Limits
from kyanite.wire.http import BodyError, FileSlice, Request, Response
from tests.server.http.blocking_client import read_some, read_to_end, statuses, until
from tests.server.http.live_server import LiveHttp, Pieces, describe

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def stopping(live: LiveHttp, grace_seconds: float, pool: ThreadPoolExecutor) -> "Future[None]":
    stopped = pool.submit(live.stop, grace_seconds)
    until(lambda: live.server.stopping)
    return stopped


@pytest.fixture
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


def test_idle_connections_are_closed_and_no_new_ones_accepted(pool: ThreadPoolExecutor) -> None:
    limits = Limits(tick_seconds=60)
    with LiveHttp(describe, limits=limits) as live, live.connect() as fresh, live.connect() as used:
        used.sendall(GET)
        read_some(used, b"GET / ")
        until(lambda: live.server.stats.connections_open == 2)
        stopping(live, 10, pool).result(5)
        assert read_to_end(fresh) == read_to_end(used) == b""
        with pytest.raises(ConnectionRefusedError):
            live.connect()


def test_an_upload_under_way_finishes(pool: ThreadPoolExecutor) -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
        until(lambda: live.server.stats.requests_in_flight == 1)
        stopped = stopping(live, 10, pool)
        client.sendall(b"world")
        answer = read_to_end(client)
        assert answer.endswith(b"PUT / helloworld")
        assert b"Connection: close\r\n" in answer
        stopped.result(5)


def test_a_download_under_way_finishes(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 24
    (tmp_path / "content").write_bytes(data)
    fd = os.open(tmp_path / "content", os.O_RDONLY)

    async def download(request: Request) -> Response:
        body = Pieces(FileSlice(fd, 0, len(data)))
        return Response(200, body=body, length=len(data), release=lambda: os.close(fd))

    with LiveHttp(download) as live, live.connect() as client:
        client.sendall(GET)
        begun = client.recv(1000)
        stopped = stopping(live, 10, pool)
        received = begun + read_to_end(client)
        assert received.partition(b"\r\n\r\n")[2] == data
        stopped.result(5)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_head_half_sent_may_be_completed(pool: ThreadPoolExecutor) -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(GET[:10])
        until(lambda: live.server.stats.bytes_in == 10)
        stopped = stopping(live, 10, pool)
        client.sendall(GET[10:])
        assert statuses(read_to_end(client)) == [200]
        stopped.result(5)


def test_an_unread_body_is_read_before_the_end(pool: ThreadPoolExecutor) -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, body=b"no")

    with LiveHttp(refuse, limits=Limits(tick_seconds=0.02)) as live, live.connect() as client:
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
        read_some(client, b"no")
        stopped = stopping(live, 10, pool)
        client.sendall(b"world")
        assert read_to_end(client) == b""
        stopped.result(5)


def test_what_does_not_finish_is_cut(pool: ThreadPoolExecutor) -> None:
    ends: list[str] = []

    async def hang(request: Request) -> Response:
        try:
            if request.method == "PUT":
                await request.body.read_all(100)
            else:
                await asyncio.sleep(60)
        except BaseException as error:
            await asyncio.sleep(0.01)  # Cleaning up takes a moment, and may.
            ends.append(type(error).__name__)
            raise
        return Response(200)

    with LiveHttp(hang) as live, live.connect() as waiting, live.connect() as sending:
        waiting.sendall(GET)
        sending.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
        until(lambda: live.server.stats.requests_in_flight == 2)
        stopping(live, 0.1, pool).result(5)
        assert sorted(ends) == [BodyError.__name__, "CancelledError"]
        assert live.server.stats.requests_in_flight == live.server.stats.connections_open == 0
        assert read_to_end(waiting) == read_to_end(sending) == b""
        assert live.pending_tasks() == 0


def test_a_client_that_lingers_does_not_hold_up_the_stop(pool: ThreadPoolExecutor) -> None:
    with LiveHttp(describe) as live, live.connect() as client:
        client.sendall(b"nonsense")
        assert statuses(read_to_end(client)) == [400]
        stopping(live, 0.1, pool).result(5)
        assert live.server.stats.connections_open == 0


def test_stopping_twice_is_stopping(pool: ThreadPoolExecutor) -> None:
    with LiveHttp(describe) as live:
        live.stop(1)
        live.stop(1)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("asyncio_")]
