"""Which URLs are read as those of this server: those of hosts that it really serves."""

from dataclasses import replace

import pytest

from kyanite.services.blob.service import blob_service
from tests.services.harness import Harness
from tests.services.tokens import blob_token

BLOCK = {"x-ms-blob-type": "BlockBlob"}


@pytest.fixture
def served(blobs: Harness) -> Harness:
    """The harness as a server that listens on two ports."""
    blobs.environment = replace(blobs.environment, services_by_port={10000: "blob", 10003: "file"})
    blobs.service = blob_service(blobs.environment)
    return blobs


async def make(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/box/src", BLOCK, b"0123456789")


FOREIGN = [
    "http://somewhereelse:10000/acme",
    "http://localhost:9/acme",
    "http://127.0.0.1:9/acme",
    "http://localhost/acme",
    "https://localhost/acme",
    "http://localhost.:10000/acme",
    "http://127.0.0.2:10000/acme",
    "http://acme.blob.core.windows.net:10000",
    "https://core.windows.net/acme",
    "https://unknown.blob.core.windows.net",
    "http://acme.blob.localhost:9",
    "http://acme.blob.localhost",
    "http://acme.queue.localhost:10000",
]
NO_HOSTS = [
    "http://acme.blob.core.windows.net@127.0.0.1:10000",
    "http://localhost@localhost:10000/acme",
    "http://user:word@localhost:10000/acme",
    "http://localhost:10000\\@elsewhere/acme",
    "http://elsewhere\\@localhost:10000/acme",
    "http://local\thost:10000/acme",
    "http://localhost:10000,elsewhere/acme",
    "http://localhost:/acme",
    "http:///acme",
    "ftp://localhost:10000/acme",
]
OURS = [
    "http://localhost:10000/acme",
    "HTTP://LocalHost:10000/acme",
    "https://localhost:10000/acme",
    "http://127.0.0.1:10000/acme",
    "http://[::1]:10000/acme",
    "http://acme.blob.localhost:10000",
    "http://acme.blob.localhost:10003",
    "https://acme.blob.core.windows.net",
]


@pytest.mark.parametrize("base", [*FOREIGN, *NO_HOSTS, *OURS])
@pytest.mark.parametrize("kind", [{}, BLOCK, {"x-ms-requires-sync": "true"}])
async def test_only_urls_of_this_server_are_read(served: Harness, base: str, kind: dict[str, str]) -> None:
    await make(served)
    token = blob_token(served, "src")
    answer = await served("PUT", "/box/dst", kind | {"x-ms-copy-source": f"{base}/box/src?{token}"})
    if base in OURS:
        assert answer.status in {201, 202}, answer
    else:
        expected = (404, "CannotVerifyCopySource") if base in FOREIGN else (400, "InvalidHeaderValue")
        assert (answer.status, answer.code) == expected


@pytest.mark.parametrize(
    ("host", "base", "status"),
    [
        ("storage.example", "https://storage.example/acme", 202),
        ("storage.example", "https://acme.blob.storage.example", 202),
        ("storage.example:20000", "http://storage.example:20000/acme", 202),
        ("storage.example:20000", "http://storage.example:20003/acme", 404),
        ("storage.example:20000", "http://localhost:20000/acme", 404),
        ("storage.example:20000", "http://localhost:10000/acme", 202),
        ("storage.example", "https://acme.blob.core.windows.net", 202),
    ],
)
async def test_the_name_of_the_request_is_a_name_of_this_server(
    served: Harness, host: str, base: str, status: int
) -> None:
    await make(served)
    answer = await served("PUT", "/box/dst", {"Host": host, "x-ms-copy-source": f"{base}/box/src"})
    assert answer.status == status
