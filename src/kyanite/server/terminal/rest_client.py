"""A small client of the REST services, for commands: signed requests on connections that stay open, one per thread.

It talks to the server that the management socket described, so over TLS it knows the certificate to expect.
"""

import http.client
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote, urlencode, urlsplit

from kyanite.engine.clock import wall_clock
from kyanite.server.failures import Failure
from kyanite.server.site import ServerDescription
from kyanite.server.terminal.paths import RemotePath
from kyanite.wire import http_date
from kyanite.wire.shared_key import SharedKey, Signable, encode_authorization, sign, string_to_sign
from kyanite.wire.uri import decode_query, decode_target

VERSION = "2026-04-06"
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.2
_RETRIED = frozenset((500, 502, 503, 504))
_PIECE_BYTES = 256 * 1024
_ELEMENT = re.compile(rb"<(?:m:)?(?:Message|message)[^>]*>([^<\n]*)")


class RequestFailed(Failure):
    """The server refused a request. The sentence is the server's."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class RestClient:
    """For one service and one account. Every request may be sent again, so all that is sent must be harmless twice."""

    def __init__(
        self,
        server: ServerDescription,
        service: str,
        account: str,
        *,
        key: bytes | None = None,
        token: str = "",
    ) -> None:
        self._service = service
        self._account = account
        self._key = key
        self._token = token
        self._base = urlsplit(server.endpoint(service, account))
        self._certificate = server.certificate
        self._of_thread = threading.local()
        self._open: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._open:
            connection.close()

    def url(self, path: RemotePath) -> str:
        """Where clients find it."""
        return f"{self._base.scheme}://{self._base.netloc}{self._path(path)}"

    def send(
        self,
        method: str,
        path: RemotePath,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """The whole answer. Raises RequestFailed if the server refuses."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with_body = self._request(method, path, query or {}, headers or {}, body)
                answer = Answer(with_body.status, _headers(with_body), with_body.read())
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if attempt == _ATTEMPTS or isinstance(error, ssl.SSLError):
                    raise Failure(f"The server cannot be reached: {error}.") from None
            else:
                if answer.status not in _RETRIED or attempt == _ATTEMPTS:
                    break
            time.sleep(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
        if answer.status >= 400:
            raise _failure(answer, path)
        return answer

    def stream(self, path: RemotePath, headers: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The content of a blob or file, a piece at a time. What breaks off fails: it is not begun again."""
        try:
            response = self._request("GET", path, {}, headers or {}, b"")
            if response.status >= 400:
                raise _failure(Answer(response.status, _headers(response), response.read()), path)
            while piece := response.read(_PIECE_BYTES):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            if isinstance(error, BrokenPipeError):
                raise
            raise Failure(f"The server has ended the transfer of {path}: {error}.") from None

    def _request(
        self, method: str, path: RemotePath, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> http.client.HTTPResponse:
        raw_path = self._path(path)
        text = urlencode(query, quote_via=quote, safe="")
        sent = {
            "host": self._base.netloc,
            "x-ms-version": VERSION,
            "x-ms-date": http_date.encode(wall_clock()),
            "content-length": str(len(body)),
            "user-agent": "kyanite",
            **{name.lower(): value for name, value in headers.items()},
        }
        sent["authorization"] = self._authorization(method, raw_path, text, sent)
        connection = self._connection()
        connection.putrequest(method, f"{raw_path}?{text}" if text else raw_path, True, True)
        for name, value in sent.items():
            connection.putheader(name, value.encode("utf-8"))
        connection.endheaders(body or None)
        return connection.getresponse()

    def _authorization(self, method: str, path: str, query: str, headers: dict[str, str]) -> str:
        if self._key is None:
            return f"Bearer {self._token}"
        target = decode_target(headers["host"], path, self._service)
        signable = Signable(method, target, decode_query(query), headers, VERSION)
        signature = sign(self._key, string_to_sign(signable, lite=False))
        return encode_authorization(SharedKey(False, self._account, signature))

    def _path(self, path: RemotePath) -> str:
        inside = "/".join(part for part in (path.container, path.name) if part)
        return f"{self._base.path}/{quote(inside, safe='/~')}"

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._connect()
            self._of_thread.connection = connection
            self._open.append(connection)
        return connection

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._base.hostname or "", self._base.port
        if self._base.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
        # The server's own certificate is known, so neither its name nor who signed it matters.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        if connection.sock.getpeercert(binary_form=True) != self._expected_certificate():
            connection.close()
            raise Failure(f"The server shows another certificate than the one in {self._certificate}.")
        return connection

    def _expected_certificate(self) -> bytes:
        try:
            with open(self._certificate, encoding="ascii") as file:
                text = file.read()
            end = "-----END CERTIFICATE-----"
            return ssl.PEM_cert_to_DER_cert(
                text[text.index("-----BEGIN CERTIFICATE") : text.index(end)] + end
            )
        except (OSError, ValueError):
            raise Failure(f"The certificate of the server, {self._certificate}, cannot be read.") from None

    def _drop(self) -> None:
        connection: http.client.HTTPConnection | None = getattr(self._of_thread, "connection", None)
        self._of_thread.connection = None
        if connection is not None:
            connection.close()
            with suppress(ValueError):
                self._open.remove(connection)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _failure(answer: Answer, path: RemotePath) -> RequestFailed:
    code = answer.headers.get("x-ms-error-code", str(answer.status))
    message = _ELEMENT.search(answer.body)
    sentence = unquote(message[1].decode("utf-8", "replace")).strip().rstrip(".") if message else ""
    text = f"{path}: {code}" + (f": {sentence}." if sentence else ".")
    request_id = answer.headers.get("x-ms-request-id")
    if answer.status == 403 and request_id:
        text += f" 'kyanite explain {request_id}' says why."
    return RequestFailed(answer.status, code, text)
