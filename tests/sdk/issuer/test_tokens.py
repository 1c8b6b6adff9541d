"""Tokens by themselves: restarts, workers, a self-made one, and times that pass."""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import jwt
import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import BlobServiceClient

from kyanite.server.issuer import assertions
from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT
from kyanite.server.issuer.clients import DEVELOPMENT_TENANT as TENANT
from tests.sdk.issuer.environment import kyanite_token
from tests.server_process import ServerProcess

OPTIONS = ("--dev-identity", "builtin", "--services", "blob", "--workers", "2")


class StaticToken:
    """What many users of emulators write: a credential that has its token already."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


def status_of(server: ServerProcess, token: str, *, scheme: str = "https") -> int:
    """What a list of containers over a connection of its own is answered with."""
    parts = urlsplit(server.endpoints["blob"])
    host = parts.hostname or ""
    if scheme == "https":
        context = ssl.create_default_context(cafile=server.endpoints["identity_ca"])
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, parts.port, timeout=60, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "x-ms-version": "2023-11-03"}
    connection.request("GET", f"{parts.path}?comp=list", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_restart_keeps_tokens_valid(tmp_path: Path) -> None:
    with ServerProcess(*OPTIONS, location=tmp_path) as server:
        token = kyanite_token(server)
        assert status_of(server, token) == 200
        port = str(urlsplit(server.endpoints["identity"]).port)
        server.kill9()
        server.start("--identity-port", port)
        assert status_of(server, token) == 200


def test_every_worker_accepts_a_token(issuing: ServerProcess) -> None:
    token = kyanite_token(issuing)
    assert len(issuing.worker_pids()) == 2
    assert {status_of(issuing, token) for _ in range(30)} == {200}
    # Any worker may have checked the right one already; none takes that for a check of this one.
    head, claims, signature = token.split(".")
    wrong = ".".join((head, claims, signature[:-8] + "AAAAAAAA"))
    assert {status_of(issuing, wrong) for _ in range(30)} == {401}


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_token_over_tls_and_plain_http_of_loopback(issuing: ServerProcess, scheme: str) -> None:
    assert status_of(issuing, kyanite_token(issuing), scheme=scheme) == 200


def test_a_principal_without_roles_is_known_but_may_do_nothing(issuing: ServerProcess) -> None:
    token = kyanite_token(issuing, "--principal", "88888888-8888-4888-8888-888888888888")
    assert status_of(issuing, token) == 403


def test_a_token_of_another_server_is_refused(issuing: ServerProcess, tmp_path: Path) -> None:
    with ServerProcess(*OPTIONS, location=tmp_path) as other:
        token = kyanite_token(other)
        assert status_of(other, token) == 200
        assert status_of(issuing, token) == 401


def move_clock(server: ServerProcess, seconds: int) -> None:
    body = json.dumps({"advance_seconds": seconds}).encode()
    with urlopen(Request(f"{server.endpoints['admin']}/testing/clock", body), timeout=60):
        pass


def token_of_the_endpoint(server: ServerProcess, **credential: str) -> str:
    """A token for the development client, by its secret or by another credential."""
    client = DEVELOPMENT_CLIENT
    form = {
        "grant_type": "client_credentials",
        "client_id": client.id,
        "scope": "https://storage.azure.com/.default",
        **(credential or {"client_secret": client.secrets[0]}),
    }
    url = f"{server.endpoints['identity']}/{TENANT}/oauth2/v2.0/token"
    context = ssl.create_default_context(cafile=server.endpoints["identity_ca"])
    with urlopen(Request(url, urlencode(form).encode()), timeout=60, context=context) as answer:
        return str(json.load(answer)["access_token"])


def test_tokens_expire_when_the_clock_moves(tmp_path: Path) -> None:
    """On every worker, after the usual tolerance of five minutes. New ones are good, however they are made."""
    with ServerProcess(*OPTIONS, "--testing", location=tmp_path) as server:
        old = [kyanite_token(server, "--expires", "1h"), token_of_the_endpoint(server)]
        move_clock(server, 3600)
        assert {status_of(server, token) for token in old for _ in range(6)} == {200}
        move_clock(server, 301)
        assert {status_of(server, token) for token in old for _ in range(6)} == {401}
        move_clock(server, 86_400)
        assertion = kyanite_token(server, "--audience", "api://AzureADTokenExchange")
        by_assertion = {"client_assertion_type": assertions.TYPE, "client_assertion": assertion}
        new = [
            kyanite_token(server),
            token_of_the_endpoint(server),
            token_of_the_endpoint(server, **by_assertion),
        ]
        assert {status_of(server, token) for token in new for _ in range(6)} == {200}


# --dev-identity any


@pytest.fixture(scope="module")
def credulous(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    options = ("--dev-identity", "any", "--services", "blob", "--workers", "1")
    with ServerProcess(*options, location=tmp_path_factory.mktemp("credulous")) as started:
        yield started


def self_made(**changes: object) -> str:
    now = int(time.time())
    claims = {
        "iss": "https://sts.windows.net/11111111-1111-4111-8111-111111111111/",
        "aud": "https://storage.azure.com",
        "iat": now,
        "nbf": now - 60,
        "exp": now + 3600,
        "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
        "tid": "11111111-1111-4111-8111-111111111111",
        **changes,
    }
    return jwt.encode(claims, "a secret that nobody else knows, of 32 bytes", "HS256")


def test_a_self_made_token_where_any_is_accepted(credulous: ServerProcess) -> None:
    """Over TLS, because the official client sends tokens so only; the server has made a certificate."""
    url = credulous.endpoints["blob"].replace("http:", "https:")
    service = BlobServiceClient(
        url, StaticToken(self_made()), connection_verify=credulous.endpoints["identity_ca"], retry_total=0
    )
    with service:
        container = service.create_container("mine")
        container.upload_blob("a", b"content")
        assert container.download_blob("a").readall() == b"content"
    assert "identity" not in credulous.endpoints


@pytest.mark.parametrize(
    "token",
    [
        self_made(exp=1),
        self_made(aud="https://elsewhere.example.org"),
        self_made(iss="https://elsewhere.example.org"),
        "not a token",
        base64.b64encode(b"not a token").decode(),
    ],
)
def test_some_tokens_are_not_even_accepted_there(credulous: ServerProcess, token: str) -> None:
    url = credulous.endpoints["blob"].replace("http:", "https:")
    service = BlobServiceClient(
        url, StaticToken(token), connection_verify=credulous.endpoints["identity_ca"], retry_total=0
    )
    with service, pytest.raises(ClientAuthenticationError):
        service.get_account_information()


def test_plain_http_as_before(credulous: ServerProcess) -> None:
    assert urlsplit(credulous.endpoints["blob"]).scheme == "http"
    with BlobServiceClient.from_connection_string(credulous.connection_string) as service:
        assert list(service.list_containers(name_starts_with="none")) == []
