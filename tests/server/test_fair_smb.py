"""The SMB front end of a worker: its service is loaded for the first client, once, and others wait for that."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable

import pytest

from kyanite.server.fair_smb import FairSmbServer
from kyanite.server.memory_budget import MemoryBudget
from kyanite.server.processes.process_table import ProcessTable
from kyanite.server.smb.limits import Limits
from kyanite.wire.smb2.transport import Connect, Transport
from tests.server.smb.test_connection import Client, framed, receive, send

MIB = 1024 * 1024


def _echo(transport: Transport, address: str, _port: int) -> Client:
    client = Client(transport, address)
    client.echoes = True
    return client


def _server(load: Callable[[], object], build: Callable[[], Connect] = lambda: _echo) -> FairSmbServer:
    (own,) = ProcessTable(["own"]).slots.values()
    return FairSmbServer(load, build, limits=Limits(), budget=MemoryBudget(MIB), own=own, others=())


def _connect(server: FairSmbServer) -> socket.socket:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    for each in (ours, theirs):
        each.setblocking(False)
    server.accept(theirs)
    return ours


async def test_clients_wait_for_one_loading_in_another_thread() -> None:
    may_end, threads = threading.Event(), list[threading.Thread]()

    def load() -> None:
        threads.append(threading.current_thread())
        assert may_end.wait(20)

    server = _server(load)
    clients = [_connect(server) for _ in range(3)]
    left = _connect(server)
    left.close()
    try:
        for client in clients:
            await send(client, framed(b"hello"))
        async with asyncio.timeout(20):
            while not threads:
                await asyncio.sleep(0)
        assert server.stats.connections_total == 0
        may_end.set()
        for client in clients:
            assert await receive(client, len(framed(b"hello"))) == framed(b"hello")
        assert len(threads) == 1
        assert threads[0] is not threading.main_thread()
    finally:
        may_end.set()
        await server.stop(20)
        for client in clients:
            client.close()


async def test_a_service_that_cannot_be_loaded_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [ImportError("a library is missing")]

    def load() -> None:
        if failures:
            raise failures.pop()

    server = _server(load)
    try:
        with _connect(server) as client:
            assert await receive(client, 1) == b""
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        with _connect(server) as client:
            await send(client, framed(b"hello"))
            assert await receive(client, len(framed(b"hello"))) == framed(b"hello")
    finally:
        await server.stop(20)
