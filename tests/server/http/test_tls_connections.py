"""The same front end behind TLS, with a certificate made for the occasion."""

import datetime
import ipaddress
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kyanite.server.http.limits import Limits
from kyanite.wire.http import FileSlice, Request, Response
from tests.server.http.blocking_client import read_some, read_to_end, statuses, until
from tests.server.http.live_server import LiveHttp, Pieces

GET = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def server_context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def client_context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate[0]))


@pytest.fixture
def content(tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    data = os.urandom(3_000_000)
    (tmp_path / "content").write_bytes(data)
    fd = os.open(tmp_path / "content", os.O_RDONLY)
    yield fd, data
    os.close(fd)


def secure(live: LiveHttp, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(live.connect(), server_hostname="127.0.0.1")


def test_up_and_down(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, content: tuple[int, bytes]
) -> None:
    fd, data = content

    async def echo(request: Request) -> Response:
        assert request.secure
        received = await request.body.read_all(10_000_000)
        assert received == data
        pieces = Pieces(b"<", FileSlice(fd, 1000, len(data) - 1000), memoryview(b">"))
        return Response(200, body=pieces, length=len(data) - 998)

    head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(data)
    with (
        LiveHttp(echo, ssl_context=server_context) as live,
        live.nothing_left(),
        secure(live, client_context) as client,
    ):
        for _ in range(2):
            client.sendall(head + data)
            answer = read_some(client, data[-1000:] + b">")
            assert answer.partition(b"\r\n\r\n")[2] == b"<" + data[1000:] + b">"


def test_a_slow_reader_bounds_what_is_read_ahead(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, content: tuple[int, bytes]
) -> None:
    fd, data = content
    count = 20

    async def download(request: Request) -> Response:
        return Response(200, body=Pieces(*[FileSlice(fd, 0, len(data))] * count), length=count * len(data))

    with LiveHttp(download, ssl_context=server_context) as live, live.nothing_left():
        with secure(live, client_context) as client:
            client.sendall(GET)
            until(lambda: live.server.stats.bytes_out > 0)
            assert client.recv(1)
            assert live.server.stats.bytes_out < 20_000_000
            body = read_to_end(client).partition(b"\r\n\r\n")[2]
        assert len(body) == count * len(data)
        assert body.endswith(data)


def test_a_refusal_is_read_by_a_client_that_is_still_sending(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext
) -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, body=b"no")

    with (
        LiveHttp(refuse, ssl_context=server_context) as live,
        live.nothing_left(),
        secure(live, client_context) as client,
    ):
        client.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n")
        for _ in range(100):
            client.sendall(b"x" * 100_000)
        assert b"Connection: close\r\n" in read_some(client, b"no")


def test_what_is_no_handshake_is_dropped(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext
) -> None:
    async def answer(request: Request) -> Response:
        return Response(200)

    with LiveHttp(answer, ssl_context=server_context) as live, live.nothing_left():
        assert statuses(live.talk(GET)) == []
        with secure(live, client_context) as client:
            client.sendall(GET)
            assert statuses(read_to_end(client)) == [200]


def test_a_handshake_that_stalls(server_context: ssl.SSLContext) -> None:
    async def answer(request: Request) -> Response:
        return Response(200)

    limits = Limits(head_seconds=0.2)
    with LiveHttp(answer, ssl_context=server_context, limits=limits) as live, live.connect() as client:
        client.sendall(b"\x16\x03\x01")
        assert client.recv(1) == b""
