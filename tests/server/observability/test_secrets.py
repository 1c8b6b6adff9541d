"""Keys, passwords and signatures never reach the log of a real server, whatever is logged."""

import base64
import http.client
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from smbprotocol.exceptions import SMBException

from tests.faults.client import token_of
from tests.server_process import ServerProcess, eventually
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
