"""Keys, passwords, signatures and bearer tokens never reach the log of a real server, whatever is logged."""

import base64
import http.client
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from smbprotocol.exceptions import SMBException

from tests.faults.client import token_of
from tests.server_process import ServerProcess, eventually
from tests.signed_tokens import claims_at, signed
from tests.smb.messages import connected
from tests.smb.programs import Login
from tests.smb.torture.targets import login_of

WRONG_KEY = base64.b64encode(b"a wrong key that is as long as others" * 2).decode()


def test_no_secret_is_logged(tmp_path: Path) -> None:
    with ServerProcess(
        "--log-requests", "--log-level", "debug", "--workers", "1", location=tmp_path
    ) as server:
        token = token_of(server)
        signature = parse_qs(token)["sig"][0]
        _send(server, token, signature)
        for key in (server.account_key, WRONG_KEY):
            with suppress(HttpResponseError):
                _client(server, key).create_container(f"box{len(key)}")
            with suppress(SMBException):
                login = login_of(server)
                with connected(Login(login.port, login.user, key), "nothing"):
                    pass
        eventually(lambda: sum(line["message"] == "request" for line in server.log) >= 5)
        server.stop()
        log = server.errors
    for secret in (signature, server.account_key, WRONG_KEY, "SharedKey "):
        assert secret not in log
        assert secret not in unquote(log), "percent-encoded, it is the same secret"
    assert "sig=..." in log


def test_no_bearer_token_is_logged(tmp_path: Path) -> None:
    """Good ones, bad ones, in the wrong place and of a source; an issuer that is dead is logged without them."""
    good, bad = signed(claims_at(time.time())), signed(claims_at(time.time(), exp=1))
    tokens = (good, bad, f"{good}.{good}", "x" * 20_000, "not.a.token")
    with ServerProcess(
        "--log-requests", "--log-level", "debug", "--workers", "1", "--dev-identity", "any", location=tmp_path
    ) as server:
        parts = urlsplit(server.endpoints["blob"])
        for token in tokens:
            for target, headers in (
                (f"{parts.path}/box?restype=container", {"Authorization": f"Bearer {token}"}),
                (f"{parts.path}/box/a", {"x-ms-copy-source-authorization": f"Bearer {token}"}),
                (f"/nobody/box/a?access_token={token[:100]}", {"Authorization": f"bearer  {token}"}),
                (f"{parts.path}/box/a", {"Authorization": f"Basic {token}"}),
            ):
                source = {
                    "x-ms-copy-source": f"{server.endpoints['blob']}/box/b",
                    "x-ms-version": "2025-07-05",
                }
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
                connection.request("PUT", target, b"", {**source, **headers})
                body = connection.getresponse().read().decode()
                assert token not in body
                connection.close()
        eventually(lambda: sum(line["message"] == "request" for line in server.log) >= 15)
        server.stop()
        log = server.errors
    for token in tokens:
        assert token not in log
        assert token.split(".")[-1] not in log or len(token.split(".")[-1]) < 20
    assert "Bearer " not in log


def _client(server: ServerProcess, key: str) -> BlobServiceClient:
    return BlobServiceClient(server.endpoints["blob"], credential=key, retry_total=0)


def _send(server: ServerProcess, token: str, signature: str) -> None:
    """Signatures in the query, of another account, in a copy source, in a header and in nonsense."""
    parts = urlsplit(server.endpoints["blob"])
    source = f"{server.endpoints['blob']}/box/source?{token}"
    for target, headers in (
        (f"{parts.path}/box/blob?{token}", {"x-ms-blob-type": "BlockBlob"}),
        (f"/nobody/box/blob?{token}", {}),
        (f"{parts.path}/box/blob?{token}", {"x-ms-copy-source": source}),
        (f"{parts.path}/box?comp={quote(signature)}&{token}", {"Authorization": f"SharedKey a:{signature}"}),
    ):
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.request("PUT", target, b"", headers)
        connection.getresponse().read()
        connection.close()
