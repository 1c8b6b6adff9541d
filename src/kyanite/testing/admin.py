"""Requests to ``/testing`` on the admin port of a server, with JSON both ways."""

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_ANSWER_SECONDS = 120.0


class KitError(Exception):
    """The server refused what the test kit sent; the message is its sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class AdminPort:
    """Every request has a connection of its own, so threads may share this."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        name: str = "",
        query: dict[str, object] | None = None,
    ) -> Any:
        """The decoded answer, None if it is empty. Raises a KitError."""
        given = {key: value for key, value in (query or {}).items() if value is not None}
        target = f"/testing/{path}" + (f"/{quote(name)}" if name else "")
        if given:
            target += f"?{urlencode(given)}"
        connection = http.client.HTTPConnection(self._address, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, target, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise KitError(answer.status, _sentence(text))
        return json.loads(text) if text else None


def _sentence(text: bytes) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace")
