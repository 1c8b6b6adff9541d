"""An issuer on this machine, whose documents a test can change, delay or take away."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackIssuer:
    """An issuer on this machine: documents by path, which a test can change, delay or take away."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes | int] = {}
        self.requests: list[str] = []
        self.delay_seconds = 0.0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append(self.path)
                time.sleep(issuer.delay_seconds)
                found = issuer.documents.get(self.path, 404)
                if isinstance(found, int):
                    self.send_response(found)
                    self.send_header("Location", issuer.url + "/elsewhere")
                    self.end_headers()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(found)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def die(self) -> None:
        self._server.shutdown()
        self._server.server_close()
