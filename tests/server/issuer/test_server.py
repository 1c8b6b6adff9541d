"""A server with the built-in issuer: its ports, its files, restarts, and ``kyanite token``."""

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
import pytest

from tests.server.http.certificates import write_certificate
from tests.server.issuer.issuers import CLIENT_ID, SECRET, STORAGE, TENANT, with_secret
from tests.server_process import ServerFailed, ServerProcess, eventually, is_alive

BUILTIN = ("--dev-identity", "builtin", "--services", "blob", "--workers", "1")
OTHER_OID = "77777777-7777-4777-8777-777777777777"


def fetch(
    url: str,
    authority: str,
    *,
    form: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """Status and JSON of an answer over TLS or without, as the URL says."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=authority)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=30, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    headers = dict(headers or {})
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    try:
        body = None if form is None else urlencode(form)
        connection.request("GET" if form is None else "POST", f"{parts.path}?{parts.query}", body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    finally:
        connection.close()


def key_of(server: ServerProcess) -> Any:
    url = f"{server.endpoints['identity']}/{TENANT}/discovery/v2.0/keys"
    return fetch(url, server.endpoints["identity_ca"])[1]["keys"][0]


def token_of(server: ServerProcess, authority: str = "") -> str:
    url = f"{server.endpoints['identity']}/{TENANT}/oauth2/v2.0/token"
    status, fields = fetch(url, authority or server.endpoints["identity_ca"], form=with_secret())
    assert status == 200, fields
    token: str = fields["access_token"]
    return token


def run_token(location: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kyanite.server.cli", "token", "--location", str(location), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def claims_of(token: str, server: ServerProcess) -> dict[str, Any]:
    row = key_of(server)
    claims: dict[str, Any] = jwt.decode(
        token, jwt.PyJWK(row).key, algorithms=["RS256"], options={"verify_aud": False}
    )
    return claims


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ServerProcess(*BUILTIN, location=tmp_path_factory.mktemp("store")) as started:
        yield started
        assert not [line for line in started.log if line.get("level") in {"error", "critical"}]


def test_the_ready_line_has_all_that_a_client_needs(server: ServerProcess) -> None:
    endpoints = server.endpoints
    assert urlsplit(endpoints["identity"]).scheme == "https"
    assert urlsplit(endpoints["managed_identity"]).scheme == "http"
    assert urlsplit(endpoints["blob"]).scheme == "https"
    assert Path(endpoints["identity_ca"]) == server.location / "identity" / "ca.pem"


def test_others_can_read_no_key(server: ServerProcess) -> None:
    folder = server.location / "identity"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_a_token_from_each_port(server: ServerProcess) -> None:
    claims = claims_of(token_of(server), server)
    assert (claims["iss"], claims["appid"]) == (f"{server.endpoints['identity']}/{TENANT}/v2.0", CLIENT_ID)
    url = f"{server.endpoints['managed_identity']}/metadata/identity/oauth2/token"
    query = urlencode({"api-version": "2018-02-01", "resource": STORAGE})
    status, fields = fetch(f"{url}?{query}", "", headers={"Metadata": "true"})
    assert status == 200
    assert claims_of(fields["access_token"], server)["oid"] == claims["oid"]


def test_the_services_take_plain_http_and_tls_on_one_port(server: ServerProcess) -> None:
    for scheme in ("http", "https"):
        url = server.endpoints["blob"].replace("https", scheme)
        parts = urlsplit(url)
        context = ssl.create_default_context(cafile=server.endpoints["identity_ca"])
        plain = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        secure = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=30, context=context)
        connection = plain if scheme == "http" else secure
        connection.request(
            "GET", f"{parts.path}/none?restype=container", headers={"x-ms-version": "2021-12-02"}
        )
        assert connection.getresponse().status in (401, 404)
        connection.close()


def test_the_managed_identity_port_has_no_tls_and_the_other_nothing_else(server: ServerProcess) -> None:
    parts = urlsplit(server.endpoints["identity"])
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP/")
    with pytest.raises((ssl.SSLError, OSError)):
        fetch(server.endpoints["managed_identity"].replace("http", "https"), server.endpoints["identity_ca"])


def test_a_request_that_is_too_long(server: ServerProcess) -> None:
    url = f"{server.endpoints['identity']}/{TENANT}/oauth2/v2.0/token"
    status, fields = fetch(url, server.endpoints["identity_ca"], form={"a": "1" * 70_000})
    assert (status, fields["error"]) == (413, "invalid_request")


def test_a_restart_keeps_the_key_the_certificate_and_the_name(tmp_path: Path) -> None:
    with ServerProcess(*BUILTIN, location=tmp_path) as server:
        port = str(urlsplit(server.endpoints["identity"]).port)
        key, token = key_of(server), token_of(server)
        authority = Path(server.endpoints["identity_ca"]).read_bytes()
        server.stop()
        server.start("--identity-port", port)
        assert key_of(server) == key
        assert Path(server.endpoints["identity_ca"]).read_bytes() == authority
        claims = claims_of(token, server)
        assert claims["iss"] == claims_of(token_of(server), server)["iss"]
        server.stop()
        command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(tmp_path)]
        assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def issuer_pid(server: ServerProcess) -> int:
    return next(
        pid for pid in server.child_pids() if Path(f"/proc/{pid}/comm").read_text() == "kyanite issuer\n"
    )


def test_an_issuer_that_died_is_started_again(tmp_path: Path) -> None:
    with ServerProcess(*BUILTIN, location=tmp_path) as server:
        key, pid = key_of(server), issuer_pid(server)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid))
        eventually(lambda: _answers(server))
        assert key_of(server) == key
        assert server.stop() == 0


def _answers(server: ServerProcess) -> bool:
    try:
        return bool(key_of(server))
    except OSError:
        return False


def test_a_certificate_that_was_given(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    options = (*BUILTIN, "--cert", str(cert), "--key", str(key))
    with ServerProcess(*options, location=tmp_path / "store") as server:
        assert "identity_ca" not in server.endpoints
        assert token_of(server, str(cert))
        names = {path.name for path in (server.location / "identity").iterdir()}
        assert "signing-key.pem" in names
        assert names.isdisjoint({"ca.pem", "ca-key.pem", "server.pem", "server-key.pem"})
        # A server that was given a certificate means it: there is no plain HTTP besides.
        parts = urlsplit(server.endpoints["blob"])
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP/")


def test_neither_secrets_nor_tokens_are_logged(tmp_path: Path) -> None:
    options = (*BUILTIN, "--log-requests", "--log-level", "debug")
    with ServerProcess(*options, location=tmp_path) as server:
        token = token_of(server)
        assertion = run_token(server.location, "--audience", "api://AzureADTokenExchange").stdout.strip()
        endpoint = f"{server.endpoints['identity']}/{TENANT}/oauth2/v2.0/token"
        authority = server.endpoints["identity_ca"]
        type_name = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        good = with_secret(client_secret=None, client_assertion=assertion, client_assertion_type=type_name)
        for form in (
            good,
            {**good, "client_assertion": assertion[:-8]},
            with_secret(client_secret="a guess"),
        ):
            fetch(endpoint, authority, form=form)
        fetch(
            f"{server.endpoints['managed_identity']}/msi/token", "", headers={"X-IDENTITY-HEADER": "a guess"}
        )
        headers = {"Authorization": f"Bearer {token}", "x-ms-version": "2023-11-03"}
        parts = urlsplit(server.endpoints["blob"])
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=30, context=context
        )
        connection.request("GET", f"{parts.path}?comp=list", headers=headers)
        assert connection.getresponse().status == 200
        connection.close()
        assert server.stop() == 0
        logged = server.errors
    assert "List Containers" in logged
    for secret in (SECRET, "a guess", token.split(".")[2], assertion.split(".")[2][:-8]):
        assert secret not in logged


def test_in_memory() -> None:
    with ServerProcess("--in-memory", "--dev-identity", "builtin", "--services", "blob") as server:
        authority = Path(server.endpoints["identity_ca"])
        assert token_of(server)
        server.stop()
        assert not authority.exists()


def test_by_the_environment(tmp_path: Path) -> None:
    names = ("DEV_IDENTITY", "IDENTITY_PORT", "MANAGED_IDENTITY_PORT", "SERVICES")
    variables = {
        f"KYANITE_{name}": value for name, value in zip(names, ("builtin", "0", "0", "blob"), strict=True)
    }
    with ServerProcess(location=tmp_path, environment=variables) as server:
        assert token_of(server)


@pytest.mark.parametrize("mode", ["builtin", "any"])
def test_on_loopback_only(tmp_path: Path, mode: str) -> None:
    key = "bXkgb3duIGtleQ=="
    options = ("--dev-identity", mode, "--host", "0.0.0.0", "--account", f"mine:{key}")
    with pytest.raises(ServerFailed) as failed:
        ServerProcess(*options, location=tmp_path).start()
    assert failed.value.code == 2
    assert f"--dev-identity {mode} would let in everyone who can reach 0.0.0.0" in failed.value.errors


def test_ports_that_collide_or_are_in_use(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="Port 1234 is used twice, by identity and by managed identity"):
        ServerProcess(
            *BUILTIN, "--identity-port", "1234", "--managed-identity-port", "1234", location=tmp_path
        ).start()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(ServerFailed, match="meant for the identity port, is taken by another program"):
            ServerProcess(*BUILTIN, "--identity-port", port, location=tmp_path).start()


def test_a_damaged_key_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "identity"
    folder.mkdir()
    (folder / "signing-key.pem").write_text("nothing")
    with pytest.raises(ServerFailed) as failed:
        ServerProcess(*BUILTIN, location=tmp_path).start()
    assert (failed.value.code, failed.value.errors.count("\n")) == (1, 1)
    assert "There is no usable RSA key" in failed.value.errors


# kyanite token


def test_a_token_for_scripts(server: ServerProcess) -> None:
    ran = run_token(server.location)
    assert ran.returncode == 0, ran.stderr
    claims = claims_of(ran.stdout.strip(), server)
    issued = claims_of(token_of(server), server)
    assert claims["exp"] - claims["iat"] == 3600
    assert {name: claims[name] for name in ("iss", "aud", "oid", "sub", "tid", "appid", "idtyp", "ver")} == {
        name: issued[name] for name in ("iss", "aud", "oid", "sub", "tid", "appid", "idtyp", "ver")
    }


def test_a_token_for_another_principal(server: ServerProcess) -> None:
    options = ("--principal", OTHER_OID, "--group", "staff", "--audience", "api://mine", "--expires", "2h")
    claims = claims_of(run_token(server.location, *options).stdout.strip(), server)
    assert (claims["oid"], claims["groups"], claims["aud"]) == (OTHER_OID, ["staff"], "api://mine")
    assert (claims["idtyp"], claims["exp"] - claims["iat"]) == ("user", 7200)
    assert "appid" not in claims


@pytest.mark.parametrize("principal", ["development", CLIENT_ID, CLIENT_ID.upper()])
def test_a_principal_by_name_or_id(server: ServerProcess, principal: str) -> None:
    claims = claims_of(run_token(server.location, "--principal", principal).stdout.strip(), server)
    assert claims["appid"] == CLIENT_ID


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--principal", "alice"), "The issuer knows no principal 'alice', and that is no object id."),
        (("--expires", "0"), "--expires is a time from 1s to 365d"),
        (("--expires", "366d"), "--expires is a time from 1s to 365d"),
        (("--expires", "soon"), "--expires is a time from 1s to 365d"),
        (("--audience", "storage"), "--audience is to be a URI or the id of an application."),
    ],
)
def test_no_token_for_bad_options(server: ServerProcess, options: tuple[str, ...], sentence: str) -> None:
    ran = run_token(server.location, *options)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert sentence in ran.stderr


def test_no_token_without_an_issuer(tmp_path: Path) -> None:
    ran = run_token(tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "has no development issuer" in ran.stderr
