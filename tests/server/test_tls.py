"""TLS: a server that speaks it, and files it cannot be made of."""

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kyanite.server.config import Tls
from kyanite.server.failures import BadUsage
from kyanite.server.tls import tls_context
from tests.server.http.certificates import write_certificate
from tests.server.stand_in import PROGRAM
from tests.server_process import ServerProcess


def test_server_with_tls(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    args = ["--cert", str(cert), "--key", str(key), "--services", "blob", "--admin-port", "0"]
    with ServerProcess(*args, location=tmp_path / "store", program=PROGRAM) as server:
        address = urlsplit(server.endpoints["blob"])
        assert address.scheme == "https"
        assert urlsplit(server.endpoints["admin"]).scheme == "http"
        assert address.hostname is not None
        with socket.create_connection((address.hostname, address.port or 0), timeout=30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP/")
        trusting = ssl.create_default_context(cafile=str(cert))
        client = http.client.HTTPSConnection(address.hostname, address.port, timeout=30, context=trusting)
        try:
            for _ in range(2):
                client.request("GET", f"{address.path}/drip?pieces=2")
                assert client.getresponse().read() == b"dropdrop"
        finally:
            client.close()
        assert server.stop() == 0


def test_unusable_files(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    _, other_key = write_certificate(tmp_path, "other")
    locked_cert, locked_key = write_certificate(tmp_path, "locked", b"password")
    text = tmp_path / "text"
    text.write_text("neither a certificate nor a key\n")
    gone = tmp_path / "gone"
    cases = [
        (gone, key, f"Cannot read {gone}: No such file or directory."),
        (cert, gone, f"Cannot read {gone}: No such file or directory."),
        (tmp_path, key, f"Cannot read {tmp_path}: Is a directory."),
        (text, key, f"There is no usable certificate in {text} with a usable key in {key}."),
        (cert, text, f"There is no usable certificate in {cert} with a usable key in {text}."),
        (cert, other_key, f"The key in {other_key} does not belong to the certificate in {cert}."),
        (locked_cert, locked_key, f"The key in {locked_key} is protected by a password; give one without."),
    ]
    for given_cert, given_key, sentence in cases:
        with pytest.raises(BadUsage) as refused:
            tls_context(Tls(given_cert, given_key))
        assert refused.value.sentence == sentence
