"""A way through to an object store that a test can make read-only, as an operator does who takes a permission away."""

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

_REFUSAL = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>"


class ReadOnlyGateway:
    """Forwards each request. While ``is_read_only``, those of some methods are refused."""

    def __init__(self, port: int) -> None:
        self.is_read_only = False
        self.methods = {"PUT", "POST", "DELETE"}
        self.refused: list[str] = []
        """Methods and paths."""
        gateway = self

        class Handler(_Handler):
            def refuses(self) -> bool:
                return gateway._refuses(self.command, self.path)

        Handler.target_port = port
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _refuses(self, method: str, path: str) -> bool:
        if not self.is_read_only or method not in self.methods:
            return False
        self.refused.append(f"{method} {path}")
        return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target_port = 0

    def refuses(self) -> bool:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Callable[[], None]:
        """The base class looks for a handler of each method."""
        if name.startswith("do_"):
            return self._forward
        raise AttributeError(name)

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.refuses():
            self._send(403, {"Content-Type": "application/xml"}, _REFUSAL)
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.target_port, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            data = found.read()
            self._send(found.status, dict(found.getheaders()), data)
        finally:
            connection.close()

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        length = headers.pop("Content-Length", str(len(body))) if self.command == "HEAD" else str(len(body))
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass
