"""A server that speaks TLS and accepts any well-formed token, as the emulator's users know it."""

from collections.abc import Iterator

import pytest

from tests.server.http.certificates import write_certificate
from tests.server_process import ServerProcess


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    cert, key = write_certificate(tmp_path_factory.mktemp("tls"))
    return str(cert), str(key)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[str, str]) -> Iterator[ServerProcess]:
    cert, key = certificate
    options = ["--workers", "2", "--cert", cert, "--key", key, "--dev-identity", "any"]
    with ServerProcess(*options, location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


@pytest.fixture(autouse=True)
def trusted_certificate(certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0])
