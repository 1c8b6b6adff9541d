"""The official client with the network taken away: what it writes, and what it makes of an answer."""

from typing import Any

import requests
from azure.core.pipeline.transport import HttpRequest, RequestsTransport, RequestsTransportResponse
from azure.storage.blob import BlobServiceClient

from tests.wire.sdk_signing import ACCOUNT, KEY_TEXT


class Canned(RequestsTransport):  # type: ignore[misc]
    """Keeps the last request and answers it with what was prepared."""

    def __init__(self, status: int = 200, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        super().__init__()
        self.status = status
        self.body = body
        self.headers = {"Content-Type": "application/xml", **(headers or {})}
        self.last: HttpRequest | None = None

    def send(self, request: Any, **_: Any) -> Any:
        self.last = request
        answer = requests.Response()
        answer.status_code = self.status
        answer.reason = "as prepared"
        answer._content = self.body
        answer.headers.update(self.headers)
        return RequestsTransportResponse(request, answer)

    def sent_body(self) -> bytes:
        assert self.last is not None
        body = self.last.body
        assert isinstance(body, bytes)
        return body


def client(transport: Canned) -> BlobServiceClient:
    url = f"http://127.0.0.1:10000/{ACCOUNT}"
    return BlobServiceClient(url, credential=KEY_TEXT, transport=transport, retry_total=0)
